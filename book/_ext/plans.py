"""Sphinx extension: plans for teaching whose minutes add up.

```{plan} half_day
```

stands for the tables of ``book/plans/half_day.yml``: a table for each session, whose slots have to
add up to its minutes. The build stops where they do not, and where a plan names a deck, a slide
or a page that is not there. Slides are named as ``study2_masked bet`` or, from one to another,
``study2_masked title..bet``. Every slot but ``a break`` says what to do when the class is late.
"""

import html
import math
import re
import textwrap
from itertools import accumulate
from pathlib import Path
from urllib.parse import urldefrag

import nbformat
import slides
import yaml
from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

LEAST_MINUTES_A_SLIDE = 1.5
SAVED = re.compile(r"saves (\d+) minutes")
BREAK = "a break"
KEYS = {
    "plan": ({"title", "sessions"}, {"weeks", "materials"}),
    "session": ({"name", "minutes", "slots"}, {"week", "read", "write"}),
    "slot": ({"minutes", "show"}, {"decks", "pages", "card", "do", "hand_in", "late", "say"}),
    "reading": ({"pages", "minutes"}, {"part"}),
    "writing": ({"minutes", "what"}, set()),
}
"""Keys that each part of a plan must have, and those that it may have besides."""

KINDS = {
    "minutes": "int float",
    "week": "int float",
    "weeks": "map",
    "write": "map",
    **dict.fromkeys(("sessions", "slots", "read", "decks", "pages", "materials"), "seq"),
}
"""What stands behind keys, as YAML calls it; behind others, text."""
FITS = {
    "int float": "a number, such as 5",
    "seq": "a list: [one, another], or below it lines that begin with a dash",
    "map": "lines with keys, such as minutes: 5",
    "str": "a text: put it between quotation marks",
}

CARD = re.compile(r"\*\*(?:Minutes\.|Time:)\*\*\D*(\d+)\D+(\d+)")
DECK = re.compile(r"([\w-]+)(?: ([a-z0-9-]+)(?:\.\.([a-z0-9-]+))?)?")
LABELS = {"do": "", "hand_in": "**Hand in.** ", "late": "**When late.** "}


def setup(app):
    app.add_directive("plan", Plan)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Plan(SphinxDirective):
    """The tables of one plan."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir)
        name = self.arguments[0]
        cards = (root / "book" / "cards").glob("*.*")
        for path in (plan_file(root, name), *deck_files(root), *cards):
            self.env.note_dependency(str(path))
        text = markdown(read(root, name), root, name)
        if (root / "book" / "cards" / f"{name}.yml").is_file():
            text += f'\n\n<p><a href="../teach/print_{name}.html">Slips and cards to print</a></p>'
        return self.parse_text_to_nodes(text)


def plan_file(root: Path, name: str) -> Path:
    return root / "book" / "plans" / f"{name}.yml"


def deck_files(root: Path) -> list[Path]:
    return slides.files(root / "book" / "slides")


def deck_file(root: Path, stem: str) -> Path | None:
    return next((path for path in deck_files(root) if path.stem == stem), None)


# Reading and checking


def read(root: Path, name: str) -> dict:
    """Return a plan of the book below ``root``.

    Raises
    ------
    ExtensionError
        Naming the plan, the session and what is wrong, of a slide also file and line: slots that
        do not add up to the session's minutes, weeks that are not what their sessions and readings
        come to, a reading whose minutes are not its chapter's, a page, a deck or a slide that is
        not there, less than a minute and a half a slide, a slide whose task takes longer than its
        slot, or a slot that does not say what to do when the class is late.
    """
    if not plan_file(root, name).is_file():
        raise ExtensionError(f"plan {name!r}: there is no {plan_file(root, name)}")
    plan = _loaded(plan_file(root, name))
    _has_keys(plan, "plan", f"plan {name!r}")
    for session in plan["sessions"]:
        place = f"plan {name!r}, session {session.get('name')!r}"
        _has_keys(session, "session", place)
        for slot in session["slots"]:
            shown = [f"show: {quote}{slot.get('show')}" for quote in ("", '"')]
            line = _line(plan_file(root, name), slot.get("decks", shown))
            _check_slot(slot, root, f"{place}, slot {slot.get('show')!r}{line}")
            if "card" in slot:
                line = _line(plan_file(root, name), [f"card: {slot['card']}"])
                card_file(root, slot["card"], f"{place}{line}")
        for reading in session.get("read", []):
            _check_reading(reading, root, place)
        if "write" in session:
            _has_keys(session["write"], "writing", place)
        together = sum(slot["minutes"] for slot in session["slots"])
        if together != session["minutes"]:
            raise ExtensionError(
                f"{place}: its slots add up to {together} minutes, not to {session['minutes']}"
            )
    for page in plan.get("materials", []):
        _page(page, root, f"plan {name!r}, materials")
    told, counted = plan.get("weeks", {}), weeks(plan)
    for week in sorted({*told, *counted}):
        if told.get(week) != counted.get(week):
            raise ExtensionError(
                f"plan {name!r}, week {week}: class, reading and writing add up to "
                f"{counted.get(week)} minutes, not to {told.get(week)}"
            )
    return plan


def _loaded(path: Path) -> dict:
    """Return what a file says, or refuse it as no YAML, or for a value of another kind."""
    text = slides.text_of(path)
    try:
        plan, node = yaml.safe_load(text), yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise slides.refusal(path, error) from error
    if node is None:
        raise ExtensionError(f"{path.name}: it is empty: a plan has title and sessions")
    _check_kind(node, path, "plan", "map")
    return plan


def _check_kind(node: yaml.Node, path: Path, key: str, kind: str) -> None:
    found = node.tag.rpartition(":")[2]
    if found not in kind.split():
        place = f"{path.name}, line {node.start_mark.line + 1}"
        raise ExtensionError(f"{place}: what stands behind or in `{key}` is {FITS[kind]}")
    if found == "map":
        for name, value in node.value:
            usual = "int float" if key == "weeks" else KINDS.get(name.value, "str")
            _check_kind(value, path, name.value, usual)
    elif found == "seq":
        for each in node.value:
            _check_kind(each, path, key, "map" if key in ("sessions", "slots", "read") else "str")


def _line(path: Path, names: list[str]) -> str:
    """Return where one of the names first stands in a file, as ``(x.yml, line 7)``."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [n for n, line in enumerate(lines, start=1) if any(name in line for name in names)]
    return f" ({path.name}, line {found[0]})" if found else ""


def _has_keys(part: dict, kind: str, place: str) -> None:
    needed, allowed = KEYS[kind]
    if wrong := (needed - part.keys()) | (part.keys() - needed - allowed):
        raise ExtensionError(
            f"{place}: {', '.join(sorted(wrong))} missing in or no key of a {kind}"
        )


def _check_slot(slot: dict, root: Path, place: str) -> None:
    _has_keys(slot, "slot", place)
    if "late" not in slot and slot["show"] != BREAK:
        raise ExtensionError(f"{place}: it has no `late`, what to do when the class is late")
    if saved := [
        each for each in SAVED.findall(slot.get("late", "")) if int(each) > slot["minutes"]
    ]:
        raise ExtensionError(
            f"{place}: `late` saves {saved[0]} minutes of {slot['minutes']}: say fewer"
        )
    shown = [
        each for text in slot.get("decks", []) for each in slides_of(text, root, place).values()
    ]
    tasks = [slides.task(each) for each in shown]
    least = max(len(shown) * LEAST_MINUTES_A_SLIDE, sum(tasks))
    if slot["minutes"] < least:
        raise ExtensionError(
            f"{place}: {len(shown)} slides, of which tasks take {sum(tasks)} minutes, "
            f"in {slot['minutes']} minutes: give it at least {math.ceil(least)}, and another fewer"
        )
    for page in slot.get("pages", []):
        _page(page, root, place)


def card_file(root: Path, name: str, place: str) -> Path:
    """Return the file of a card, or refuse its name."""
    path = root / "book" / "cards" / f"{name}.md"
    if not path.is_file():
        raise ExtensionError(f"{place}: there is no card {path}")
    return path


def titled(path: Path) -> str:
    """Return the first heading of a page in Markdown, as text of HTML."""
    return html.escape(path.read_text(encoding="utf-8").split("\n", 1)[0].lstrip("# "))


def _check_reading(reading: dict, root: Path, place: str) -> None:
    _has_keys(reading, "reading", place)
    cards = [card(_page(page, root, place)) for page in reading["pages"]]
    longest = max((each[0] for each in cards if each), default=None)
    minutes, pages = reading["minutes"], ", ".join(reading["pages"])
    if longest is not None and not (
        minutes == longest or ("part" in reading and minutes <= longest)
    ):
        raise ExtensionError(f"{place}: {minutes} minutes for {pages}, whose card says {longest}")


def _page(page: str, root: Path, place: str) -> Path:
    """Return the source of a page such as ``book/teaching#say-before``."""
    name = urldefrag(page).url
    for suffix in (".md", ".ipynb"):
        if (path := root / f"{name}{suffix}").is_file():
            return path
    raise ExtensionError(f"{place}: there is no page {name}")


def card(path: Path) -> tuple[int, int] | None:
    """Return the minutes that a chapter's card gives for reading, and for the exercises."""
    if path.suffix != ".ipynb":
        return None
    cells = nbformat.read(path, nbformat.NO_CONVERT).cells
    text = "\n".join(each.source for each in cells[:3])
    found = CARD.search(text)
    return (int(found[1]), int(found[2])) if found else None


def deck(text: str, place: str) -> tuple[str, str | None, str | None]:
    """Return stem, first and last slide of ``foundations title..bet``.

    >>> deck("foundations title..bet", ""), deck("foundations bet", ""), deck("foundations", "")
    (('foundations', 'title', 'bet'), ('foundations', 'bet', 'bet'), ('foundations', None, None))
    """
    found = DECK.fullmatch(text)
    if found is None:
        raise ExtensionError(
            f"{place}: {text!r} is no deck with slides, such as 'foundations title..bet'"
        )
    return found[1], found[2], found[3] or found[2]


def slides_of(text: str, root: Path, place: str) -> dict[str, str]:
    """Return the headings, by name, of the slides that ``foundations title..bet`` means.

    Raises
    ------
    ExtensionError
        Naming the place, if there is no such deck, or no slide of a name, or the last of two stands
        before the first.
    """
    stem, first, last = deck(text, place)
    path = deck_file(root, stem)
    if path is None:
        raise ExtensionError(f"{place}: there is no deck {stem}.md in book/slides or in its own/")
    found = slides.outline(path)
    names = list(found)
    for name in {first, last} - {None, *names}:
        raise ExtensionError(f"{place}: {path.name} has no slide {name!r}; it has {names}")
    ends = (names.index(first), names.index(last)) if first else (0, len(names) - 1)
    if ends[0] > ends[1]:
        raise ExtensionError(f"{place}: in {path.name} {last!r} stands before {first!r}")
    return {name: found[name] for name in names[ends[0] : ends[1] + 1]}


def weeks(plan: dict) -> dict[int, int]:
    """Return the minutes of class, reading and writing in each week of a course."""
    found = {}
    for session in plan["sessions"]:
        if "week" in session:
            found[session["week"]] = found.get(session["week"], 0) + sum(parts(session))
    return found


def parts(session: dict) -> tuple[int, int, int]:
    """Return a session's minutes in class, of reading before it, and of writing after it."""
    reading = sum(each["minutes"] for each in session.get("read", []))
    return session["minutes"], reading, session.get("write", {"minutes": 0})["minutes"]


# Showing


def markdown(plan: dict, root: Path, name: str) -> str:
    """Return the tables of a plan in Markdown, each with a link to its speaker's notes."""
    parts = [_summary(plan)] if "weeks" in plan else []
    for number, each in enumerate(plan["sessions"], start=1):
        parts += [_session(each, root, f"{name}_{number}")]
    return "\n\n".join(parts)


def _summary(plan: dict) -> str:
    rows = [("Week", "Class", "Reading", "Writing", "Together")]
    for week, together in plan["weeks"].items():
        held = [parts(each) for each in plan["sessions"] if each.get("week") == week]
        rows.append(
            (str(week), *(str(sum(each)) for each in zip(*held, strict=True)), str(together))
        )
    columns = list(zip(*([int(cell) for cell in row[1:]] for row in rows[1:]), strict=True))
    rows.append(("all", *(str(sum(each)) for each in columns)))
    return _table("Minutes a week", rows, "plan-weeks")


def _session(session: dict, root: Path, notes: str) -> str:
    ends = list(accumulate(slot["minutes"] for slot in session["slots"]))
    rows = [("Minutes", "Screen", "Students")]
    for slot, end in zip(session["slots"], ends, strict=True):
        begin = end - slot["minutes"]
        done = [label + slot[key] for key, label in LABELS.items() if key in slot]
        rows.append(
            (f"{begin}–{end} ({slot['minutes']})", _screen(slot, root, notes), "\n\n".join(done))
        )
    rows.append((f"{ends[-1]} together", "", ""))
    parts = [_before(each) for each in session.get("read", [])]
    before = [f"**Read before {session['name']}:** {'; '.join(parts)}."] if parts else []
    after = [
        f'<a href="../teach/notes_{notes}.html" target="notes">'
        "Speaker's notes with these minutes</a>"
    ]
    if "write" in session:
        writing = session["write"]
        after += [f"**Hand in afterwards** ({writing['minutes']} minutes): {writing['what']}"]
    name = f"{session['name']}: {session['minutes']} minutes"
    return "\n\n".join([*before, _table(name, rows, "plan", "14 43 43"), *after])


def _before(reading: dict) -> str:
    pages = " or ".join(_link(each) for each in reading["pages"])
    what = ", ".join(filter(None, [pages, reading.get("part")]))
    return f"{what} ({reading['minutes']} minutes)"


def _screen(slot: dict, root: Path, notes: str) -> str:
    shown = [slot["show"]]
    for text in slot.get("decks", []):
        stem, titles = deck(text, "")[0], slides_of(text, root, "")
        path = deck_file(root, stem)
        about = yaml.safe_load(slides.LINE.split(path.read_text("utf-8-sig"))[1])
        ends = " to ".join(
            f"“{titles[each]}”" for each in dict.fromkeys([*titles][:1] + [*titles][-1:])
        )
        address = f"../teach/slides_{stem}.html?notes={notes}#{next(iter(titles))}"
        first = list(slides.outline(path)).index(next(iter(titles))) + 1
        last = first + len(titles) - 1
        number = f"Slide {first}" if first == last else f"Slides {first}–{last}"
        shown.append(
            f'<a href="{address}">{number} of {html.escape(str(about["title"]))}</a>: {ends}'
        )
    shown += [_link(each) for each in slot.get("pages", [])]
    if "card" in slot:
        title = titled(card_file(root, slot["card"], ""))
        shown.append(f'On phones: <a href="../teach/card_{slot["card"]}.html">{title}</a>')
    return "\n\n".join(shown)


def _link(page: str) -> str:
    name, place = urldefrag(page)
    suffix = ".ipynb" if name.startswith("notebooks/") else ".md"
    return f"[](#{place})" if place else f"[](/{name}{suffix})"


def _table(caption: str, rows: list[tuple[str, ...]], kind: str, widths: str = "auto") -> str:
    lines = [f"````{{list-table}} {caption}", ":header-rows: 1", ":stub-columns: 1"]
    lines += [f":class: {kind}", f":widths: {widths}", ""]
    for row in rows:
        for mark, cell in zip(["* - ", *["  - "] * (len(row) - 1)], row, strict=True):
            lines.append((mark + textwrap.indent(cell, "    ").strip()).rstrip())
    return "\n".join([*lines, "````"])
