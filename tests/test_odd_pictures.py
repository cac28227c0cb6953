"""Odd pictures, from a file's bytes to what each family's own image processor makes of them.

What is seen follows from how a file was made: by Pillow, or by hand from the tags of its standard.
"""

import io
import struct
import zlib

import numpy as np
import open_clip
import pytest
import torch
import transformers
from PIL import Image
from support import families, generative_models

from biaslib import models
from biaslib.pictures.images import ImageError, pictures
from biaslib.pictures.transforms import PIXELS, image_batches, of_processor

PHOTO = np.random.default_rng(5).integers(0, 256, (5, 9, 3), np.uint8).repeat(6, 0).repeat(6, 1)
GREY, UPSIDE = PHOTO[..., 0], PHOTO[::-1, :, 0]
DEEP = GREY * np.uint16(257)
FIRST = {
    1: "top left", 2: "top right", 3: "bottom right", 4: "bottom left",
    5: "left top", 6: "right top", 7: "right bottom", 8: "left bottom",
}  # fmt: skip
"""Where a file's first row and first column are seen (TIFF 6.0 and EXIF, tag 274)."""

STRIPS = [(1, 60), (2, 60), (3, 60), (4, 60), (60, 1), (60, 2), (60, 3), (1, 1), (3, 3), (7, 90)]


def lying(seen, orientation):
    """Return the rows of a file that is seen upright by its tag."""
    row, column = FIRST[orientation].split()
    rows = seen.swapaxes(0, 1) if row in ("left", "right") else seen
    rows = rows[::-1] if row in ("bottom", "right") else rows
    return np.ascontiguousarray(rows[:, ::-1] if column in ("bottom", "right") else rows)


def file(image, kind="PNG", **options):
    """Return what Pillow writes."""
    stream = io.BytesIO()
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    image.save(stream, kind, **options)
    return stream.getvalue()


def png(rows, width, bits, colour, clear=b""):
    """Return a PNG of a depth that Pillow does not write, with a transparent colour."""
    head = struct.pack(">IIBBBBB", width, len(rows), bits, colour, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    chunks = [b"IHDR" + head, b"tRNS" + clear, b"IDAT" + data, b"IEND"]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(each) - 4) + each + struct.pack(">I", zlib.crc32(each))
        for each in chunks
        if each != b"tRNS"
    )


def tiff(data, width, bits, photometric=1):
    """Return an uncompressed TIFF of grey."""
    height = len(data) * 8 // (width * bits)
    tags = {256: width, 257: height, 258: bits, 259: 1, 262: photometric, 273: 8, 277: 1}
    tags |= {278: height, 279: len(data)}
    rows = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    first = b"II*\0" + struct.pack("<I", 8 + len(data)) + data
    return first + struct.pack("<H", len(tags)) + rows + b"\0" * 4


def over_white(pixels, alpha):
    alpha = np.broadcast_to(alpha, pixels.shape[:2])
    alpha = alpha[..., None] if pixels.ndim == 3 else alpha
    return (pixels * (alpha / 255) + 255 - alpha).round()


def odd_pictures():
    """Return 40 files' bytes and the pixels that are seen, (h, w) or (h, w, 3)."""
    image, grey = Image.fromarray(PHOTO), Image.fromarray(GREY)
    clear, palette, exif, lines = image.copy(), image.quantize(9), Image.Exif(), np.arange(16)
    clear.putalpha(Image.fromarray(UPSIDE))
    exif[274] = 7
    colours, bits = np.array(palette.convert("RGB")), grey.convert("1")
    photos = file(image, "JPEG"), file(image.convert("CMYK"), "JPEG")
    decoded = [np.array(Image.open(io.BytesIO(each)).convert("RGB")) for each in photos]
    turned = file(image, "JPEG", exif=exif)
    moving = {"save_all": True, "append_images": [Image.new("RGB", image.size, "red")]}
    one = (PHOTO[0, 0] == PHOTO).all(-1)
    big_endian = [row.astype(">u2").tobytes() for row in PHOTO * np.uint16(257)]
    with_alpha = [row.astype(">u2").tobytes() for row in np.dstack([DEEP, DEEP[::-1]])]
    deep = [row.astype(">u2").tobytes() for row in DEEP]
    key = struct.pack(">3H", *(int(colour) * 257 for colour in PHOTO[0, 0]))
    first_clear = np.where(GREY[0, 0] == GREY, 255, GREY)
    strips = [np.random.default_rng(0).integers(0, 256, (*s, 3), np.uint8) for s in STRIPS]
    low = {"tiffinfo": {262: 0}}
    return [
        *((file(strip), strip) for strip in strips),
        (file(bits), np.array(bits) * 255),
        (png([b"\x1b"] * 4, 4, 2, 0, b"\0\1"), np.array([[0, 255, 170, 255]] * 4)),
        (png([bytes((lines[::2] * 16 + lines[1::2]).tolist())], 16, 4, 0, b"\0\3"),
         np.where(lines == 3, 255, lines * 17)[None]),
        (file(grey), GREY),
        (file(grey, transparency=int(GREY[0, 0])), first_clear),
        (file(DEEP), GREY),
        (png(deep, 54, 16, 0, struct.pack(">H", DEEP[0, 0])), first_clear),
        (file(DEEP // 16), (DEEP // 16 / 257).round()),
        (tiff(bytes([0x00, 0x03, 0xE8, 0xBB, 0x8F, 0xFF]) * 8, 4, 12),  # 0, 1000, 3000, 4095
         np.array([[0, 62, 187, 255]] * 8)),
        (png(big_endian, 54, 16, 2, key), over_white(PHOTO, np.where(one, 0, 255))),
        (png(with_alpha, 54, 16, 4), over_white(GREY, UPSIDE)),
        (file(palette), colours),
        (file(palette, transparency=0), over_white(colours, np.array(palette).astype(bool) * 255)),
        (file(clear), over_white(PHOTO, UPSIDE)),
        (file(clear.convert("LA")), over_white(np.array(clear.convert("L")), UPSIDE)),
        (file(lying(PHOTO, 7), exif=exif), PHOTO),
        (turned, decoded[0][::-1, ::-1].swapaxes(0, 1)),
        (photos[1], decoded[1]),
        (file(palette, "GIF", **moving), colours),
        (file(image, "WEBP", lossless=True, **moving), PHOTO),
        (file(image, **moving), PHOTO),
        (file(image, "TIFF", **moving), PHOTO),
        (file(image, "BMP"), PHOTO),
        (file(image, "PPM"), PHOTO),
        (file(DEEP, "JPEG2000"), GREY),
        (tiff(b"\x5a" * 8, 8, 1, 0), np.array([[255, 0, 255, 0, 0, 255, 0, 255]] * 8)),
        (file(DEEP, "TIFF", **low), 255 - GREY),
        (file(DEEP, "TIFF", compression="tiff_lzw", **low), 255 - GREY),
        (file(lying(GREY, 6), "TIFF", tiffinfo={274: 6}), GREY),
        (file(lying(DEEP, 8), "TIFF", tiffinfo={274: 8}), GREY),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """Files without an ending, and what is seen of each as an image of Pillow's."""
    folder, found = tmp_path_factory.mktemp("odd"), {}
    for number, (content, seen) in enumerate(odd_pictures()):
        (folder / f"{number}").write_bytes(content)
        seen = seen if seen.ndim == 3 else np.stack([seen] * 3, axis=2)
        found[folder / f"{number}"] = Image.fromarray(seen.astype(np.uint8))
    assert len(found) == 40
    return found


def test_odd_pictures_are_seen_as_they_were_made(odd):
    for path, seen in odd.items():
        with Image.open(path) as opened:
            for pixels in pictures([path, opened]):
                np.testing.assert_allclose(pixels, np.array(seen), atol=1, err_msg=path.name)


@pytest.mark.parametrize("compression", ["raw", "tiff_lzw"])
@pytest.mark.parametrize("mode", ["1", "L", "I;16", "P", "RGB", "RGBA", "CMYK"])
def test_a_tiff_is_turned_by_its_tag(tmp_path, mode, compression):
    """Pillow would map uncompressed grey, palettes, RGBA and CMYK by their name, and scramble."""
    seen = Image.fromarray(DEEP) if mode == "I;16" else Image.fromarray(PHOTO).convert(mode)
    wanted = GREY if mode == "I;16" else np.array(seen.convert("RGB"))[..., 0]
    path = tmp_path / "a.tif"
    for number in FIRST:
        rows = lying(np.array(seen), number)
        stored = Image.fromarray(rows)
        if mode in ("P", "CMYK"):
            stored = Image.frombytes(mode, rows.shape[1::-1], rows.tobytes())
        if mode == "P":
            stored.putpalette(seen.getpalette())
        stored.save(path, tiffinfo={274: number}, compression=compression)
        with Image.open(path) as opened:
            for found in pictures([path, opened]):
                assert np.array_equal(found[..., 0], wanted)


def of_family(name, folder):
    """Return what a model's network is given of a file, and its library's own processor."""
    if name in generative_models.BUILDERS:
        model, given = models.load(str(generative_models.build(name, folder))), {}
        model.network.register_forward_pre_hook(
            lambda _, args, named: given.update(named), with_kwargs=True
        )
        direct = type(model.processor.image_processor).from_pretrained(folder)
        return lambda path: model.log_likelihood([path], [["a nurse"]]) and given, direct
    direct = transformers.BlipImageProcessorPil(**families.SQUARE)
    transform = of_processor(direct)
    if name != "blip":
        transform = models.load(str(families.save(name, folder))).transform
    if name == "open-clip":
        steps = open_clip.create_model_from_pretrained(f"local-dir:{folder}")[1]
        direct = lambda images, **_: {PIXELS: steps(images[0])[None]}  # noqa: E731
    elif name != "blip":
        direct = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    only = [np.array([0])]
    return lambda path: next(image_batches(pictures([path]), transform, only, "cpu")).of(
        [0]
    ), direct


NAMES = (*families.DUAL, "vilt", "flava", "blip", "open-clip", *generative_models.BUILDERS)


@pytest.mark.parametrize("name", NAMES)
def test_a_network_is_given_what_its_own_processor_makes_of_the_image(tmp_path, odd, name):
    given, direct = of_family(name, tmp_path)
    for path, seen in odd.items():
        try:
            wanted = direct(images=[seen], return_tensors="pt")
        except ValueError:  # ViLT's makes a side of no pixels of a strip
            with pytest.raises(ImageError):
                given(path)
            continue
        found = given(path)
        for key in {PIXELS, *found} & {*wanted}:
            torch.testing.assert_close(found[key].float(), wanted[key].float(), atol=0.02, rtol=0)
