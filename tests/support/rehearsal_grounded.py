"""Sample data of study 1: the authors' tests where they are at hand, with squares for photographs.

Of each set the pictures of a few words are there, since every picture runs through a detector; the
others are missing, as they are for a reader of dead links.
"""

from pathlib import Path

from support import released


def build(folder: Path) -> Path:
    """Put ``ross2021`` into a folder: tests and lists of links, and pictures for each source."""
    root = released.copied(folder)
    released.place(root)
    return root
