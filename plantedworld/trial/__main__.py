"""Run the sealed trial: ``python -m plantedworld.trial run``."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from plantedworld.trial import _judge, _run

FOLDER = Path("trial")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0, or 1 where the trial is not as its protocol says."""
    given = _parser().parse_args(arguments)
    try:
        if given.command == "seeds":
            print(*_run.wanted_models()["seed"].unique(), sep="\n")
        elif given.command == "run":
            _train(given)
        else:
            _print()
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
    commands.add_parser("judge", help="print the verdicts on what was collected")
    return parser


def _train(given: argparse.Namespace) -> None:
    wanted = _run.wanted_models()
    _run.check_shared(json.loads(_run.PROTOCOL.read_text(encoding="utf-8"))["shared"])
    _, cards = _run.collected()
    known = set(cards[list(wanted)].itertuples(index=False, name=None))
    missing = [row not in known for row in wanted.itertuples(index=False, name=None)]
    _run.run(wanted[missing], given.folder, given.processes, given.minutes)
    n, every = _run.collect(wanted, given.folder, _run.DATA)
    print(f"{n} of {every} models are scored")


def _print() -> None:
    scores, cards = _run.collected()
    print(f"VL-BERTs of another BERT than the scored one: {_run.other_starts(cards) or 'none'}")
    for table in (_judge.verdicts, _judge.found_without_bias, _judge.rises, _judge.attacks):
        print(table(scores).round(3).to_string(index=False), end="\n\n")
    print(_judge.two_nulls(scores).round(3).to_string(index=False))


if __name__ == "__main__":
    sys.exit(main())
