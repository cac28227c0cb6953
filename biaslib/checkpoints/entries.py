"""What is known of each model before it is loaded; the rows are in ``data/models.json``.

Revisions are given where a public page of the repository showed them. The others are recorded in
the lock file at the first download.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biaslib import capabilities as can


@dataclass(frozen=True)
class Entry:
    """What is known of a model before it is loaded.

    Parameters
    ----------
    name
        What :func:`biaslib.models.load` takes.
    source
        ``hub owner/name``, ``url https://...``, ``by hand file from https://...``,
        ``package name version``, or what it is made of. An address that ends in names in braces
        stands for a folder with those files.
    pooling
        What stands for a word or a sentence: the ``cls`` token's last hidden state, or the
        ``mean`` of all tokens where the model was trained so.
    parameters
        Numbers in the network that the adapter loads, at full size.
    licence
        Of the code or model page that comes with the checkpoint.
    note
        What a user should know.
    revision
        Commit of the hub, or version of the package; empty where the first download records it.
    sha256
        Checksum of the weights, where they are pinned by one.
    papers
        The studies that used it.
    capabilities
        What it can do: names of :mod:`biaslib.capabilities`.
    features
        What it needs of a picture beyond its pixels, or an empty string.
    family
        The module of ``biaslib.models`` that loads it, or, with dots, any other module.
    kinds
        ``model_type`` in the ``config.json`` of checkpoints that its family reads; or, in capitals,
        a task of transformers of which it reads every kind: ``MASKED_LM``,
        ``ZERO_SHOT_IMAGE_CLASSIFICATION`` (dual encoders) or ``IMAGE_TEXT_TO_TEXT``. Empty where
        the family goes by something else.
    extra
        The extra of ``biaslib`` that brings what its family imports.
    companion
        The repository of its tokenizer and image settings, where its own has none.
    other_detector
        Whose features it was trained on, where they were not those of ``detector``, which pictures
        get all the same.
    mirrors
        Other addresses of the same files, in order of trust: tried in turn where those before do
        not answer, and held to the same checksum. Of a source by hand, addresses that a program can
        try first.
    command
        What places a file by hand in one command for a shell, where its source is by hand;
        ``PLACE`` stands for the folder.
    access
        Who may fetch it.
    beside
        Addresses of single files that are put beside the weights, unless the repository has them.
    """

    name: str
    source: str
    pooling: str
    parameters: int
    licence: str
    note: str
    revision: str = ""
    sha256: str = ""
    papers: str = ""
    capabilities: tuple[str, ...] = (can.EMBED,)
    features: str = ""
    family: str = "text"
    kinds: tuple[str, ...] = ()
    extra: str = "models"
    companion: str = ""
    mirrors: tuple[str, ...] = ()
    command: str = ""
    access: str = "anyone, without an account"
    other_detector: str = ""
    beside: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        can.require_known(self.capabilities)

    @property
    def takes_images(self) -> bool:
        """Whether the model sees at all."""
        return bool({*self.capabilities} - {can.EMBED, can.FILL})

    @property
    def name_of_package(self) -> str:
        """Name of the installed package that carries the model, or an empty string."""
        package = re.fullmatch(r"package (\S+) \S+", self.source)
        return package[1] if package else ""

    @property
    def reads_many_kinds(self) -> bool:
        """Whether its family reads all that transformers has for a task."""
        return any(kind.isupper() for kind in self.kinds)

    @property
    def megabytes(self) -> int:
        """Memory of its weights in single precision, in millions of bytes."""
        return round(self.parameters * 4 / 1e6)


def read_entry(row: dict[str, Any]) -> Entry:
    """Return the entry that a row of ``data/models.json`` is."""
    lists = {key: tuple(value) for key, value in row.items() if isinstance(value, list)}
    return Entry(**(row | lists))


TABLE = Path(__file__).parent / "data" / "models.json"
ENTRIES = tuple(map(read_entry, json.loads(TABLE.read_text(encoding="utf-8"))))
