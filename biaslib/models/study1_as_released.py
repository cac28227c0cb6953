"""Study 1's models, read as the released code of Ross, Katz and Barbu (2021) reads them.

The code is candacelax/bias-in-vision-and-language, commit 1622980; file and line of every
difference from the paper are in ``biaslib.published.released_differences()``. :data:`RELEASED` says
in numbers what it does with each model, and :func:`reader` gives an adapter that does the same, its
errors included.

A planted ViLBERT has 16 positions and gets texts of 16 tokens in place of 36.

Where the pictures of a run have unlike numbers of regions, the released code stops (ViLBERT,
LXMERT) or pads to the longest of a batch (VL-BERT). Here regions that are not real are never read,
but by VL-BERT, which counts the padding of a picture as regions up to the longest of the call.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from biaslib.capabilities import CapabilityError
from biaslib.models.fusion import Mask, Output
from biaslib.models.lxmert import Lxmert
from biaslib.models.region_model import RegionModel
from biaslib.models.tokens import require_level
from biaslib.models.vilbert import Vilbert
from biaslib.models.visualbert import VisualBert
from biaslib.models.vl_bert import VlBert, pixel_boxes
from biaslib.pictures.global_region import with_whole_image
from biaslib.pictures.regions import RegionFeatures
from biaslib.runtime import unknown_name
from biaslib.runtime.batches import at

__all__ = ["RELEASED", "ReleasedPreprocessing", "masked", "reader"]

PEOPLE = ("people", "person", "woman", "women", "man", "men")
MASKINGS = ("none", "words", "persons")


class ReleasedPreprocessing(NamedTuple):
    """What the released code does with one model.

    ``checkpoint`` is the registered name of the weights that it points to. ``streams`` are the
    states that a word or a sentence is read from. ``refill_is_read``: the [PAD] that a masked text
    gains at its end is read, since the attention mask is that of the text before. ``n_tokens``:
    texts are padded to so many, or to the network's positions, and the padding is read.
    ``n_regions``: the first so many, and ``n_in_all`` words and regions together; 0 is no limit.
    ``labels`` of the regions that are masked, ``with_words`` if those of the test's words are too;
    no labels, no masked regions.
    """

    checkpoint: str
    streams: str
    refill_is_read: bool = False
    n_tokens: int = 0
    n_regions: int = 0
    n_in_all: int = 0
    labels: tuple[str, ...] = ()
    with_words: bool = False


RELEASED = {
    "visualbert": ReleasedPreprocessing(
        "visualbert-nlvr2", "text", refill_is_read=True, n_regions=144
    ),
    "vilbert": ReleasedPreprocessing(
        "vilbert-beta", "both", n_tokens=36, n_regions=36, labels=("man", "woman", "person")
    ),
    "lxmert": ReleasedPreprocessing(
        "lxmert", "both", refill_is_read=True, labels=PEOPLE, with_words=True
    ),
    "vl-bert": ReleasedPreprocessing(
        "vl-bert", "text", n_in_all=64, labels=PEOPLE, with_words=True
    ),
}
"""By the names of study 1.

:meta hide-value:
"""


def masked(ids: Sequence[int], words: Sequence[Sequence[int]], mask: int) -> list[int]:
    """Return a text's tokens with one word masked, as the released code masks (bias_dataloader.py).

    Text and words are written out as digits. The longest string that occurs in the text's gives
    way to one mask token wherever it occurs; then it stops. In the code a string of digits may
    start or end within another token's; here tokens stay whole.

    Parameters
    ----------
    ids
        The text's tokens.
    words
        The tokens of each contextual word.
    mask
        The number of the mask token.

    Raises
    ------
    ValueError
        If none occurs.

    Examples
    --------
    >>> masked([101, 7, 88, 9, 7, 102], [[7], [88, 9]], 103)
    [101, 7, 103, 7, 102]
    >>> masked([101, 7, 88, 7, 102], [[7]], 103)
    [101, 103, 88, 103, 102]
    """
    written = " ".join(map(str, ids))
    spelled = [" ".join(map(str, word)) for word in words]
    for word in sorted(spelled, key=len, reverse=True):
        replaced = re.sub(rf"(?<!\d){word}(?!\d)", str(mask), written) if word else written
        if replaced != written:
            return [int(number) for number in replaced.split()]
    raise ValueError("none of the test's contextual words is in the text")


class _Released(RegionModel):
    """An adapter that reads texts and pictures as :data:`RELEASED` says of its model."""

    reading: ReleasedPreprocessing

    def embed(
        self,
        texts: Sequence[str],
        images: Any,
        level: str = "sentence",
        words: Sequence[str] = (),
        masking: str = "none",
    ) -> np.ndarray:
        """Return one embedding a text with its image.

        At the levels ``word`` and ``sentence`` the first text state, joined with the first visual
        state where there are two streams. At ``contextual`` the text state, of the text in sight,
        at the place where the masked text has its first mask token.

        Parameters
        ----------
        texts, images, level
            As of :meth:`biaslib.models.fusion.FusionModel.embed`.
        words
            The test's contextual words; not needed for whole texts without a mask.
        masking
            ``none``; ``words``, see :func:`masked`; or ``persons``, regions by their labels.

        Raises
        ------
        CapabilityError
            If regions are to be masked and the released code masks none of this model.
        ValueError
            If a text has none of the words, or is too long; or regions are to be masked and
            nothing is known of what they show.
        """
        if masking not in MASKINGS:
            raise unknown_name("masking", masking, MASKINGS)
        require_level(level)
        rows, places = self._tokens(texts), np.zeros(len(texts), dtype=int)
        if masking == "words" or level == "contextual":
            spelled = self.tokenizer(list(words), add_special_tokens=False)["input_ids"]
            hidden = [self._masked(row.text, row.ids, spelled) for row in rows]
            mask = self.tokenizer.mask_token_id
            if level == "contextual":
                places = np.array([ids.index(mask) for ids in hidden])
            if masking == "words":
                rows = [replace(row, ids=tuple(ids)) for row, ids in zip(rows, hidden, strict=True)]
        joined = self.reading.streams == "both" and level != "contextual"

        def read(output: Output, batch: np.ndarray) -> torch.Tensor:
            states = at(output.text, range(len(batch)), places[batch])
            return torch.cat([states, output.image], dim=1) if joined else states

        prepared = self.prepare(images)
        mask = Mask(words, persons=True) if masking == "persons" else None
        self._require_known(prepared, mask)
        return self._run(rows, prepared, read, mask=mask)

    def _masked(self, text: str, ids: Sequence[int], words: Sequence[Sequence[int]]) -> list[int]:
        try:
            hidden = masked(ids, words, self.tokenizer.mask_token_id)
        except ValueError as error:
            raise ValueError(f"{text!r}: {error}, and the released code stops at such") from error
        refill = [self.tokenizer.pad_token_id] * (len(ids) - len(hidden))
        return [*hidden, *refill] if self.reading.refill_is_read else hidden

    def _require_known(self, prepared: Any, mask: Mask | None) -> None:
        if prepared is None:
            raise ValueError("the released code never reads a text without an image; pass images=")
        if mask is None:
            return
        if not self.reading.labels:
            raise CapabilityError(f"the released code masks no regions of {self.name}")
        if not any(prepared[[row]].labelled for row in range(len(prepared))):
            raise ValueError(
                f"no region of these pictures has a label, and {self.name} masks regions by it: "
                "read the detector's classes and their names with them, class_names="
            )

    def labelled(self, prepared: RegionFeatures, rows: np.ndarray, words: Sequence[str]):
        """Return which regions have a label that is masked, (n, k).

        The number of a class is looked up in the detector's names with "background" in front
        (dataset_wrappers.py:80): one off, where the detector does not count the background.
        Regions without classes count as labelled "person" where they show one.
        """
        real = prepared.real[rows]
        if prepared.classes is None or prepared.class_names is None:
            return real & prepared.persons[rows]
        wanted = set(self.reading.labels)
        if self.reading.with_words:
            wanted |= set(words)
        wanted |= {word.lower() for word in wanted}
        names = ("background", *prepared.class_names)
        numbers = [number for number, name in enumerate(names) if name in wanted]
        return real & np.isin(prepared.classes[rows], numbers)

    def _hiding(self, regions, prepared: RegionFeatures, rows: np.ndarray, mask: Mask | None):
        """Zero the features of masked regions; return which those are."""
        words = () if mask is None else mask.words
        hidden = torch.as_tensor(self.labelled(prepared, rows, words)) & (mask is not None)
        regions["features"][hidden] = 0
        return hidden


class _ReleasedVisualBert(_Released, VisualBert):
    reading = RELEASED["visualbert"]

    def visual(self, prepared, rows, mask):
        regions = super().visual(prepared, rows, None)
        return {name: values[:, : self.reading.n_regions] for name, values in regions.items()}


class _ReleasedLxmert(_Released, Lxmert):
    reading = RELEASED["lxmert"]

    def visual(self, prepared, rows, mask):
        regions = super().visual(prepared, rows, None)
        self._hiding(regions, prepared, rows, mask)
        return regions


class _ReleasedVilbert(_Released, Vilbert):
    """ViLBERT: 36 tokens and 37 rows of regions, of which two stand for the whole image.

    The reader puts the mean first, which pushes the last of 36 regions out (bias_dataset.py:216);
    the collation puts the mean of these rows in front once more (:163). Row i is zeroed by
    the label of region i, though it holds region i - 1 (:389); in place, so that this is done in
    every run, and a masked run differs by the divisor of the outer mean alone (:163, :173).
    """

    reading = RELEASED["vilbert"]

    def _inputs(self, ids):
        """Return tokens padded to a fixed length, all of them to be read: no mask is passed."""
        longest, most = max(map(len, ids)), min(self.reading.n_tokens, self.max_tokens)
        if longest > most:
            raise ValueError(f"a text has {longest} tokens and the released code cuts at {most}")
        pad = self.tokenizer.pad_token_id
        tokens = torch.tensor([list(row) + [pad] * (most - len(row)) for row in ids])
        tokens = tokens.to(self.device, non_blocking=True)
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}

    def visual(self, prepared, rows, mask):
        regions = RegionModel.visual(self, prepared, rows, None)
        whole = torch.tensor([0.0, 0.0, 1.0, 1.0])
        first = with_whole_image(regions, regions["real"], whole)
        first = {name: values[:, : self.reading.n_regions] for name, values in first.items()}
        features, real = first["features"], first["real"]
        hidden = self.labelled(prepared, rows, ())[:, : features.shape[1]]
        features[:, : hidden.shape[1]][torch.as_tensor(hidden)] = 0
        count = real.sum(dim=1, keepdim=True) + (mask is not None)
        outer = with_whole_image(first, real, whole)
        outer["features"][:, 0] = (features * real[..., None]).sum(dim=1) / count
        return outer


def _order(numbers: np.ndarray) -> np.ndarray:
    """Return the places (n, k) of each row's numbers (n, k), from the highest to the lowest."""
    return np.argsort(-numbers, axis=1, kind="stable")


class _ReleasedVlBert(_Released, VlBert):
    """VL-BERT: no whole image, padding that counts as regions, boxes of the picture as it came.

    The regions are sorted by what their class numbers give if their bytes are read as float32
    scores (bias_dataset.py:111-118): the highest number first, whatever type they have. Which of
    equal numbers comes first is up to the processor there; here it is the first. The labels
    are not sorted with them (:161), so a region is masked by another region's label. The first
    region then stands beside every word in place of the whole image.
    """

    reading = RELEASED["vl-bert"]

    def visual(self, prepared, rows, mask):
        regions = RegionModel.visual(self, prepared, rows, None)
        if prepared.classes is not None:
            numbers = np.where(prepared.real[rows], prepared.classes[rows], -1)
            order = torch.as_tensor(_order(numbers))
            at = torch.arange(len(order))[:, None]
            regions = {name: values[at, order] for name, values in regions.items()}
        hidden = self._hiding(regions, prepared, rows, mask)
        sizes = torch.as_tensor(prepared.sizes[rows]).float()
        boxes = pixel_boxes(regions["boxes"], sizes)
        boxes[hidden] = 0
        return {**regions, "boxes": boxes, "sizes": sizes}

    def forward(self, tokens, visual):
        n_tokens = tokens["attention_mask"].sum(dim=1, keepdim=True)
        places = torch.arange(visual["real"].shape[1], device=n_tokens.device)
        kept = places < (self.reading.n_in_all - n_tokens).clamp(min=1)
        return super().forward(tokens, visual | {"real": kept})


READERS = {
    VisualBert: _ReleasedVisualBert,
    Vilbert: _ReleasedVilbert,
    Lxmert: _ReleasedLxmert,
    VlBert: _ReleasedVlBert,
}


def reader(model: RegionModel) -> _Released:
    """Return an adapter on the same network that reads as the released code does.

    Parameters
    ----------
    model
        VisualBERT, ViLBERT, LXMERT or VL-BERT on features; :data:`RELEASED` names the checkpoints
        that the code points to, and others are read in the same way.

    Raises
    ------
    CapabilityError
        If it is another model.

    Examples
    --------
    >>> from biaslib import models
    >>> import plantedworld
    >>> lxmert = reader(models.load("lxmert", profile="planted"))
    >>> lxmert.embed(["nurse"], plantedworld.blank()).shape, lxmert.revision[-12:]
    ((1, 128), 'as published')
    """
    if isinstance(model, _Released):
        return model
    if type(model) not in READERS:
        known = ", ".join(RELEASED)
        raise CapabilityError(f"the released code of study 1 reads {known}; {model.name} is none")
    revision = f"{model.revision}, as published"
    adapter = READERS[type(model)]
    released = adapter(model.network, model.tokenizer, model.name, revision, model.device)
    released.find_detector, released.other_detector = (lambda: model.detector), model.other_detector
    return released
