"""The report of an audit: one HTML file that holds everything itself, and the files beside it.

What comes from outside (names of models, files, groups and words) is shown as it is, and not read
as HTML.
"""

import contextlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pandas
from markupsafe import Markup

from biaslib import display, runtime
from biaslib.audit import _tables as tables
from biaslib.audit._parts import PARTS
from biaslib.audit._run import LEVEL, Audit
from biaslib.errors import InputError

__all__ = ["files", "report", "require_writable", "save"]

FORMULA = re.compile(r"[=＝@＠\t\r]|[+＋\-－](?![\d.]*$)")
"""How a formula begins; labels such as -1 are none."""

TEMPLATE = Path(__file__).parent / "data" / "report.html"

OF_ONE = ("scores.csv", "provenance.json", "report.html")
OF_TWO = ("comparison.csv", "scores-second.csv", "provenance-second.json")


def report(
    result: Audit, compared: pandas.DataFrame | None = None, other: Audit | None = None
) -> str:
    """Return the report as one HTML file that loads nothing and runs nothing.

    Square brackets mark what a person has to write. A report with brackets left is not finished.

    Parameters
    ----------
    result
        The audit.
    compared, other
        The comparison with another audit (:func:`biaslib.audit.compare`), and that.
    """
    display.use_style()
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    of_data = () if result.folder is None else result.folder.notes
    unseen = [head for head, check in result.checks.items() if not check.passed]
    refused = set(result.not_run.loc[result.not_run["kind"] == "not possible", "part"])
    left_out = [part.name for part in PARTS if part.head in unseen and part.name in refused]
    return template.render(
        _counts(result.asked) | _compared(result, compared, other),
        name=result.audited.name,
        result=result,
        made_of=result.provenance,
        source=tables.SOURCES[result.stimuli],
        level=LEVEL,
        notes=[note for note in result.notes if note not in of_data],
        notes_of_other=[note for note in other.notes if note not in of_data] if other else [],
        unseen=unseen,
        left_out=left_out,
        n_claims=len(result.claims),
        tables=tables,
        table=_table,
        figure=Markup(tables.figure(result).html()),
        compared=compared,
        other=other,
        reach=tables.reach(result.asked["p_least"], result.asked["p_value"]),
    )


def _compared(
    result: Audit, compared: pandas.DataFrame | None, other: Audit | None
) -> dict[str, Any]:
    """Return in how many rows models differ, could have differed, and what is not compared."""
    if compared is None or other is None:
        return {}
    ran = [set(each.scores["part"]) for each in (result, other)]
    return {
        "n_differ": int((compared["p_holm"] < LEVEL).sum()),
        "reach_of_rows": tables.reach(compared["p_least"], compared["p_value"], "rows"),
        "alone": sorted(ran[0] ^ ran[1]),
    }


def _table(frame: pandas.DataFrame, caption: str, folded: bool = False) -> Markup:
    return Markup(display.table(frame, caption, folded=folded)._repr_html_())


def _counts(asked: pandas.DataFrame) -> dict[str, Any]:
    """Return how many questions there are, how wide their intervals, and how small the least."""
    across = int(((asked["low"] <= 0) & (asked["high"] >= 0)).sum())
    widths = (asked["high"] - asked["low"]).groupby(asked["study"]).median().dropna()
    wide = ", ".join(f"{tables.STUDIES[name]} {width:.2f} wide" for name, width in widths.items())
    smallest = display.counted(asked["n"].min(), "units") if len(asked) else ""
    counts = {"n_asked": len(asked), "n_intervals": int(asked["low"].notna().sum())}
    return counts | {"n_across": across, "widths": wide, "smallest": smallest}


def files(
    result: Audit, compared: pandas.DataFrame | None = None, other: Audit | None = None
) -> dict[str, str]:
    """Return the files of an audit by name: scores, what they were made of, and the report.

    Parameters are as of :func:`report`.
    """
    texts = {
        "scores.csv": _csv(result.scores),
        "provenance.json": json.dumps(result.provenance, indent=1) + "\n",
        "report.html": report(result, compared, other),
    }
    if compared is not None and other is not None:
        texts |= {
            "comparison.csv": _csv(compared),
            "scores-second.csv": _csv(other.scores),
            "provenance-second.json": json.dumps(other.provenance, indent=1) + "\n",
        }
    return texts


def _csv(table: pandas.DataFrame) -> str:
    """Return a table as CSV, with an apostrophe before what a spreadsheet would run."""
    return table.map(
        lambda cell: f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) else cell
    ).to_csv(index=False)


def save(
    folder: str | Path,
    result: Audit,
    compared: pandas.DataFrame | None = None,
    other: Audit | None = None,
) -> list[Path]:
    """Write the files of an audit into a folder of their own; make it if it is missing.

    The folder is written whole beside its place, and then renamed: what stands there is always of
    one audit. A report that was there is kept as it is, its folder numbered (``audit-1``); that of
    the same audit, before it was compared, is replaced.

    Raises
    ------
    InputError
        If there are other files in the folder, or a report and the audit has not one score.
    OSError
        If they cannot be written; the message names the folder and says what to do.
    """
    folder, texts = Path(folder), files(result, compared, other)
    with _beside(folder) as (place, part):
        held = {path.name for path in place.iterdir()} if place.is_dir() else set()
        if held and result.scores.empty:
            why = result.not_run.query("kind != 'not asked for'")["reason"].unique()
            raise InputError(
                f"{folder} keeps its report, since no part of this audit was run: {'; '.join(why)}",
                path=folder,
            )
        for name, text in texts.items():
            (part / name).write_text(text, encoding="utf-8")
        is_same = set(OF_ONE) <= held <= set(texts) and all(
            (place / name).read_text("utf-8") == texts[name] for name in OF_ONE[:2]
        )
        earlier = _moved(place) if held else None
        try:
            part.replace(place)
        except BaseException:
            if earlier is not None:
                earlier.rename(place)
            raise
        if earlier is not None and is_same:
            earlier.rename(part)
    return [folder / name for name in texts]


def _moved(place: Path) -> Path:
    """Give a folder the next free number; return where it is."""
    numbered = (place.with_name(f"{place.name}-{n}") for n in itertools.count(1))
    return place.rename(next(path for path in numbered if not os.path.lexists(path)))


def require_writable(folder: str | Path) -> None:
    """Refuse a folder that cannot take a report, or a store of answers, before any work is done.

    Raises
    ------
    InputError
        If the folder holds other files.
    OSError
        With its name and what to do.
    """
    runtime.Store().transaction(lambda tables: None)
    with _beside(Path(folder)) as (_, part):
        (part / "report.html").write_text("", encoding="utf-8")


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a report's place, and a new folder beside it that becomes it or goes; alone at it."""
    place = Path(os.path.realpath(folder))
    part = place.with_name(f".{place.name[:200]}.part")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with runtime.one_at_a_time(place):
            _require_free(folder, place)
            shutil.rmtree(part, ignore_errors=True)  # of a process that was killed
            part.mkdir()
            try:
                yield place, part
            finally:
                shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise OSError(
            f"{folder} cannot hold the report ({error.strerror}): free some space, or name another "
            "folder. What models answered is kept in the store"
        ) from error


def _require_free(folder: Path, place: Path) -> None:
    """Refuse a folder that cannot be renamed, or that holds anything but a report."""
    held = {path.name for path in place.iterdir()} if os.path.lexists(place) else set()
    if others := sorted(held.difference(OF_ONE, OF_TWO, [".DS_Store"])):
        why = f"holds {others[0]}, which is no file of a report"
    elif os.path.ismount(place) or place in (Path.cwd(), *Path.cwd().parents):
        why = "cannot be renamed"
    else:
        return
    raise InputError(f"{folder} {why}: name a new folder; it may lie below this one", path=folder)
