"""What one machine can say: full-size models, killed extractions, a card."""

import datetime
import os
import platform

MACHINE = "measured on"
"""The column that says when and where a row was measured."""


def machine() -> str:
    """Return today's date and what the page says of this machine."""
    today = datetime.datetime.now(datetime.UTC).date()
    python = platform.python_version()
    return f"{today}, {platform.machine()}, {os.cpu_count()} cores, Python {python}"


def shown(value):
    """Return a value as the page shows it: large whole numbers in groups of three digits.

    Examples
    --------
    >>> shown(97698), shown(4096), shown(408)
    ('97,698', '4,096', 408)
    """
    return f"{value:,}" if isinstance(value, int) and value >= 1_000 else value
