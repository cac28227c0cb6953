"""The repository's web address: written once in pyproject.toml, repeated where it has to be.

``python tools/repository.py URL`` writes a new address into pyproject.toml and into every file
that repeats it: launch buttons, install cells, badges, citation.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLLOWERS = (
    "_config.yml",
    "README.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "book",
    "notebooks",
    "colab",
)
SUFFIXES = (".yml", ".md", ".cff", ".ipynb")
UNSET = "YOUR_ACCOUNT"


def address() -> str:
    """Return the address that pyproject.toml gives."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["project"]["urls"]["Repository"]


def known() -> str:
    """Return the address, or nothing as long as no account is set."""
    return "" if UNSET in address() else address()


def site() -> str:
    """Return the address of the published book, or nothing as long as pyproject.toml gives none."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["project"]["urls"].get("Documentation", "").rstrip("/")


def owner_and_name(url: str) -> str:
    """Return ``owner/name`` of an address such as https://github.com/owner/name."""
    found = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", url)
    if found is None:
        raise SystemExit(f"{url!r} is not an address like https://github.com/owner/name")
    return found.group(1)


def followers() -> list[Path]:
    """Return the files that may repeat the address."""
    found = []
    for name in FOLLOWERS:
        path = ROOT / name
        files = path.rglob("*") if path.is_dir() else [path]
        found += [each for each in files if each.suffix in SUFFIXES and each.is_file()]
    return [each for each in found if ".ipynb_checkpoints" not in each.parts]


def rewrite(new: str) -> int:
    """Replace the address everywhere; return how many files changed."""
    old_pair, new_pair = owner_and_name(address()), owner_and_name(new)
    changed = 0
    for path in [ROOT / "pyproject.toml", *followers()]:
        text = path.read_text(encoding="utf-8")
        replaced = text.replace(old_pair, new_pair)
        if replaced != text:
            path.write_text(replaced, encoding="utf-8")
            changed += 1
    return changed


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: make repository URL=https://github.com/owner/name")
    print(f"{rewrite(sys.argv[1])} files now say {sys.argv[1]}")
