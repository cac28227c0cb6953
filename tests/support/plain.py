"""ViLT in plain torch, from its paper and its authors' file layout.

Written without transformers, to compare it with: tensors have the names of the authors' files.
Every head of attention is 64 numbers wide.
"""

from typing import NamedTuple

import torch
from torch.nn import functional


class Sizes(NamedTuple):
    """Sizes of a network."""

    width: int = 128
    feed: int = 160
    vocabulary: int = 50
    positions: int = 24
    patch: int = 4
    grid: int = 3
    n_layers: int = 2


SMALL = Sizes()


def random_weights(shapes: dict[str, tuple[int, ...]], seed: int = 0) -> dict[str, torch.Tensor]:
    """Return random tensors; scales of layer norms are around one.

    Matrices are such that states neither vanish nor drown in one another.
    """
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in shapes.items():
        noise = torch.randn(shape, generator=generator)
        scales = len(shape) == 1 and name.endswith("weight")
        weights[name] = 1 + 0.2 * noise if scales else noise * 1.5 / max(100, shape[-1]) ** 0.5
    return weights


def linear(name, to, of):
    return {f"{name}.weight": (to, of), f"{name}.bias": (to,)}


def norm(name, width):
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def word_embedding_shapes(name, sizes):
    return {
        f"{name}.word_embeddings.weight": (sizes.vocabulary, sizes.width),
        f"{name}.position_embeddings.weight": (sizes.positions, sizes.width),
        f"{name}.token_type_embeddings.weight": (2, sizes.width),
        **norm(f"{name}.LayerNorm", sizes.width),
    }


def word_head_shapes(name, sizes):
    return {
        f"{name}.bias": (sizes.vocabulary,),
        **linear(f"{name}.transform.dense", sizes.width, sizes.width),
        **norm(f"{name}.transform.LayerNorm", sizes.width),
        f"{name}.decoder.weight": (sizes.vocabulary, sizes.width),
    }


def normed(weights, name, x, eps=1e-12):
    scale, shift = weights[f"{name}.weight"], weights[f"{name}.bias"]
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.pow(2).mean(-1, keepdim=True) + eps).sqrt() * scale + shift


def mapped(weights, name, x):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def gelu(x):
    return x / 2 * (1 + torch.erf(x / 2**0.5))


def attended(query, key, value, real):
    """Return what each query takes from the values of the real keys, (n, queries, width)."""
    split = [x.unflatten(-1, (-1, 64)).transpose(1, 2) for x in (query, key, value)]
    scores = split[0] @ split[1].mT / 8 + (1 - real[:, None, None, :].float()) * -10000
    return (scores.softmax(-1) @ split[2]).transpose(1, 2).flatten(2)


def summed_words(weights, name, ids):
    words = weights[f"{name}.word_embeddings.weight"][ids]
    positions = weights[f"{name}.position_embeddings.weight"][: ids.shape[1]]
    return words + positions + weights[f"{name}.token_type_embeddings.weight"][0]


def word_logits(weights, name, x):
    x = gelu(mapped(weights, f"{name}.transform.dense", x))
    x = normed(weights, f"{name}.transform.LayerNorm", x)
    return x @ weights[f"{name}.decoder.weight"].T + weights[f"{name}.bias"]


def pooled(weights, name, x):
    return mapped(weights, f"{name}.dense", x[:, 0]).tanh()


def vilt_shapes(sizes=SMALL):
    width = sizes.width
    shapes = word_embedding_shapes("text_embeddings", sizes) | {
        "token_type_embeddings.weight": (2, width),
        "transformer.cls_token": (1, 1, width),
        "transformer.pos_embed": (1, sizes.grid**2 + 1, width),
        "transformer.patch_embed.proj.weight": (width, 3, sizes.patch, sizes.patch),
        "transformer.patch_embed.proj.bias": (width,),
    }
    for number in range(sizes.n_layers):
        name = f"transformer.blocks.{number}"
        shapes |= norm(f"{name}.norm1", width) | norm(f"{name}.norm2", width)
        shapes |= linear(f"{name}.attn.qkv", 3 * width, width)
        shapes |= linear(f"{name}.attn.proj", width, width)
        shapes |= linear(f"{name}.mlp.fc1", sizes.feed, width)
        shapes |= linear(f"{name}.mlp.fc2", width, sizes.feed)
    shapes |= norm("transformer.norm", width) | linear("pooler.dense", width, width)
    return shapes | word_head_shapes("mlm_score", sizes) | linear("itm_score.fc", 2, width)


STREAM = ("token_type_embeddings.weight", "transformer.cls_token", "transformer.pos_embed")


def vilt_weights(sizes=SMALL):
    """Return random tensors, those that write states so small that an epsilon of 1e-6 is seen."""
    weights = random_weights(vilt_shapes(sizes))
    for name in weights:
        writes = ("LayerNorm", "patch_embed", "attn.proj", "mlp.fc2")
        before_blocks = not name.startswith("mlm_score")
        if name in STREAM or (before_blocks and any(part in name for part in writes)):
            weights[name] = weights[name] / 100
    return weights


def vilt(weights, ids, text_real, pixels, shown, sizes=SMALL):
    """Return last states of the text, word logits and matching logits.

    Layer norms come before attention and before the feed-forward part, with an epsilon of 1e-6;
    those of the words' embeddings and head have 1e-12. ``shown`` gives each picture's rows and
    columns of patches, at the upper left.
    """
    kinds = weights["token_type_embeddings.weight"]
    text = normed(
        weights, "text_embeddings.LayerNorm", summed_words(weights, "text_embeddings", ids)
    )
    image, image_real = vilt_patches(weights, pixels, shown)
    x = torch.cat([text + kinds[0], image + kinds[1]], dim=1)
    real = torch.cat([text_real, image_real], dim=1)
    for number in range(sizes.n_layers):
        x = vilt_block(weights, f"transformer.blocks.{number}", x, real)
    x = normed(weights, "transformer.norm", x, 1e-6)
    words = word_logits(weights, "mlm_score", x[:, : ids.shape[1]])
    match = mapped(weights, "itm_score.fc", pooled(weights, "pooler", x))
    return x[:, : ids.shape[1]], words, match


def vilt_block(weights, name, x, real):
    split = mapped(weights, f"{name}.attn.qkv", normed(weights, f"{name}.norm1", x, 1e-6))
    x = x + mapped(weights, f"{name}.attn.proj", attended(*split.chunk(3, dim=-1), real))
    wide = gelu(mapped(weights, f"{name}.mlp.fc1", normed(weights, f"{name}.norm2", x, 1e-6)))
    return x + mapped(weights, f"{name}.mlp.fc2", wide)


def vilt_patches(weights, pixels, shown):
    """Return the tokens of pictures, (n, 1 + patches, width), and which are of the picture."""
    n, _, height, width = pixels.shape
    kernel = weights["transformer.patch_embed.proj.weight"]
    patch = kernel.shape[-1]
    rows, columns = height // patch, width // patch
    cut = pixels.reshape(n, 3, rows, patch, columns, patch).permute(0, 2, 4, 1, 3, 5)
    grid = cut.reshape(n, rows, columns, -1) @ kernel.flatten(1).T
    grid = grid + weights["transformer.patch_embed.proj.bias"]
    places = weights["transformer.pos_embed"]
    side = round((places.shape[1] - 1) ** 0.5)
    square = places[:, 1:].mT.unflatten(2, (side, side))
    real = torch.zeros(n, rows, columns)
    for picture, (down, across) in enumerate(shown):
        stretched = functional.interpolate(
            square, (down, across), mode="bilinear", align_corners=True
        )
        grid[picture, :down, :across] += stretched[0].permute(1, 2, 0)
        real[picture, :down, :across] = 1
    whole = (weights["transformer.cls_token"] + places[:, :1]).expand(n, -1, -1)
    tokens = torch.cat([whole, grid.flatten(1, 2)], dim=1)
    return tokens, torch.cat([torch.ones(n, 1), real.flatten(1)], dim=1)
