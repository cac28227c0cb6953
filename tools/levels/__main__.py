"""Run ``python -m tools.levels`` to write the table; with names, show those families only.

With names and ``--write`` their rows take the place of those of the same conditions in the table.
"""

import argparse

from tools import levels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    known = levels.families()
    parser.add_argument("names", nargs="*", help=", ".join(known))
    parser.add_argument("--runs", type=int, default=levels.RUNS)
    parser.add_argument("--seed", type=int, default=levels.SEED)
    parser.add_argument("--write", action="store_true", help="put rows of NAMES into the table")
    options = parser.parse_args()
    found = []
    for name in options.names or known:
        for row in known[name].rows(options.seed, options.runs):
            print(*row.values(), sep=" | ", flush=True)
            found.append(row)
    if not options.names:
        levels.write(found)
    elif options.write:
        levels.replace(found)


if __name__ == "__main__":
    main()
