"""Speaker's notes of a plan: its minutes, a clock, and decks that they follow."""

import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import plans
import policy
import pytest
import session_notes
import slides
import teaching
import yaml
from docutils.core import publish_string
from myst_parser.docutils_ import Parser
from sphinx.errors import ExtensionError
from support import decks
from support.browser import axe_violations

ROOT = Path(__file__).parents[1]
STATIC = ROOT / "book" / "static"
SLIDES = {
    "x": ["# A deck", "## Say $d$", "## Your turn: 4 minutes", "## The end"],
    "y": ["# Another", "## Its end"],
}
SLOTS = [
    {"minutes": 6, "show": "how $d$ begins", "decks": ["x title..say"], "late": "say *half*"},
    {"minutes": 9, "show": "the board", "do": "count", "late": "count once", "say": "Say $n$."},
    {"minutes": 8, "show": "a task", "decks": ["x task"], "do": "compute", "late": "skip it"},
    {"minutes": 5, "show": "a break"},
    {"minutes": 12, "show": "the rest", "decks": ["x end", "y title..end"], "late": "stop"},
]
NAMES = {"x": ["title", "say", "task", "end"], "y": ["title", "end"]}


def course(folder: Path, slots: list[dict]) -> Path:
    """Write two decks, and a plan with one session of these slots."""
    (folder / "notebooks").mkdir()
    session = {"name": "Monday", "slots": slots, "minutes": sum(each["minutes"] for each in slots)}
    for stem, headings in SLIDES.items():
        parts = [
            f"({name})=\n{heading}\n\nNotes:\n\nOf {stem}: {name}.\n"
            for name, heading in zip(NAMES[stem], headings, strict=True)
        ]
        text = f"---\ntitle: Deck {stem}\nchapter: {stem}\nminutes: 30\n---\n"
        path = folder / "book" / "slides" / f"{stem}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n---\n\n".join(parts), "utf-8")
        (folder / "notebooks" / f"{stem}.ipynb").touch()
    plan = plans.plan_file(folder, "small")
    plan.parent.mkdir()
    plan.write_text(yaml.safe_dump({"title": "A plan", "sessions": [session]}), "utf-8")
    return folder


@pytest.fixture(scope="module")
def teach(tmp_path_factory) -> str:
    """Return the address, in a folder on disk, of the decks and of all notes of a small plan."""
    root = course(tmp_path_factory.mktemp("root"), SLOTS)
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(STATIC, site / "_static")
    table = plans.markdown(plans.read(root, "small"), root, "small")
    extensions = {"myst_enable_extensions": ["dollarmath"], "report_level": 5}
    shown = publish_string(
        table, parser=Parser(), writer_name="html5", settings_overrides=extensions
    )
    article = re.search(r"<main.*</main>", shown.decode(), re.S)[0].replace("main", "article")
    for folder in ("book", "teach"):
        (site / folder).mkdir()
    page = f"<html lang='en'><head><title>A plan</title></head><body>{article}</body></html>"
    (site / "book" / "plan_small.html").write_text(page, "utf-8")
    made = {"notes_small_1": session_notes.pages(site, root, "small")[0]}
    for stem in SLIDES:
        deck = slides.read(root / "book" / "slides" / f"{stem}.md", [stem])
        for kind, parts in slides.pages(deck).items():
            made[f"{kind}_{stem}"] = teaching.PAGE.format(**parts)
    for name, page in made.items():
        page = policy.kept(page, site / "_static", "../")
        (site / "teach" / f"{name}.html").write_text(page, "utf-8")
    return (site / "teach").as_uri()


@pytest.fixture
def page(browser):
    opened = browser.new_page(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    yield opened
    opened.context.close()


def notes_of(page):
    """Press the key that opens a deck's notes."""
    page.get_by_role("link", name="Notes").focus()
    with page.expect_popup() as opened:
        page.keyboard.press("Enter")
    return opened.value


def wait_for(notes, said: str) -> None:
    """Wait until the notes mark the place that says this, and no other."""
    notes.locator("[aria-current]", has_text=said).wait_for()
    assert notes.locator("[aria-current]").count() == 1


def set_to(notes, minute: int) -> None:
    """Set the clock with the keyboard."""
    notes.get_by_label("Set to minute").focus()
    notes.keyboard.press("ControlOrMeta+a")
    notes.keyboard.type(f"{minute}\n")


def test_notes_of_a_plan_follow_its_decks_also_when_either_is_loaded_again(teach, page):
    page.goto(teach.replace("/teach", "/book/plan_small.html"))
    page.get_by_role("link", name="Slide 3 of Deck x").click()
    page.wait_for_selector("body[data-ready] #task.present")
    notes = notes_of(page)
    assert notes.url.endswith("notes_small_1.html")
    wait_for(notes, "Of x: task.")
    timer = notes.get_by_role("timer")
    assert timer.inner_text() == "0:00"
    page.keyboard.press("ArrowRight")
    wait_for(notes, "Of x: end.")
    timer.filter(has_text="28:01").wait_for()  # the first move began it
    page.reload()
    page.wait_for_selector("body[data-ready]")
    page.keyboard.press("ArrowLeft")
    wait_for(notes, "Of x: task.")
    notes.reload()
    assert timer.inner_text() >= "28:01"
    wait_for(notes, "Of x: task.")
    page.keyboard.press("ArrowRight")
    wait_for(notes, "Of x: end.")
    page.goto(f"{teach}/slides_y.html?notes=small_1#title")
    wait_for(notes, "Of y: title.")
    notes.get_by_role("link", name="Say", exact=False).first.click()
    page.wait_for_selector("body[data-ready] #say.present")
    wait_for(notes, "Of x: say.")


def test_the_clock_says_what_is_left_and_how_late_a_slide_is(teach, page):
    decks.opened(page, f"{teach}/slides_x.html?notes=small_1#say")
    notes = notes_of(page)
    wait_for(notes, "Of x: say.")
    clock = notes.locator(".clock")
    set_to(notes, 4)
    assert clock.get_by_role("timer").inner_text() == "4:00"
    assert clock.get_by_role("status").inner_text() == "Now: 0–6: how d begins"
    assert clock.locator(".left").inner_text() == "2 minutes left here"
    set_to(notes, 9)
    assert clock.locator(".left").inner_text() == "you are 3 minutes late"
    said = clock.get_by_role("status").inner_text()
    assert list(filter(None, said.split("\n"))) == [
        "Here: 0–6: how d begins. By the plan: 6–15: the board",
        "When late. say half",
    ]
    page.keyboard.press("ArrowRight")  # to the task, which is before its time
    wait_for(notes, "Of x: task.")
    assert "late" not in clock.inner_text()
    set_to(notes, 20)
    page.keyboard.press("ArrowRight")  # to what begins at 28
    wait_for(notes, "Of x: end.")
    set_to(notes, 19)
    page.keyboard.press("ArrowLeft")  # to the task again, four minutes after its first
    wait_for(notes, "Of x: task.")
    assert clock.locator(".left").inner_text() == "4 minutes left here; you are 4 minutes late"
    assert "When late. skip it" in clock.get_by_role("status").inner_text()
    button = clock.get_by_role("button")
    assert button.inner_text() == "Pause"
    button.focus()
    notes.keyboard.press("Enter")
    stopped = clock.get_by_role("timer").inner_text()
    notes.wait_for_timeout(1500)
    notes.reload()
    assert (clock.get_by_role("timer").inner_text(), button.inner_text()) == (stopped, "Go on")


def test_notes_are_read_on_a_phone_without_a_deck(teach, browser):
    phone = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = phone.new_page()
    page.goto(f"{teach}/notes_small_1.html")
    page.locator("section", has_text="the board").get_by_role("button").tap()
    wait_for(page, "the board")
    page.get_by_role("timer").filter(has_text="6:01").wait_for()
    page.get_by_role("spinbutton").fill("20")
    page.keyboard.press("Enter")
    assert "5 minutes late" in page.locator(".clock").inner_text()
    page.reload()
    wait_for(page, "the board")
    for mode in ("light", "dark"):
        page.emulate_media(color_scheme=mode)
        assert axe_violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    phone.close()


def test_notes_of_a_deck_are_kept_and_those_of_a_plan_that_is_gone_are_removed(tmp_path):
    root, site = course(tmp_path, SLOTS), tmp_path / "site"
    (site / "teach").mkdir(parents=True)
    for name in ("slides_small_mine", "notes_small_mine", "notes_gone_1"):
        (site / "teach" / f"{name}.html").touch()
    app = SimpleNamespace(srcdir=root, outdir=site, builder=SimpleNamespace(format="html"))
    app.env = SimpleNamespace(all_docs=[])
    session_notes.write_notes(app, None)
    assert [each.stem for each in (site / "teach").glob("notes_*")] == ["notes_small_mine"]


def test_a_slot_without_a_word_for_a_late_class_is_refused_and_a_break_is_not(tmp_path):
    root = course(tmp_path, [*SLOTS, {"minutes": 5, "show": "the street"}])
    line = (
        plans.plan_file(root, "small").read_text("utf-8").split("show: the street")[0].count("\n")
    )
    with pytest.raises(ExtensionError, match=rf"small.yml, line {line + 1}\): it has no `late`"):
        plans.read(root, "small")


def test_a_task_that_takes_longer_than_its_slot_is_refused(tmp_path):
    root = course(tmp_path, [{"minutes": 3, "show": "it", "decks": ["x task"], "late": "no"}])
    with pytest.raises(ExtensionError, match=r"small.yml, line \d+\): .* 4 minutes, in 3"):
        plans.read(root, "small")
