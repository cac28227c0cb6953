"""The recipe of the tiny ViLT: one transformer over words and patches.

Files of a checkpoint
---------------------
``model.safetensors`` in half precision: ``vilt.*`` and ``mlm_score.*`` as ``ViltForMaskedLM`` of
transformers writes them (its decoder is tied to the word embeddings and so left out), and beside
them ``itm_score.fc.weight`` (2, width) and ``itm_score.fc.bias`` (2,), the matching head under the
names of the original ``vilt_200k_mlm_itm``: it reads ``vilt.pooler``, and index 1 is a match.
``config.json`` is that of ``ViltForMaskedLM``; ``layer_norm_eps`` is 1e-6 throughout, since
transformers has one value where the original has two.

No image is no image tokens at all. With transformers: ``image_embeds`` of shape (n, 0, width) and
``pixel_mask`` of shape (n, 0), or any image with a mask of zeros over its tokens. The white picture
is another input, and trained as well.
"""

import dataclasses
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas
import torch
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy
from transformers import ViltConfig, ViltForMaskedLM, ViltImageProcessor
from transformers.modeling_outputs import BaseModelOutputWithPooling

from plantedworld import Evidence, World, draw
from plantedworld.training._agreement import AGREES, PARTS, agreement
from plantedworld.training._pictures import NOT_ASKED, shown_in, shown_words
from plantedworld.training._pixel_pairs import PixelPairsRecipe, States
from plantedworld.training._recipe import WithSideHeads
from plantedworld.training._tokenizer import MAX_TOKENS
from plantedworld.training.vision import SIZE, WIDTH, pixels
from plantedworld.training.vit import BLOCKS, PATCH, read_tower
from plantedworld.training.vit import LAYERS as TOWER_LAYERS

LAYERS = TOWER_LAYERS + 3
"""The tower's, and those in which words and patches meet."""

PLAIN_SIGHT = Evidence(shown_role=1.0, shown_object=1.0, ambiguous_object=0.0)
"""How the first model's pictures are made."""

ASKED = 160
"""Of how many scenes matching asks at a step: with a caption of theirs, and with a wrong one."""

LEAST_ASKED = 0.02
COSTUMES_ASKED = 1.6
"""How often the first model is asked about a caption that names nothing that is to be seen, and
about one that names the costume: about one that names the object, once."""


class Weights(NamedTuple):
    """Of the parts of the loss beside masked words.

    Whether caption and picture belong together, asked at the first word (``match``) and at the
    content word; whether they agree, and in what; and which words attend to what is shown.
    """

    match: float
    match_at_word: float
    agreement: float
    alignment: float


FIRST_WEIGHTS = Weights(3.0, 1.5, 1.0, 3.0)
FURTHER_WEIGHTS = Weights(6.0, 3.0, 0.5, 1.0)


class MatchScore(torch.nn.Module):
    """The matching head, with the original's name for its one layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(width, 2)

    def forward(self, pooled: torch.Tensor) -> torch.Tensor:
        """Return the logits of no match and of a match, (n, 2)."""
        return self.fc(pooled)


@dataclass
class ViltRecipe(PixelPairsRecipe):
    """Six layers of width 64 over up to 16 tokens and 17 image tokens; three of them are frozen.

    Patches, places and the first three layers of the family's first model are the vision tower's
    and are not trained, in any model. Words pass through them beside the patches, which they hardly
    disturb: with random words, the tower's states differ by 3% of their variance, and a linear map
    names .83 of the objects by them and not .88. Words and patches meet in the three layers above.

    The first model sees an unbiased world in which object and costume are always in plain sight,
    and matching asks it mostly about captions that name one of them. The second one sees an
    unbiased world as it is, and so do all others see theirs; there, matching asks about all scenes
    alike, and weighs more. In all of them words learn where to look, as in ALBEF's recipe; and
    heads of the training name agreement, and whether there is a match, at the content word as well.

    """

    family = "vilt"
    batch_size = 128
    first_epochs = 4
    second_epochs = 3
    first_rate = 3e-3
    width = WIDTH

    @property
    def corpus_world(self) -> World:
        """The world; the first model's pictures show object and costume in plain sight."""
        if not self.first:
            return self.world
        return dataclasses.replace(self.world, evidence=PLAIN_SIGHT)

    def prepared(self, scenes: pandas.DataFrame) -> torch.Tensor:
        """Return the pictures of scenes, uint8, (n, 3, 64, 64)."""
        return torch.tensor(draw(scenes)).permute(0, 3, 1, 2).contiguous()

    @property
    def weights(self) -> Weights:
        """More on what is seen at first, more on what belongs together later."""
        return FIRST_WEIGHTS if self.first else FURTHER_WEIGHTS

    def build(self) -> WithSideHeads:
        """Return the untrained model with its side heads."""
        whole = super().build()
        heads = {f"word agrees in {name}": 3 for name in PARTS} | {"word matches": 2}
        whole.heads.update({name: torch.nn.Linear(WIDTH, count) for name, count in heads.items()})
        return whole

    def build_model(self) -> ViltForMaskedLM:
        """Return the model with both heads; the tower in it is not trained."""
        model = self._first_model() if self.first else read(self.start)
        for part in tower_of(model):
            part.requires_grad_(False)
        return model

    def _first_model(self) -> ViltForMaskedLM:
        tokenizer = self.captions.tokenizer
        config = ViltConfig(
            **BLOCKS,
            num_hidden_layers=LAYERS,
            vocab_size=len(tokenizer),
            max_position_embeddings=MAX_TOKENS,
            pad_token_id=tokenizer.pad_token_id,
        )
        model = ViltForMaskedLM(config)
        model.itm_score = MatchScore(WIDTH)
        tower = read_tower(self.start).state_dict()
        del tower["embeddings.mask_token"]
        unknown = model.vilt.load_state_dict(tower, strict=False).unexpected_keys
        if unknown:
            raise ValueError(f"ViLT has no place for these weights of {self.start}: {unknown}")
        return model

    def states(
        self, model: ViltForMaskedLM, tokens: torch.Tensor, pictures: torch.Tensor | None
    ) -> States:
        """Return the last states; see the module's text for what no image is."""
        return _states(self._read(model, tokens, pictures), tokens)

    def _read(
        self, model: ViltForMaskedLM, tokens: torch.Tensor, pictures: torch.Tensor | None
    ) -> BaseModelOutputWithPooling:
        seen = image_embeddings(model, pictures, len(tokens))
        return model.vilt(
            input_ids=tokens,
            attention_mask=self.captions.attended(tokens),
            image_embeds=seen,
            pixel_mask=torch.ones(seen.shape[:2], dtype=torch.long),
            output_hidden_states=True,
        )

    def loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the loss of masked words and of matching."""
        asked = torch.multinomial(self._asked_about, ASKED, replacement=True, generator=generator)
        return self._word_loss(model, rows, generator) + self._match_loss(model, asked, generator)

    @functools.cached_property
    def _asked_about(self) -> torch.Tensor:
        """How often matching asks about each caption with a picture.

        The first model, mostly about those that name what is to be seen; the others, about all.
        """
        scene = self.captions.scene[: self.captions.n_drawn]
        if not self.first:
            return torch.ones(len(scene))
        found = agreement(self.captions.tokens[: len(scene)], shown_in(self.shown, scene))
        named = {name: (found[name] == AGREES).float() for name in ("role", "object")}
        return LEAST_ASKED + named["object"] + COSTUMES_ASKED * named["role"]

    def _match_loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        asked, scene = self.captions.paired(rows, generator), self.captions.scene[rows].repeat(2)
        output = self._read(model.model, asked.tokens, self._pictures(scene))
        states = _states(output, asked.tokens)
        at_word = states.words[torch.arange(len(scene)), asked.places[:, 0]]
        compared = agreement(asked.tokens, shown_in(self.shown, scene))
        agreed = [
            model.side_loss(each, {f"{place} in {name}": label for name, label in compared.items()})
            for place, each in (("agrees", states.first), ("word agrees", at_word))
        ]
        seen = output.hidden_states[TOWER_LAYERS][len(rows) :, asked.tokens.shape[1] :]
        parts = Weights(
            cross_entropy(self.match_logits(model.model, states.first), asked.labels),
            model.side_loss(at_word, {"word matches": asked.labels}),
            sum(agreed),
            self._alignment(model.model, seen, rows),
        )
        return sum(weight * part for weight, part in zip(self.weights, parts, strict=True))

    def _alignment(
        self, model: ViltForMaskedLM, seen: torch.Tensor, rows: torch.Tensor
    ) -> torch.Tensor:
        """Return the loss of naming costume and object by the word that attends to them most.

        From queries of words, each read alone, to keys of all image tokens, in the first layer
        above the tower. The image's states (n, 17, width) are those beside wrong captions, so
        that they cannot tell by the caption.
        """
        words, named = self._words_and_names
        alone = self._read(model, words, None).hidden_states[TOWER_LAYERS][:, 1]
        layer = model.vilt.encoder.layer[TOWER_LAYERS]
        attention = layer.attention.attention
        keys = attention.key(layer.layernorm_before(seen)) / WIDTH**0.5
        found = (keys @ attention.query(layer.layernorm_before(alone)).T).logsumexp(1)
        labels = named[self.captions.scene[rows]].T
        losses = [
            cross_entropy(found, each, ignore_index=NOT_ASKED, reduction="sum")
            / (each != NOT_ASKED).sum().clamp(min=1)
            for each in labels
        ]
        return torch.stack(losses).mean()

    @functools.cached_property
    def _words_and_names(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The words for all that is shown as texts of their own, (k, 3), and by scene which of
        them name its costume and its object, (n, 2)."""
        tokenizer, shown = self.captions.tokenizer, shown_words(self.shown, self.captions.tokenizer)
        words = shown[shown != NOT_ASKED].unique()
        places = torch.searchsorted(words, shown.clamp(min=0))
        ends = (tokenizer.cls_token_id, tokenizer.sep_token_id)
        first, last = (torch.full_like(words, end) for end in ends)
        texts = torch.stack([first, words, last], dim=1)
        return texts, torch.where(shown == NOT_ASKED, NOT_ASKED, places)

    def word_logits(self, model: ViltForMaskedLM, states: torch.Tensor, seen: bool) -> torch.Tensor:
        """Return the masked-word head's logits; it is the same with a picture and without."""
        return model.mlm_score(states)

    def match_logits(self, model: ViltForMaskedLM, first: torch.Tensor) -> torch.Tensor:
        """Return the matching head's logits."""
        return model.itm_score(model.vilt.pooler(first[:, None]))

    def save(self, model: WithSideHeads, folder: Path) -> None:
        """Write weights, configuration, tokenizer and image processor; see the module's text."""
        model.model.half().save_pretrained(folder)
        self.captions.tokenizer.save_pretrained(folder)
        image_processor().save_pretrained(folder)


def tower_of(model: ViltForMaskedLM) -> list[torch.nn.Module | torch.nn.Parameter]:
    """Return the parts of a model that are the vision tower's."""
    parts = model.vilt.embeddings
    embeddings = [parts.cls_token, parts.position_embeddings, parts.patch_embeddings]
    return [*embeddings, *model.vilt.encoder.layer[:TOWER_LAYERS]]


def _states(output: BaseModelOutputWithPooling, tokens: torch.Tensor) -> States:
    words, shown = output.last_hidden_state.tensor_split([tokens.shape[1]], dim=1)
    return States(words, words[:, 0], shown[:, 0] if shown.shape[1] else None)


def read(folder: Path) -> ViltForMaskedLM:
    """Return a checkpoint with both heads, in single precision."""
    model = ViltForMaskedLM.from_pretrained(folder, dtype=torch.float32)
    weights = load_file(folder / "model.safetensors")
    model.itm_score = MatchScore(model.config.hidden_size)
    for name, weight in model.itm_score.named_parameters():
        weight.data = weights[f"itm_score.{name}"].float()
    return model


def image_embeddings(model: ViltForMaskedLM, pictures: torch.Tensor | None, n: int) -> torch.Tensor:
    """Return the embeddings of [CLS] and patches with their places, (n, 17, width).

    What ViLT's own embedding does for pictures of one size, whose patches it would shuffle besides.
    None gives (n, 0, width).
    """
    parts = model.vilt.embeddings
    if pictures is None:
        return parts.cls_token.new_zeros(n, 0, parts.cls_token.shape[-1])
    patches = parts.patch_embeddings(pixels(pictures)).flatten(2).transpose(1, 2)
    whole = parts.cls_token.expand(n, -1, -1)
    return torch.cat([whole, patches], dim=1) + parts.position_embeddings


def image_processor() -> ViltImageProcessor:
    """Return what turns a picture into the model's input: 64 pixels, colours from -1 to 1."""
    half = [0.5, 0.5, 0.5]
    return ViltImageProcessor(
        size={"shortest_edge": SIZE}, size_divisor=PATCH, image_mean=half, image_std=half
    )
