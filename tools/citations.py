"""Citations of the book's bibliography in plain words, for programs that know no Sphinx.

``Ross et al. (2021)`` in a sentence, ``(Ross et al., 2021)`` behind it, and the entries of a list.
"""

import re
from pathlib import Path

from pybtex.backends.plaintext import Backend
from pybtex.database import Entry, parse_file
from pybtex.plugin import find_plugin
from pybtex.richtext import Text

NEAR = 60
"""Characters before a citation among which its first author may be named already."""

ADDRESS = re.compile(r"(?:https?://|doi:)[^\s,]*[^\s,.]")
"""An address or a DOI in an entry of a list."""


class Bibliography:
    """The entries of a BibTeX file, by key."""

    def __init__(self, path: Path):
        self.entries = dict(parse_file(str(path), bib_format="bibtex").entries)

    def entry(self, key: str) -> Entry:
        """Return an entry, or say that there is none."""
        if key not in self.entries:
            raise ValueError(f"{key!r} is cited, and not in the bibliography")
        return self.entries[key]

    def authors(self, key: str) -> str:
        """Return the authors as a sentence names them: ``Srinivasan and Bisk``, ``Ross et al.``"""
        names = [_family(each) for each in self._people(key)]
        if len(names) > 2:
            return f"{names[0]} et al."
        return " and ".join(names)

    def year(self, key: str) -> str:
        """Return the year, with the letter that tells entries of the same authors apart."""
        return self.entry(key).fields["year"]

    def in_text(self, key: str) -> str:
        """Return ``Ross et al. (2021)``."""
        return f"{self.authors(key)} ({self.year(key)})"

    def in_brackets(self, keys: list[str], before: str = "") -> str:
        """Return ``(Ross et al., 2021)``, or ``(2021)`` where the words before name the authors."""
        if len(keys) == 1 and self.names(keys[0], before):
            return f"({self.year(keys[0])})"
        return f"({'; '.join(f'{self.authors(key)}, {self.year(key)}' for key in keys)})"

    def names(self, key: str, before: str) -> bool:
        """Tell whether the words just before a citation are its authors' names."""
        name = re.escape(_family(self._people(key)[0]))
        others = r"(?:(?:,? and|,)? [A-Z][\w-]*)*(?: et al\.)?(?:['’]s)?"
        near = " ".join(before[-NEAR:].split())
        return re.search(rf"\b{name}{others}$", near) is not None

    def listed(self, keys: list[str]) -> list[str]:
        """Return entries as a list of references has them, in the order of their authors."""
        style = find_plugin("pybtex.style.formatting", "plain")()
        order = sorted(keys, key=lambda key: (self.authors(key).casefold(), self.year(key)))
        formatted = style.format_entries([self.entry(key) for key in order])
        return [_markdown(each.text) for each in formatted]

    def _people(self, key: str) -> list:
        people = self.entry(key).persons
        found = people.get("author") or people.get("editor")
        if not found:
            raise ValueError(f"{key!r} of the bibliography has neither author nor editor")
        return found


def _family(person) -> str:
    parts = [*person.prelast_names, *person.last_names]
    return Text.from_latex(" ".join(parts)).render(Backend())


def _markdown(entry: Text) -> str:
    """Return an entry as Markdown: a plain text, in which addresses are links."""
    text = re.sub(r"\s+", " ", entry.render(Backend())).replace("\\url ", "")
    text = re.sub(r"([\\*_`\[\]{}$])", r"\\\1", text)
    return ADDRESS.sub(_link, text)


def _link(found: re.Match) -> str:
    plain = found[0].replace("\\", "")
    return f"[{found[0]}]({plain.replace('doi:', 'https://doi.org/')})"
