"""Side-by-side measurements: our code and what a user would pick instead, in one run."""


def shown(value):
    """Return a value as the page shows it: large whole numbers in groups of three digits.

    Examples
    --------
    >>> shown(97698), shown(4096)
    ('97,698', 4096)
    """
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else value
