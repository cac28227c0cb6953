"""Quizzes as packages that course systems import: QTI 1.2, written by text2qti."""

import io
import zipfile
from pathlib import Path
from unittest import mock

import teaching

VERSION = "0.8.0"
FIXED = (1980, 1, 1, 0, 0, 0)
"""The time of every file in a package, so that equal quizzes are equal packages."""


def write_packages(folder: Path, stems: list[str]) -> int:
    """Write a package of each chapter's quiz into a folder; return how many.

    Without text2qti none is written, and a line says how to install it.
    """
    try:
        import text2qti  # noqa: F401
    except ImportError:
        print(f"No quizzes for course systems were made: pip install text2qti=={VERSION}")
        return 0
    quizzes = [found for stem in stems if (found := teaching.quiz(stem))]
    for each in quizzes:
        (folder / f"quiz_{each['chapter']}.zip").write_bytes(package(each))
    return len(quizzes)


def package(quiz: dict) -> bytes:
    """Return a quiz as a zip of QTI 1.2: every option with its reason as feedback.

    Texts are those of the quiz's page, with formulas as TeX between ``\\\\(`` and ``\\\\)``, which
    course systems with MathJax draw; nothing is asked of a server that draws formulas.
    """
    from text2qti import config, markdown, qti
    from text2qti import quiz as quizzes

    class AsOnThePage(markdown.Markdown):
        """The few marks of the quizzes, made into HTML as on their pages."""

        def md_to_html(self, text: str, strip_p_tags: bool = False) -> str:
            return teaching.inline(text) if strip_p_tags else f"<p>{teaching.inline(text)}</p>"

    with mock.patch.object(quizzes, "Markdown", AsOnThePage):
        written = qti.QTI(quizzes.Quiz(as_text(quiz), config=config.Config()))
    packed, found = io.BytesIO(), zipfile.ZipFile(io.BytesIO(written.zip_bytes()))
    with zipfile.ZipFile(packed, "w", compression=zipfile.ZIP_DEFLATED) as target:
        for name in found.namelist():
            target.writestr(zipfile.ZipInfo(name, FIXED), found.read(name), zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def as_text(quiz: dict) -> str:
    """Return a quiz in text2qti's format, a line a text."""
    lines = [f"Quiz title: {quiz['title']}", f"Quiz description: {teaching.licence()}", ""]
    for number, question in enumerate(quiz["questions"], start=1):
        lines.append(f"{number}. {one_line(question['ask'])}")
        for letter, option in zip("abcdefgh", question["options"], strict=False):
            mark = "*" if option.get("right") else ""
            lines += [f"{mark}{letter}) {one_line(option['text'])}"]
            lines += [f"... {one_line(option['why'])}"]
        lines.append("")
    return "\n".join(lines)


def one_line(text: str) -> str:
    return " ".join(text.split())
