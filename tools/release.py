"""Write down what a release promises: the addresses and the numbers of its built site.

    python tools/release.py VERSION

The site has to be built from the commit that is released. The file is committed and tagged after
that: builds from then on keep its addresses, and say which of its numbers changed.
"""

import itertools
import json
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import releases  # noqa: E402 - an extension of the book, which lies on no path

PROFILE = re.compile(r"<dt>Profile</dt><dd>(\w+)")
"""What the stamp of a page says."""


def main(wanted: str, root: Path = ROOT) -> int:
    """Write the manifest of a version; return 1, and say why, if it cannot be released."""
    site = root / "_build" / "html"
    if wrong := problems(wanted, root, site):
        print("\n".join(wrong), file=sys.stderr)
        return 1
    path = root / "book" / "releases" / f"{wanted}.json"
    path.parent.mkdir(exist_ok=True)
    text = json.dumps(releases.manifest(site), ensure_ascii=False, separators=(",", ":"))
    path.write_text(text + "\n", encoding="utf-8")
    print(f"{path}: commit it, then: git tag v{wanted} && git push origin v{wanted}")
    print("The workflow 'release' attaches to it what 'make teach' writes into _build/release.")
    return 0


def problems(wanted: str, root: Path, site: Path) -> list[str]:
    """Return what stands in the way of a release."""
    found = []
    if wanted != releases.version():
        found.append(f"biaslib/__init__.py says version {releases.version()}, not {wanted}")
    cited = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    if cited["version"] != wanted:
        found.append(f"CITATION.cff says version {cited['version']}, not {wanted}")
    if "date-released" not in cited:
        found.append("CITATION.cff has no date-released: add the day, as date-released: YYYY-MM-DD")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(wanted)}, \d{{4}}-\d\d-\d\d$", changelog, re.M):
        found.append(f"CHANGELOG.md has no section '## {wanted}, YYYY-MM-DD'")
    page, line = site / releases.PAGE, releases.version_line(root)
    if not page.is_file():
        found.append("There is no site in _build/html: run 'make book' first.")
    elif f"<p>{line}</p>" not in page.read_text(encoding="utf-8"):
        found.append(f"The site in _build/html is not that of '{line}': run 'make book' again.")
    if (root / "book" / "releases" / f"{wanted}.json").exists():
        found.append(f"{wanted} has been released: raise the version")
    stamps = (PROFILE.findall(each.read_text(encoding="utf-8")) for each in site.rglob("*.html"))
    if other := sorted({*itertools.chain(*stamps)} - {"planted"}):
        found.append(f"The site of a release is that of the profile planted, not {other[0]}")
    if line.endswith("-dirty"):
        found.append("There are changes that are not committed: commit them, then run 'make book'.")
    return found


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: make release VERSION=0.2.0")
    sys.exit(main(sys.argv[1]))
