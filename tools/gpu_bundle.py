"""One archive that measures the package on a machine with a card, PyTorch and transformers.

``make gpu-bundle`` writes ``_build/gpu/biaslib_gpu.zip``: the code, the planted checkpoints of seed
0, those that stand for families without one, and the emoji that planted pictures are drawn from.
Nothing is installed or fetched there: unpacked, ``python run_gpu.py --out FOLDER`` is all of it
(:mod:`tools.benchmarks.gpu`). It imports NumPy, SciPy, pandas, Pillow, tqdm and torchvision, too,
which machines for deep learning have, and no package that would have to be carried.
"""

import itertools
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
PLACE = ROOT / "_build" / "gpu" / "biaslib_gpu.zip"

CODE = ("biaslib", "plantedworld", "tools/benchmarks")
LEFT_OUT = re.compile(r"__pycache__|^plantedworld/(checkpoints|training)/|/results/")
CHECKPOINTS = re.compile(r"\w+-dose\d-seed0|(llava|regions|vision)-dose\d-seed\d+")
TONES = range(1, 6)

RUN = """\
\"\"\"Measure the package on this machine: python run_gpu.py --out FOLDER.\"\"\"

from tools.benchmarks.gpu.__main__ import main

if __name__ == "__main__":
    main(commit="{}")
"""


def code_of_emoji() -> set[str]:
    """Return the code points of every emoji that a planted picture can be made of."""
    from plantedworld import _sprites

    people = [*_sprites.role_rows().values(), *_sprites.read_rows("looks.csv")]
    drawn = itertools.product(people, _sprites.GENDERS, TONES)
    things = {row["code"] for row in _sprites.object_rows().values()} - {"drawn"}
    return things | {_sprites.person_code(row, gender, tone) for row, gender, tone in drawn}


def files() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each file of the archive."""
    from plantedworld._sprites import assets

    chosen = [path for folder in CODE for path in (ROOT / folder).rglob("*") if path.is_file()]
    for folder in (ROOT / "plantedworld/checkpoints").iterdir():
        if CHECKPOINTS.fullmatch(folder.name):
            yield from (
                (path.relative_to(ROOT).as_posix(), path.read_bytes()) for path in folder.iterdir()
            )
    for path in [*chosen, ROOT / "LICENSE", ROOT / "README.md"]:
        name = path.relative_to(ROOT).as_posix()
        if not LEFT_OUT.search(name):
            yield name, path.read_bytes()
    for code in code_of_emoji():
        yield f"plantedworld/data/emoji/{code}.png", (assets() / f"{code}.png").read_bytes()
    yield from installed()


def installed() -> Iterator[tuple[str, bytes]]:
    """Yield what makes an unpacked archive look installed, and the script that runs it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    about = f"biaslib-{project['version']}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: biaslib\nVersion: {project['version']}\n"
    profiles = project["entry-points"]["biaslib.profiles"]
    points = "".join(f"{name} = {module}\n" for name, module in profiles.items())
    yield f"{about}/METADATA", metadata.encode()
    yield f"{about}/entry_points.txt", f"[biaslib.profiles]\n{points}".encode()
    command = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    yield "run_gpu.py", RUN.format(commit).encode()


def write(path: Path) -> Path:
    """Write the archive: of the same files, the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as made:
        for name, content in sorted(files()):
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(entry, content)
    return path


def main() -> None:
    """Write the archive, and say how large it is."""
    size = write(PLACE).stat().st_size / 2**20
    print(f"{PLACE.relative_to(ROOT)}, {size:.0f} MiB")


if __name__ == "__main__":
    main()
