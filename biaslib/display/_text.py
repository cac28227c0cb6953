"""Sentences that carry numbers of the run."""

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any

HTML_OR_IMAGE = re.compile(r"<(?=[A-Za-z/!?])|!(?=\[)")
"""Where HTML or an image begins in Markdown."""


def say(template: str, **values: Any):
    """Display Markdown whose numbers were computed by the cell that says it.

    Numbers in prose come from the run and are never typed. In the book the call is left out of the
    code that is shown, and the sentence reads as text. It holds neither HTML nor images: what
    looks like one came with a name or a label, and is shown as it is.

    Parameters
    ----------
    template
        Markdown with places in braces, as :meth:`str.format` takes them; what it is indented by in
        the cell is taken away.
    values
        The values of the places. Without any the template is taken as it is.

    Examples
    --------
    >>> say("The mean is {mean:.2f}, {row[p]}.", mean=1 / 3, row={"p": p_text(0.012)}).data
    'The mean is 0.33, p = .012.'
    """
    from IPython.display import Markdown

    text = inspect.cleandoc(template)
    return Markdown(plain(text.format(**values) if values else text))


def plain(markdown: str) -> str:
    """Return Markdown in which no HTML and no image begins.

    >>> plain("p < .05 for **<script>** and ![](https://example.org/counter.png)")
    'p < .05 for **&lt;script>** and &#33;[](https://example.org/counter.png)'
    """
    return HTML_OR_IMAGE.sub(lambda found: "&lt;" if found[0] == "<" else "&#33;", markdown)


def in_code(name: str) -> str:
    """Return a name from outside as code, so that no part of it is read as Markdown.

    >>> in_code("owner/*model*`")
    "`owner/*model*'`"
    """
    return f"`{' '.join(name.split()).replace('`', chr(39))}`"


def listed(words: Iterable[str]) -> str:
    """Return words as a sentence lists them; nothing where there are none.

    >>> listed(["BERT", "LXMERT", "ViLBERT"])
    'BERT, LXMERT and ViLBERT'
    """
    *first, last = [*words] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def counted(n: float, things: str) -> str:
    """Return a number with what it counts, named in the regular plural, and in the singular for 1.

    >>> counted(1_234, "words"), counted(1, "entities and sources"), counted(0, "places")
    ('1,234 words', '1 entity and source', '0 places')
    """
    if n == 1:
        things = re.sub(r"s\b", "", re.sub(r"ies\b", "y", things))
    return f"{n:,.0f} {things}"


NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def in_words(n: int) -> str:
    """Return a small number in words for a sentence, and a larger one in digits.

    >>> in_words(0), in_words(5), in_words(28)
    ('none', 'five', '28')
    """
    return NUMBERS[n] if n < len(NUMBERS) else f"{n:,}"


def p_text(p_value: float) -> str:
    """Return a p-value for a sentence, never rounded to 0; an error if it is not from 0 to 1.

    >>> p_text(0.0123), p_text(0.00002)
    ('p = .012', 'p < .001')
    """
    if p_value < 0 or p_value > 1:
        raise ValueError(f"{p_value} is no p-value: it must lie between 0 and 1")
    if p_value < 0.001:
        return "p < .001"
    return f"p = {p_value:.3f}".replace("0.", ".")


def p_cell(p_value: float) -> str:
    """Return a p-value for a column that says what it is.

    >>> p_cell(0.0123), p_cell(0.00002)
    ('.012', '< .001')
    """
    return p_text(p_value).removeprefix("p ").removeprefix("= ")


def signed(value: float, decimals: int = 2) -> str:
    """Return a number for a sentence, with a true minus sign, which 0 has not.

    >>> signed(-0.5), signed(-0.004)
    ('−0.50', '0.00')
    """
    return f"{round(float(value), decimals) + 0.0:.{decimals}f}".replace("-", "−")


def interval_text(low: float, high: float, decimals: int = 2) -> str:
    """Return an interval for a sentence or a cell; a dash where there is none.

    >>> interval_text(-0.5, 0.25), interval_text(float("nan"), 1)
    ('−0.50 to 0.25', '–')
    """
    if low != low or high != high:  # not a number
        return "–"
    return f"{signed(low, decimals)} to {signed(high, decimals)}"


def interval_texts(rows: Mapping[str, Iterable[float]], decimals: int = 2) -> list[str]:
    """Return the intervals of a table with *low* and *high* as text.

    >>> interval_texts({"low": [0.1, 2], "high": [0.2, 3]}, 1)
    ['0.1 to 0.2', '2.0 to 3.0']
    """
    ends = zip(rows["low"], rows["high"], strict=True)
    return [interval_text(low, high, decimals) for low, high in ends]
