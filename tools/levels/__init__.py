"""Level, power and coverage of every test and interval that a page uses, by simulation.

Each module has ``rows(seed, runs)``, which returns one record a test and condition, with the keys
of :data:`COLUMNS`: *of*, the function or test; *condition* and *n*, in words; *quantity* ("level",
"power", "coverage"; of a run beside a paper "met", "not met" or "found");
*nominal* and *observed*; *low* and *high*, the interval of Clopper and Pearson of the simulation
itself; *runs*; *seed*.
"""

import csv
import importlib
import pkgutil
from pathlib import Path

import numpy as np

from biaslib.inference import proportion_interval

COLUMNS = ["of", "condition", "n", "quantity", "nominal", "observed", "low", "high", "runs", "seed"]
TABLE = Path(__file__).parents[1] / "benchmarks" / "results" / "levels.csv"
RUNS, SEED = 1_500, 40


def families() -> dict:
    """Return the modules of this package that have rows, by name."""
    names = sorted(each.name for each in pkgutil.iter_modules(__path__) if each.name[0] != "_")
    return {name: importlib.import_module(f"{__name__}.{name}") for name in names}


def row(of: str, condition: str, n: object, quantity: str, nominal: float, held, seed: int) -> dict:
    """Return the record of a share: of runs that rejected, or whose interval held the truth."""
    held = np.asarray(held, dtype=bool)
    found = proportion_interval(int(held.sum()), held.size)
    values = [of, condition, str(n), quantity, nominal]
    numbers = [round(each, 4) for each in (found.proportion, found.low, found.high)]
    return dict(zip(COLUMNS, [*values, *numbers, held.size, seed], strict=True))


def levels(of: str, condition: str, n: object, p_values, seed: int, quantity="level") -> list[dict]:
    """Return the records of a test at .05 and at .01."""
    p_values = np.asarray(p_values)
    return [row(of, condition, n, quantity, a, p_values <= a, seed) for a in (0.05, 0.01)]


def coverage(of: str, condition: str, n: object, low, high, truth: float, seed: int) -> dict:
    """Return the record of 95% intervals of a statistic with this truth; NaN holds nothing."""
    held = (np.asarray(low) <= truth) & (truth <= np.asarray(high))
    return row(of, condition, n, "coverage", 0.95, held, seed)


def write(found: list[dict], path: Path = TABLE) -> None:
    """Write records as a table."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(found)


def replace(found: list[dict], path: Path = TABLE) -> None:
    """Write records in place of those of the same condition in a table, and others at its end."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = {_named(row): row for row in csv.DictReader(stream)}
    write([*(rows | {_named(row): row for row in found}).values()], path)


def _named(row: dict) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in COLUMNS[:5])
