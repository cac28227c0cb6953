"""From the command line: ``biaslib audit MODEL --data FOLDER --out DIR``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from biaslib.errors import brought_by, shown

NOT_INSTALLED = 2
"""The exit status where a package is missing, as where an argument is."""

INTERRUPTED = 130
"""The exit status that shells expect of a command that was interrupted."""


def parser() -> argparse.ArgumentParser:
    """Return what the command line takes."""
    whole = argparse.ArgumentParser(prog="biaslib", description=__doc__)
    commands = whole.add_subparsers(dest="command", required=True)
    audit = commands.add_parser("audit", help="run the four audits on a model of your own")
    audit.add_argument("model", help="a folder, a registered name, or owner/name of the model hub")
    audit.add_argument(
        "--data", default=None, help="planted, released, or a folder of pictures with labels.csv"
    )
    audit.add_argument("--out", default="audit", help="folder for the report")
    audit.add_argument("--compare", default=None, help="another model, on the same stimuli")
    audit.add_argument(
        "--profile",
        choices=("planted", "paper"),
        default=None,
        help="where models come from: the small ones of this package, or the hub; by itself the "
        "hub for owner/name, and for a registered name with a folder of pictures",
    )
    audit.add_argument(
        "--parts",
        nargs="+",
        default=None,
        help="studies (ross2021, srinivasan2021, hamidieh2023, zhou2022), or names of parts in "
        "quotation marks, as the report has them",
    )
    audit.add_argument("--device", default=None, help="cpu, cuda or mps")
    audit.add_argument("--dry-run", action="store_true", help="say what it would take, and stop")
    return whole


def profile_of(model: str, data: str) -> str:
    """Return where a model is taken from if nobody says so: a folder needs no hub.

    A registered name is the toy of that name in the profile ``planted``, which knows the words of
    the planted world and no others: with pictures of one's own the released model is meant.
    """
    from biaslib.models import REGISTRY
    from biaslib.models._folders import place_of

    place = place_of(model)
    if isinstance(place, Path):
        return "planted"
    own_pictures = data not in ("planted", "released")
    return "paper" if "/" in place or (own_pictures and place in REGISTRY) else "planted"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or another status with one clear line about what is wrong."""
    options = parser().parse_args(arguments)
    try:
        with brought_by("audit"):
            return run(options)
    except ModuleNotFoundError as error:
        print(_told(error), file=sys.stderr)
        return NOT_INSTALLED
    except (ValueError, OSError, ImportError, LookupError, RuntimeError, MemoryError) as error:
        print(f"{type(error).__name__}: {_told(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. What was stored is kept: run the same command to go on.")
        return INTERRUPTED


def _told(error: Exception) -> str:
    """Return what an error says in one line; what to do, where the system says only what failed."""
    if isinstance(error, PermissionError) and error.filename:
        return f"{error.filename} may not be opened: change its rights, or use a copy of your own"
    if isinstance(error, MemoryError) and not isinstance(error, ValueError):
        return f"there is too little memory ({error}): end other programs, or take a smaller model"
    return shown(" ".join(str(error).split()))


def run(options: argparse.Namespace) -> int:
    """Audit the first model, write its report, and then compare it with the second if asked to."""
    from biaslib import display, runtime
    from biaslib.display import _own_report, _own_tables
    from biaslib.models.own import load_own
    from biaslib.studies import own_model as study

    data = options.data or "planted"
    names = [options.model] if options.compare is None else [options.model, options.compare]
    if not options.out:
        raise ValueError("--out is empty: name a folder for the report")
    hub = any(profile_of(name, data) == "paper" for name in names)
    profile = options.profile or ("paper" if hub else "planted")
    runtime.start(profile)
    if not options.dry_run:
        _own_report.require_writable(Path(options.out))
    _, folder = study.chosen_data(data, profile)
    if folder is not None:
        print(folder.counts().to_string(index=False))
    plans = []
    for name in names:
        plans.append(study.plan(name, profile, options.device, folder or data, options.parts))
        print(f"{shown(name)}\n{plans[-1]}")
        plans[-1].require_fit()
    if options.dry_run and any(planned.download for planned in plans):
        return 0
    settings = {"device": options.device, "data": folder or data, "parts": options.parts}
    owns = [load_own(name, profile, options.device) for name in names]
    for own, planned in zip(owns, plans, strict=True):
        print(planned.timed(own.model).time)
    if options.dry_run:
        return 0
    display.use_style()
    found = study.audit(owns[0], profile, **settings)
    saved = _own_report.Downloads(found).save(Path(options.out))
    if options.compare:
        other = study.audit(owns[1], profile, **settings)
        try:
            compared = study.compare(found, other)
        except ValueError as error:
            raise ValueError(f"{error}. The first model's report is in {options.out}") from error
        saved = _own_report.Downloads(found, compared, other).save(Path(options.out))
    print(*saved, sep="\n")
    print(_own_tables.overview(found))
    for fault in found.faults.itertuples():
        print(shown(f"{fault.part}: {fault.reason}"), file=sys.stderr)
    return 1 if len(found.faults) or found.scores.empty else 0


if __name__ == "__main__":
    sys.exit(main())
