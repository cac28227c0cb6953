"""The copies in ``colab/``: what the notebooks make of them, in plain Markdown, with nothing open.

The copies that are committed are compared with what the tool makes of the notebooks; every rule is
checked on the committed files, as a reader opens them; and two are run as a newcomer runs them.
"""

import csv
import dataclasses
import json
import re
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from IPython.core.inputtransformer2 import TransformerManager
from markdown_it import MarkdownIt
from nbclient import NotebookClient

from biaslib import stimuli

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import book_index  # noqa: E402
import myst_blocks  # noqa: E402
import notebook_copies  # noqa: E402
import plain_markdown  # noqa: E402
import repository  # noqa: E402
from citations import Bibliography  # noqa: E402

COPIES = sorted((ROOT / "colab").glob("*.ipynb"))
each_copy = pytest.mark.parametrize("path", COPIES, ids=lambda path: path.stem)
SOURCE = ROOT / "notebooks"


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def texts(path, kind="markdown"):
    return ["".join(c["source"]) for c in read(path)["cells"] if c["cell_type"] == kind]


def rendered(markdown):
    """Return what a plain CommonMark renderer makes of it, with tables, as a soup."""
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    return BeautifulSoup(html, "html.parser")


def without(found, *names):
    for each in found.find_all(names):
        each.decompose()
    return found


MATH = re.compile(r"\$\$.*?\$\$|\$[^$]*\$", re.S)


# The committed files


def test_the_copies_are_what_the_notebooks_make_of_them():
    made = notebook_copies.copies(ROOT)
    assert {path.name for path in COPIES} == set(made), "run `make copies`"
    old = [path.name for path in COPIES if path.read_text(encoding="utf-8") != made[path.name]]
    assert old == [], "these are not what the notebooks say: run `make copies`"


@each_copy
def test_a_copy_is_a_valid_notebook_without_outputs(path):
    notebook = nbformat.read(path, nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    assert [c for c in notebook.cells if c.get("outputs") or c.get("execution_count")] == []


@each_copy
def test_no_code_of_a_copy_names_a_file_beside_it(path):
    """Colab has the package alone, without the repository."""
    paths = r"""["'(](?:\.\.?/|(?:book|notebooks|tests|tools|biaslib|plantedworld)/)"""
    assert [c for c in texts(path, "code") if re.search(paths, c)] == []


@each_copy
def test_no_markup_of_the_book_is_left(path):
    for text in texts(path):
        assert plain_markdown.left_over(text) == []
        prose = MATH.sub("", without(rendered(text), "code", "pre").get_text())
        assert not re.search(r"\{[^}]*\}|:::|`{2,}|^\(\S+\)=$", prose, re.M), prose
    for text in texts(path, "code"):
        assert not re.search(r"\{(?:cite|term|eq|ref|numref|doc|py:\w+)[\w:]*\}+`", text)


@each_copy
def test_no_solution_lies_open(path):
    """Whatever stands in a solution of the notebook stands in the copy's details alone."""
    open_text = "\n".join(without(rendered(text), "details").get_text() for text in texts(path))
    hidden = 0
    for text in texts(SOURCE / path.name):
        for block in myst_blocks.blocks(text):
            if block.kind == "directive" and block.name == "solution":
                words = [w for w in re.split(r"[`$*{}\[\]()\n]", block.text) if len(w) > 25]
                assert [each for each in words if each in open_text] == []
                hidden += 1
    assert hidden <= sum(
        "<summary>Solution to" in text for text in "\n".join(texts(path)).split("<details>")
    )


@each_copy
def test_code_of_answers_is_in_no_cell(path):
    cells = read(SOURCE / path.name)["cells"]
    answers = ["".join(cells[at]["source"]) for at in notebook_copies.answer_cells(cells)]
    code = texts(path, "code")
    assert not set(answers) & set(code)
    assert all(answer in "\n".join(texts(path)) for answer in answers)


@each_copy
def test_the_content_note_is_open(path):
    """And not behind a line to open."""
    cells = {cell["id"]: "".join(cell["source"]) for cell in read(path)["cells"]}
    for note in read(SOURCE / path.name)["cells"]:
        if "admonition} Content note" in "".join(note["source"]):
            quotes = without(rendered(cells[note["id"]]), "details").find_all("blockquote")
            assert any("Content note" in quote.get_text() for quote in quotes)


@each_copy
def test_every_link_leads_somewhere(path):
    """From a notebook on a drive, too, beside which there is nothing."""
    book = f"{repository.address()}/blob/{book_index.BRANCH}/"
    for text in texts(path):
        for anchor in rendered(text).find_all("a", href=True):
            target = anchor["href"]
            assert anchor.get_text().strip()
            assert re.match("https?://", target)
            assert "YOUR_ACCOUNT" not in target
            if target.startswith(book):
                assert (ROOT / target.removeprefix(book).partition("#")[0]).is_file(), target
    said = "\n".join(texts(path, "code"))
    assert re.findall(r"\]\((?!http)[^()\s]*\.(?:ipynb|md)[^()\s]*\)", said) == []


@pytest.mark.parametrize(
    ("address", "site", "chapter", "file"),
    [
        ("", "", "Foundations", "a page"),
        (
            "https://github.com/o/n",
            "",
            "[Foundations](https://github.com/o/n/blob/main/colab/foundations.ipynb)",
            "[a page](https://github.com/o/n/blob/main/book/profiles.md#x)",
        ),
        (
            "https://github.com/o/n",
            "https://o.org/b",
            "[Foundations](https://o.org/b/notebooks/foundations.html)",
            "[a page](https://o.org/b/book/profiles.html#x)",
        ),
    ],
)
def test_a_link_goes_to_the_site_else_to_the_repository_else_is_none(
    address, site, chapter, file, book
):
    known = dataclasses.replace(book, address=address, site=site)
    title = book.titles["notebooks/foundations"]
    text = "[](foundations.ipynb), [a page](../book/profiles.md#x), [i](https://github.com/YOUR_ACCOUNT/n)"
    found = plain_markdown.inline(text, plain_markdown.Page(known, "notebooks/study1_grounded"))
    assert found == f"{chapter}, {file}, i".replace("Foundations", title)


def test_authors_and_year_tell_the_entries_of_the_bibliography_apart():
    known = Bibliography(ROOT / "book" / "references.bib")
    dated = [key for key, entry in known.entries.items() if "year" in entry.fields]
    cited = [known.in_text(key) for key in dated]
    assert len(cited) == len(set(cited)) > 50
    assert known.in_text("raji2020saving") == "Raji et al. (2020a)"
    assert known.in_text("raji2020closing") == "Raji et al. (2020b)"


# The first cell


class Shell:
    """What IPython's magics are called on, when a cell is run outside it."""

    def __init__(self):
        self.asked = []

    def run_line_magic(self, name, line, *rest):
        self.asked.append((name, line))


@each_copy
def test_the_first_cell_installs_only_what_is_missing_and_offers_the_profile(
    path, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    first = texts(path, "code")[0]
    original = next(text for text in texts(SOURCE / path.name, "code") if "%pip" in text)
    source, wanted = re.search(r'(source = .*)\n.*("biaslib.* @ \{source\}")', original).groups()
    assert source in first
    assert wanted in first
    with_profile = "runtime.start(PROFILE" in "\n".join(texts(SOURCE / path.name, "code"))
    assert ('PROFILE = "planted"  # @param ["planted", "paper"]' in first) == with_profile
    assert ('PRECISION = "auto"  # @param ["auto", "float32"]' in first) == with_profile
    sized = ", size=SIZE" if path.stem.startswith("study") else ""
    assert (f'(PROFILE, PRECISION, "{path.stem}"{sized})' in first) == with_profile
    assert not re.search(r"^PROFILE = ", "\n".join(texts(path, "code")[1:]), re.M)
    shell, code = Shell(), TransformerManager().transform_cell(first)
    exec(code, {"get_ipython": lambda: shell})
    assert shell.asked == []
    assert "No GPU is needed" in capsys.readouterr().out
    monkeypatch.setattr(metadata, "version", only(set()))
    if "YOUR_ACCOUNT" in source:
        with pytest.raises(RuntimeError, match=r"there is no biaslib_colab\.zip in this folder"):
            exec(code, {"get_ipython": lambda: shell})
    asked = installed(code.replace("YOUR_ACCOUNT/", "somebody/"))
    assert "torch" not in asked
    assert "numpy" not in asked
    assert "--upgrade" not in asked


def only(names):
    """Return importlib's *version* of a machine that has the packages named, and no other."""
    real = metadata.version

    def version(name):
        if name not in names:
            raise metadata.PackageNotFoundError(name)
        return real(name)

    return version


def installed(code):
    """Return what a first cell hands to pip, or None."""
    shell = Shell()
    variables = {"get_ipython": lambda: shell}
    exec(code, variables)
    assert all(name == "pip" for name, _ in shell.asked)
    return shell.asked[0][1].format(**variables) if shell.asked else None


@pytest.mark.parametrize(("there", "taken"), [("0.1.0", False), ("0.10.0", True)])
def test_a_newer_zip_is_taken(there, taken, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("biaslib_colab.zip", "w") as file:
        file.writestr(f"biaslib-{there}-py3-none-any.whl", "")
    code = TransformerManager().transform_cell(texts(COPIES[0], "code")[0])
    asked = installed(code)
    assert bool(asked and f"biaslib-{there}-py3-none-any.whl" in asked) == taken
    assert (f"biaslib {there} in place of" in capsys.readouterr().out) == taken


# Each construct of the book's Markdown

FILE = ROOT / "companion" / "data" / "decidable.csv"
ROWS = list(csv.reader(FILE.read_text(encoding="utf-8").splitlines()))
LINES = [f"| {' | '.join(row)} |" for row in ROWS]
DECIDABLE = "\n".join(["*Two*\n", LINES[0], "|" + " --- |" * len(ROWS[0]), *LINES[1:]])


@pytest.fixture(scope="module")
def book():
    """The book, as if it had an address."""
    return dataclasses.replace(book_index.read_book(ROOT), address="https://github.com/o/n")


@pytest.fixture
def page(book):
    return plain_markdown.Page(book, "notebooks/study1_grounded")


@pytest.mark.parametrize(
    ("myst", "expected"),
    [
        ("{term}`target sets <target set>`, {term}`ddof`", "target sets, ddof"),
        ("{cite:t}`ross2021` say", "Ross et al. (2021) say"),
        ("So {cite}`holm1979,chung2013`.", "So (Holm, 1979; Chung and Romano, 2013)."),
        ("Ross, Katz and Barbu {cite}`ross2021`", "Ross, Katz and Barbu (2021)"),
        ("Benjamini and Hochberg's {cite:p}`benjamini1995`", "Benjamini and Hochberg's (1995)"),
        ("{py:func}`~biaslib.inference.adjust` of {mod}`biaslib.inference`",
         "`adjust` of `biaslib.inference`"),
        ("a {math}`d_0` and `{eq}` in code", "a $d_0$ and `{eq}` in code"),
        ("[](foundations.ipynb#many-tests)",
         "[Many tests](https://github.com/o/n/blob/main/colab/foundations.ipynb)"),
        ("[x](../book/profiles.md#a)",
         "[x](https://github.com/o/n/blob/main/book/profiles.md#a)"),
        ("```{csv-table} Two\n:file: ../companion/data/decidable.csv\n```", DECIDABLE),
        (":::{admonition} Content note\n:class: dropdown warning\nWords.\n:::",
         "> **⚠️ Content note**\n>\n> Words."),
        (":::{admonition} More *here*\n:class: dropdown\nWords.\n:::",
         "<details>\n<summary>More here</summary>\n\nWords.\n\n</details>\n<br>"),
        ("```{list-table} Two\n:header-rows: 1\n\n* - a\n  - b\n* - 1\n  - 2\n    more\n```",
         "*Two*\n\n| a | b |\n| --- | --- |\n| 1 | 2 more |"),
        ("$$\na\n= b % why\n$$", "$$ a = b $$"),
        ("- a\n\n  ```python\n  {x}\n  ```\n- b", "- a\n\n  ```python\n  {x}\n  ```\n\n- b"),
    ],
)  # fmt: skip
def test_a_construct_in_plain_markdown(myst, expected, page):
    found = plain_markdown.plain(myst, page)
    assert found == expected
    assert plain_markdown.left_over(found) == []


@pytest.mark.parametrize(
    "myst",
    ["{unheard}`x`", "```{unheard}\nx\n```", "{ref}`no-such-label`", "[x](no-such.md)"],
)
def test_what_is_not_known_is_refused_by_name(myst, page):
    with pytest.raises(ValueError, match=r"unheard|no-such"):
        plain_markdown.plain(myst, page)


def test_a_caption_gets_its_number_and_a_template_its_words(page, book):
    code = 'display.figure(\n    plot(x),\n    "Short.",\n    name="fig-grounded-effects",\n)'
    figure = book.labels["fig-grounded-effects"].number
    assert f'    "Fig. {figure}. Short.",' in notebook_copies.in_copies(code, page)
    said = (
        'display.say("See {{numref}}`fig-grounded-effects`: {x}, [p](../book/profiles.md).", x=1)'
    )
    found = notebook_copies.in_copies(said, page)
    assert f"See Fig. {figure}: {{x}}, [p](https://github.com/o/n/blob/main/" in found


# Run as a newcomer runs them


def run(path, folder):
    """Return a copy after all its cells were run in an empty folder."""
    notebook = nbformat.read(path, nbformat.NO_CONVERT)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=600, resources=resources).execute()
    return notebook


HARMFUL = {"Criminal justice", "Appearance", "Portrayal in Media", "Religion"}
"""Types of study 3's words among which are slurs and words of contempt or crime."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["foundations", "published_numbers"])
def test_a_copy_that_was_run_shows_prose_and_opens_no_harmful_table(name, tmp_path, monkeypatch):
    monkeypatch.delenv("BIASLIB_BOOK", raising=False)
    notebook = run(ROOT / "colab" / f"{name}.ipynb", tmp_path)
    kinds = stimuli.taxonomy_kinds()
    harmful = set(kinds.loc[kinds["bias_type"].isin(HARMFUL), "word"])
    said, tables = 0, 0
    for output in [each for cell in notebook.cells for each in cell.get("outputs", [])]:
        data = output.get("data", {})
        if markdown := data.get("text/markdown"):
            said += 1
            assert plain_markdown.left_over(markdown) == []
        soup = BeautifulSoup(data.get("text/html", ""), "html.parser")
        tables += len(soup.find_all("table"))
        assert not harmful & {td.get_text() for td in without(soup, "details").find_all("td")}
    assert tables >= 3
    assert said >= 3 or name != "foundations"
