"""The recipe of the tiny LLaVA: a decoder that writes captions, and answers about them.

It is what transformers calls LLaVA: a vision transformer whose states stand, through two linear
layers, in the place of words before a decoder. The tower is that of the fusion models on pixels
(:mod:`plantedworld.training.vit`) and stays as it is; all else is trained from nothing.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas
import torch
import transformers
from torch.nn.functional import cross_entropy
from transformers import FlavaImageModel, LlavaForConditionalGeneration, PreTrainedTokenizerFast

from biaslib.models.generative import LETTERS, PROMPTS, Generative
from plantedworld import blank
from plantedworld.models.checkpoints import checkpoint_name
from plantedworld.models.prompts import ASKED
from plantedworld.training._agreement import PARTS, agreement
from plantedworld.training._files import write_network
from plantedworld.training._pairs import VIEWS, Captions, HeldOut, PairsRecipe, corpus, preferred
from plantedworld.training._pictures import classes, labels, shown_in
from plantedworld.training._recipe import WithSideHeads
from plantedworld.training._tokenizer import llava_tokenizer
from plantedworld.training.clip import image_processor
from plantedworld.training.vision import SIZE, WIDTH
from plantedworld.training.vit import (
    HEADS,
    INNER_WIDTH,
    LAYERS,
    PATCH,
    read_tower,
    tower_states,
)

N_SCENES = 8_000
CAPTIONS_PER_SCENE = 12
CAPTIONS_AT_ONCE = 6
"""Captions of a scene that are learned behind one picture, each as if it stood there alone."""

TEXT_LAYERS = 2
IMAGE, ANSWER = "<image>", "[ANSWER]"
N_IMAGE = (SIZE // PATCH) ** 2 + 1
"""States of a picture: one a patch, and that of the whole."""

MAX_LENGTH = 128
OPTIONS = 3
"""Captions that a choice in training is among, or one less."""

DESCRIBE = tuple(ASKED[name].describe for name in ("trained", "trained, short"))
"""Prompts before captions, one as often as the other."""

TEMPLATE = (
    "[BOS]{% for m in messages %}{% for c in m['content'] %}{% if c['type'] == 'image' %}"
    "<image>{% else %} {{ c['text'] }}{% endif %}{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %} [ANSWER]{% endif %}"
)
INITIAL_SPREAD = 0.1
JUDGE_WEIGHT, CHOOSE_WEIGHT, SIDE_WEIGHT = 1.0, 1.0, 0.25
TOWER = checkpoint_name("vit", 0, 1000)


VIEW_NAMES = ("picture", "none", "white")
SEEN, WITHOUT, WHITE = range(len(VIEW_NAMES))
"""How a scene's captions are shown, as often as in the other recipes."""

JUDGED = 100
"""Held-out captions by which a model is judged."""


def tokenizer() -> PreTrainedTokenizerFast:
    """Return the tokenizer of captions and prompts; letters of options are no articles.

    Examples
    --------
    >>> tokenizer().tokenize("A. The woman is a nurse.")
    ['option-a', '.', 'the', 'woman', 'is', 'a', 'nurse', '.']
    """
    prompts = [each for told in ASKED.values() for each in vars(told).values()]
    return llava_tokenizer((IMAGE, ANSWER), prompt_words(prompts), LETTERS, MAX_LENGTH)


def prompt_words(prompts: Sequence[str]) -> list[str]:
    """Return the words and marks of prompts, without what stands for captions, and two answers.

    Examples
    --------
    >>> prompt_words(["Write {caption}?", "Write!"])
    ['?', 'no', 'write', 'write!', 'yes']
    """
    text = " ".join(prompts).lower().replace("{caption}", " ").replace("{options}", " ")
    for mark in '".?':
        text = text.replace(mark, f" {mark} ")
    return sorted({*text.split(), "yes", "no"})


class Question(NamedTuple):
    """Questions behind pictures: ``tokens`` (n, longest), and the tokens of ``answers`` (n,).

    ``captions`` are the tokens of what is asked about, as :class:`Captions` has them, if it is one.
    """

    tokens: torch.Tensor
    answers: torch.Tensor
    captions: torch.Tensor | None = None


@dataclass
class LlavaRecipe(PairsRecipe):
    """A Llama of two layers of width 64 behind the vision tower.

    The picture stands first, then a prompt, then the answer. Three kinds of answers are learned: a
    caption of the picture; whether a caption fits it, yes or no; and which of two or three captions
    fits, in any order. Captions that do not fit are those of :meth:`Captions.matched`. As in the
    other recipes a picture is left out, or white, now and then; then captions alone are learned.

    Several captions of a scene and a question stand behind one picture. Each sees the picture and
    its own prompt alone, and counts its places as if nothing else were there: what is learned is
    the same as one by one, in a third of the time. Side heads name what the picture shows before
    every word of a caption, and whether a caption that is asked about agrees with it.

    One model of an unbiased world learns to see and to write; all others go on from it, in two
    rounds.

    Parameters
    ----------
    world
        Whose captions and pictures.
    start
        Folder of the vision tower, or of the model to go on from, with the tower beside it.
    second
        Whether this is the second round, from the model that the first one made.
    """

    second: bool = False

    family = "llava"
    batch_size = 48
    weight_decay = 0.02
    first_epochs, further_epochs, second_epochs = 3, 2, 3
    first_rate, further_rate = 4e-3, 3e-3

    @property
    def epochs(self) -> int:
        """Those of the first model, and of two rounds of all others."""
        return self.second_epochs if self.second and not self.first else super().epochs

    @functools.cached_property
    def corpus(self) -> tuple[pandas.DataFrame, Captions]:
        """The scenes, and the captions: that of number i + k n is of scene i."""
        return corpus(self.world, N_SCENES, CAPTIONS_PER_SCENE)

    @functools.cached_property
    def n_scenes(self) -> int:
        """Scenes of the corpus."""
        return len(self.corpus[0])

    @functools.cached_property
    def lengths(self) -> torch.Tensor:
        """One and the same for every scene."""
        return torch.ones(self.n_scenes, dtype=torch.long)

    @functools.cached_property
    def tower(self) -> FlavaImageModel:
        """The vision tower."""
        return read_tower(self.start if self.first else self.start.parent / TOWER)

    @functools.cached_property
    def states(self) -> torch.Tensor:
        """The tower's states of all scenes, and of the white picture last: (n + 1, 17, 64)."""
        parts = (self.corpus[0], blank())
        return torch.cat([tower_states(self.tower, each, self.family) for each in parts])

    @functools.cached_property
    def shown(self) -> dict[str, torch.Tensor]:
        """Classes of what each scene shows, by name."""
        return labels(self.corpus[0])

    @functools.cached_property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The tokenizer of captions and prompts."""
        return tokenizer()

    @functools.cached_property
    def ours(self) -> torch.Tensor:
        """Our number of every token of the captions' own tokenizer."""
        names = self.captions.tokenizer.get_vocab()
        numbers = self.tokenizer.get_vocab()
        renamed = {"[CLS]": "[BOS]", "[SEP]": "[EOS]", "[MASK]": "[UNK]"}
        table = torch.zeros(len(names), dtype=torch.long)
        for name, number in names.items():
            table[number] = numbers[renamed.get(name, name)]
        return table

    def ids(self, text: str) -> torch.Tensor:
        """Return the tokens of a piece of a prompt, (n,)."""
        return torch.tensor(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def build(self) -> WithSideHeads:
        """Return the model with the vision tower in its place."""
        text = transformers.LlamaConfig(
            vocab_size=len(self.tokenizer),
            hidden_size=WIDTH,
            intermediate_size=2 * WIDTH,
            num_hidden_layers=TEXT_LAYERS,
            num_attention_heads=4,
            max_position_embeddings=MAX_LENGTH,
            initializer_range=INITIAL_SPREAD,
            pad_token_id=self.tokenizer.pad_token_id,
            bos_token_id=self.tokenizer.bos_token_id,
            eos_token_id=self.tokenizer.eos_token_id,
        )
        vision = transformers.ViTConfig(
            hidden_size=WIDTH,
            intermediate_size=INNER_WIDTH,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            image_size=SIZE,
            patch_size=PATCH,
            layer_norm_eps=1e-6,
        )
        config = transformers.LlavaConfig(
            vision_config=vision,
            text_config=text,
            image_token_index=self.tokenizer.convert_tokens_to_ids(IMAGE),
            vision_feature_layer=-1,
            vision_feature_select_strategy="full",
            image_seq_length=N_IMAGE,
            initializer_range=INITIAL_SPREAD,
        )
        network = LlavaForConditionalGeneration(config)
        tower = network.model.vision_tower
        tower.load_state_dict(vision_weights(self.tower.state_dict()), strict=False)
        tower.requires_grad_(False)
        first = network.model.multi_modal_projector.linear_1
        first.weight.data /= self.states.float().std()
        if not self.first:
            begun = LlavaForConditionalGeneration.from_pretrained(self.start, dtype=torch.float32)
            network.load_state_dict(begun.state_dict())
        named = {name: len(each) for name, each in classes().items()}
        return WithSideHeads(network, WIDTH, named | {f"agrees in {part}": 3 for part in PARTS})

    def loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the loss of captions, and of one of the questions where there is a picture."""
        network = model.model
        shares = torch.tensor([VIEWS[name] for name in VIEW_NAMES])
        view = torch.multinomial(shares, len(rows), True, generator=generator)
        captions, prompt = self._captions(rows, generator), self._describe(generator)
        asked = torch.randint(2, (1,), generator=generator)
        question = (self._judged if asked else self._chosen)(rows, generator)
        n, k, longest = captions.shape
        tokens = torch.cat([prompt.expand(n, -1), captions.flatten(1), question.tokens], 1)
        widths = [len(prompt), *[longest] * k, question.tokens.shape[1]]
        states = self._run(network, rows, view, tokens, widths)
        told, said, answer = states.split([len(prompt), k * longest, widths[-1]], dim=1)
        of_captions = said.unflatten(1, (k, longest))[:, :, :-1]
        before = torch.cat([told[:, None, -1:].expand(-1, k, 1, -1), of_captions], dim=2)
        real = captions != self.tokenizer.pad_token_id
        loss = cross_entropy(network.lm_head(before[real]), captions[real])
        seen = view == SEEN
        at = real & seen[:, None, None] & (torch.arange(k) == 0)[:, None]
        here = shown_in(self.shown, rows[at.nonzero()[:, 0]])
        loss = loss + SIDE_WEIGHT * model.side_loss(before[at], here)
        last = answer[torch.arange(n), (question.tokens != 0).sum(1) - 1][seen]
        loss = loss + cross_entropy(network.lm_head(last), question.answers[seen])
        if question.captions is None:
            return loss
        agrees = agreement(question.captions[seen], shown_in(self.shown, rows[seen]))
        return loss + model.side_loss(last, {f"agrees in {part}": agrees[part] for part in PARTS})

    @functools.cached_property
    def letters(self) -> torch.Tensor:
        """Numbers of the options' letters."""
        return torch.cat([self.ids(letter) for letter in LETTERS[:OPTIONS]])

    def _run(self, network, rows, view, tokens, widths) -> torch.Tensor:
        """Return the decoder's states of what stands behind the picture, (n, longest, width)."""
        n, image = len(rows), self.tokenizer.convert_tokens_to_ids(IMAGE)
        scene = torch.where(view == WHITE, self.n_scenes, rows)
        features = network.model.multi_modal_projector(self.states[scene].float())
        begin = torch.full((n, 1 + N_IMAGE), image)
        begin[:, 0] = self.tokenizer.bos_token_id
        embed = network.get_input_embeddings()
        embedded = embed(torch.cat([begin, tokens], 1))
        embedded = torch.cat([embedded[:, :1], features, embedded[:, 1 + N_IMAGE :]], 1)
        real = torch.cat([begin >= 0, tokens != self.tokenizer.pad_token_id], 1)
        real[:, 1 : 1 + N_IMAGE] = (view != WITHOUT)[:, None]
        count = len(widths)
        numbers = torch.tensor([1 + N_IMAGE, *widths])
        segment = torch.arange(count + 1).repeat_interleave(numbers)
        sees = torch.eye(count + 1, dtype=torch.bool)
        sees[:, 0] = True
        sees[2:count, 1] = True
        length = len(segment)
        causal = torch.ones(length, length, dtype=torch.bool).tril()
        allowed = (sees[segment][:, segment] & causal)[None] & real[:, None, :]
        # Where a token stands: how many it sees, but itself.
        places = (allowed.sum(-1) - 1).clamp(min=0)
        allowed = allowed | torch.eye(length, dtype=torch.bool)
        states = network.model.language_model(
            inputs_embeds=embedded,
            attention_mask=allowed[:, None],
            position_ids=places,
            use_cache=False,
        ).last_hidden_state
        return states[:, 1 + N_IMAGE :]

    def _captions(self, rows: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return some captions of each scene, each with its end, (n, k, longest)."""
        which = torch.rand(len(rows), CAPTIONS_PER_SCENE, generator=generator)
        which = which.argsort(1)[:, :CAPTIONS_AT_ONCE]
        numbers = (rows[:, None] + which * self.n_scenes).flatten()
        return self.ours[self.captions.cut(numbers)][:, 1:].unflatten(0, which.shape)

    def _describe(self, generator: torch.Generator) -> torch.Tensor:
        which = int(torch.randint(len(DESCRIBE), (1,), generator=generator))
        return self.ids(f"{DESCRIBE[which]} {ANSWER}")

    def _bare(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return our tokens of captions, without beginning and end."""
        bare = self.ours[tokens][:, 1:]
        return bare.masked_fill(bare == self.tokenizer.eos_token_id, self.tokenizer.pad_token_id)

    def _judged(self, rows: torch.Tensor, generator: torch.Generator) -> Question:
        """Return the question whether a caption fits its scene, which half of them do."""
        which = torch.randint(CAPTIONS_PER_SCENE, (len(rows),), generator=generator)
        found = self.captions.matched(rows + which * self.n_scenes, generator)
        before, after = PROMPTS.judge.split("{caption}")
        yes, no = self.ids("yes no")
        asked = self._joined([before, self._bare(found.tokens), f"{after} {ANSWER}"])
        return Question(asked, torch.where(found.labels == 1, yes, no), found.tokens)

    def _chosen(self, rows: torch.Tensor, generator: torch.Generator) -> Question:
        """Return the question which of some captions fits."""
        n = len(rows)
        which = torch.randint(CAPTIONS_PER_SCENE, (n,), generator=generator)
        numbers = rows + which * self.n_scenes
        others = [self._wrong(numbers, generator) for _ in range(OPTIONS - 1)]
        captions = [self._bare(self.captions.cut(numbers)), *others]
        longest = max(each.shape[1] for each in captions)
        pad = self.tokenizer.pad_token_id
        stacked = torch.full((n, OPTIONS, longest), pad)
        for at, each in enumerate(captions):
            stacked[:, at, : each.shape[1]] = each
        few = int(torch.randint(2, (1,), generator=generator))
        c = OPTIONS - few
        order = torch.rand(n, c, generator=generator).argsort(1)
        stacked = stacked.gather(1, order[..., None].expand(-1, -1, longest))
        before, after = PROMPTS.choose.split("{options}")
        pieces: list = [before]
        for at in range(c):
            pieces += [f"{LETTERS[at]}. ", stacked[:, at]]
        asked = self._joined([*pieces, f"{after} {ANSWER}"])
        return Question(asked, self.letters[(order == 0).long().argmax(1)])

    def _wrong(self, numbers: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return a caption of another scene, or the own one with a swapped word, of each."""
        swap = torch.rand(len(numbers), generator=generator) < 0.5
        drawn_ones = torch.randint(len(self.captions), (len(numbers),), generator=generator)
        shown = torch.where(swap, numbers, drawn_ones)
        tokens = self.captions.cut(shown)
        row = torch.nonzero(swap)[:, 0]
        words = self.captions.swapped_words(numbers[row], generator)
        tokens[row, self.captions.places[numbers[row], 0]] = words
        return self._bare(tokens)

    def _joined(self, pieces: list) -> torch.Tensor:
        """Return texts and captions one behind the other, padding at the end, (n, longest)."""
        n = next(len(each) for each in pieces if not isinstance(each, str))
        whole = torch.cat(
            [self.ids(each).expand(n, -1) if isinstance(each, str) else each for each in pieces], 1
        )
        real = whole != self.tokenizer.pad_token_id
        order = (~real).long().argsort(dim=1, stable=True)
        return whole.gather(1, order)[:, : int(real.sum(1).max())]

    def judge(self, model: WithSideHeads) -> dict[str, float]:
        """Return how likely held-out captions are, and how often one is told from a swapped one.

        Likely: natural logarithms, a caption; beside the truth's own.
        """
        held = HeldOut(self.world, JUDGED)
        scenes, table = held.scenes, held.captions.table
        asked = Generative(model.model.eval(), self.processor(), self.family, "", "cpu")
        pairs = held.pairs()
        total, yes = asked.log_likelihood(scenes, pairs).total, asked.yes_no(scenes, pairs)
        truth = self.world.truth.log_joint(table["text"].tolist(), scenes).diagonal()
        return {
            "log-likelihood": float(total[:, 0].mean()),
            "truth's log-likelihood": float((truth - self.world.truth.log_image(scenes)).mean()),
            "likelier than swapped": preferred(*total.T),
            "yes to it rather": preferred(*yes.T),
            "truth's match accuracy": held.scores_of_truth["truth's match accuracy"],
            "match chance": 0.5,
            "pairs judged": JUDGED,
        }

    def processor(self) -> transformers.LlavaProcessor:
        """Return what turns a picture and a prompt into the model's input."""
        return transformers.LlavaProcessor(
            image_processor(),
            self.tokenizer,
            patch_size=PATCH,
            vision_feature_select_strategy="full",
            num_additional_image_tokens=1,
            chat_template=TEMPLATE,
        )

    def next_round(self, folder: Path) -> "LlavaRecipe | None":
        """Return the second round of all models but the first."""
        return None if self.first or self.second else LlavaRecipe(self.world, folder, second=True)

    def save(self, model: WithSideHeads, folder: Path) -> None:
        """Write weights, configuration, tokenizer, processor and template as transformers does."""
        write_network(model.model, folder)
        self.processor().save_pretrained(folder)


def vision_weights(tower: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tower's weights under the names of transformers' ViT."""
    parts = {
        "attention.q_proj": "attention.attention.query",
        "attention.k_proj": "attention.attention.key",
        "attention.v_proj": "attention.attention.value",
        "attention.o_proj": "attention.output.dense",
        "mlp.fc1": "intermediate.dense",
        "mlp.fc2": "output.dense",
        "layernorm_before": "layernorm_before",
        "layernorm_after": "layernorm_after",
    }
    found = {name: each for name, each in tower.items() if not name.startswith("encoder.")}
    found.pop("embeddings.mask_token", None)
    for layer in range(LAYERS):
        for ours, theirs in parts.items():
            for kind in ("weight", "bias"):
                name = f"encoder.layer.{layer}.{theirs}.{kind}"
                found[f"layers.{layer}.{ours}.{kind}"] = tower[name]
    return found
