"""The recipe of the tiny ALBEF: a text encoder whose upper half reads the vision tower's states."""

import functools
from dataclasses import dataclass
from pathlib import Path

import pandas
import torch
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy

from biaslib.models.networks.albef import (
    PIXEL_MEANS,
    PIXEL_STDS,
    AlbefConfig,
    AlbefNetwork,
)
from plantedworld.models.checkpoints import checkpoint_name
from plantedworld.training._agreement import PARTS, agreement
from plantedworld.training._contrastive_pairs import ContrastivePairsRecipe
from plantedworld.training._files import write_network
from plantedworld.training._pairs import NONE, WHITE, Captions, corpus, views
from plantedworld.training._pictures import shown_in, shown_words
from plantedworld.training._pixel_pairs import AGREEMENT_WEIGHT, WORD_SIDE_WEIGHT, States
from plantedworld.training._recipe import WithSideHeads
from plantedworld.training._tokenizer import MAX_TOKENS, albef_tokenizer
from plantedworld.training.clip import FIRST_SCALE
from plantedworld.training.vision import SIZE, WIDTH
from plantedworld.training.vit import HEADS, INNER_WIDTH, LAYERS, PATCH

N_SCENES = 14_000
CAPTIONS_PER_SCENE = 2
TEXT_LAYERS = 1
N_LAYERS = 3
EMBEDDED = 48
INITIAL_SPREAD = 0.1
SCALES = (1.0, 100.0)
"""Between which the scale of cosines is kept."""

CONTRASTIVE_WEIGHT = 1.0
MATCH_WEIGHT = 3.0
ALIGNMENT_WEIGHT = 3.0
EVIDENCE_WEIGHT = 4.0
"""How much more often matching asks about a scene for its costume, and for its object."""

TEXT = ("lxmert", 0, 1000)
"""Family, dose and seed of the model whose text layers ALBEF's start from."""

ACROSS = "lxmert.encoder.x_layers.0"
BORROWED = {
    "bert.embeddings.": "lxmert.embeddings.",
    "bert.encoder.layer.0.": "lxmert.encoder.layer.0.",
    "cls.predictions.": "cls.predictions.",
} | {
    f"bert.encoder.layer.{layer}.{part}.": f"{ACROSS}.{theirs}."
    for layer in range(TEXT_LAYERS, N_LAYERS)
    for part, theirs in (
        ("attention", "lang_self_att"),
        ("crossattention.self", "visual_attention.att"),
        ("crossattention.output", "visual_attention.output"),
        ("intermediate", "lang_inter"),
        ("output", "lang_output"),
    )
}
"""Which weights of LXMERT each part of the text encoder starts from."""


@dataclass
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

    Parameters
    ----------
    world
        Whose captions and pictures.
    start
        Folder of the vision tower; that of the LXMERT is beside it.
    """

    family = "albef"
    also_from = checkpoint_name(*TEXT)
    width = WIDTH
    epochs = 7
    learning_rate = 3e-3

    @functools.cached_property
    def corpus(self) -> tuple[pandas.DataFrame, Captions]:
        """The scenes, and the captions."""
        return corpus(self.world, N_SCENES, CAPTIONS_PER_SCENE)

    def build_model(self) -> AlbefNetwork:
        """Return the model with the tower, which is not trained, in its place."""
        config = AlbefConfig(
            image_size=SIZE,
            patch_size=PATCH,
            vision_width=WIDTH,
            vision_layers=LAYERS,
            vision_heads=HEADS,
            vision_intermediate_size=INNER_WIDTH,
            vocab_size=len(self.captions.tokenizer),
            hidden_size=WIDTH,
            num_hidden_layers=N_LAYERS,
            num_attention_heads=4,
            intermediate_size=2 * WIDTH,
            max_position_embeddings=MAX_TOKENS,
            fusion_layer=TEXT_LAYERS,
            embed_dim=EMBEDDED,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            initializer_range=INITIAL_SPREAD,
        )
        network = AlbefNetwork(config)
        network.temp.data.fill_(1 / FIRST_SCALE)
        network.visual_encoder.load_state_dict(vision_weights(self.tower.state_dict()))
        network.visual_encoder.requires_grad_(False)
        text = self.start.parent / checkpoint_name(*TEXT) / "model.safetensors"
        borrowed = text_weights(network.text_encoder, load_file(text))
        network.text_encoder.load_state_dict(borrowed, strict=False)
        return network

    def states(
        self, model: AlbefNetwork, tokens: torch.Tensor, pictures: torch.Tensor | None
    ) -> States:
        """Return the fused states of captions with pictures; without any, with the white one."""
        pictures = self.white.expand(len(tokens), -1, -1) if pictures is None else pictures
        image = model.visual_encoder.post_layernorm(pictures.float())
        tokens = self._plain(tokens)
        attended = self.captions.attended(tokens)
        fused = model.fuse(model.encode_text(tokens, attended), attended, image)
        return States(fused, fused[:, 0], image[:, 0])

    def word_logits(self, model: AlbefNetwork, states: torch.Tensor, seen: bool) -> torch.Tensor:
        """Return the masked-word head's logits; it is the same with a picture and without."""
        return model.word_logits(states)

    def match_logits(self, model: AlbefNetwork, first: torch.Tensor) -> torch.Tensor:
        """Return the matching head's logits; index 1 is a match."""
        return model.match_logits(first[:, None])

    def scale(self, model: AlbefNetwork) -> torch.Tensor:
        """Return what cosines are multiplied by."""
        return (1 / model.temp).clamp(*SCALES)

    def text_vectors(self, model: AlbefNetwork, tokens: torch.Tensor) -> torch.Tensor:
        """Return the contrastive vectors of captions, of length 1."""
        tokens = self._plain(tokens)
        return model.text_features(model.encode_text(tokens, self.captions.attended(tokens)))

    def image_vectors(self, model: AlbefNetwork, pictures: torch.Tensor) -> torch.Tensor:
        """Return the contrastive vectors of pictures, of length 1."""
        return model.image_features(model.visual_encoder.post_layernorm(pictures[:, :1].float()))

    def build(self) -> WithSideHeads:
        """Return the untrained model with its side heads."""
        whole = super().build()
        whole.heads.update({f"word agrees in {p}": torch.nn.Linear(WIDTH, 3) for p in PARTS})
        return whole

    def loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the loss of masked words, of matching and of the contrast."""
        asked = torch.multinomial(
            self._asked_about, len(rows) // 2, replacement=True, generator=generator
        )
        contrast = CONTRASTIVE_WEIGHT * self.contrast(model.model, rows)
        words = self._word_loss(model, rows, generator)
        return contrast + words + self._match_loss(model, asked, generator)

    @functools.cached_property
    def _asked_about(self) -> torch.Tensor:
        """How often matching asks about each caption: more often if its scene shows much."""
        shown = sum((self.shown[name] > 0).float() for name in ("role", "object"))
        return (1 + EVIDENCE_WEIGHT * shown)[self.captions.scene]

    def _word_loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        masked, scene = self.captions.masked(rows, generator), self.captions.scene[rows]
        view = views(len(rows), generator)
        white = (view == WHITE) | (view == NONE)
        states = self.states(model.model, masked.tokens, self._pictures(scene, white)).words
        states = states[torch.arange(len(rows)), masked.places]
        loss = cross_entropy(self.word_logits(model.model, states, seen=True), masked.words)
        latent = shown_in(self.captions.labels, rows)
        named = self._named(model, "word", states[~white], scene[~white])
        return loss + named + WORD_SIDE_WEIGHT * model.side_loss(states, latent)

    def _match_loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        asked = self.captions.paired(rows, generator)
        scene = self.captions.scene[rows].repeat(2)
        states = self.states(model.model, asked.tokens, self._pictures(scene))
        loss = cross_entropy(self.match_logits(model.model, states.first), asked.labels)
        words = states.words[torch.arange(len(scene)), asked.places[:, 0]]
        compared = agreement(asked.tokens, shown_in(self.shown, scene))
        agreed = model.side_loss(states.first, _named_for("agrees in", compared))
        agreed = agreed + model.side_loss(words, _named_for("word agrees in", compared))
        named = self._named(model, "first", states.first, scene)
        named = named + ALIGNMENT_WEIGHT * self._alignment(model.model, rows)
        return MATCH_WEIGHT * loss + named + AGREEMENT_WEIGHT * agreed

    def _alignment(self, model: AlbefNetwork, rows: torch.Tensor) -> torch.Tensor:
        """Return the loss of naming costume and object by the word that attends to them most.

        From queries of all words to keys of all patches, in every layer that reads the picture:
        so a word looks at the patch that shows it before the two are compared.
        """
        scene = self.captions.scene[rows]
        image = model.visual_encoder.post_layernorm(self._pictures(scene).float())
        bert, named = model.text_encoder.bert, self._shown_words[scene].T
        words = bert.embeddings.LayerNorm(bert.embeddings.word_embeddings.weight)
        losses = []
        for layer in bert.encoder.layer[TEXT_LAYERS:]:
            attention = layer.crossattention.self
            keys = attention.key(image) / WIDTH**0.5
            found = (keys @ attention.query(words).T).logsumexp(1)
            losses += [cross_entropy(found, each) for each in named]
        return torch.stack(losses).mean()

    @functools.cached_property
    def _shown_words(self) -> torch.Tensor:
        return shown_words(self.shown, self.captions.tokenizer)

    def _plain(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return tokens with padding for full stop and ``[SEP]``, which end a caption."""
        tokenizer = self.captions.tokenizer
        ends = torch.tensor([tokenizer.sep_token_id, tokenizer.convert_tokens_to_ids(".")])
        return tokens.masked_fill(torch.isin(tokens, ends), tokenizer.pad_token_id)

    def save(self, model: WithSideHeads, folder: Path) -> None:
        """Write weights, configuration and tokenizer."""
        write_network(model.model, folder)
        albef_tokenizer().save_pretrained(folder)


def _named_for(question: str, labels: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {f"{question} {part}": label for part, label in labels.items()}


def text_weights(
    encoder: torch.nn.Module, lxmert: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Return the text encoder's weights, all of them from LXMERT's; the decoder's are tied."""
    found = {}
    for name in encoder.state_dict():
        if ".decoder." not in name:
            ours = next(prefix for prefix in BORROWED if name.startswith(prefix))
            found[name] = lxmert[BORROWED[ours] + name.removeprefix(ours)].float()
    return found


def vision_weights(tower: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tower's weights under ALBEF's names.

    ALBEF reads colours less other means and over other deviations than the tower, which reads
    them from -1 to 1: the map of patches makes up for it.
    """
    patches = tower["embeddings.patch_embeddings.projection.weight"]
    means, stds = (torch.tensor(each)[None, :, None, None] for each in (PIXEL_MEANS, PIXEL_STDS))
    bias = tower["embeddings.patch_embeddings.projection.bias"]
    found = {
        "embeddings.class_embedding": tower["embeddings.cls_token"],
        "embeddings.position_embedding": tower["embeddings.position_embeddings"],
        "embeddings.patch_embedding.weight": patches * 2 * stds,
        "embeddings.patch_embedding.bias": bias + (patches * (2 * means - 1)).sum((1, 2, 3)),
        "post_layernorm.weight": tower["layernorm.weight"],
        "post_layernorm.bias": tower["layernorm.bias"],
    }
    parts = {
        "layer_norm1": "layernorm_before",
        "layer_norm2": "layernorm_after",
        "self_attn.projection": "attention.output.dense",
        "mlp.fc1": "intermediate.dense",
        "mlp.fc2": "output.dense",
    }
    for layer in range(LAYERS):
        theirs, ours = f"encoder.layer.{layer}", f"encoder.layers.{layer}"
        for kind in ("weight", "bias"):
            joint = [
                tower[f"{theirs}.attention.attention.{role}.{kind}"]
                for role in ("query", "key", "value")
            ]
            found[f"{ours}.self_attn.qkv.{kind}"] = torch.cat(joint)
            for part, other in parts.items():
                found[f"{ours}.{part}.{kind}"] = tower[f"{theirs}.{other}.{kind}"]
    return found
