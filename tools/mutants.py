"""Mutation score of biaslib and companion by layer: does a test fail when one expression is wrong?

Two steps: which test executes which line, with this module as a plugin of pytest, then one change
of an expression after the other in a copy of the tree, each against tests that execute it:

    coverage run --source=biaslib,companion -m pytest -p tools.mutants tests/test_stimuli.py ...
    python -m tools.mutants --number 25

``coverage run --append`` adds further tests. A shorter run is the beginning of a longer one.
"""

import argparse
import ast
import csv
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, namedtuple
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest
from scipy import stats

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "tools" / "benchmarks" / "results" / "mutants.csv"
DATABASE = Path(os.environ.get("COVERAGE_FILE", ROOT / ".coverage"))
TIMES = DATABASE.with_name(f"{DATABASE.name}.json")
PACKAGES = ("biaslib", "companion")
LAYERS = [*sorted(path.parent.name for path in ROOT.glob("biaslib/*/__init__.py")), "companion"]
SEED = 20261128
MOST_TESTS, MOST_SECONDS = 30, 60.0
COMPARED = "Lt LtE GtE,LtE Lt Gt,Gt GtE LtE,GtE Gt Lt,Eq NotEq,NotEq Eq,In NotIn,NotIn In"
COMPUTED = "Add Sub,Sub Add,Mult Div,Div Mult,FloorDiv Mult,Mod FloorDiv,Pow Mult"
LOGICAL = "BitAnd BitOr,BitOr BitAnd,And Or,Or And,Is IsNot,IsNot Is"
OPERATORS = dict(line.split(" ", 1) for line in f"{COMPARED},{COMPUTED},{LOGICAL}".split(","))
PAIRS = "min max,minimum maximum,any all,argmin argmax,floor ceil,mean sum,std var"
CALLS = dict(pair.split() for pair in PAIRS.split(","))
CALLS |= {new: old for old, new in CALLS.items()}
STYLE = {"stacklevel", "indent", "strict", "copy", "exist_ok", "parents", "disable"}
AXES = {"axis", "ddof"}
FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)


# Texts, of which nth counts equal changes in equal lines of a function; then lines of the statement
# and of the function, and the file with the change.
TOLD = ("layer", "file", "function", "line", "kind", "change", "nth")
Mutant = namedtuple("Mutant", (*TOLD, "statement", "body", "content"))
COLUMNS = (*TOLD, "covering", "tests", "outcome", "caught_by", "seconds")
KEYS = (TOLD[1:], TOLD[2:], ("function", "kind", "change"), ("line", "kind", "change"))


def changes(node: ast.AST, argument: str) -> Iterator[tuple[str, ast.AST, str]]:
    """Yield what can change in a node itself: the kind, the part that is replaced, and by what."""
    match node:
        case ast.BinOp() | ast.BoolOp() | ast.Compare(ops=[_]) | ast.AugAssign():
            fields = dict(ast.iter_fields(node))
            operator = fields.get("op") or fields["ops"][0]
            for name in OPERATORS.get(type(operator).__name__, "").split():
                other = getattr(ast, name)()
                changed = {"ops": [other]} if "ops" in fields else {"op": other}
                text = ast.unparse(type(node)(**fields | changed))
                yield "operator", node, f"({text})" if isinstance(node, ast.expr) else text
        case ast.UnaryOp(ast.USub() | ast.Invert() | ast.Not(), operand):
            yield "sign", node, f"({ast.unparse(operand)})"
        case ast.If(test) | ast.IfExp(test) | ast.comprehension(ifs=[test, *_]):
            if not isinstance(test, ast.UnaryOp | ast.Compare):
                yield "condition", test, f"(not ({ast.unparse(test)}))"
        case ast.keyword(arg, value) if arg in AXES:
            text = ast.unparse(value)
            yield "axis, ddof", value, "0" if text == "-1" else f"1 - {text}"
        case ast.Slice(lower, upper):
            for bound in filter(None, (lower, upper)):
                yield "slice", bound, f"({ast.unparse(bound)}) + 1"
        case ast.Constant(bool() as value):
            yield "constant", node, str(not value)
        case ast.Constant(int() | float() as value):
            yield "constant", node, str(value + 1 if isinstance(value, int) else 2 * value or 1.0)
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name) as called) if name in CALLS:
            yield "call", called, ast.unparse(called).removesuffix(name) + CALLS[name]
        case ast.Expr(ast.Call()):
            yield "call left out", node, "pass"
        case ast.Return(ast.expr() as value) if ast.unparse(value) not in (argument, "None"):
            yield "return", value, argument


def parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands in a node and may change: no messages, type hints or decorators."""
    types = [getattr(node, "annotation", None), getattr(node, "returns", None)]
    types += getattr(node, "decorator_list", [])
    counted_already = isinstance(node, ast.Slice) or getattr(node, "arg", None) in AXES
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Raise() | ast.Assert() | ast.JoinedStr():
                continue
            case ast.BinOp(left, _, right) if is_text(left) or is_text(right):
                continue
            case ast.Expr(ast.Call(ast.Attribute(attr="warn"))):
                continue
            case ast.keyword(arg=arg) if arg in STYLE:
                continue
        if child not in types and not (counted_already and isinstance(child, ast.Constant)):
            yield child


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield the mutants of a file's functions."""
    file, content = path.relative_to(ROOT).as_posix(), path.read_bytes()
    lines = content.splitlines(keepends=True)
    starts = [0, *itertools.accumulate(map(len, lines))]
    seen: Counter = Counter()

    def walk(node, function="", argument="None", statement=range(0), body=range(0)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".removeprefix(".")
        if isinstance(node, ast.FunctionDef):
            names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
            argument = next((name for name in names if name not in ("self", "cls")), "None")
            statement = body = range(node.body[0].lineno, node.end_lineno + 1)
        elif isinstance(node, ast.stmt):
            statement = range(node.lineno, node.lineno + 1)
        for kind, old, new in changes(node, argument) if body else ():
            start = starts[old.lineno - 1] + old.col_offset
            end = starts[old.end_lineno - 1] + old.end_col_offset
            line, change = lines[old.lineno - 1].decode().strip(), f"{ast.unparse(old)} -> {new}"
            told = (layer_of(file), file, function, line, kind, change)
            seen[told] += 1
            lines_to_here = range(statement.start, max(statement.stop, old.end_lineno + 1))
            changed = content[:start] + new.encode() + content[end:]
            yield Mutant(*told, str(seen[told]), lines_to_here, body, changed)
        for child in parts(node):
            yield from walk(child, function, argument, statement, body)

    yield from walk(ast.parse(content))


def layer_of(file: str) -> str:
    """Return the folder of biaslib in which a file lies; all of companion is one layer."""
    package, folder = file.split("/")[:2]
    return package if package == "companion" else folder


def drawn(mutants: list[Mutant], number: int) -> list[Mutant]:
    """Draw so many of each layer, one layer after the other, the same ones each time."""
    layers = [[mutant for mutant in mutants if mutant.layer == layer] for layer in LAYERS]
    samples = [random.Random(SEED).sample(layer, len(layer))[:number] for layer in layers]
    return [mutant for turn in itertools.zip_longest(*samples) for mutant in turn if mutant]


def found_again(mutants: list[Mutant], table: Path) -> Iterator[Mutant]:
    """Yield the mutants of a table that are here, found by as much of them as has stayed."""
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for names in KEYS:
                wanted = [row[name] for name in names]
                fitting = [m for m in mutants if [getattr(m, name) for name in names] == wanted]
                if len(fitting) == 1:
                    yield fitting[0]._replace(layer=row["layer"])
                    break
            else:
                print("not here:", row["file"], row["function"], row["change"])


class Tests:
    """Which tests execute a line, and how long they take, of what was recorded."""

    def __init__(self):
        self.data = coverage.CoverageData(str(DATABASE))
        self.data.read()
        self.seconds = json.loads(TIMES.read_text(encoding="utf-8"))
        files = self.data.measured_files()
        self.files = {Path(path).relative_to(ROOT).as_posix(): path for path in files}

    def on(self, file: str, lines: range) -> list[str]:
        """Return tests of lines: the quickest case of each test function, then second cases."""
        at, cases = self.data.contexts_by_lineno(self.files.get(file, file)), Counter()
        tests = {test for line in lines for test in at.get(line, ()) if test in self.seconds}
        ranks = {}
        for test in sorted(tests, key=lambda test: (self.seconds[test], test)):
            function = test.partition("[")[0]
            ranks[test] = cases[function]
            cases[function] += 1
        return sorted(ranks, key=ranks.get)

    def of(self, mutant: Mutant) -> tuple[list[str], int]:
        """Return tests to run, and how many there are.

        Those of the statement come first, then others of its function, in which the statement may
        not be executed since an earlier test had it cached.
        """
        own, wide = self.on(mutant.file, mutant.statement), self.on(mutant.file, mutant.body)
        every = list(dict.fromkeys(own + wide)) if own else []
        spent = itertools.accumulate(self.seconds[test] for test in every)
        within = sum(total <= MOST_SECONDS for total in spent)
        return every[: min(max(within, 1), MOST_TESTS)], len(every)


def run_tests(tree: Path, tests: list[str], seconds: float, *options: str) -> tuple[str, str]:
    """Run tests in a tree; return what came of it, and what failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *tests]
    environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "start_new_session": True}
    with subprocess.Popen(command, cwd=tree, env=environment, text=True, **pipes) as process:
        try:
            told, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "timed out", ""
    failed = FAILURE.findall(told)
    if process.returncode > 0 and not failed:
        raise RuntimeError(f"pytest ended with {process.returncode}:\n{told}")
    return ("caught" if process.returncode else "survived"), "\n".join(failed)


def put(path: Path, content: bytes) -> None:
    """Write a module, and remove its compiled form: its time and size may be those of before."""
    path.write_bytes(content)
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def tried(mutant: Mutant, tree: Path, tests: Tests) -> dict:
    """Return the row of one mutant."""
    chosen, covering = tests.of(mutant)
    began, outcome, caught_by = time.monotonic(), "no test", ""
    if chosen:
        put(tree / mutant.file, mutant.content)
        limit = 300 + 5 * sum(tests.seconds[test] for test in chosen)
        outcome, caught_by = run_tests(tree, chosen, limit, "-x")
        put(tree / mutant.file, (ROOT / mutant.file).read_bytes())
    spent = round(time.monotonic() - began, 1)
    row = (*mutant[:7], covering, len(chosen), outcome, caught_by, spent)
    return dict(zip(COLUMNS, row, strict=True))


def run(mutants: list[Mutant], table: Path, minutes: float) -> list[dict]:
    """Try mutants in a copy of the tree until the time is over; write and return the rows."""
    tests, rows, end = Tests(), [], time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder, table.open("w", encoding="utf-8") as file:
        unneeded = shutil.ignore_patterns(".git", ".venv", "_build", "build", "__pycache__")
        tree = shutil.copytree(ROOT, Path(folder) / "tree", ignore=unneeded)
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for mutant in itertools.takewhile(lambda _: time.monotonic() < end, mutants):
            rows.append(tried(mutant, tree, tests))
            writer.writerow(rows[-1])
            file.flush()
            print(len(rows), *rows[-1].values(), sep=" | ", flush=True)
        killers = {row["caught_by"] for row in rows} - {""}
        failing = run_tests(tree, sorted(killers), 3600)[1] if killers else ""
        print("failing without a change, too:", failing or "none")
    return rows


def summary(rows: list[dict]) -> None:
    """Print the share caught by layer, with the interval of Clopper and Pearson (1934)."""
    for layer in LAYERS:
        counts = Counter(row["outcome"] for row in rows if row["layer"] == layer)
        if counts:
            caught, n = counts["caught"] + counts["timed out"], counts.total()
            low, high = stats.binomtest(caught, n).proportion_ci()
            print(f"{layer:9} {caught / n:4.0%} [{low:.0%}, {high:.0%}], n = {n}", dict(counts))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Tell coverage which test runs."""
    coverage.Coverage.current().switch_context(item.nodeid)
    return (yield)


def pytest_terminal_summary(terminalreporter):
    """Note the seconds of each test that passed, of its fixtures too."""
    known = json.loads(TIMES.read_text(encoding="utf-8")) if TIMES.exists() else {}
    passed = terminalreporter.stats.get("passed", [])
    known |= dict.fromkeys((report.nodeid for report in passed), 0.0)
    for report in (*passed, *terminalreporter.stats.get("", [])):
        if report.nodeid in known:
            known[report.nodeid] += report.duration
    TIMES.write_text(json.dumps(known, indent=0), encoding="utf-8")


def main() -> None:
    """Do what the command line asks for."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--number", type=int, default=25, help="how many of each layer")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no mutant after them")
    parser.add_argument("--again", type=Path, help="a table whose mutants are taken, where here")
    parser.add_argument("--table", type=Path, default=RESULTS, help="where the results go")
    options = parser.parse_args()
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    every = [mutant for path in paths for mutant in mutants_of(path)]
    again = options.again and list(found_again(every, options.again))
    summary(run(again or drawn(every, options.number), options.table, options.minutes))


if __name__ == "__main__":
    main()
