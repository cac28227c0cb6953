"""Releases: addresses of tables and figures stay, and numbers that moved are told."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import releases
from bs4 import BeautifulSoup
from pybtex.database import parse_string
from sphinx.errors import ExtensionError
from tables import numbered

from biaslib import __version__, display
from biaslib.published import table

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import release

PRINTED = table("ross2021", 3)[["test", "level", "model", "effect_size"]].head(6)
"""Some effect sizes of Ross et al., as a page shows them."""


def page(frame, caption="Sizes of 6 tests", figure="fig-sizes"):
    shown = display.table(frame, caption)._repr_html_()
    return (
        f'<html><article>{numbered(shown)}<figure id="{figure}"></figure><figure id="id3"></figure>'
        '<div class="math notranslate" id="equation-eq-d"></div></article></html>'
    )


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A site of one chapter and the page of releases, and no release yet."""
    monkeypatch.setattr(releases, "RELEASES", tmp_path / "releases")
    for name in ("releases", "html/notebooks", "html/book"):
        (tmp_path / name).mkdir(parents=True)
    html = tmp_path / "html"
    (html / "notebooks" / "a.html").write_text(page(PRINTED), encoding="utf-8")
    places = ("changed-numbers", "companion-bibtex", "site-version")
    body = "".join(f'<div class="x" id="{each}"></div>' for each in places)
    (html / "book" / "releases.html").write_text(body, encoding="utf-8")
    return html


def app(site):
    return SimpleNamespace(builder=SimpleNamespace(format="html"), outdir=str(site))


def let_go(site, version="0.0.1"):
    """Release the site as it stands, under an earlier version."""
    text = json.dumps(releases.manifest(site) | {"version": version})
    (releases.RELEASES / f"{version}.json").write_text(text, encoding="utf-8")


def built(site, frame, **kinds):
    (site / "notebooks" / "a.html").write_text(page(frame, **kinds), encoding="utf-8")
    releases.write_release(app(site), None)
    return BeautifulSoup((site / "book" / "releases.html").read_text("utf-8"), "html.parser")


def test_what_can_be_cited_has_an_address_and_what_sphinx_counted_out_has_none(site):
    found = releases.manifest(site)
    names = ["equation-eq-d", "fig-sizes", "table-sizes-of-tests"]
    assert found["addresses"] == [f"notebooks/a.html#{name}" for name in names]
    (rows,) = found["tables"].values()
    assert rows[0] == ["test", "level", "model", "effect_size"]
    assert [row[3] for row in rows[1:]] == [
        f"{size:.2f}".replace("-", "−") for size in PRINTED["effect_size"]
    ]


def test_the_first_release_says_so_and_every_page_its_version(site):
    found = built(site, PRINTED)
    assert "No version has been released" in found.find(id="changed-numbers").get_text()
    line = found.find(id="site-version").get_text()
    assert line.startswith(f"Version {__version__}")
    entry = parse_string(found.find(id="companion-bibtex").get_text(), "bibtex")
    assert entry.entries["companion"].fields["version"] == __version__


@pytest.mark.parametrize("again", [False, True])
def test_a_number_that_moved_is_told_with_its_row_and_column(site, again):
    let_go(site)
    moved = PRINTED.assign(effect_size=PRINTED["effect_size"].where(PRINTED.index != 2, 0.5))
    if again:  # a page that Sphinx did not write anew has what the last build put there
        built(site, moved.assign(effect_size=0.25))
    found = built(site, moved).find(id="changed-numbers")
    label = " · ".join(PRINTED.loc[2, ["test", "level", "model"]])
    before = f"{PRINTED['effect_size'][2]:.2f}".replace("-", "−")
    row = ["notebooks/a.html#table-sizes-of-tests", label, "effect_size", before, "0.50"]
    assert [
        [cell.get_text() for cell in each.select("td")] for each in found.select("tbody tr")
    ] == [row]
    assert (site / "book" / releases.CHANGED).read_text("utf-8").splitlines()[1] == ",".join(row)
    releases.check_addresses(app(site), None)


def test_rows_that_changed_places_have_not_changed_and_a_row_that_came_has(site):
    let_go(site)
    assert "All numbers are those of version 0.0.1" in built(site, PRINTED[::-1]).get_text()
    rows = built(site, PRINTED[1:]).select("#changed-numbers tbody tr")
    assert {each.select("td")[4].get_text() for each in rows} == {"–"}
    assert len(rows) == len(PRINTED.columns)


def test_an_address_that_is_gone_stops_the_build_until_it_has_an_alias(site):
    let_go(site)
    built(site, PRINTED, caption="Magnitudes", figure="fig-magnitudes")
    with pytest.raises(ExtensionError) as error:
        releases.check_addresses(app(site), None)
    for name in (
        "fig-sizes (release 0.0.1)",
        "table-sizes-of-tests (release 0.0.1)",
        "aliases.json",
    ):
        assert name in str(error.value)
    (site / "notebooks" / "b.html").write_text(page(PRINTED, figure="fig-b"), encoding="utf-8")
    old = "notebooks/a.html#"
    moved = {
        f"{old}fig-sizes": f"{old}fig-magnitudes",
        f"{old}table-sizes-of-tests": "notebooks/b.html#table-sizes-of-tests",
    }
    (releases.RELEASES / releases.ALIASES).write_text(json.dumps(moved), encoding="utf-8")
    releases.write_release(app(site), None)
    releases.check_addresses(app(site), None)
    found = BeautifulSoup((site / "notebooks" / "a.html").read_text("utf-8"), "html.parser")
    assert found.find(id="fig-sizes").find_next("figure")["id"] == "fig-magnitudes"
    link = found.find(id="table-sizes-of-tests").a["href"]
    assert link == "../notebooks/b.html#table-sizes-of-tests"


def test_an_alias_that_leads_nowhere_does_not_count(site, monkeypatch):
    let_go(site)
    moved = {"notebooks/a.html#fig-sizes": "notebooks/a.html#fig-nothing"}
    (releases.RELEASES / releases.ALIASES).write_text(json.dumps(moved), encoding="utf-8")
    built(site, PRINTED, figure="fig-magnitudes")
    with pytest.raises(ExtensionError, match="fig-sizes"):
        releases.check_addresses(app(site), None)
    monkeypatch.setenv("BIASLIB_PROFILE", "paper")  # whose captions are others
    releases.check_addresses(app(site), None)
    monkeypatch.delenv("BIASLIB_PROFILE")
    (releases.RELEASES / releases.ALIASES).write_text('{"fig-sizes": "a.html#b"}', encoding="utf-8")
    with pytest.raises(ExtensionError, match=r"aliases.json: write 'fig-sizes' as notebooks/"):
        releases.check_addresses(app(site), None)


def test_a_release_wants_one_version_a_dated_changelog_and_the_site_of_its_commit(
    tmp_path, capsys, monkeypatch
):
    def git(*words):
        names = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        alone = {each: value for each, value in os.environ.items() if not each.startswith("GIT_")}
        alone |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", "-C", tmp_path, *names, *words]
        subprocess.run(command, check=True, capture_output=True, env=alone)

    (tmp_path / "CITATION.cff").write_text("version: 0.0.9\n", encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(f"## {__version__}, unreleased\n", encoding="utf-8")
    assert release.main("9.9.9", tmp_path) == 1
    said = capsys.readouterr().err
    for words in (f"says version {__version__}, not 9.9.9", "0.0.9", "date-released", "make book"):
        assert words in said
    cited = f"version: {__version__}\ndate-released: 2026-11-27\n"
    (tmp_path / "CITATION.cff").write_text(cited, encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(f"## {__version__}, 2026-11-27\n", encoding="utf-8")
    (tmp_path / ".gitignore").write_text("_build\n", encoding="utf-8")
    git("init")
    git("add", ".")
    git("commit", "-m", "a")
    html = tmp_path / "_build" / "html"
    for name in ("notebooks", "book"):
        (html / name).mkdir(parents=True)
    (html / "notebooks" / "a.html").write_text(page(PRINTED), encoding="utf-8")
    (html / releases.PAGE).write_text("<p>Version 0.0.9</p>", encoding="utf-8")
    (tmp_path / "book" / "releases").mkdir(parents=True)
    assert release.problems(__version__, tmp_path, html) == [
        f"The site in _build/html is not that of '{releases.version_line(tmp_path)}': "
        "run 'make book' again."
    ]
    (html / releases.PAGE).write_text(f"<p>{releases.version_line(tmp_path)}</p>", encoding="utf-8")
    assert release.main(__version__, tmp_path) == 0
    (found,) = releases.releases(tmp_path / "book" / "releases")
    assert found == releases.manifest(html)
    (tmp_path / "CHANGELOG.md").write_text(f"## {__version__}, 2026-11-27\n\n", encoding="utf-8")
    wrong = release.problems(__version__, tmp_path, html)
    assert any("not committed" in each for each in wrong)
    assert f"{__version__} has been released: raise the version" in wrong
    monkeypatch.setenv("BIASLIB_PROFILE", "paper")
    wrong = release.problems(__version__, tmp_path, html)
    assert "The site of a release is that of the profile planted" in wrong
