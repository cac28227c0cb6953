"""The report of an audit: one HTML file that holds everything itself, and the files beside it.

What comes from outside (names of models, files, groups and words) is shown as it is, and not read
as HTML.
"""

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pandas
from markupsafe import Markup

from biaslib import display
from biaslib.audit import _tables as tables
from biaslib.audit._run import LEVEL, Audit

__all__ = ["files", "report", "require_writable", "save"]

FORMULA = re.compile(r"[=＝@＠\t\r]|[+＋\-－](?![\d.]*$)")
"""How a formula begins; labels such as -1 are none."""

TEMPLATE = Path(__file__).parent / "data" / "report.html"


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
    return template.render(
        _counts(result.asked) | _compared(result, compared, other),
        name=result.audited.name,
        result=result,
        made_of=result.provenance,
        source=tables.SOURCES[result.stimuli],
        level=LEVEL,
        notes=[note for note in result.notes if note not in of_data],
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
    """Write the files of an audit into a folder; make it if it is missing.

    All are written before the first takes its name, so that an earlier report stays whole.

    Raises
    ------
    OSError
        If they cannot be written; the message names the folder and says what to do.
    """
    folder, texts = Path(folder), files(result, compared, other)
    with _written_into(folder):
        for name, text in texts.items():
            (folder / f"{name}.part").write_text(text, encoding="utf-8")
        for name in texts:
            (folder / f"{name}.part").replace(folder / name)
    return [folder / name for name in texts]


def require_writable(folder: str | Path) -> None:
    """Refuse a folder into which no report could be written, before any work is done.

    Raises
    ------
    OSError
        With its name and what to do.
    """
    with _written_into(Path(folder)):
        part = Path(folder) / "report.part"
        part.write_text("", encoding="utf-8")
        part.unlink()


@contextlib.contextmanager
def _written_into(folder: Path) -> Iterator[None]:
    """Make a folder; turn what goes wrong into advice, and leave nothing half written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        for left in folder.glob("*.part") if folder.is_dir() else ():
            with contextlib.suppress(OSError):
                left.unlink()
        raise OSError(
            f"{folder} cannot hold the report ({error.strerror}): free some space, or name another "
            "folder. What models answered is kept in the store"
        ) from error
