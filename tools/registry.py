"""Write the registry's page table, biaslib/models/data/registry.csv, from the registry.

The book shows that file; a test fails when it is not what the registry says. Run it after a change
of ``biaslib/models/_entries.py``: ``python tools/registry.py``.
"""

import sys
from pathlib import Path

import pandas

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "biaslib" / "models" / "data" / "registry.csv"


def page_table() -> pandas.DataFrame:
    """Return the registry as the book shows it: one row a model."""
    sys.path.insert(0, str(ROOT))
    from biaslib import models

    found = models.available()
    return pandas.DataFrame(
        {
            "Model": "`" + found["name"] + "`",
            "Can": found["capabilities"],
            "Needs of a picture": found["features"].where(found["features"] != "", _pixels(found)),
            "Papers": found["papers"].replace("", "–"),
            "Source": found["source"].map(_in_code),
            "Revision": found["revision"].map(_short),
            "Licence": found["licence"],
            "Parameters (millions)": (found["parameters"] / 1e6).round().astype(int),
            "Memory (MB)": found["megabytes"],
            "Note": found["note"],
        }
    )


def _pixels(found: pandas.DataFrame) -> pandas.Series:
    return found["capabilities"].str.contains("image").map({True: "pixels", False: "–"})


def _in_code(source: str) -> str:
    """Set the address in a source as code: ``hub owner/name`` -> hub `owner/name`."""
    kind, _, address = source.partition(" ")
    return f"{kind} `{address}`" if kind in ("hub", "url", "package") else source


def _short(revision: str) -> str:
    if not revision:
        return "–"
    return f"`{revision[:12]}`" if len(revision) == 40 else revision


def main() -> None:
    """Write the table."""
    page_table().to_csv(TABLE, index=False, lineterminator="\n")
    print(f"{TABLE.relative_to(ROOT)}: written")


if __name__ == "__main__":
    main()
