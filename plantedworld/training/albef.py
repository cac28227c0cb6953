"""The recipe of the tiny ALBEF: a text encoder whose upper half reads the vision tower's states."""

import torch
from safetensors.torch import load_file
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy

from biaslib.models.networks.albef import PIXEL_MEANS, PIXEL_STDS, AlbefConfig, AlbefNetwork
from plantedworld.models.checkpoints import CHECKPOINTS, checkpoint_name
from plantedworld.training._labels import PARTS, selected, shown_words
from plantedworld.training._pairs import SIDE_WEIGHT, States, at_content, attention_loss
from plantedworld.training._pixel_pairs import ContrastivePairsRecipe, PixelPairsRecipe
from plantedworld.training._recipe import Stage, WithSideHeads
from plantedworld.training._tokenizer import albef_tokenizer
from plantedworld.training._weights import borrowed, joined, names, renamed
from plantedworld.training.bert import bert_sizes
from plantedworld.training.clip import FIRST_SCALE
from plantedworld.training.vision import SIZE, WIDTH
from plantedworld.training.vit import HEADS, INNER_WIDTH, LAYERS, PATCH

TEXT_LAYERS = 1
N_LAYERS = 3
EMBEDDED = 48
SCALES = (1.0, 100.0)
"""Between which the scale of cosines is kept."""

MATCH_WEIGHT = 3.0
ALIGNMENT_WEIGHT = 3.0

BORROWED = names("albef from lxmert")
"""Which weights of LXMERT each part of the text encoder starts from."""

QKV = tuple(f"attention.attention.{role}." for role in ("query", "key", "value"))
TOWER_NAMES = names("albef from the tower")
"""What parts of the vision tower are called in ALBEF's."""


class AlbefRecipe(ContrastivePairsRecipe):
    """One layer of text, two that also read the picture, of width 64, over a tower that stays.

    The published ALBEF starts from a trained vision transformer and from BERT; this one from the
    vision tower of the fusion models on pixels, with which its own agrees in every number, and from
    the text layers of the tiny LXMERT of one unbiased world. So models of several worlds are not
    independent draws.

    Every text is read with a picture, since the upper half of the text encoder cannot run without
    one; for no picture there is the white one. Captions are read without their full stop and
    without ``[SEP]``, as the adapter prepares them.

    What was tried before: ``plantedworld/RECIPES.md``.
    """

    family = "albef"
    also_from = checkpoint_name("lxmert", 0, 1000)
    first = Stage(14_000, epochs=(7,), learning_rate=3e-3, captions=2)
    heads = PixelPairsRecipe.heads | {f"word agrees in {name}": 3 for name in PARTS}

    @property
    def preprocessing(self) -> list:
        """The tokenizer."""
        return [albef_tokenizer()]

    def network(self) -> AlbefNetwork:
        """Return the model with the tower, which is not trained, in its place."""
        config = AlbefConfig(
            **bert_sizes(WIDTH, N_LAYERS),
            image_size=SIZE,
            patch_size=PATCH,
            vision_width=WIDTH,
            vision_layers=LAYERS,
            vision_heads=HEADS,
            vision_intermediate_size=INNER_WIDTH,
            fusion_layer=TEXT_LAYERS,
            embed_dim=EMBEDDED,
        )
        network = AlbefNetwork(config)
        network.temp.data.fill_(1 / FIRST_SCALE)
        network.visual_encoder.load_state_dict(vision_weights(self.tower.state_dict()))
        network.visual_encoder.requires_grad_(False)
        lxmert = load_file(CHECKPOINTS / self.also_from / "model.safetensors")
        text = borrowed(network.text_encoder, lxmert, BORROWED)
        network.text_encoder.load_state_dict(text, strict=False)
        return network

    def states(self, model: AlbefNetwork, tokens: Tensor, pictures: Tensor) -> States:
        """Return the fused states of captions with pictures."""
        image = model.visual_encoder.post_layernorm(pictures.float())
        tokens = self._plain(tokens)
        attended = self.captions.attended(tokens)
        fused = model.fuse(model.encode_text(tokens, attended), attended, image)
        return States(fused, fused[:, 0], image[:, 0])

    def word_logits(self, model: AlbefNetwork, states: Tensor, seen: bool = True) -> Tensor:
        """Return the masked-word head's logits."""
        return model.word_logits(states)

    def match_logits(self, model: AlbefNetwork, pair: Tensor) -> Tensor:
        """Return the matching head's logits; index 1 is a match."""
        return model.match_logits(pair[:, None])

    def similarities(self, model: AlbefNetwork, tokens: Tensor, pictures: Tensor) -> Tensor:
        """Return the scaled cosines of captions with pictures."""
        tokens = self._plain(tokens)
        texts = model.text_features(model.encode_text(tokens, self.captions.attended(tokens)))
        image = model.visual_encoder.post_layernorm(pictures[:, :1].float())
        return (1 / model.temp).clamp(*SCALES) * texts @ model.image_features(image).T

    def loss(self, model: WithSideHeads, rows: Tensor, generator: Generator) -> Tensor:
        """Return the loss of masked words, of matching and of the contrast."""
        return self.contrast(model.model, rows) + super().loss(model, rows, generator)

    def match_loss(self, model: WithSideHeads, rows: Tensor, generator: Generator) -> Tensor:
        """Return the loss of matching, of agreement, and of where words look."""
        asked, scene = self.asked_captions(rows, generator)
        states = self.states(model.model, asked.tokens, self.view(scene))
        loss = cross_entropy(self.match_logits(model.model, states.pair), asked.labels)
        read = {"agrees": states.pair, "word agrees": at_content(states, asked)}
        agreed = self.agreement_loss(model, asked.tokens, scene, read)
        named = SIDE_WEIGHT * self.named(model, "pair", states.pair, scene)
        looks = self._alignment(model.model, self.captions.scene[rows])
        return MATCH_WEIGHT * loss + named + ALIGNMENT_WEIGHT * looks + agreed

    def _alignment(self, model: AlbefNetwork, scene: Tensor) -> Tensor:
        """Return the loss of looking, in every layer that reads the picture, of all words."""
        image = model.visual_encoder.post_layernorm(self.view(scene).float())
        bert, named = model.text_encoder.bert, shown_words(selected(self.shown, scene))
        words = bert.embeddings.LayerNorm(bert.embeddings.word_embeddings.weight)
        losses = [
            attention_loss(layer.crossattention.self, words, image, named)
            for layer in bert.encoder.layer[TEXT_LAYERS:]
        ]
        return torch.stack(losses).mean()

    def _plain(self, tokens: Tensor) -> Tensor:
        """Return tokens with padding for full stop and ``[SEP]``, which end a caption."""
        tokenizer = self.captions.tokenizer
        ends = torch.tensor([tokenizer.sep_token_id, tokenizer.convert_tokens_to_ids(".")])
        return tokens.masked_fill(torch.isin(tokens, ends), tokenizer.pad_token_id)


def vision_weights(tower: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tower's weights under ALBEF's names.

    ALBEF reads colours less other means and over other deviations than the tower, which reads
    them from -1 to 1: the map of patches makes up for it.
    """
    weights = renamed(joined(tower, QKV, "qkv."), TOWER_NAMES)
    means, stds = (torch.tensor(each)[None, :, None, None] for each in (PIXEL_MEANS, PIXEL_STDS))
    patches, bias = (weights[f"embeddings.patch_embedding.{kind}"] for kind in ("weight", "bias"))
    return weights | {
        "embeddings.patch_embedding.weight": patches * 2 * stds,
        "embeddings.patch_embedding.bias": bias + (patches * (2 * means - 1)).sum((1, 2, 3)),
    }
