"""From the command line: ``biaslib audit MODEL``, and ``biaslib reproduce PAPER``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from biaslib.errors import brought_by, shown

NOT_INSTALLED = 2
"""The exit status where a package is missing, as where an argument is."""

BROUGHT_BY = {
    "ross2021": "models",
    "srinivasan2021": "models",
    "hamidieh2023": "models,clip,captions",
    "zhou2022": "models",
}
"""The extras of each paper's study."""

INTERRUPTED = 130
"""The exit status that shells expect of a command that was interrupted."""


def parser() -> argparse.ArgumentParser:
    """Return what the command line takes."""
    whole = argparse.ArgumentParser(prog="biaslib", description=__doc__)
    commands = whole.add_subparsers(dest="command", required=True)
    audit = commands.add_parser("audit", help="run the four audits on a model of your own")
    audit.add_argument("model", help="a folder, a registered name, or owner/name of the model hub")
    for name, default, text in (
        ("--data", "planted", "planted, released, or a folder of pictures with labels.csv"),
        ("--out", "audit", "folder for the report"),
        ("--compare", None, "another model, on the same stimuli"),
        ("--device", None, "cpu, cuda or mps"),
    ):
        audit.add_argument(name, default=default, help=text)
    audit.add_argument(
        "--profile",
        choices=("planted", "paper"),
        help="where models come from: the small ones of this package, or the hub; by itself the "
        "hub for owner/name, and for a registered name with a folder of pictures",
    )
    audit.add_argument(
        "--parts",
        nargs="+",
        help="studies (ross2021, srinivasan2021, hamidieh2023, zhou2022), or names of parts in "
        "quotation marks, as the report has them",
    )
    beside = "networks with random weights to ask the same"
    audit.add_argument("--untrained", type=int, default=0, help=beside)
    audit.add_argument("--dry-run", action="store_true", help="say what it would take, and stop")
    study = commands.add_parser(
        "reproduce", help="run a paper's study on released weights and data, and record it"
    )
    study.add_argument(
        "paper", choices=[*BROUGHT_BY], help="whose study: as the bibliography calls it"
    )
    study.add_argument(
        "--out", default=".", help="folder in which the folder of the record is made"
    )
    study.add_argument(
        "--size",
        choices=("full", "taste"),
        default="full",
        help="the paper's study, or some minutes of it on a small model",
    )
    study.add_argument("--precision", default="auto", help="float32, bfloat16, float16 or auto")
    study.add_argument("--dry-run", action="store_true", help="say what it would take, and stop")
    return whole


def profile_of(model: str, data: str) -> str:
    """Return where a model is taken from if nobody says so: a folder needs no hub.

    A registered name is the toy of that name in the profile ``planted``, which knows the words of
    the planted world and no others: with pictures of one's own the released model is meant.
    """
    from biaslib.checkpoints.names import place_of
    from biaslib.models import REGISTRY

    place = place_of(model)
    if isinstance(place, Path):
        return "planted"
    own_pictures = data not in ("planted", "released")
    return "paper" if "/" in place or (own_pictures and place in REGISTRY) else "planted"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or another status with one clear line about what is wrong."""
    options = parser().parse_args(arguments)
    try:
        of_audit = options.command == "audit"
        with brought_by("audit" if of_audit else BROUGHT_BY[options.paper]):
            return run(options) if of_audit else reproduce(options)
    except ModuleNotFoundError as error:
        print(_message(error), file=sys.stderr)
        return NOT_INSTALLED
    except (ValueError, OSError, ImportError, LookupError, RuntimeError, MemoryError) as error:
        print(f"{type(error).__name__}: {_message(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. What was stored is kept: run the same command to go on.")
        return INTERRUPTED


def _message(error: Exception) -> str:
    """Return what an error says in one line; what to do, where the system says only what failed."""
    if isinstance(error, MemoryError) and not isinstance(error, ValueError):
        return f"there is too little memory ({error}): end other programs, or take a smaller model"
    return shown(" ".join(str(error).split()))


def run(options: argparse.Namespace) -> int:
    """Audit the first model, write its report, and then compare it with the second if asked to."""
    from biaslib import audit, runtime

    names = [options.model] if options.compare is None else [options.model, options.compare]
    if not options.out:
        raise ValueError("--out is empty: name a folder for the report")
    hub = any(profile_of(name, options.data) == "paper" for name in names)
    profile = options.profile or ("paper" if hub else "planted")
    if hub and profile == "planted":
        raise ValueError(
            "--profile planted has toy models alone, which know the drawn world and none of the "
            "words and pictures outside it: leave --profile out, or --data"
        )
    runtime.start(profile)
    if not options.dry_run:
        audit.require_writable(options.out)
        if Path(options.out, "report.html").is_file():
            print(f"{options.out} holds a report, which gets the next free number for its folder")
    _, folder = audit.chosen_data(options.data, profile)
    if folder is not None:
        print(folder.counts().to_string(index=False))
    data, loaded = folder or options.data, []
    asked = {"data": data, "parts": options.parts, "untrained": options.untrained}
    costs = [audit.cost(name, profile, options.device, **asked) for name in names]
    for at, (name, cost) in enumerate(zip(names, costs, strict=True)):
        print(f"{shown(name)}\n{cost}")
        cost.require_fit(sum(each.memory for each in costs[:at]))  # both are held at once
    if options.dry_run and any(cost.download for cost in costs):
        return 0
    for name, cost in zip(names, costs, strict=True):
        loaded.append(audit.load(name, profile, options.device))
        minutes = cost.minutes(loaded[-1].model)
        if minutes is not None:
            print(f"time: about {minutes:,.1f} minutes, timed with a few items")
    if options.dry_run:
        return 0
    return _audited(audit, loaded, profile, data, options)


def reproduce(options: argparse.Namespace) -> int:
    """Say what a study takes; fetch its data and weights, run it, and write its record."""
    from biaslib import reproduction, runtime
    from biaslib.audit import require_writable

    module = reproduction.STUDIES[options.paper]
    print(runtime.prepare("paper", options.precision, module, size=options.size), flush=True)
    if options.dry_run:
        return 0
    require_writable(Path(options.out) / "record")
    folder, found, missing = reproduction.reproduce(options.paper, options.out, options.size)
    for row in missing.itertuples(index=False):
        print(shown(f"Without {row[0]}: {row[1]} ({row[2]})"))
    if options.size == "taste":
        print(f"This was {runtime.TASTE}: no printed number is judged by it")
    else:
        print(found["verdict"].value_counts().to_string())
        for finding in reproduction.findings(found):
            print(f"{finding}; of numbers there that are met otherwise nothing can be said")
    print(f"Recorded in {folder}")
    return 0


def _audited(audit, loaded: list, profile: str, data, options: argparse.Namespace) -> int:
    """Audit loaded models and save the report, of the first model alone before the comparison."""
    settings = {"device": options.device, "data": data, "parts": options.parts}
    settings["untrained"] = options.untrained
    result = audit.run(loaded[0], profile, **settings)
    saved = audit.save(options.out, result)
    for second in loaded[1:]:
        other = audit.run(second, profile, **settings)
        try:
            compared = audit.compare(result, other)
        except ValueError as error:
            raise ValueError(f"{error}. The first model's report is in {options.out}") from error
        saved = audit.save(options.out, result, compared, other)
    print(*saved, sep="\n")
    print(audit.overview(result))
    for fault in result.faults.itertuples():
        print(shown(f"{fault.part}: {fault.reason}"), file=sys.stderr)
    return 1 if len(result.faults) or result.scores.empty else 0


if __name__ == "__main__":
    sys.exit(main())
