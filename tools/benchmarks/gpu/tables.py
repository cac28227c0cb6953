"""Tables of the records of cards, for the book's page of benchmarks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"
NOT_RUN = "**Not run on a GPU yet**: there are no records of a card, and this page has no numbers."
RUN_ON_A_CARD = "cuda"

Record = dict[str, Any]
Column = str | Callable[[Record], Any]

TABLES: dict[str, tuple[str, dict[str, Column]]] = {
    "ceilings": (
        "What products of two matrices, and copies, reach",
        {
            "of": lambda row: row.get("copy") or f"product in {row['precision']}",
            "TFLOP/s": "tflop_a_second",
            "GB/s": "gb_a_second",
        },
    ),
    "speed": (
        "Networks of published sizes with random weights: items a second",
        {
            "task": "task",
            "precision": "precision",
            "bare loop": "bare_a_second",
            "pictures in memory": "memory_a_second",
            "files": "files_a_second",
            "TFLOP/s": "tflop_a_second",
            "share of the product's": "share_of_ceiling",
            "GB at most": "peak_gb",
        },
    ),
    "numerics": (
        "Planted models against the reference on the CPU: largest differences, and shares",
        {
            "model": "task",
            "study": "study",
            "precision": "precision",
            "outputs, in standard deviations": "outputs_error",
            "d": "d_error",
            "p": "p_error",
            "S": "s_error",
            "signs of S that changed": "sign_of_s_changed",
            "C-ASC": "c_asc_error",
            "nearest 100 kept": "top_100_kept",
            "vlrs, points": "vlrs_error",
            "vlbs, points": "vlbs_error",
            "choices that changed": "choice_changed",
            "reference": "reference",
        },
    ),
    "memory": (
        "Calls that meet a lack of memory",
        {"task": "task", "limit": "limit", "largest difference": "largest_difference"}
        | {"what it says": "note"},
    ),
    "syncs": (
        "How often a planted model's calls wait for the card in a study, and where most often",
        {
            "model": "task",
            "study": "study",
            "waits": "syncs",
            "most often at": lambda row: next(iter(row["by_line"]), ""),
        },
    ),
    "studies": (
        "Planted studies from end to end, in seconds",
        {
            "study": "task",
            "on the card": "device_s",
            "again, stored": "stored_s",
            "on the CPU": "cpu_s",
            "largest difference of a score": "largest_difference",
        },
    ),
}
"""By section: what its table shows, and its columns."""


def markdown(folder: Path = RESULTS) -> str:
    """Return the tables of all cards whose records are in a folder, as MyST.

    Records of other devices are not shown.
    """
    runs = [last_run(path) for path in sorted(folder.glob("gpu_*.jsonl"))]
    runs = [run for run in runs if run and run[0]["device"].startswith(RUN_ON_A_CARD)]
    return "\n\n".join(of_card(run) for run in runs) or NOT_RUN


def last_run(path: Path) -> list[Record]:
    """Return the records of a file's last run, that of the machine first."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    starts = [at for at, record in enumerate(records) if record["measure"] == "machine"]
    return records[starts[-1] :] if starts else []


def of_card(run: list[Record]) -> str:
    """Return the tables of one card, what was skipped below them."""
    machine, *records = run
    name = machine["name"]
    head = f"**{name}**, {machine['date'][:10]}, PyTorch {machine['torch']}, CUDA {machine['cuda']}"
    parts = [f"{head}, biaslib {machine['biaslib']} at commit `{machine['commit']}`."]
    for section, (caption, columns) in TABLES.items():
        own = [row for row in records if row["measure"] == section and is_number(row)]
        if own:
            parts.append(table(f"{caption} ({name})", columns, own))
    rest = [row for row in records if not is_number(row)]
    if rest:
        columns = {"section": "measure", "task": "task", "precision": "precision", "why": why}
        parts.append(table(f"Not measured ({name})", columns, rest))
    return "\n\n".join(parts)


def is_number(row: Record) -> bool:
    """Tell whether a record holds a measurement."""
    return "skipped" not in row and "failed" not in row


def why(row: Record) -> str:
    """Return why a record holds no measurement."""
    return row.get("skipped") or row["failed"][-1]


def table(caption: str, columns: dict[str, Column], rows: list[Record]) -> str:
    """Return records as a table, without the columns in which none has anything."""
    cells = {
        head: [column(row) if callable(column) else row.get(column) for row in rows]
        for head, column in columns.items()
    }
    filled = {head: told for head, told in cells.items() if any(each is not None for each in told)}
    lines = [",".join(map(cell, line)) for line in (filled, *zip(*filled.values(), strict=True))]
    return "\n".join([f"```{{csv-table}} {caption}", ":header-rows: 1", "", *lines, "```"])


def cell(value: Any) -> str:
    """Return a value as a cell of a table: three digits of a fraction, groups of whole numbers."""
    if isinstance(value, float):
        value = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    told = "" if value is None else str(value)
    return '"' + told.replace('"', "'").replace("\n", " ") + '"'
