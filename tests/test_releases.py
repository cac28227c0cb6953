"""Releases: addresses of tables and figures stay, and numbers that moved are told."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import policy
import pytest
import releases
from bs4 import BeautifulSoup
from sphinx.errors import ExtensionError
from tables import numbered

from biaslib import display, runtime
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
    (html / "book" / "teaching.html").write_text('<div id="release-files"></div>', encoding="utf-8")
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


def test_a_number_that_moved_is_told_and_rows_that_changed_places_are_not(site):
    let_go(site)
    assert "All numbers are those of version 0.0.1" in built(site, PRINTED[::-1]).get_text()
    moved = PRINTED.assign(effect_size=PRINTED["effect_size"].where(PRINTED.index != 2, 0.5))
    (row,) = built(site, moved).select("#changed-numbers tbody tr")
    label = " · ".join(PRINTED.loc[2, ["test", "level", "model"]])
    size = f"{PRINTED['effect_size'][2]:.2f}".replace("-", "−")
    told = ["notebooks/a.html#table-sizes-of-tests", f"{label} · {size}", f"{label} · 0.50"]
    assert [cell.get_text() for cell in row.select("td")] == told
    assert (site / "book" / releases.CHANGED).read_text("utf-8").splitlines()[1] == ",".join(told)
    releases.check_addresses(app(site), None)


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


def test_every_page_has_the_present_policy_what_only_leads_on_too(site, monkeypatch):
    (site / "_static").mkdir()
    lead = '<meta http-equiv="Refresh" content="0; url=book/index.html" />'
    (site / "index.html").write_text(lead, encoding="utf-8")
    for text in (policy.POLICY, "default-src 'self'"):
        monkeypatch.setattr(policy, "POLICY", text)
        policy.keep_to_policy(app(site), None)
        pages = [
            BeautifulSoup(each.read_text("utf-8"), "html.parser") for each in site.rglob("*.html")
        ]
        kept = [each.select("meta[http-equiv=Content-Security-Policy]") for each in pages]
        assert [[each["content"] for each in found] for found in kept] == [[text]] * 4


@pytest.mark.parametrize("profile", ["planted", "paper"])
def test_a_site_of_another_profile_is_not_released(site, profile):
    stamp = runtime.Provenance(profile)._repr_html_()
    (site / "notebooks" / "b.html").write_text(f"<article>{stamp}</article>", encoding="utf-8")
    found = release.problems("0.0.1", Path(__file__).parents[1], site)
    assert [each for each in found if "profile" in each] == [
        f"The site of a release is that of the profile planted, not {profile}"
    ] * (profile != "planted")


def test_an_alias_that_leads_nowhere_does_not_count(site):
    let_go(site)
    moved = {"notebooks/a.html#fig-sizes": "notebooks/a.html#fig-nothing"}
    (releases.RELEASES / releases.ALIASES).write_text(json.dumps(moved), encoding="utf-8")
    built(site, PRINTED, figure="fig-magnitudes")
    with pytest.raises(ExtensionError, match="fig-sizes"):
        releases.check_addresses(app(site), None)


def test_the_page_for_teachers_leads_to_the_last_release_or_says_how_to_make_its_files(
    site, tmp_path, monkeypatch
):
    def shown():
        releases.write_release(app(site), None)
        return (site / "book" / "teaching.html").read_text("utf-8")

    assert "<code>make teach</code>" in shown()
    let_go(site)
    assert "href" not in shown(), "no account is set, and so no address"
    cff = (releases.ROOT / "CITATION.cff").read_text("utf-8").replace("YOUR_ACCOUNT", "somebody")
    (tmp_path / "CITATION.cff").write_text(cff, encoding="utf-8")
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "plan_half_day.md").touch()
    monkeypatch.setattr(releases, "ROOT", tmp_path)
    at = "https://github.com/somebody/vision-language-bias/releases/download/v0.0.1"
    for name in ("plan_half_day.zip", *releases.FILES):
        assert f'href="{at}/{name}"' in shown()
