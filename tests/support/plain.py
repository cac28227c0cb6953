"""VisualBERT, LXMERT and ViLT in plain torch, from their papers and original file layouts.

Written without transformers, to compare it with: each takes tensors under the names that the
authors' files use. ``shapes`` of a model lists those names with small sizes. Widths are multiples
of 64, since every head is 64 wide.
"""

import torch
from torch.nn import functional

WIDTH, FEED, VOCABULARY, POSITIONS = 128, 160, 50, 24
N_HEADS = WIDTH // 64
FEATURES, PATCH, GRID = 20, 4, 3


def random_weights(shapes: dict[str, tuple[int, ...]], seed: int = 0) -> dict[str, torch.Tensor]:
    """Return random tensors; scales of layer norms are around one."""
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in shapes.items():
        noise = torch.randn(shape, generator=generator)
        scales = len(shape) == 1 and name.endswith("weight")
        weights[name] = 1 + 0.2 * noise if scales else 0.15 * noise
    return weights


def linear(name, to, of):
    return {f"{name}.weight": (to, of), f"{name}.bias": (to,)}


def norm(name, width=WIDTH):
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def attention_shapes(inner, output):
    shapes = {}
    for part in ("query", "key", "value"):
        shapes |= linear(f"{inner}.{part}", WIDTH, WIDTH)
    return shapes | linear(f"{output}.dense", WIDTH, WIDTH) | norm(f"{output}.LayerNorm")


def feed_shapes(inner, output):
    shapes = linear(f"{inner}.dense", FEED, WIDTH) | linear(f"{output}.dense", WIDTH, FEED)
    return shapes | norm(f"{output}.LayerNorm")


def layer_shapes(name):
    shapes = attention_shapes(f"{name}.attention.self", f"{name}.attention.output")
    return shapes | feed_shapes(f"{name}.intermediate", f"{name}.output")


def word_embedding_shapes(name):
    return {
        f"{name}.word_embeddings.weight": (VOCABULARY, WIDTH),
        f"{name}.position_embeddings.weight": (POSITIONS, WIDTH),
        f"{name}.token_type_embeddings.weight": (2, WIDTH),
        **norm(f"{name}.LayerNorm"),
    }


def word_head_shapes(name):
    return {
        f"{name}.bias": (VOCABULARY,),
        **linear(f"{name}.transform.dense", WIDTH, WIDTH),
        **norm(f"{name}.transform.LayerNorm"),
        f"{name}.decoder.weight": (VOCABULARY, WIDTH),
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
    split = [x.unflatten(-1, (N_HEADS, 64)).transpose(1, 2) for x in (query, key, value)]
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


def visualbert_shapes(n_layers=2):
    embeddings = "bert.bert.embeddings"
    shapes = word_embedding_shapes(embeddings) | {
        f"{embeddings}.token_type_embeddings_visual.weight": (2, WIDTH),
        f"{embeddings}.position_embeddings_visual.weight": (POSITIONS, WIDTH),
        **linear(f"{embeddings}.projection", WIDTH, FEATURES),
    }
    for number in range(n_layers):
        shapes |= layer_shapes(f"bert.bert.encoder.layer.{number}")
    shapes |= linear("bert.bert.pooler.dense", WIDTH, WIDTH)
    shapes |= word_head_shapes("bert.cls.predictions")
    return shapes | linear("bert.cls.seq_relationship", 2, WIDTH)


def visualbert_weights(seed=0):
    weights = random_weights(visualbert_shapes(), seed)
    words = weights["bert.bert.embeddings.word_embeddings.weight"]
    return weights | {"bert.cls.predictions.decoder.weight": words}


def visualbert(weights, ids, text_real, features, image_real, n_layers=2):
    """Return embeddings, last states, word logits and matching logits; regions have type 0."""
    name = "bert.bert.embeddings"
    regions = mapped(weights, f"{name}.projection", features)
    regions = regions + weights[f"{name}.position_embeddings_visual.weight"][0]
    regions = regions + weights[f"{name}.token_type_embeddings_visual.weight"][0]
    x = torch.cat([summed_words(weights, name, ids), regions], dim=1)
    embedded = x = normed(weights, f"{name}.LayerNorm", x)
    real = torch.cat([text_real, image_real], dim=1)
    for number in range(n_layers):
        x = layer(weights, f"bert.bert.encoder.layer.{number}", x, real)
    words = word_logits(weights, "bert.cls.predictions", x[:, : ids.shape[1]])
    pair = pooled(weights, "bert.bert.pooler", x)
    return embedded, x, words, mapped(weights, "bert.cls.seq_relationship", pair)


# LXMERT


def lxmert_shapes(n_language=2, n_cross=2, n_vision=1, n_answers=7):
    encoder = "bert.encoder"
    shapes = word_embedding_shapes("bert.embeddings")
    shapes |= linear(f"{encoder}.visn_fc.visn_fc", WIDTH, FEATURES)
    shapes |= norm(f"{encoder}.visn_fc.visn_layer_norm")
    shapes |= linear(f"{encoder}.visn_fc.box_fc", WIDTH, 4)
    shapes |= norm(f"{encoder}.visn_fc.box_layer_norm")
    for number in range(n_language):
        shapes |= layer_shapes(f"{encoder}.layer.{number}")
    for number in range(n_cross):
        shapes |= cross_layer_shapes(f"{encoder}.x_layers.{number}")
    for number in range(n_vision):
        shapes |= layer_shapes(f"{encoder}.r_layers.{number}")
    shapes |= linear("bert.pooler.dense", WIDTH, WIDTH) | word_head_shapes("cls.predictions")
    shapes |= linear("cls.seq_relationship", 2, WIDTH)
    head = "obj_predict_head"
    shapes |= linear(f"{head}.transform.dense", WIDTH, WIDTH) | norm(f"{head}.transform.LayerNorm")
    for name, size in {"obj": 9, "attr": 6, "feat": FEATURES}.items():
        shapes |= linear(f"{head}.decoder_dict.{name}", size, WIDTH)
    shapes |= linear("answer_head.logit_fc.0", 2 * WIDTH, WIDTH)
    shapes |= norm("answer_head.logit_fc.2", 2 * WIDTH)
    return shapes | linear("answer_head.logit_fc.3", n_answers, 2 * WIDTH)


def cross_layer_shapes(name):
    shapes = attention_shapes(f"{name}.visual_attention.att", f"{name}.visual_attention.output")
    for stream in ("lang", "visn"):
        own = f"{name}.{stream}_self_att"
        shapes |= attention_shapes(f"{own}.self", f"{own}.output")
        shapes |= feed_shapes(f"{name}.{stream}_inter", f"{name}.{stream}_output")
    return shapes


def lxmert_weights(seed=0):
    weights = random_weights(lxmert_shapes(), seed)
    return weights | {
        "cls.predictions.decoder.weight": weights["bert.embeddings.word_embeddings.weight"]
    }


def lxmert(weights, ids, text_real, features, boxes, image_real, sizes=(2, 2, 1)):
    """Return language states, vision states, word logits and matching logits."""
    n_language, n_cross, n_vision = sizes
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


def vilt_shapes(n_layers=2):
    shapes = word_embedding_shapes("text_embeddings") | {
        "token_type_embeddings.weight": (2, WIDTH),
        "transformer.cls_token": (1, 1, WIDTH),
        "transformer.pos_embed": (1, GRID**2 + 1, WIDTH),
        "transformer.patch_embed.proj.weight": (WIDTH, 3, PATCH, PATCH),
        "transformer.patch_embed.proj.bias": (WIDTH,),
    }
    for number in range(n_layers):
        name = f"transformer.blocks.{number}"
        shapes |= norm(f"{name}.norm1") | norm(f"{name}.norm2")
        shapes |= linear(f"{name}.attn.qkv", 3 * WIDTH, WIDTH)
        shapes |= linear(f"{name}.attn.proj", WIDTH, WIDTH)
        shapes |= linear(f"{name}.mlp.fc1", FEED, WIDTH) | linear(f"{name}.mlp.fc2", WIDTH, FEED)
    shapes |= norm("transformer.norm") | linear("pooler.dense", WIDTH, WIDTH)
    return shapes | word_head_shapes("mlm_score") | linear("itm_score.fc", 2, WIDTH)


STREAM = ("token_type_embeddings.weight", "transformer.cls_token", "transformer.pos_embed")


def vilt_weights(seed=0):
    """Return random tensors, those that write states so small that an epsilon of 1e-6 is seen."""
    weights = random_weights(vilt_shapes(), seed)
    for name in weights:
        writes = ("LayerNorm", "patch_embed", "attn.proj", "mlp.fc2")
        before_blocks = not name.startswith("mlm_score")
        if name in STREAM or (before_blocks and any(part in name for part in writes)):
            weights[name] = weights[name] / 100
    return weights


def vilt(weights, ids, text_real, pixels, shown, n_layers=2):
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
    for number in range(n_layers):
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
    rows, columns = height // PATCH, width // PATCH
    cut = pixels.reshape(n, 3, rows, PATCH, columns, PATCH).permute(0, 2, 4, 1, 3, 5)
    kernel = weights["transformer.patch_embed.proj.weight"].flatten(1)
    grid = cut.reshape(n, rows, columns, -1) @ kernel.T
    grid = grid + weights["transformer.patch_embed.proj.bias"]
    places = weights["transformer.pos_embed"]
    square = places[:, 1:].mT.unflatten(2, (GRID, GRID))
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
