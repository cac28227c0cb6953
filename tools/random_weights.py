"""Write what models of random weights gave: ``python tools/random_weights.py RECORD ...``.

The records are those that ``make rehearsal`` leaves, one a study. The ledger uses their numbers to
ask whether a contract can fail.
"""

import sys

import pandas

from biaslib import ledger
from biaslib.ledger import _contracts


def rows_of(record: ledger.Record) -> pandas.DataFrame:
    """Return *id* and *value* of a record's numbers, and the *verdict* on its claims."""
    found = record.verdicts()
    numbers = found[found["kind"].isin(["number", "count"]) & found["value"].notna()]
    numbers = numbers[~numbers["id"].str.contains("/reference/|/table1/", regex=True)]
    numbers = numbers.assign(value=numbers["value"].astype(float).round(4), verdict="")
    claims = found[(found["kind"] == "claim") & (found["verdict"] != "not run")]
    rows = pandas.concat([numbers, claims.assign(value=None)])
    return rows[["id", "value", "verdict"]]


def main() -> None:
    """Read the records, write the table."""
    records = [ledger.read(path) for path in sys.argv[1:]]
    table = pandas.concat([rows_of(each) for each in records]).sort_values("id")
    table.to_csv(_contracts.DATA / "random_weights.csv", index=False)
    print(f"{len(table)} rows of {len(records)} records")


if __name__ == "__main__":
    main()
