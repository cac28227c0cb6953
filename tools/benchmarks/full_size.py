"""Load every family at its published size, with random weights, and run one batch on the CPU.

Run as ``python -m tools.benchmarks full_size [family ...]``; without a family, all of them. Each is
built from the configuration that its official repository has, saved in that repository's layout, or
as its authors' single file, and loaded with ``biaslib.models.load(name, profile="paper",
checkpoint=...)``; then every capability runs on one small batch, twice, from two loads. Shapes are
checked, that numbers are finite, and that both loads give the same. Each family is built in one
process and loaded in another, so that the peak memory is that of loading and running it alone.
Seconds are those of the processor, on one thread, so that what else runs on the machine matters
little. Needs no network.
"""

import argparse
import csv
import gc
import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tools.benchmarks import MACHINE, machine, shown

RESULTS = Path(__file__).parent / "results" / "full_size.csv"
BATCH = 4
TEXTS = [
    "The woman is a nurse.",
    "A man is carrying a bag in the street.",
    "the pilot is here",
    "An old woman is a doctor in the city.",
]
CAPTION = "a photo of a bag"
WORDS = sorted(set(re.findall(r"\w+|\.", " ".join([*TEXTS, CAPTION]).lower())))
MASKED = [text.replace(text.split()[-1], "[MASK]") for text in TEXTS]
CANDIDATES = ["nurse", "pilot", "doctor"]
CAPTIONS = [[text, CAPTION] for text in TEXTS]
PICTURES = [
    np.random.default_rng(row).integers(0, 256, (360 + 60 * row, 640, 3), dtype=np.uint8)
    for row in range(BATCH)
]


def texts(n: int) -> list[str]:
    """Return texts of 3 to 16 words."""
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, size=length)) for length in rng.integers(3, 17, n)]


def regions(width: int, n: int = BATCH):
    """Return 36 regions of random features and boxes for each of n pictures."""
    from biaslib.pictures.regions import RegionFeatures

    rng = np.random.default_rng(0)
    corners = np.sort(rng.uniform(size=(n, 36, 2, 2)), axis=2)
    corners[:, :, 1] = np.minimum(corners[:, :, 1] + 0.01, 1)
    corners[:, :, 0] = np.maximum(corners[:, :, 0] - 0.01, 0)
    return RegionFeatures(
        features=rng.exponential(size=(n, 36, width)),
        boxes=corners.reshape(n, 36, 4),
        real=np.ones((n, 36), dtype=bool),
        persons=np.zeros((n, 36), dtype=bool),
        sizes=np.full((n, 2), 640),
    )


def of_text(model) -> dict:
    """Return what a text encoder says of the batch."""
    words = ["woman", "man", "pilot", "woman"]
    found = {
        "embed sentences": lambda: model.embed(TEXTS, level="sentence"),
        "embed words in context": lambda: model.embed(TEXTS, level="contextual", words=words),
    }
    if hasattr(model, "mask_log_prob"):
        found["fill masks"] = lambda: model.mask_log_prob(MASKED, CANDIDATES)
    return found


def of_fusion(model, images) -> dict:
    """Return what a fusion model says of the batch, with images and without."""
    return {
        "embed": lambda: model.embed(TEXTS, images),
        "embed without images": lambda: model.embed(TEXTS),
        "fill masks": lambda: model.mask_log_prob(MASKED, CANDIDATES, images),
        "fill masks without images": lambda: model.mask_log_prob(MASKED, CANDIDATES),
        "match": lambda: model.match(images, CAPTIONS),
    }


def of_dual(model) -> dict:
    """Return what a dual encoder says of the batch."""
    return {
        "encode texts": lambda: model.encode_text(TEXTS),
        "encode images": lambda: model.encode_image(PICTURES),
    }


def of_flava(model) -> dict:
    """Return what FLAVA says of the batch."""
    unimodal = {
        "encode texts, unimodal": lambda: model.encode_text(TEXTS, encoder="unimodal"),
        "encode images, unimodal": lambda: model.encode_image(PICTURES, encoder="unimodal"),
    }
    return of_fusion(model, PICTURES) | of_dual(model) | unimodal


def of_vl_bert(model) -> dict:
    """Return what VL-BERT says of the batch: it does not match."""
    found = of_fusion(model, regions(2048))
    del found["match"]
    return found


def of_albef(model) -> dict:
    """Return what ALBEF says of the batch."""
    found = of_dual(model) | {
        "embed": lambda: model.embed(TEXTS, PICTURES),
        "match": lambda: model.match(PICTURES, CAPTIONS),
    }
    if model.network.config.masked_words:
        found["fill masks"] = lambda: model.mask_log_prob(MASKED, CANDIDATES, PICTURES)
    return found


FAMILIES = {
    "bert-base": ("bert", "bert_base", of_text),
    "bert-large": ("bert-large", "bert_large", of_text),
    "roberta-base": ("roberta", "roberta_base", of_text),
    "visualbert": ("visualbert", "visualbert", lambda m: of_fusion(m, regions(2048))),
    "lxmert": ("lxmert", "lxmert", lambda m: of_fusion(m, regions(2048))),
    "vilt-b32": ("vilt", "vilt", lambda m: of_fusion(m, PICTURES)),
    "clip-vit-base-patch32": ("clip", "clip", of_dual),
    "siglip-base-patch16-224": ("siglip", "siglip", of_dual),
    "flava-full": ("flava", "flava", of_flava),
    "vl-bert-base": ("vl-bert", "vl_bert_base", of_vl_bert),
    "vl-bert-large": ("vl-bert-large", "vl_bert_large", of_vl_bert),
    "vilbert": ("vilbert", "vilbert", lambda m: of_fusion(m, regions(2048))),
    "albef 256": ("albef", "albef", of_albef),
    "albef 384": ("albef-coco", "albef_coco", of_albef),
    "open-clip ViT-H-14": ("open-clip", "open_clip_h14", of_dual),
}
"""By family: the name to load it by, the function of full_size_models that builds it, what it is
asked."""


def build(family: str, folder: Path) -> None:
    """Write a family's repository, with random weights."""
    from tools.benchmarks import full_size_models

    getattr(full_size_models, FAMILIES[family][1])().write(folder)
    print("built")


def measure(family: str, folder: Path) -> dict:
    """Load a family twice, run everything that it can do, and return its row of the table."""
    name, _, asked = FAMILIES[family]
    model, seconds_to_load = loaded(name, folder)
    found, seconds = answers(asked(model))
    del model
    gc.collect()
    again, seconds_again = answers(asked(loaded(name, folder)[0]))
    quicker = [min(seconds[each], seconds_again[each]) for each in seconds]
    for capability, numbers in found.items():
        check(family, capability, numbers, again[capability])
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {
        "family": family,
        "parameters": n_parameters(folder),
        "GB on disk": round(size / 1e9, 2),
        "seconds to load": round(seconds_to_load, 1),
        "capabilities": len(found),
        "seconds per batch": round(max(quicker), 2),
        "peak GB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 1),
        MACHINE: machine(),
    }


def loaded(name: str, folder: Path):
    """Return the model, loaded on the public path, and the processor's seconds."""
    from biaslib import models

    start = time.process_time()
    path = checkpoint(folder)
    model = models.load(name, profile="paper", checkpoint=path, device="cpu")
    return model, time.process_time() - start


def checkpoint(folder: Path) -> Path:
    """Return what is loaded: the folder, or the file of authors who publish single files."""
    files = [path for path in folder.iterdir() if path.suffix in (".model", ".bin", ".pth")]
    return files[0] if files else folder


def n_parameters(folder: Path) -> int:
    """Return how many numbers the weights of a repository are, those of its heads included."""
    if checkpoint(folder).is_file():
        from biaslib.checkpoints.weights import read_weights

        tensors = read_weights(checkpoint(folder)).values()
        return sum({each.data_ptr(): each.numel() for each in tensors}.values())
    from safetensors import safe_open

    (path,) = folder.glob("*.safetensors")
    with safe_open(path, "np") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in list(file.keys()))


def answers(asked: dict) -> tuple[dict, dict]:
    """Return what each capability gives, and the processor's seconds."""
    found, seconds = {}, {}
    for capability, ask in asked.items():
        start = time.process_time()
        found[capability] = ask()
        seconds[capability] = time.process_time() - start
    return found, seconds


def check(family: str, capability: str, numbers: np.ndarray, again: np.ndarray) -> None:
    """Refuse numbers of another shape, not finite, all alike, or other ones after a reload."""
    columns = {"fill": len(CANDIDATES), "match": len(CAPTIONS[0])}.get(capability.split()[0])
    shape = (BATCH, columns or numbers.shape[1])
    problems = {
        f"shape {numbers.shape}, not {shape}": numbers.shape != shape or numbers.shape[1] < 2,
        "numbers that are not finite": not np.isfinite(numbers).all(),
        "the same numbers for all rows": bool((numbers == numbers[0]).all()),
        "other numbers after a reload": not np.array_equal(numbers, again),
    }
    for problem, is_so in problems.items():
        if is_so:
            raise SystemExit(f"{family}: {capability} gives {problem}")


def in_a_process(step: str, family: str, folder: Path) -> str:
    """Run one step of a family in a process of its own, and return what it printed last."""
    command = [sys.executable, "-m", "tools.benchmarks.full_size", family]
    command += ["--step", step, "--folder", str(folder)]
    where = {"cwd": RESULTS.parents[2], "env": os.environ | {"OMP_NUM_THREADS": "1"}}
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, **where)
    if run.returncode:
        raise SystemExit(f"tools.benchmarks.full_size: {step} of {family} failed")
    return run.stdout.splitlines()[-1]


def write(row: dict) -> None:
    """Write a family's row into the table, keeping those of the others."""
    known = {}
    if RESULTS.is_file():
        with RESULTS.open(encoding="utf-8", newline="") as stream:
            known = {each["family"]: each for each in csv.DictReader(stream)}
    known[row["family"]] = {key: shown(value) for key, value in row.items()}
    with RESULTS.open("w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, list(row))
        table.writeheader()
        table.writerows(known[family] for family in FAMILIES if family in known)


def main(arguments: list[str] | None = None) -> None:
    """Measure the families that are named, or all, one after the other."""
    parser = argparse.ArgumentParser("benchmarks full_size", description=__doc__)
    parser.add_argument("family", nargs="*", help=f"one of: {', '.join(FAMILIES)}")
    parser.add_argument("--step", choices=["build", "measure"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.family) - set(FAMILIES)
    if unknown:
        parser.error(f"no family {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    if chosen.step == "build":
        build(chosen.family[0], chosen.folder)
    elif chosen.step == "measure":
        print(json.dumps(measure(chosen.family[0], chosen.folder)))
    else:
        for family in chosen.family or FAMILIES:
            with tempfile.TemporaryDirectory() as folder:
                in_a_process("build", family, Path(folder))
                row = in_a_process("measure", family, Path(folder))
            print(row, flush=True)
            write(json.loads(row))


if __name__ == "__main__":
    main()
