"""Tables of the records of cards, for the book's page of benchmarks."""

import json
from pathlib import Path
from typing import Any

from tools.benchmarks import head

RESULTS = Path(__file__).parents[1] / "results"
NOT_RUN = "**Not run on a GPU yet**: there are no records of a card, and this page has no numbers."

CAPTIONS = {
    "ceilings": "What products of two matrices, and copies of memory, reach",
    "numerics": "Planted models against the CPU: largest differences, and shares",
    "speed": "Networks of published sizes with random weights",
    "memory": "Calls that meet a lack of memory",
    "syncs": "How often a planted model's calls wait for the card in a study, and where most often",
    "studies": "Planted studies from end to end",
}
NOT_MEASURED = ("skipped", "failed")
UNSHOWN = ("measure", "at_s", "size", "passes", "build_s", "side", "same")


def markdown(folder: Path = RESULTS) -> str:
    """Return the tables of all cards whose records are in a folder, as MyST.

    Records of other devices are not shown.
    """
    runs = [last_run(path) for path in sorted(folder.glob("gpu_*.jsonl"))]
    runs = [run for run in runs if run and run[0]["device"].startswith("cuda")]
    return "\n\n".join(of_card(*run) for run in runs) or NOT_RUN


def last_run(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file's last run, that of the machine first."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    starts = [at for at, record in enumerate(records) if record["measure"] == "machine"]
    return records[starts[-1] :] if starts else []


def of_card(machine: dict[str, Any], *records: dict[str, Any]) -> str:
    """Return the tables of one card, what was skipped below them."""
    name = machine["name"]
    told = f"**{name}**, {machine['date'][:10]}, PyTorch {machine['torch']}, CUDA {machine['cuda']}"
    parts = [f"{told}, biaslib {machine['biaslib']} at commit `{machine['commit']}`."]
    for section, caption in CAPTIONS.items():
        own = [row for row in records if row["measure"] == section and is_number(row)]
        own = [{key: row[key] for key in row if key not in UNSHOWN} for row in own]
        parts += [table(f"{caption} ({name})", own)] if own else []
    rest = [
        {"section": row["measure"], "task": row["task"], "precision": row.get("precision")}
        | {"why": row.get("skipped") or row["failed"][-1]}
        for row in records
        if not is_number(row)
    ]
    return "\n\n".join(parts + ([table(f"Not measured ({name})", rest)] if rest else []))


def is_number(row: dict[str, Any]) -> bool:
    """Tell whether a record holds a measurement."""
    return not any(each in row for each in NOT_MEASURED)


def table(caption: str, rows: list[dict[str, Any]]) -> str:
    """Return records as a table, without the columns in which none has anything."""
    columns = [
        key
        for key in dict.fromkeys(key for row in rows for key in row)
        if any(row.get(key) is not None for row in rows)
    ]
    lines = [map(head, columns), *([row.get(key) for key in columns] for row in rows)]
    told = [",".join(map(cell, line)) for line in lines]
    return "\n".join([f"```{{csv-table}} {caption}", ":header-rows: 1", "", *told, "```"])


def cell(value: Any) -> str:
    """Return a value as a cell of a table: three digits of a fraction, the first key of a group.

    Examples
    --------
    >>> cell(0.41234), cell(1234.5), cell({"a.py:1": 3, "b.py:7": 1}), cell(None)
    ('"0.412"', '"1,234"', '"a.py:1"', '""')
    """
    if isinstance(value, dict):
        value = next(iter(value), "")
    elif isinstance(value, float):
        value = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    told = "" if value is None else str(value)
    return '"' + told.replace('"', "'").replace("\n", " ") + '"'
