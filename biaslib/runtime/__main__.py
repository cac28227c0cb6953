"""Keep the store and the lock file: ``python -m biaslib.runtime archive FILE``, or ``restore``."""

import argparse
import sys
from collections.abc import Sequence

from biaslib.runtime import archive, restore


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or 1 with one clear line about what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m biaslib.runtime", description=__doc__)
    parser.add_argument("what", choices=["archive", "restore"])
    parser.add_argument("file", help="the archive, such as drive/MyDrive/biaslib.sqlite")
    given = parser.parse_args(arguments)
    try:
        count = (archive if given.what == "archive" else restore)(given.file)
    except (ValueError, OSError, RuntimeError) as error:
        print(f"{type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    print(f"{given.file}: {count:,} rows of the store and the lock file {given.what}d")
    return 0


if __name__ == "__main__":
    sys.exit(main())
