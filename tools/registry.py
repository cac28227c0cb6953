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
    """Return the registry as the book shows it: one row a model, three columns for a phone."""
    sys.path.insert(0, str(ROOT))
    from biaslib import models

    rows = [(_size(row), _use(row), _origin(row)) for row in models.available().itertuples()]
    return pandas.DataFrame(rows, columns=["Model", "What it does", "Where it comes from"])


def _size(row) -> str:
    if not row.parameters:
        return f"`{row.name}`"
    millions = round(row.parameters / 1e6)
    return f"`{row.name}`, {millions:,} million parameters, {row.megabytes:,} MB"


def _use(row) -> str:
    """Return capabilities, what is read of a picture, the papers and the note, as sentences."""
    reads = row.features or ("pixels" if "image" in row.capabilities else "")
    capabilities = f"{row.capabilities[0].upper()}{row.capabilities[1:]}."
    parts = [capabilities, f"Reads {reads}." if reads else ""]
    parts += [f"Used by {row.papers}." if row.papers else "", row.note]
    return " ".join(part for part in parts if part)


def _origin(row) -> str:
    """Return source, revision and licence."""
    kind, _, address = row.source.partition(" ")
    source = f"{kind} `{address}`" if kind in ("hub", "url", "package") else row.source
    revision = f"`{row.revision[:12]}`" if len(row.revision) == 40 else row.revision
    revision = "" if kind == "package" or not revision else f"; revision {revision}"
    return f"{source}{revision}; {row.licence}"


def main() -> None:
    """Write the table."""
    page_table().to_csv(TABLE, index=False, lineterminator="\n")
    print(f"{TABLE.relative_to(ROOT)}: written")


if __name__ == "__main__":
    main()
