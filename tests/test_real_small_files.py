"""The small files beside published weights, with the content that they have on the hub.

Those of ``google-bert/bert-base-uncased``: a ``tokenizer_config.json`` of 48 bytes that names no
class, ``vocab.txt`` and ``tokenizer.json``; older repositories have ``vocab.txt`` alone. Only the
vocabulary is of these tests. The image settings of CLIP, ViLT and FLAVA are of the time before
transformers called them image processors, when a size was one number.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from support import families
from support.small_models import SPECIALS, VOCABULARY
from tokenizers import BertWordPieceTokenizer

from biaslib.models import reading
from biaslib.models.pixel_model import read_image_processor

SETTINGS = '{"do_lower_case": true, "model_max_length": 512}'
TEXT = "The Woman is carrying a [MASK]."
PIECES = ["[CLS]", "the", "woman", "is", "car", "##ry", "##ing", "a", "[MASK]", ".", "[SEP]"]


def write_settings(folder):
    (folder / "tokenizer_config.json").write_text(SETTINGS)


def write_vocabulary(folder):
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")


def write_whole(folder):
    """Write ``tokenizer.json`` with the library that wrote the hub's."""
    numbers = {token: number for number, token in enumerate(VOCABULARY)}
    whole = BertWordPieceTokenizer(numbers, lowercase=True)
    whole.add_special_tokens(SPECIALS)
    whole.save(str(folder / "tokenizer.json"))


LAYOUTS = {
    "today's": [write_settings, write_vocabulary, write_whole],
    "an older one": [write_settings, write_vocabulary],
    "the oldest": [write_vocabulary],
}

OF_BERT = ("bert", *families.OF_REGIONS, "albef")


def tokenizer_beside(family, folder):
    """Return the tokenizer that a family's loader reads beside weights that bring none."""
    if family == "vilt-itm":
        return reading.read_tokenizer(folder, of_bert=True)
    network, _ = families.BUILDERS[family]()
    network.save_pretrained(folder)
    if family == "bert":
        return reading.read_tokenizer(folder)
    entry = SimpleNamespace(name=family, source="")
    return reading.read_network_and_tokenizer(type(network), entry, folder).tokenizer


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("family", [*OF_BERT, "vilt-itm"])
def test_berts_own_files_give_berts_word_pieces(family, layout, tmp_path):
    for write in LAYOUTS[layout]:
        write(tmp_path)
    tokenizer = tokenizer_beside(family, tmp_path)
    ids = tokenizer(TEXT)["input_ids"]
    assert [VOCABULARY[each] for each in ids] == PIECES
    assert [VOCABULARY[each] for each in (tokenizer.pad_token_id, tokenizer.unk_token_id)] == [
        "[PAD]",
        "[UNK]",
    ]
    assert tokenizer.is_fast
    assert tokenizer(TEXT, return_offsets_mapping=True)["offset_mapping"][4] == (13, 16)


CLIP_MEANS = [0.48145466, 0.4578275, 0.40821073]
CLIP_STDS = [0.26862954, 0.26130258, 0.27577711]
HALF = [0.5, 0.5, 0.5]
GOLDEN = Path(__file__).parent / "golden"
OLD_IMAGE_SETTINGS = json.loads((GOLDEN / "old_image_settings.json").read_text("utf-8"))


def by_hand(family, picture):
    """Return a picture's pixels as the model's paper and code prepare them, with Pillow alone."""
    image, means, stds = Image.fromarray(picture), CLIP_MEANS, CLIP_STDS
    if family == "clip":
        factor = 224 / min(image.size)
        image = image.resize([int(side * factor) for side in image.size], Image.BICUBIC)
        left, top = ((side - 224) // 2 for side in image.size)
        image = image.crop((left, top, left + 224, top + 224))
    elif family == "vilt":
        factor = min(384 / min(image.size), int(1333 / 800 * 384) / max(image.size))
        sides = [int(side * factor + 0.5) // 32 * 32 for side in image.size]
        image, means, stds = image.resize(sides, Image.BICUBIC), HALF, HALF
    else:
        image = image.resize((224, 224), Image.BICUBIC)
    return ((np.asarray(image) / 255 - means) / stds).transpose(2, 0, 1)


@pytest.mark.parametrize("family", OLD_IMAGE_SETTINGS)
def test_old_image_settings_prepare_pictures_as_they_always_did(family, tmp_path):
    written = json.dumps(OLD_IMAGE_SETTINGS[family])
    (tmp_path / "preprocessor_config.json").write_text(written)
    picture = np.random.default_rng(0).integers(0, 256, (60, 90, 3), np.uint8)
    pixels = read_image_processor(tmp_path)(images=[picture], return_tensors="np")["pixel_values"]
    expected = by_hand(family, picture)
    assert pixels[0].shape == expected.shape
    np.testing.assert_allclose(pixels[0], expected, atol=1e-4)
