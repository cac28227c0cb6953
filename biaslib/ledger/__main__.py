"""Check a recorded run, or add it: ``python -m biaslib.ledger check FILE``."""

import argparse
import sys
from collections.abc import Sequence

from biaslib import ledger


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0, or 1 where a record was refused."""
    parser = argparse.ArgumentParser(prog="python -m biaslib.ledger", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, files, told in (
        ("check", "+", "verify schema, hashes and plausibility, and count the verdicts"),
        ("add", "+", "the same, and put the file under runs/"),
        ("compare", 2, "differences of two records of one study"),
    ):
        command = commands.add_parser(name, help=told)
        command.add_argument("file", nargs=files)
        command.add_argument("--rehearsal", action="store_true", help="accept random weights")
        if name == "add":
            command.add_argument("--to", help="another folder than runs/")
    given = parser.parse_args(arguments)
    try:
        if given.command == "compare":
            found = ledger.compare(*map(ledger.read, given.file), given.rehearsal)
            print(found.rows.to_string(index=False))
            print(f"{'agree' if found.agree else 'DO NOT AGREE'}: {found.told}")
            return int(not found.agree)
        for path in given.file:
            _one(given, path)
    except ledger.LedgerError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    return 0


def _one(given: argparse.Namespace, path: str) -> None:
    found = ledger.read(path)
    ledger.check(found, given.rehearsal)
    if given.command == "add":
        print(f"added: {ledger.add(path, given.to, given.rehearsal)}")
    rows = found.verdicts()
    print(f"{path}: {found.paper}, {found.label}, {len(found.scores):,} scores")
    print(rows.groupby(["kind", "verdict"]).size().unstack(fill_value=0).to_string())


if __name__ == "__main__":
    sys.exit(main())
