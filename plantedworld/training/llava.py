"""The recipe of the tiny LLaVA: a decoder that writes captions, and answers about them.

It is what transformers calls LLaVA: a vision transformer whose states stand, through two linear
layers, in the place of words before a decoder. The tower is that of the fusion models on pixels
(:mod:`plantedworld.training.vit`) and stays as it is; all else is trained from nothing.
"""

import functools
import re
from typing import NamedTuple

import torch
import transformers
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from transformers import FlavaImageModel, LlavaForConditionalGeneration, PreTrainedTokenizerFast

from biaslib.models.generative import LETTERS, PROMPTS
from plantedworld import blank
from plantedworld.models.checkpoints import CHECKPOINTS, checkpoint_name
from plantedworld.models.prompts import ASKED
from plantedworld.training import vit
from plantedworld.training._captions import NONE, PICTURE, VIEWS, WHITE
from plantedworld.training._labels import PARTS, agreement, n_classes, selected
from plantedworld.training._pairs import CaptionsRecipe
from plantedworld.training._recipe import ONCE, Stage, WithSideHeads
from plantedworld.training._tokenizer import llava_tokenizer
from plantedworld.training._weights import names, renamed
from plantedworld.training.clip import image_processor
from plantedworld.training.vision import SIZE, WIDTH

CAPTIONS_AT_ONCE = 6
"""Captions of a scene that are learned behind one picture, each as if it stood there alone."""

TEXT_LAYERS = 2
IMAGE, ANSWER = "<image>", "[ANSWER]"
N_IMAGE = (SIZE // vit.PATCH) ** 2 + 1
"""States of a picture: one a patch, and that of the whole."""

MAX_LENGTH = 128
OPTIONS = 3
"""Captions that a choice in training is among, or one less."""

DESCRIBE = tuple(ASKED[name].describe for name in ("trained", "trained, short"))
"""Prompts before captions, one as often as the other."""

TEMPLATE = (
    "[BOS]{% for m in messages %}{% if m['role'] == 'assistant' %} [ANSWER]{% endif %}"
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}<image>{% else %} {{ c['text'] }}"
    "{% endif %}{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %} [ANSWER]{% endif %}"
)
INITIAL_SPREAD = 0.1
SIDE_WEIGHT = 0.25
TOWER = checkpoint_name("vit", 0, 1000)
TOWER_NAMES = names("llava from the tower")
"""What parts of the vision tower are called in transformers' ViT."""


def tokenizer() -> PreTrainedTokenizerFast:
    """Return the tokenizer of captions and prompts; letters of options are no articles.

    Examples
    --------
    >>> tokenizer().tokenize("A. The woman is a nurse.")
    ['option-a', '.', 'the', 'woman', 'is', 'a', 'nurse', '.']
    """
    prompts = " ".join(text for prompts in ASKED.values() for text in vars(prompts).values())
    prompts = re.sub(r"\{caption\}|\{options\}", " ", prompts.lower())
    words = {*re.findall(r'[".?]|[^\s".?]+', prompts), "yes", "no"}
    return llava_tokenizer((IMAGE, ANSWER), sorted(words), LETTERS, MAX_LENGTH)


class Question(NamedTuple):
    """Questions behind pictures: ``tokens`` (n, longest), and the tokens of ``answers`` (n,).

    ``captions`` are the tokens of what is asked about, as
    :class:`plantedworld.training._captions.Captions` has them, if it is one.
    """

    tokens: Tensor
    answers: Tensor
    captions: Tensor | None = None


class LlavaRecipe(CaptionsRecipe):
    """A Llama of two layers of width 64 behind the vision tower.

    The picture stands first, then a prompt, then the answer. Three kinds of answers are learned: a
    caption of the picture; whether a caption fits it, yes or no; and which of two or three captions
    fits, in any order. Captions that do not fit are those of ``Captions.matched``. As in the
    other recipes a picture is left out, or white, now and then; then captions alone are learned.

    Several captions of a scene and a question stand behind one picture. Each sees the picture and
    its own prompt alone, and counts its places as if nothing else were there: what is learned is
    the same as one by one, in a third of the time. Side heads name what the picture shows before
    every word of a caption, and whether a caption that is asked about agrees with it.

    One model of an unbiased world learns to see and to write; all others go on from it, in two
    rounds.
    """

    family = "llava"
    worlds = (*ONCE, (3, 2100, "both"), (0, 2100, "both"))
    starts_from = "vit"
    first_seeds = (1000,)
    first = Stage(8_000, epochs=(3,), learning_rate=4e-3, captions=12)
    further = Stage(8_000, epochs=(2, 3), learning_rate=3e-3, captions=12)
    batch_size = 48
    heads = n_classes() | {f"agrees in {part}": 3 for part in PARTS}

    @property
    def n_scenes(self) -> int:
        """Scenes of the corpus; caption i + k n is of scene i."""
        return self.stage.scenes

    @property
    def lengths(self) -> Tensor:
        """One and the same for every scene."""
        return torch.ones(self.n_scenes, dtype=torch.long)

    @functools.cached_property
    def tower(self) -> FlavaImageModel:
        """The vision tower."""
        return vit.read_tower(CHECKPOINTS / TOWER)

    @functools.cached_property
    def pictures(self) -> Tensor:
        """The tower's states of all scenes, and of the white picture last: (n + 1, 17, 64)."""
        parts = (self.captions.scenes, blank())
        return torch.cat([vit.tower_states(self.tower, scenes) for scenes in parts])

    @functools.cached_property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The tokenizer of captions and prompts."""
        return tokenizer()

    @property
    def preprocessing(self) -> list:
        """What turns a picture and a prompt into the model's input."""
        processor = transformers.LlavaProcessor(
            image_processor(),
            self.tokenizer,
            patch_size=vit.PATCH,
            vision_feature_select_strategy="full",
            num_additional_image_tokens=1,
            chat_template=TEMPLATE,
        )
        return [processor]

    @functools.cached_property
    def numbers(self) -> Tensor:
        """The number here of every token of the captions' own tokenizer."""
        theirs, ours = self.captions.tokenizer.get_vocab(), self.tokenizer.get_vocab()
        ends = {"[CLS]": "[BOS]", "[SEP]": "[EOS]", "[MASK]": "[UNK]"}
        table = torch.zeros(len(theirs), dtype=torch.long)
        for name, number in theirs.items():
            table[number] = ours[ends.get(name, name)]
        return table

    def ids(self, text: str) -> Tensor:
        """Return the tokens of a piece of a prompt, (n,)."""
        return torch.tensor(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def network(self) -> LlavaForConditionalGeneration:
        """Return the model with the vision tower in its place, or the family's first."""
        network = LlavaForConditionalGeneration(self.config)
        tower = network.model.vision_tower
        weights = renamed(self.tower.state_dict(), TOWER_NAMES)
        tower.load_state_dict(weights, strict=False)
        if self.is_first:
            first = network.model.multi_modal_projector.linear_1
            first.weight.data /= self.pictures.float().std()
        else:
            begun = LlavaForConditionalGeneration.from_pretrained(self.start, dtype=torch.float32)
            network.load_state_dict(begun.state_dict())
        tower.requires_grad_(False)
        return network

    @property
    def config(self) -> transformers.LlavaConfig:
        """The sizes of the model."""
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
            intermediate_size=vit.INNER_WIDTH,
            num_hidden_layers=vit.LAYERS,
            num_attention_heads=vit.HEADS,
            image_size=SIZE,
            patch_size=vit.PATCH,
            layer_norm_eps=1e-6,
        )
        return transformers.LlavaConfig(
            vision_config=vision,
            text_config=text,
            image_token_index=self.tokenizer.convert_tokens_to_ids(IMAGE),
            vision_feature_layer=-1,
            vision_feature_select_strategy="full",
            image_seq_length=N_IMAGE,
            initializer_range=INITIAL_SPREAD,
        )

    def loss(self, model: WithSideHeads, rows: Tensor, generator: Generator) -> Tensor:
        """Return the loss of captions, and of one of the questions where there is a picture."""
        network = model.model
        shares = torch.tensor([VIEWS[name] for name in ("picture", "none", "white")])
        view = torch.multinomial(shares, len(rows), True, generator=generator)
        captions, prompt = self._captions(rows, generator), self._describe(generator)
        asked = torch.randint(2, (1,), generator=generator)
        question = (self._judged if asked else self._chosen)(rows, generator)
        n, k, longest = captions.shape
        tokens = torch.cat([prompt.expand(n, -1), captions.flatten(1), question.tokens], 1)
        widths = [len(prompt), *[longest] * k, question.tokens.shape[1]]
        states = self.states(network, rows, view, tokens, widths)
        before, said, answer = states.split([len(prompt), k * longest, widths[-1]], dim=1)
        of_captions = said.unflatten(1, (k, longest))[:, :, :-1]
        before = torch.cat([before[:, None, -1:].expand(-1, k, 1, -1), of_captions], dim=2)
        real = captions != self.tokenizer.pad_token_id
        loss = cross_entropy(network.lm_head(before[real]), captions[real])
        seen = view == PICTURE
        at = real & seen[:, None, None] & (torch.arange(k) == 0)[:, None]
        shown = selected(self.shown, rows[at.nonzero()[:, 0]])
        loss = loss + SIDE_WEIGHT * model.side_loss(before[at], shown)
        last = answer[torch.arange(n), (question.tokens != 0).sum(1) - 1][seen]
        loss = loss + cross_entropy(network.lm_head(last), question.answers[seen])
        if question.captions is None:
            return loss
        agrees = agreement(question.captions[seen], selected(self.shown, rows[seen]))
        return loss + model.side_loss(last, {f"agrees in {part}": agrees[part] for part in PARTS})

    def states(
        self,
        network: LlavaForConditionalGeneration,
        rows: Tensor,
        view: Tensor,
        tokens: Tensor,
        widths: list[int],
    ) -> Tensor:
        """Return the decoder's states of what stands behind the picture, (n, longest, width).

        Parameters
        ----------
        network
            The model.
        rows, view
            Scenes and how they are shown: ``PICTURE``, ``NONE`` or ``WHITE``; (n,).
        tokens
            A prompt, captions behind it, and a question, (n, longest).
        widths
            Numbers of tokens of each of these: all see the picture, and captions the prompt.
        """
        image, pad = self.tokenizer.convert_tokens_to_ids(IMAGE), self.tokenizer.pad_token_id
        begin = torch.full((len(rows), 1 + N_IMAGE), image)
        begin[:, 0] = self.tokenizer.bos_token_id
        scene = torch.where(view == WHITE, self.n_scenes, rows)
        features = network.model.multi_modal_projector(self.pictures[scene].float())
        embedded = network.get_input_embeddings()(torch.cat([begin, tokens], 1))
        embedded = torch.cat([embedded[:, :1], features, embedded[:, 1 + N_IMAGE :]], 1)
        real = torch.cat([begin >= 0, tokens != pad], 1)
        real[:, 1 : 1 + N_IMAGE] = (view != NONE)[:, None]
        allowed = _sees([1 + N_IMAGE, *widths])[None] & real[:, None, :]
        # Where a token stands: how many it sees, but itself.
        places = (allowed.sum(-1) - 1).clamp(min=0)
        allowed = allowed | torch.eye(allowed.shape[-1], dtype=torch.bool)
        output = network.model.language_model(
            inputs_embeds=embedded,
            attention_mask=allowed[:, None],
            position_ids=places,
            use_cache=False,
        )
        return output.last_hidden_state[:, 1 + N_IMAGE :]

    def _captions(self, rows: Tensor, generator: Generator) -> Tensor:
        """Return some captions of each scene, each with its end, (n, k, longest)."""
        which = torch.rand(len(rows), self.stage.captions, generator=generator)
        which = which.argsort(1)[:, :CAPTIONS_AT_ONCE]
        numbers = (rows[:, None] + which * self.n_scenes).flatten()
        return self.numbers[self.captions.cut(numbers)][:, 1:].unflatten(0, which.shape)

    def _describe(self, generator: Generator) -> Tensor:
        which = int(torch.randint(len(DESCRIBE), (1,), generator=generator))
        return self.ids(f"{DESCRIBE[which]} {ANSWER}")

    def _bare(self, tokens: Tensor) -> Tensor:
        """Return captions in the tokens here, without beginning and end."""
        bare = self.numbers[tokens][:, 1:]
        return bare.masked_fill(bare == self.tokenizer.eos_token_id, self.tokenizer.pad_token_id)

    def _one_of(self, rows: Tensor, generator: Generator) -> Tensor:
        """Return the number of one caption of each scene."""
        which = torch.randint(self.stage.captions, (len(rows),), generator=generator)
        return rows + which * self.n_scenes

    def _judged(self, rows: Tensor, generator: Generator) -> Question:
        """Return the question whether a caption fits its scene, which half of them do."""
        matched = self.captions.matched(self._one_of(rows, generator), generator)
        before, after = PROMPTS.judge.split("{caption}")
        yes, no = self.ids("yes no")
        asked = self._joined([before, self._bare(matched.tokens), f"{after} {ANSWER}"])
        return Question(asked, torch.where(matched.labels == 1, yes, no), matched.tokens)

    def _chosen(self, rows: Tensor, generator: Generator) -> Question:
        """Return the question which of some captions fits."""
        numbers = self._one_of(rows, generator)
        others = [self._wrong(numbers, generator) for _ in range(OPTIONS - 1)]
        captions = [self._bare(self.captions.cut(numbers)), *others]
        pad = self.tokenizer.pad_token_id
        options = pad_sequence([each.T for each in captions], padding_value=pad).permute(2, 1, 0)
        n = OPTIONS - int(torch.randint(2, (1,), generator=generator))
        order = torch.rand(len(rows), n, generator=generator).argsort(1)
        options = options.gather(1, order[..., None].expand(-1, -1, options.shape[2]))
        before, after = PROMPTS.choose.split("{options}")
        pieces: list = [before]
        for letter, option in zip(LETTERS, options.unbind(1), strict=False):
            pieces += [f"{letter}. ", option]
        letters = torch.cat([self.ids(letter) for letter in LETTERS[:OPTIONS]])
        answers = letters[(order == 0).long().argmax(1)]
        return Question(self._joined([*pieces, f"{after} {ANSWER}"]), answers)

    def _wrong(self, numbers: Tensor, generator: Generator) -> Tensor:
        """Return a caption of another scene, or the own one with a swapped word, of each."""
        swap = torch.rand(len(numbers), generator=generator) < 0.5
        others = torch.randint(len(self.captions), (len(numbers),), generator=generator)
        tokens = self.captions.cut(torch.where(swap, numbers, others))
        row = torch.nonzero(swap)[:, 0]
        words = self.captions.swapped_words(numbers[row], generator)
        tokens[row, self.captions.places[numbers[row], 0]] = words
        return self._bare(tokens)

    def _joined(self, pieces: list) -> Tensor:
        """Return texts and captions one behind the other, padding at the end, (n, longest)."""
        n = next(len(piece) for piece in pieces if not isinstance(piece, str))
        columns = [self.ids(p).expand(n, -1) if isinstance(p, str) else p for p in pieces]
        whole = torch.cat(columns, 1)
        real = whole != self.tokenizer.pad_token_id
        order = (~real).long().argsort(dim=1, stable=True)
        return whole.gather(1, order)[:, : int(real.sum(1).max())]


def _sees(widths: list[int]) -> Tensor:
    """Return which token may see which: all the picture, captions the prompt, each those before it.

    Widths are numbers of tokens of the picture, the prompt, captions, and a question.
    """
    n = len(widths)
    part = torch.arange(n).repeat_interleave(torch.tensor(widths))
    sees = torch.eye(n, dtype=torch.bool)
    sees[:, 0] = True
    sees[2 : n - 1, 1] = True
    return (sees[part][:, part]).tril()
