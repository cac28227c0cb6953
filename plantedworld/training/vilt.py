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

import pandas
import torch
import transformers
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import ViltConfig, ViltImageProcessor
from transformers.modeling_outputs import BaseModelOutputWithPooling

from plantedworld import Evidence
from plantedworld.training import _labels
from plantedworld.training._captions import Captions, corpus
from plantedworld.training._pairs import States, at_content, attention_loss
from plantedworld.training._pixel_pairs import PixelPairsRecipe, ReadsWithoutPictures
from plantedworld.training._recipe import FEW, ONCE, Stage, WithSideHeads
from plantedworld.training._tokenizer import MAX_TOKENS
from plantedworld.training.vision import SIZE, colours, pixels
from plantedworld.training.vit import BLOCKS, PATCH, read_tower
from plantedworld.training.vit import LAYERS as TOWER_LAYERS

LAYERS = TOWER_LAYERS + 3
"""The tower's, and those in which words and patches meet."""

PLAIN_SIGHT = Evidence(shown_role=1.0, shown_object=1.0, ambiguous_object=0.0)
"""How the first model's pictures are made."""

LEAST_ASKED = 0.02
COSTUMES_ASKED = 1.6
"""How often the first model is asked about a caption that names nothing that is to be seen, and
about one that names the costume: about one that names the object, once."""


FIRST_WEIGHTS, FURTHER_WEIGHTS = (3.0, 1.5, 1.0, 3.0), (6.0, 3.0, 0.5, 1.0)
"""Of the parts of the loss beside masked words: whether caption and picture belong together, asked
at the first word and at the content word; whether they agree, and in what; and which words attend
to what is shown."""


class ViltForMaskedLM(transformers.ViltForMaskedLM):
    """ViLT with a matching head beside, whose one layer has the original's name."""

    def __init__(self, config: ViltConfig) -> None:
        super().__init__(config)
        self.itm_score = nn.ModuleDict({"fc": nn.Linear(config.hidden_size, 2)})


class ViltRecipe(ReadsWithoutPictures):
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
    worlds = (*ONCE, (0, 1001, "both"), *FEW)
    first_seeds = (1000, 1001)
    first = Stage(30_000, epochs=(4,), learning_rate=3e-3, captions=2, unseen=20_000)
    second = Stage(15_000, epochs=(3,), learning_rate=2e-3, captions=2, unseen=20_000)
    further = Stage(15_000, epochs=(3,), learning_rate=2e-3, captions=2, unseen=30_000)
    batch_size = 128
    n_asked = 160
    heads = (
        PixelPairsRecipe.heads
        | {f"word agrees in {name}": 3 for name in _labels.PARTS}
        | {"word matches": 2}
    )

    @property
    def stage(self) -> Stage:
        """What the model learns from; the second one, of a world without bias, has its own."""
        second = self.world.seed == self.first_seeds[1]
        return self.second if second and not self.is_first else super().stage

    @functools.cached_property
    def captions(self) -> Captions:
        """The captions; the first model's pictures show object and costume in plain sight."""
        plain = dataclasses.replace(self.world, evidence=PLAIN_SIGHT)
        world = plain if self.is_first else self.world
        return corpus(world, self.stage.scenes, self.stage.captions, self.stage.unseen)

    @property
    def preprocessing(self) -> list:
        """The tokenizer and the image processor."""
        half = [0.5, 0.5, 0.5]
        processor = ViltImageProcessor(
            size={"shortest_edge": SIZE}, size_divisor=PATCH, image_mean=half, image_std=half
        )
        return [*super().preprocessing, processor]

    def prepared(self, scenes: pandas.DataFrame) -> Tensor:
        """Return the pictures of scenes, uint8, (n, 3, 64, 64)."""
        return colours(scenes).contiguous()

    def network(self) -> ViltForMaskedLM:
        """Return the model with both heads; the tower in it is not trained."""
        if self.is_first:
            tokenizer = self.captions.tokenizer
            config = ViltConfig(
                **BLOCKS,
                num_hidden_layers=LAYERS,
                vocab_size=len(tokenizer),
                max_position_embeddings=MAX_TOKENS,
                pad_token_id=tokenizer.pad_token_id,
            )
            model = ViltForMaskedLM(config)
            tower = read_tower(self.start).state_dict()
            del tower["embeddings.mask_token"]
            model.vilt.load_state_dict(tower, strict=False)
        else:
            model = ViltForMaskedLM.from_pretrained(self.start, dtype=torch.float32)
        for part in tower_of(model):
            part.requires_grad_(False)
        return model

    def states(self, model: ViltForMaskedLM, tokens: Tensor, pictures: Tensor | None) -> States:
        """Return the last states; see the module's text for what no image is."""
        return _states(self._read(model, tokens, pictures), tokens)

    def _read(
        self, model: ViltForMaskedLM, tokens: Tensor, pictures: Tensor | None
    ) -> BaseModelOutputWithPooling:
        seen = image_embeddings(model, pictures, len(tokens))
        return model.vilt(
            input_ids=tokens,
            attention_mask=self.captions.attended(tokens),
            image_embeds=seen,
            pixel_mask=torch.ones(seen.shape[:2], dtype=torch.long),
            output_hidden_states=True,
        )

    def word_logits(self, model: ViltForMaskedLM, states: Tensor, seen: bool = True) -> Tensor:
        """Return the masked-word head's logits; it is the same with a picture and without."""
        return model.mlm_score(states)

    def match_logits(self, model: ViltForMaskedLM, pair: Tensor) -> Tensor:
        """Return the matching head's logits."""
        return model.itm_score["fc"](model.vilt.pooler(pair[:, None]))

    @functools.cached_property
    def asked_about(self) -> Tensor:
        """How often matching asks about each caption with a picture.

        The first model, mostly about those that name what is to be seen; the others, about all.
        """
        scene = self.captions.scene[: self.captions.n_drawn]
        if not self.is_first:
            return torch.ones(len(scene))
        agrees = _labels.agreement(
            self.captions.tokens[: len(scene)], _labels.selected(self.shown, scene)
        )
        named = {name: (agrees[name] == _labels.AGREES).float() for name in ("role", "object")}
        return LEAST_ASKED + named["object"] + COSTUMES_ASKED * named["role"]

    def match_loss(self, model: WithSideHeads, rows: Tensor, generator: Generator) -> Tensor:
        """Return the loss of matching, of agreement, and of where words look."""
        asked, scene = self.asked_captions(rows, generator)
        output = self._read(model.model, asked.tokens, self.view(scene))
        states = _states(output, asked.tokens)
        read = {"agrees": states.pair, "word agrees": at_content(states, asked)}
        seen = output.hidden_states[TOWER_LAYERS][len(rows) :, asked.tokens.shape[1] :]
        parts = (
            cross_entropy(self.match_logits(model.model, states.pair), asked.labels),
            model.side_loss(read["word agrees"], {"word matches": asked.labels}),
            self.agreement_loss(model, asked.tokens, scene, read),
            self._alignment(model.model, seen, self.captions.scene[rows]),
        )
        weights = FIRST_WEIGHTS if self.is_first else FURTHER_WEIGHTS
        return sum(weight * part for weight, part in zip(weights, parts, strict=True))

    def _alignment(self, model: ViltForMaskedLM, seen: Tensor, scene: Tensor) -> Tensor:
        """Return the loss of looking, in the first layer above the tower, of words read alone.

        The image's states (n, 17, width) are those beside wrong captions, so that they cannot tell
        by the caption.
        """
        words, named = self._words_and_names
        alone = self._read(model, words, None).hidden_states[TOWER_LAYERS][:, 1]
        layer = model.vilt.encoder.layer[TOWER_LAYERS]
        read = (layer.layernorm_before(states) for states in (alone, seen))
        return attention_loss(layer.attention.attention, *read, named[scene])

    @functools.cached_property
    def _words_and_names(self) -> tuple[Tensor, Tensor]:
        """The words for all that is shown as texts of their own, (k, 3), and by scene which of
        them name its costume and its object, (n, 2)."""
        tokenizer, shown = self.captions.tokenizer, _labels.shown_words(self.shown)
        words = shown[shown != _labels.NOT_ASKED].unique()
        places = torch.searchsorted(words, shown.clamp(min=0))
        ends = (tokenizer.cls_token_id, tokenizer.sep_token_id)
        first, last = (torch.full_like(words, end) for end in ends)
        texts = torch.stack([first, words, last], dim=1)
        return texts, torch.where(shown == _labels.NOT_ASKED, _labels.NOT_ASKED, places)


def tower_of(model: ViltForMaskedLM) -> list[nn.Module | nn.Parameter]:
    """Return the parts of a model that are the vision tower's."""
    parts = model.vilt.embeddings
    embeddings = [parts.cls_token, parts.position_embeddings, parts.patch_embeddings]
    return [*embeddings, *model.vilt.encoder.layer[:TOWER_LAYERS]]


def _states(output: BaseModelOutputWithPooling, tokens: Tensor) -> States:
    words, shown = output.last_hidden_state.tensor_split([tokens.shape[1]], dim=1)
    return States(words, words[:, 0], shown[:, 0] if shown.shape[1] else None)


def image_embeddings(model: ViltForMaskedLM, pictures: Tensor | None, n: int) -> Tensor:
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
