"""Fetch the third-party browser files that the site serves itself, and those its tests use.

    python tools/vendor.py                  fetches with npm, which must be on PATH
    python tools/vendor.py --from FOLDER    takes tarballs that `npm pack` has put there before

Every tarball is compared with the SHA-256 written below before one byte of it is used. Only the
files that a page can ask for are kept, with their licences. Standard library only. The result is
committed, so that nobody needs npm to build the book.
"""

import argparse
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Package:
    """One npm package: what to take from its tarball and where to put it."""

    name: str
    version: str
    sha256: str
    target: str
    files: dict[str, str]
    """Pattern inside the tarball -> folder below ``target``."""
    leave_out: tuple[str, ...] = ()
    owns_target: bool = True

    @property
    def tarball(self) -> str:
        """The file name that ``npm pack`` gives."""
        return f"{self.name.lstrip('@').replace('/', '-')}-{self.version}.tgz"


PACKAGES = (
    Package(
        name="mathjax",
        version="3.2.2",
        sha256="1b9c0a1c44df864e915690558e72adb9cc5203360daefd385084ced3b6c64c09",
        target="book/static/vendor/mathjax",
        files={
            "LICENSE": "",
            "es5/tex-mml-chtml.js": "",
            "es5/output/chtml/fonts/woff-v2/*.woff": "output/chtml/fonts/woff-v2",
            # Loaded one by one, when a formula asks for them.
            "es5/input/tex/extensions/*.js": "input/tex/extensions",
        },
        leave_out=("es5/input/tex/extensions/all-packages.js",),
    ),
    Package(
        name="reveal.js",
        version="6.0.2",
        sha256="2f0c20bfb02447a198a1ebe8a8c097a5437d035caa38f2820bf4ba887a3eac91",
        target="book/static/vendor/reveal",
        files={"LICENSE": "", "dist/reveal.js": "", "dist/reveal.css": ""},
    ),
    Package(
        name="@fontsource-variable/source-sans-3",
        version="5.3.1",
        sha256="dfa23bee63f9cc5c2871149a453215093bd8f1b694a5c1d999ecdc7560435fcf",
        target="book/static/vendor/source-sans-3",
        files={"LICENSE": "", "files/*-latin-wght-*.woff2": ""},
    ),
    Package(
        name="@fontsource-variable/source-code-pro",
        version="5.3.1",
        sha256="1dcc7f2c5f4cae190ed582852a0180eebe87084cac9d06de7429e44c31a39a38",
        target="book/static/vendor/source-code-pro",
        files={"LICENSE": "", "files/*-latin-wght-normal.woff2": ""},
    ),
    Package(
        name="axe-core",
        version="4.14.1",
        sha256="e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745",
        target="tests/support",
        files={"axe.min.js": "", "LICENSE": "axe.LICENSE"},
        owns_target=False,
    ),
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--from", dest="folder", type=Path, help="folder with the tarballs")
    folder = arguments.parse_args().folder
    with tempfile.TemporaryDirectory() as scratch:
        for package in PACKAGES:
            tarball = folder / package.tarball if folder else pack(package, Path(scratch))
            check(package, tarball)
            for path in extract(package, tarball):
                print(path.relative_to(ROOT).as_posix())


def pack(package: Package, folder: Path) -> Path:
    """Let npm fetch the tarball from the registry that it is configured for."""
    wanted = f"{package.name}@{package.version}"
    subprocess.run(["npm", "pack", wanted, "--silent"], cwd=folder, check=True)
    return folder / package.tarball


def check(package: Package, tarball: Path) -> None:
    """Stop unless the tarball is, byte for byte, the one that was looked at."""
    found = hashlib.sha256(tarball.read_bytes()).hexdigest()
    if found != package.sha256:
        raise SystemExit(
            f"{tarball.name}: SHA-256 is {found}, expected {package.sha256}. Nothing was changed."
        )


def extract(package: Package, tarball: Path) -> list[Path]:
    """Write the wanted files of a tarball; return their paths."""
    target = ROOT / package.target
    if package.owns_target:
        shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    with tarfile.open(tarball) as archive:
        for member in archive.getmembers():
            path = destination(package, PurePosixPath(member.name))
            if member.isfile() and path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.extractfile(member).read())
                written.append(path)
    return sorted(written)


def destination(package: Package, member: PurePosixPath) -> Path | None:
    """Return where a file of the tarball goes, or None where it is not wanted."""
    inside = PurePosixPath(*member.parts[1:])  # npm puts everything below "package/"
    name = inside.as_posix()
    if any(fnmatch(name, pattern) for pattern in package.leave_out):
        return None
    for pattern, folder in package.files.items():
        if fnmatch(name, pattern) and inside.parent == PurePosixPath(pattern).parent:
            target = ROOT / package.target / folder
            return target if PurePosixPath(folder).suffix == ".LICENSE" else target / inside.name
    return None


if __name__ == "__main__":
    main()
