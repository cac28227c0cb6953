"""What an exercise refers to: figures, formulas, tables and code, by the chapter that has them.

Links in an exercise and in its solution are followed. What stands there in words only ("both
figures", "the table of constructs") is written in ``book/instructor/<chapter>.yml``, under
``needs``, by exercise: an id of the built page; the title of a table, or how it begins; or
``code:`` and a piece of a cell's code, or ``output:`` and such a piece, for what the cell puts out.
``<chapter>#`` before it takes it from another chapter.
"""

import copy
import re
from collections.abc import Iterable
from pathlib import Path

import yaml
from bs4.element import Tag

NOTES = Path(__file__).parents[1] / "instructor"
LINKED = re.compile(
    r"^(?:\.\./(?:html/)?notebooks/)?(?:([\w-]+)\.html)?#((?:fig|equation|table)-[\w-]+)$"
)
WRITTEN = re.compile(r"(?:(\w+)#)?(.+)", re.S)
CELL = re.compile(r"(code|output): (.+)", re.S)


KEYS = {"time", "wrong", "asked", "hard", "needs", "symbols", "hand"}


def notes(stem: str, folder: Path = NOTES) -> dict:
    """Return what a lecturer should know of a chapter; empty if nothing is written.

    *time*: where minutes go; *wrong*: by exercise, answers that students give and what to say;
    *asked*: questions that students ask and answers; *hard*: where discussion gets hard, and how
    to hold it; *needs*: by exercise, what it refers to in words; *symbols*: what letters of its
    measure mean, for a handout; *hand*: what a handout gives to do by hand: ``task``, in Markdown,
    ``needs``, and ``answer``, for the instructor's edition alone.

    Raises
    ------
    ValueError
        Naming the file, if it holds another key.
    """
    path = folder / f"{stem}.yml"
    found = (yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None) or {}
    if unknown := set(found) - KEYS:
        raise ValueError(f"{path}: {', '.join(sorted(unknown))} is none of {sorted(KEYS)}")
    if "hand" in found and set(found["hand"]) != {"task", "needs", "answer"}:
        raise ValueError(f"{path}: hand has a task, what it needs, and an answer")
    return found


def written(stem: str, folder: Path = NOTES) -> dict[str, list[str]]:
    """Return what is written of a chapter's exercises, by label."""
    return notes(stem, folder).get("needs", {})


def place(need: str, stem: str) -> tuple[str, str]:
    """Return the chapter and what is needed of it.

    >>> place("study3_clip_audit#equation-eq-casc", "planted_world")
    ('study3_clip_audit', 'equation-eq-casc')
    >>> place("Two tables", "planted_world")
    ('planted_world', 'Two tables')
    """
    other, what = WRITTEN.fullmatch(need).groups()
    return other or stem, what


def of_exercises(article: Tag, stem: str, known: dict) -> dict[str, list[tuple[str, str]]]:
    """Return, for each exercise of a built page, chapter and name of all that it refers to.

    Raises
    ------
    ValueError
        Naming the chapter and the label, if ``known`` has an exercise that the page lacks.
    """
    check_labels(article, stem, known)
    exercises = {each["id"]: each for each in article.select(".exercise")}
    found = {}
    for label, exercise in exercises.items():
        beside = [exercise, *following(exercise)]
        links = [link["href"] for part in beside for link in part.select("a[href]")]
        linked = [match.groups() for link in links if (match := LINKED.search(link))]
        inside = {
            each["id"] for part in beside for each in [part, *part.select("[id]")] if each.get("id")
        }
        every = [(other or stem, name) for other, name in linked if name not in inside]
        every += [place(need, stem) for need in known.get(label, [])]
        found[label] = list(dict.fromkeys(every))
    return found


def check_labels(article: Tag, stem: str, labels: Iterable[str]) -> None:
    """Raise a ValueError that names labels of exercises which the chapter does not have."""
    there = [each["id"] for each in article.select(".exercise")]
    if unknown := sorted(set(labels) - set(there)):
        raise ValueError(
            f"book/instructor/{stem}.yml: the chapter has no exercise {', '.join(unknown)}; "
            f"it has {', '.join(there)}"
        )


def following(exercise: Tag) -> list[Tag]:
    """Return what stands between an exercise and the next: its cells, solution and answer."""
    found = []
    for each in exercise.find_next_siblings():
        if "exercise" in each.get("class", []) or each.name == "section":
            break
        found.append(each)
    return found


def element(articles: dict[str, Tag], place: tuple[str, str], where: str) -> Tag:
    """Return what a chapter's built page has under an id, a table's title or a piece of code.

    Raises
    ------
    ValueError
        Beginning with ``where``, if there is no such chapter or the page has no such thing.
    """
    stem, need = place
    if stem not in articles:
        raise ValueError(f"{where}: there is no chapter {stem!r}")
    if cell := CELL.fullmatch(need):
        cells = [each for each in articles[stem].select("div.cell") if cell[2] in code(each)]
        parts = cells if cell[1] == "code" else cells[0].select(".cell_output") if cells else []
        found = next(iter(parts), None)
    else:
        found = articles[stem].find(id=need) or titled(articles[stem], need)
    if found is None:
        raise ValueError(f"{where}: the built page has no {need!r}, as id, title or code")
    return found


def code(cell: Tag) -> str:
    return "\n".join(each.get_text() for each in cell.select(".cell_input pre"))


def titled(article: Tag, title: str) -> Tag | None:
    """Return the table whose title begins so, whether the title stands in it or folds it."""
    for each in article.select("caption, summary"):
        number = each.find(class_="caption-number")
        text = each.get_text().removeprefix(number.get_text() if number else "").strip()
        if text.startswith(title):
            frame = each.find_parent(class_="table-scroll")
            return frame or each.parent.find(class_="table-scroll")
    return None


def shown(found: Tag) -> str:
    """Return an element as HTML for another page: without ids, headings as bold lines."""
    found = copy.copy(found)
    for each in [found, *found.select("[id]")]:
        each.attrs.pop("id", None)
    for each in found.find_all(re.compile("^h[1-6]$")):
        each.name = "strong"
    return str(found)
