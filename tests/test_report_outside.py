"""Names, labels and captions from outside are shown as they are; none of them runs or asks a host.

Markdown is rendered with HTML allowed, which is what the book does and, before it cleans up, a
notebook program.
"""

import dataclasses

import numpy as np
import pandas
import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt
from support.panels import opened

from biaslib import audit, display, runtime
from companion import _check, _drawing, _explorer
from companion import own_model as plots

HOSTILE = [
    "<script>window.hit = 1</script>",
    "</script><script>window.hit = 1</script>",
    "<!-- <script>",
    "<img src=x onerror='window.hit = 1'>",
    "\"'><svg onload='window.hit = 1'>",
    "</title></textarea></style><iframe src='javascript:parent.hit = 1'>",
    "![](https://example.org/counter.png)",
    "`` <b onclick='window.hit = 1'>",
    "a\n\n<script>window.hit = 1</script>\n\nb",
    "a\n:::\n\n```{include} LICENSE\n```\n\nb",
    "costs $5, x_{ and $\\frac",
    "{0} {name} %s \\u003cscript> | a | b |",
]
LOADING = {"script", "img", "iframe", "svg", "style", "object", "embed", "link", "form", "pre"}


def elements(html: str):
    return BeautifulSoup(html, "html.parser").find_all(True)


def assert_harmless(html: str) -> None:
    for element in elements(html):
        assert element.name not in LOADING, element
        assert not [name for name in element.attrs if name.startswith("on")], element
        assert not str(element.get("href", "")).startswith("javascript:"), element


def rendered(markdown: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)


class Matcher:
    name, revision = "matcher", HOSTILE[0]
    capabilities = frozenset({"match images and texts"})

    def match(self, images, texts):
        return np.array([[len(text) for text in row] for row in texts], dtype=float)


@pytest.fixture(scope="module")
def result():
    return audit.run(Matcher(), "planted")


@pytest.fixture(params=HOSTILE)
def named(request, result):
    """The audit as it is for a model and tests of hostile names."""
    name = request.param
    columns = {"model": name, "test": name, "group": name, "level": name, "dataset": name}
    claimed = result.scores["p_value"].notna()
    scores = result.scores.assign(**columns, p_holm=np.where(claimed, 0.01, np.nan))
    changes = {"scores": scores, "not_run": result.not_run.assign(reason=name), "notes": (name,)}
    audited = dataclasses.replace(result.audited, name=name)
    return dataclasses.replace(result, audited=audited, **changes)


def test_an_audit_of_a_hostile_name_says_it_and_runs_nothing(named):
    assert_harmless(rendered(display.say(audit.overview(named)).data))
    tables = (audit.summary(named), named.not_run, audit.question_table(named.claims))
    for frame in tables:
        assert_harmless(display.table(frame, named.audited.name)._repr_html_())
    assert_harmless(plots.links(named).data)


def test_the_report_of_a_hostile_name_is_one_page_that_loads_nothing(named):
    page = BeautifulSoup(audit.report(named), "html.parser")
    (picture,), (style,) = page.find_all("img"), page.find_all("style")
    assert picture["src"].startswith("data:image/svg+xml;base64,")
    assert "default-src 'none'" in page.find("meta", {"http-equiv": True})["content"]
    picture.decompose()
    style.decompose()
    assert_harmless(str(page))
    assert not page.find_all("a")
    assert len(page.find_all("h1")) == 1
    assert " ".join(named.audited.name.split()) in " ".join(page.h1.get_text().split())


def test_a_figure_with_hostile_words_is_one_picture_and_its_words(named):
    display.use_style()
    text = named.audited.name
    picture = audit.figure(named).picture
    shown = display.figure(picture, text, name="fig", alt=text)
    page = BeautifulSoup(shown.html(), "html.parser")
    assert {each.name for each in page.find_all(True)} == {"figure", "img", "figcaption"}
    assert set(page.img.attrs) == {"src", "alt", "style"}
    head, name, alt, *rest, caption, end = shown.page().splitlines()
    assert (head[:12], name, end) == (":::{figure} ", ":name: fig", ":::")
    assert rest == [""]
    assert alt == f":alt: {' '.join(text.split())}"
    assert_harmless(rendered(caption))


@pytest.mark.parametrize("text", HOSTILE)
def test_tables_problems_stamps_and_checks_escape(text):
    frame = pandas.DataFrame({text: [text, "b"]})
    found = pandas.DataFrame([{"severity": "error", "kind": text, "where": text, "what": text}])
    for shown in (
        display.table(frame, text, folded=True),
        display.table(display.problem_table(found), "Problems"),
        runtime.Provenance("planted", weights={text: text}, data={text: text}),
        _check.judge(text, "something else", text),
    ):
        assert_harmless(shown._repr_html_())
        if isinstance(shown, display.Table):  # These stand in pages that are written in Markdown.
            assert_harmless(rendered(shown._repr_html_()))


def test_a_sentence_shows_names_as_they_are():
    for text in HOSTILE:
        page = rendered(display.say("**{name}** leads, p < .05.", name=text).data)
        assert [each.name for each in elements(page)][:1] == ["p"]
        if "include" not in text:
            assert_harmless(page)


@pytest.mark.site
def test_a_panel_of_hostile_labels_shows_them(browser, tmp_path):
    marks = [
        {"kind": "dots", "x": [0.1], "y": [0.1], "label": text, "text": [text]} for text in HOSTILE
    ]
    ends = ((0, 1), (0, 1))
    frame = pandas.DataFrame({"word": HOSTILE})
    drawings = {
        (text,): _drawing.Drawing(text, marks, text, text, *ends, text, note=text, table=frame)
        for text in HOSTILE
    }
    panel = _explorer.Panel(HOSTILE[3], {HOSTILE[4]: HOSTILE}, drawings)
    with opened(panel, browser, tmp_path) as page:
        for place, text in enumerate(HOSTILE):
            page.get_by_role("combobox").select_option(str(place))
            assert page.text_content("[data-part=text]") == text
            assert page.locator("select option:checked").text_content() == text
        assert page.evaluate("window.hit") is None
        assert page.locator("script").count() == 2
        assert page.locator(".explorer-views iframe, .explorer img").count() == 0
