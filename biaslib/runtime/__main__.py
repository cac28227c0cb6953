"""Keep the store and the lock file: ``python -m biaslib.runtime archive FILE``, or ``restore``."""

import argparse
import sys
import zipfile
from collections.abc import Sequence

from biaslib.runtime import archive, restore
from biaslib.runtime._archive import LOCK


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or 1 with one clear line about what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m biaslib.runtime", description=__doc__)
    parser.add_argument("what", choices=["archive", "restore"])
    parser.add_argument("file", help="the archive, such as drive/MyDrive/biaslib.zip")
    given = parser.parse_args(arguments)
    try:
        count = (archive if given.what == "archive" else restore)(given.file)
    except (ValueError, OSError, RuntimeError) as error:
        print(f"{type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    with zipfile.ZipFile(given.file) as kept:
        lock = " and the lock file" if LOCK in kept.namelist() else ""
    print(f"{given.file}: {count} files of the store{lock} {given.what}d")
    return 0


if __name__ == "__main__":
    sys.exit(main())
