"""VisualBERT, LXMERT and ViLT in plain torch, from their papers and original file layouts.

Written without transformers, to compare it with: each takes tensors under the names that the
authors' files use. ``*_shapes`` lists those names. Every head of attention is 64 numbers wide.
"""

from typing import NamedTuple

import torch
from torch.nn import functional


class Sizes(NamedTuple):
    """Sizes of a network: layers of one stream, or LXMERT's of language, across and of vision."""

    width: int = 128
    feed: int = 160
    vocabulary: int = 50
    positions: int = 24
    features: int = 20
    patch: int = 4
    grid: int = 3
    n_layers: int = 2
    streams: tuple[int, int, int] = (2, 2, 1)


SMALL = Sizes()
FULL = Sizes(768, 3072, 30522, 512, 2048, 32, 12, 12, (9, 5, 5))
"""Those of the published models; ViLT has 40 positions instead of 512."""


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


def attention_shapes(inner, output, width):
    shapes = {}
    for part in ("query", "key", "value"):
        shapes |= linear(f"{inner}.{part}", width, width)
    return shapes | linear(f"{output}.dense", width, width) | norm(f"{output}.LayerNorm", width)


def feed_shapes(inner, output, sizes):
    shapes = linear(f"{inner}.dense", sizes.feed, sizes.width)
    shapes |= linear(f"{output}.dense", sizes.width, sizes.feed)
    return shapes | norm(f"{output}.LayerNorm", sizes.width)


def layer_shapes(name, sizes):
    shapes = attention_shapes(f"{name}.attention.self", f"{name}.attention.output", sizes.width)
    return shapes | feed_shapes(f"{name}.intermediate", f"{name}.output", sizes)


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


def attention(weights, inner, output, x, context, real):
    parts = [mapped(weights, f"{inner}.query", x)]
    parts += [mapped(weights, f"{inner}.{part}", context) for part in ("key", "value")]
    found = mapped(weights, f"{output}.dense", attended(*parts, real))
    return normed(weights, f"{output}.LayerNorm", found + x)


def feed(weights, inner, output, x):
    found = mapped(weights, f"{output}.dense", gelu(mapped(weights, f"{inner}.dense", x)))
    return normed(weights, f"{output}.LayerNorm", found + x)


def layer(weights, name, x, real):
    """Run a layer of BERT: the norm comes after attention and after the feed-forward part."""
    inner, output = f"{name}.attention.self", f"{name}.attention.output"
    x = attention(weights, inner, output, x, x, real)
    return feed(weights, f"{name}.intermediate", f"{name}.output", x)


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


# VisualBERT


def visualbert_shapes(sizes=SMALL):
    embeddings = "bert.bert.embeddings"
    shapes = word_embedding_shapes(embeddings, sizes) | {
        f"{embeddings}.token_type_embeddings_visual.weight": (2, sizes.width),
        f"{embeddings}.position_embeddings_visual.weight": (sizes.positions, sizes.width),
        **linear(f"{embeddings}.projection", sizes.width, sizes.features),
    }
    for number in range(sizes.n_layers):
        shapes |= layer_shapes(f"bert.bert.encoder.layer.{number}", sizes)
    shapes |= linear("bert.bert.pooler.dense", sizes.width, sizes.width)
    shapes |= word_head_shapes("bert.cls.predictions", sizes)
    return shapes | linear("bert.cls.seq_relationship", 2, sizes.width)


def visualbert_weights(sizes=SMALL):
    weights = random_weights(visualbert_shapes(sizes))
    words = weights["bert.bert.embeddings.word_embeddings.weight"]
    return weights | {"bert.cls.predictions.decoder.weight": words}


def visualbert(weights, ids, text_real, features, image_real, sizes=SMALL):
    """Return embeddings, last states, word logits and matching logits; regions have type 0."""
    name = "bert.bert.embeddings"
    regions = mapped(weights, f"{name}.projection", features)
    regions = regions + weights[f"{name}.position_embeddings_visual.weight"][0]
    regions = regions + weights[f"{name}.token_type_embeddings_visual.weight"][0]
    x = torch.cat([summed_words(weights, name, ids), regions], dim=1)
    embedded = x = normed(weights, f"{name}.LayerNorm", x)
    real = torch.cat([text_real, image_real], dim=1)
    for number in range(sizes.n_layers):
        x = layer(weights, f"bert.bert.encoder.layer.{number}", x, real)
    words = word_logits(weights, "bert.cls.predictions", x[:, : ids.shape[1]])
    pair = pooled(weights, "bert.bert.pooler", x)
    return embedded, x, words, mapped(weights, "bert.cls.seq_relationship", pair)


# LXMERT


def lxmert_shapes(sizes=SMALL):
    encoder, width = "bert.encoder", sizes.width
    n_language, n_cross, n_vision = sizes.streams
    shapes = word_embedding_shapes("bert.embeddings", sizes)
    shapes |= linear(f"{encoder}.visn_fc.visn_fc", width, sizes.features)
    shapes |= norm(f"{encoder}.visn_fc.visn_layer_norm", width)
    shapes |= linear(f"{encoder}.visn_fc.box_fc", width, 4)
    shapes |= norm(f"{encoder}.visn_fc.box_layer_norm", width)
    for number in range(n_language):
        shapes |= layer_shapes(f"{encoder}.layer.{number}", sizes)
    for number in range(n_cross):
        shapes |= cross_layer_shapes(f"{encoder}.x_layers.{number}", sizes)
    for number in range(n_vision):
        shapes |= layer_shapes(f"{encoder}.r_layers.{number}", sizes)
    shapes |= linear("bert.pooler.dense", width, width) | word_head_shapes("cls.predictions", sizes)
    shapes |= linear("cls.seq_relationship", 2, width)
    head = "obj_predict_head"
    shapes |= linear(f"{head}.transform.dense", width, width) | norm(
        f"{head}.transform.LayerNorm", width
    )
    for name, size in {"obj": 9, "attr": 6, "feat": sizes.features}.items():
        shapes |= linear(f"{head}.decoder_dict.{name}", size, width)
    shapes |= linear("answer_head.logit_fc.0", 2 * width, width)
    shapes |= norm("answer_head.logit_fc.2", 2 * width)
    return shapes | linear("answer_head.logit_fc.3", 7, 2 * width)


def cross_layer_shapes(name, sizes):
    both = f"{name}.visual_attention"
    shapes = attention_shapes(f"{both}.att", f"{both}.output", sizes.width)
    for stream in ("lang", "visn"):
        own = f"{name}.{stream}_self_att"
        shapes |= attention_shapes(f"{own}.self", f"{own}.output", sizes.width)
        shapes |= feed_shapes(f"{name}.{stream}_inter", f"{name}.{stream}_output", sizes)
    return shapes


def lxmert_weights(sizes=SMALL):
    weights = random_weights(lxmert_shapes(sizes))
    return weights | {
        "cls.predictions.decoder.weight": weights["bert.embeddings.word_embeddings.weight"]
    }


def lxmert(weights, ids, text_real, features, boxes, image_real, sizes=SMALL):
    """Return language states, vision states, word logits and matching logits."""
    n_language, n_cross, n_vision = sizes.streams
    text = normed(
        weights, "bert.embeddings.LayerNorm", summed_words(weights, "bert.embeddings", ids)
    )
    name = "bert.encoder.visn_fc"
    seen = normed(weights, f"{name}.visn_layer_norm", mapped(weights, f"{name}.visn_fc", features))
    placed = normed(weights, f"{name}.box_layer_norm", mapped(weights, f"{name}.box_fc", boxes))
    image = (seen + placed) / 2
    for number in range(n_language):
        text = layer(weights, f"bert.encoder.layer.{number}", text, text_real)
    for number in range(n_vision):
        image = layer(weights, f"bert.encoder.r_layers.{number}", image, image_real)
    for number in range(n_cross):
        name = f"bert.encoder.x_layers.{number}"
        text, image = cross_layer(weights, name, text, text_real, image, image_real)
    words = word_logits(weights, "cls.predictions", text)
    match = mapped(weights, "cls.seq_relationship", pooled(weights, "bert.pooler", text))
    return text, image, words, match


def cross_layer(weights, name, text, text_real, image, image_real):
    both = (f"{name}.visual_attention.att", f"{name}.visual_attention.output")
    new_text = attention(weights, *both, text, image, image_real)
    new_image = attention(weights, *both, image, text, text_real)
    found = []
    for stream, x, real in (("lang", new_text, text_real), ("visn", new_image, image_real)):
        own = f"{name}.{stream}_self_att"
        x = attention(weights, f"{own}.self", f"{own}.output", x, x, real)
        found.append(feed(weights, f"{name}.{stream}_inter", f"{name}.{stream}_output", x))
    return found


# ViLT


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
