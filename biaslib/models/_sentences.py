"""Sentence encoders: one vector of a text's hidden states, as ``SentenceTransformer`` makes it."""

import re
from pathlib import Path
from typing import NamedTuple

import torch

from biaslib.models._folders import read_json
from biaslib.models.errors import CheckpointError

SWITCHES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
}
"""What older folders have in place of ``pooling_mode``."""

THE_SENTENCE = (None, "sentence_embedding")


class Pooling(NamedTuple):
    """Makes one vector of a text's last hidden states.

    Attributes
    ----------
    mode
        ``cls`` (the first token's state), ``mean`` or ``max`` over the tokens.
    normalised
        Whether vectors are brought to length 1.
    """

    mode: str
    normalised: bool = False

    def __str__(self) -> str:
        return self.mode

    def __call__(self, states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Return (n, d) of states (n, tokens, d); ``real`` (n, tokens) is 0 at padding.

        Examples
        --------
        >>> states, real = torch.tensor([[[3.0, 0.0], [0.0, 1.0], [9.0, 9.0]]]), [[1, 1, 0]]
        >>> Pooling("mean")(states, torch.tensor(real)).tolist()
        [[1.5, 0.5]]
        """
        places = real.unsqueeze(-1).bool()
        if self.mode == "mean":
            vectors = (states * places).sum(1) / places.sum(1)
        elif self.mode == "max":
            vectors = states.masked_fill(~places, -torch.inf).amax(1)
        else:
            vectors = states[torch.arange(len(states)), real.argmax(1)]
        return torch.nn.functional.normalize(vectors, dim=-1) if self.normalised else vectors


class Modules(NamedTuple):
    """What a sentence encoder's folder says.

    Attributes
    ----------
    pooling
        Of its tokens.
    lower
        Whether texts are lowered first.
    limit
        Tokens that a text may have, or None.
    """

    pooling: Pooling
    lower: bool
    limit: int | None


def modules_of(folder: Path) -> Modules | None:
    """Return what a folder says of a sentence encoder; None if it is of none.

    Read are a network, a pooling by first token, mean or maximum, and vectors of length 1.

    Raises
    ------
    CheckpointError
        If it says something else; the message names it.
    """
    path = folder / "modules.json"
    if not path.is_file():
        return None
    modules: dict[str, dict] = {}
    for at, (kind, place) in enumerate(listed(folder)):
        known = kind.startswith("sentence_transformers.")
        name = kind.rpartition(".")[2] if known else kind
        settings = read_json(folder / place / "config.json", default={}) if place else None
        settings = settings if isinstance(settings, dict) else {}
        if name not in (("Transformer", "Pooling")[at : at + 1] or ("Normalize", "Dropout")):
            raise _refused(path, f"{kind} as module {at}", kind.rpartition(".")[2])
        if name == "Transformer" and place:
            raise _refused(path, f"{kind} in {place}", place)
        ends = [settings.get(f"module_{end}_name") for end in ("input", "output")]
        if other := [end for end in ends if name == "Normalize" and end not in THE_SENTENCE]:
            raise _refused(path, f"{kind} of {other[0]}", other[0])
        if name == "Pooling" and not settings:
            where = folder / place / "config.json"
            what = "is not there or holds no settings, and modules.json names it"
            raise CheckpointError(f"{where} {what}", path=where)
        modules[name] = settings
    if "Pooling" not in modules:
        raise _refused(path, "no module Pooling", "Pooling")
    lower, limit = _beside(folder)
    mode = _mode(folder, modules["Pooling"])
    return Modules(Pooling(mode, "Normalize" in modules), lower, limit)


def listed(folder: Path) -> list[tuple[str, str]]:
    """Return the class and the folder of each module, in order."""
    path = folder / "modules.json"
    rows = read_json(path, list)
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise CheckpointError(f"{path} is no list of modules; download it again", path=path)
    found = [(str(row.get("type")), str(row.get("path"))) for row in rows]
    for kind, place in found:
        if not re.fullmatch(r"(\w+)?", place, re.ASCII):
            raise _refused(path, f"{kind} in {place}", place)
    return found


def _refused(path: Path, what: str, word: str) -> CheckpointError:
    return CheckpointError(
        f"{path} says that the sentence encoder has {what}, which is not done here: it would be "
        "read as another model. Wrap it in a class with embed() of your own",
        path=path,
        word=word,
    )


def _mode(folder: Path, settings: dict) -> str:
    """Return the one way of pooling that the settings name."""
    switches = [name for name in settings if name.startswith("pooling_mode_") and settings[name]]
    given = settings.get("pooling_mode", [SWITCHES.get(name, name) for name in switches] or "mean")
    modes = given if isinstance(given, list) else [given]
    unknown = [str(mode) for mode in modes if mode not in SWITCHES.values()]
    if unknown or len(modes) > 1:
        word = (unknown or modes)[0]
        raise _refused(
            folder / "modules.json", f"the pooling {' and '.join(map(str, modes))}", word
        )
    return modes[0]


def _beside(folder: Path) -> tuple[bool, int | None]:
    """Return whether texts are lowered, and how long they may be, as is said beside the network."""
    path = folder / "config_sentence_transformers.json"
    about = read_json(path, default={})
    about = about if isinstance(about, dict) else {}
    prompts, name = about.get("prompts"), about.get("default_prompt_name")
    prompts = {"query": "", "document": ""} | (prompts if isinstance(prompts, dict) else {})
    changes = {
        str(name): name and prompts.get(str(name), "an unknown prompt"),
        "truncate_dim": about.get("truncate_dim"),
    }
    for word, change in changes.items():
        if change:
            raise _refused(path, f"{change!r} for every text ({word})", word)
    paths = sorted(folder.glob("sentence_*_config.json"))
    settings = read_json(paths[0]) if paths else {}
    settings = settings if isinstance(settings, dict) else {}
    limit = settings.get("max_seq_length")
    return bool(settings.get("do_lower_case")), limit if isinstance(
        limit, int
    ) and limit > 0 else None
