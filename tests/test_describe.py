"""Extensions of the book: descriptions of pages, and outputs that stand on another page."""

import describe
import from_run
import nbformat
from docutils import nodes
from docutils.core import publish_doctree


def test_a_chapter_is_described_by_the_question_of_its_card():
    page = "Title\n=====\n\nFirst.\n\n.. note::\n\n   **Question.** Does it find what is there?\n"
    assert describe.description(publish_doctree(page)) == "Does it find what is there?"


def test_other_pages_are_described_by_their_first_paragraph_or_their_own_words():
    page = publish_doctree(
        "Title\n=====\n\nBefore\n------\n\n.. note::\n\n   A note.\n\nFirst words.\n"
    )
    assert describe.description(page) == "First words."
    page += nodes.meta(name="description", content="Their own.")
    assert describe.description(page) == "Their own."


def test_only_outputs_of_cells_with_the_tag_are_taken():
    output = nbformat.v4.new_output("display_data", {"text/plain": "15 of 39"})
    tagged = nbformat.v4.new_code_cell("", metadata={"tags": ["start-page"]}, outputs=[output])
    other = nbformat.v4.new_code_cell("", outputs=[output])
    notebook = nbformat.v4.new_notebook(cells=[other, tagged])
    assert from_run.tagged_outputs(notebook, "start-page") == [output]
    assert from_run.tagged_outputs(None, "start-page") == []
