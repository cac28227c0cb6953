"""What models of text and image share: places of words, hiding, batches, bad input."""

import numpy as np
import pytest
import torch
from support import small_models

from biaslib.models.fusion import FusionModel, Mask, Output
from biaslib.models.tokens import tokenized

TOKENIZER = small_models.tokenizer()
MASK = TOKENIZER.mask_token_id
SIZE = len(small_models.VOCABULARY)


def number(*tokens):
    return [TOKENIZER.convert_tokens_to_ids(token) for token in tokens]


class Config:
    """As much of a configuration as the base class reads."""

    model_type = "listed"
    max_position_embeddings = 12

    def get_text_config(self):
        return self


class Network(torch.nn.Module):
    config = Config()


class Numbers(list):
    """Images, of which several are asked for at once; the asking is noted."""

    def __init__(self, images, asked):
        super().__init__(images)
        self.asked = asked

    def __getitem__(self, rows):
        self.asked.append(rows.tolist())
        return [super(Numbers, self).__getitem__(row) for row in rows]


class Listed(FusionModel):
    """A model whose states can be computed by hand.

    The state of a token is its number, its place, the text's length and the image's number; the
    logits of words are linear in it. The image is a number.
    """

    def __init__(self):
        super().__init__(Network(), TOKENIZER, "listed", "by hand", "cpu")
        self.batches = []

    def prepare(self, images):
        return None if images is None else Numbers(images, self.batches)

    def visual(self, prepared, rows, mask):
        numbers = [0.0] * len(rows) if prepared is None else [prepared[row] for row in rows]
        numbers = [-n if mask is not None and mask.persons else n for n in numbers]
        return {"image": torch.tensor(numbers, dtype=torch.float32)}

    def forward(self, tokens, visual):
        ids = tokens["input_ids"].float()
        lengths = tokens["attention_mask"].sum(1, keepdim=True)
        image = visual["image"][:, None].expand_as(ids)
        place = torch.arange(ids.shape[1]).expand_as(ids)
        states = torch.stack([ids, place, lengths.expand_as(ids), image], dim=-1)
        fit = ids.sum(1) * visual["image"]
        return Output(states.float(), states[:, 0, 3:].float(), fit)

    def word_logits(self, states):
        scales = torch.linspace(0, 0.01, SIZE)
        return states.sum(1, keepdim=True) * scales


@pytest.fixture
def model():
    return Listed()


# Tokens


@pytest.mark.parametrize(
    ("text", "word", "place"),
    [
        ("the woman is carrying a nurse.", "carrying", 4),
        ("The WOMAN is old.", "woman", 2),
        ("woman is woman", "woman", 1),
        ("a man is a woman.", "man", 2),
        ("the woman is a nurse.", "nurse", 5),
    ],
)
def test_a_word_is_read_at_its_first_piece_where_it_first_stands(text, word, place):
    (tokens,) = tokenized(TOKENIZER, [text])
    assert tokens.place_of(word) == place


def test_every_piece_of_every_contextual_word_is_hidden():
    (tokens,) = tokenized(TOKENIZER, ["The woman is carrying a nurse the Woman."])
    hidden = tokens.hiding(["woman", "carrying", "pilot"], MASK)
    expected = ["[CLS]", "the", "[MASK]", "is", "[MASK]", "[MASK]", "[MASK]", "a", "nurse"]
    assert list(hidden.ids[:9]) == number(*expected)
    assert hidden.ids.count(MASK) == 5
    assert hidden.place_of("nurse") == 8


def test_a_text_without_contextual_words_stays_as_it_is():
    (tokens,) = tokenized(TOKENIZER, ["the woman is old."])
    for words in (["pilot"], ["wo"], []):
        assert tokens.hiding(words, MASK) == tokens


def test_a_word_within_a_longer_one_of_the_list_does_not_hide_it_in_part():
    (tokens,) = tokenized(TOKENIZER, ["the old man is here."])
    hidden = tokens.hiding(["man", "old man"], MASK)
    assert list(hidden.ids[1:5]) == number("the", "[MASK]", "[MASK]", "is")


# Embeddings


def test_masks_move_the_place_that_is_read(model):
    texts = ["the woman is carrying a nurse."]
    options = {"level": "contextual", "words": ["nurse"], "images": [3.0]}
    mask = Mask(words=["carrying"], persons=True)
    assert model.embed(texts, mask=mask, **options).tolist() == [[*number("nurse"), 8, 11, -3]]
    mask = Mask(words=["nurse"])
    assert model.embed(texts, mask=mask, **options).tolist() == [[MASK, 8, 11, 3]]


# Masked words


def by_hand(ids, place, image):
    """Return the log-softmax of the model above at one place."""
    total = ids[place] + place + len(ids) + image
    logits = total * torch.linspace(0, 0.01, SIZE).double()
    return logits.log_softmax(-1)


def test_words_of_several_pieces_are_scored_by_the_chain_or_the_mean(model):
    text, start = "the [MASK].", number("[CLS]", "the")
    end = number(".", "[SEP]")
    pieces = number("car", "##ry", "##ing")
    steps = [
        by_hand([*start, *pieces[:n], *[MASK] * (3 - n), *end], 2 + n, 2.0)[pieces[n]]
        for n in range(3)
    ]
    chain = model.mask_log_prob([text], ["carrying", "nurse"], [2.0])
    (one,) = by_hand([*start, MASK, *end], 2, 2.0)[number("nurse")]
    np.testing.assert_allclose(chain, [[sum(steps), one]], rtol=1e-6)
    together = [by_hand([*start, *[MASK] * 3, *end], 2 + n, 2.0)[pieces[n]] for n in range(3)]
    mean = model.mask_log_prob([text], ["carrying"], [2.0], pieces="mean")
    np.testing.assert_allclose(mean, [[sum(together) / 3]], rtol=1e-6)


# Batches


def test_an_image_is_prepared_once_for_all_its_captions(model):
    """The longest captions first, and a batch ends with the last caption of an image."""
    images = [1.0, 2.0, 3.0]
    captions = [["the man.", "a"], ["old", "the woman is old."], ["a", "a"]]
    for size, batches in ((5, [[1, 0], [2]]), (1, [[1], [1], [0], [0], [2], [2]])):
        model.batch_size, model.batches = size, []
        found = model.match(images, captions)
        assert model.batches == batches
        for row, image in enumerate(images):
            assert np.array_equal(found[row], model.match([image], captions[row : row + 1])[0])


# Bad input
