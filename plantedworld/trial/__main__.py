"""Run the sealed trial: ``python -m plantedworld.trial run``."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas

from plantedworld.trial import _judge, _run

FOLDER = Path("trial")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0, or 1 where the trial is not as its protocol says."""
    given = _parser().parse_args(arguments)
    try:
        wanted = _run.wanted_models()
        if wanted is None:
            raise _run.TrialError("the protocol names no commit yet, so that no world is drawn")
        if given.command == "seeds":
            print(*wanted["seed"].unique(), sep="\n")
        elif given.command == "run":
            _train(given, wanted)
        else:
            _print(wanted)
    except _run.TrialError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m plantedworld.trial", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("seeds", help="the seeds of the worlds, drawn from the protocol's commit")
    command = commands.add_parser("run", help="train and score what is not there yet")
    command.add_argument("--folder", type=Path, default=FOLDER, help="for checkpoints and scores")
    command.add_argument("--processes", type=int, default=2, help="how many models at once")
    command.add_argument("--minutes", type=float, help="begin no further model after these")
    commands.add_parser("judge", help="print the verdicts on what was collected, and keep them")
    return parser


def _train(given: argparse.Namespace, wanted: pandas.DataFrame) -> None:
    fixed = json.loads(_run.PROTOCOL.read_text(encoding="utf-8"))
    _run.check_code(fixed["commit"])
    _, cards = _run.collected()
    known = set(cards[list(wanted)].itertuples(index=False, name=None))
    missing = [row not in known for row in wanted.itertuples(index=False, name=None)]
    shared = fixed["shared"]
    failed = _run.run(wanted[missing], given.folder, shared, given.processes, given.minutes)
    n, every = _run.collect(wanted, given.folder, _run.DATA)
    print(f"{n} of {every} models are scored")
    if failed:
        raise _run.TrialError("; ".join(failed))


def _print(wanted: pandas.DataFrame) -> None:
    scores, cards = _run.collected()
    if len(cards) < len(wanted):
        raise _run.TrialError("not all models are scored: nothing is judged before that")
    print(f"VL-BERTs of another BERT than the scored one: {_run.other_starts(cards) or 'none'}")
    for name, table in _judge.judge_all(scores).items():
        table.to_csv(_run.DATA / f"{name}.csv", index=False)
        print(table.round(3).to_string(index=False), end="\n\n")


if __name__ == "__main__":
    sys.exit(main())
