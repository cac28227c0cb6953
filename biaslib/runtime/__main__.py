"""Keep the store and the lock file: ``python -m biaslib.runtime archive FILE``, or ``restore``."""

import argparse

from biaslib.runtime import archive, restore


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m biaslib.runtime", description=__doc__)
    parser.add_argument("what", choices=["archive", "restore"])
    parser.add_argument("file", help="the archive, such as drive/MyDrive/biaslib.zip")
    given = parser.parse_args()
    count = (archive if given.what == "archive" else restore)(given.file)
    print(f"{given.file}: {count} files of the store and the lock file {given.what}d")


if __name__ == "__main__":
    main()
