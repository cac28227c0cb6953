"""Sentences that carry numbers of the run."""


def say(text: str):
    """Display a Markdown sentence whose numbers were computed by the cell that says it.

    Numbers in prose come from the run and are never typed: in the book the cell's code is
    hidden and the sentence reads as text; in a live notebook it stands under its cell.
    """
    from IPython.display import Markdown

    return Markdown(text)


def p_text(p_value: float) -> str:
    """Return a p-value for a sentence, never rounded to 0.

    >>> p_text(0.0123), p_text(0.00002)
    ('p = .012', 'p < .001')
    """
    if p_value < 0.001:
        return "p < .001"
    return f"p = {p_value:.3f}".replace("0.", ".")


def signed(value: float, decimals: int = 2) -> str:
    """Return a number for a sentence, with a true minus sign.

    >>> signed(-0.5)
    '−0.50'
    """
    return f"{value:.{decimals}f}".replace("-", "−")
