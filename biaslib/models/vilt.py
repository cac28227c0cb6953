"""ViLT: text and patches of the picture in one transformer; masked words and matching.

Three things about ViLT are not as transformers 5 has them:

- Its blocks normalise with an epsilon of 1e-6, its word embeddings and its masked-word head with
  1e-12. ``ViltConfig`` has one number for all; :class:`ViltNetwork` sets both, whatever the
  configuration says.
- The matrix that gives the words' logits is its own, not that of the word embeddings.
  transformers 5 forces the two to be one where a file has only one of them; here they are one
  only then.
- transformers puts the patches in an order drawn at random and, for a configuration with
  ``max_image_length``, keeps that many, drawn at random. Here they come in the order of the
  picture and all are kept, so that the same input always gives the same numbers. What is said of
  the text does not depend on the order.

Reference: Kim, Son and Kim (2021), *ViLT: Vision-and-Language Transformer Without Convolution or
Region Supervision*.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
import transformers

from biaslib.capabilities import FILL, FILL_WITH_IMAGES, MATCH
from biaslib.checkpoints.entries import Entry
from biaslib.checkpoints.files import revision_of
from biaslib.models.fusion import Output
from biaslib.models.pixel_model import PixelModel, read_image_processor
from biaslib.models.reading import read_network, read_tokenizer

__all__ = ["Vilt", "ViltNetwork", "load"]

BLOCK_EPSILON = 1e-6
TEXT_EPSILON = 1e-12

DECODER = "mlm_score.decoder"
BIAS_BESIDE = "mlm_score.bias"
"""Where ViLT's own files, and older versions of transformers, keep the words' bias."""

OPTIONAL = ("mlm_score.*", "itm_score.*", "rank_output.*")
IGNORED = ("*.position_ids", "*.token_type_ids")


class ViltNetwork(transformers.ViltForMaskedLM):
    """ViLT with all of its heads on one set of weights.

    The layout is that of ``ViltForMaskedLM``, with ``itm_score.fc`` (index 1: match) as in ViLT's
    own files, and ``rank_output``, the one logit of models tuned for retrieval
    (``ViltForImageAndTextRetrieval``). A file need not have all three heads.

    Parameters
    ----------
    config
        A ``transformers.ViltConfig``.
    """

    _tied_weights_keys = None

    def __init__(self, config: transformers.ViltConfig):
        super().__init__(config)
        self.itm_score = torch.nn.Module()
        self.itm_score.fc = torch.nn.Linear(config.hidden_size, 2)
        self.rank_output = torch.nn.Linear(config.hidden_size, 1)
        self.mlm_score.bias = torch.nn.Parameter(torch.zeros(config.vocab_size))
        set_epsilons(self.vilt)
        self.mlm_score.transform.LayerNorm.eps = TEXT_EPSILON


def set_epsilons(vilt: transformers.ViltModel) -> None:
    """Give each layer norm of ViLT without its heads the epsilon that it was trained with.

    Examples
    --------
    >>> config = transformers.ViltConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> vilt = transformers.ViltModel(config)
    >>> set_epsilons(vilt)
    >>> vilt.layernorm.eps, vilt.embeddings.text_embeddings.LayerNorm.eps
    (1e-06, 1e-12)
    """
    for module in vilt.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = BLOCK_EPSILON
    vilt.embeddings.text_embeddings.LayerNorm.eps = TEXT_EPSILON


class Vilt(PixelModel):
    """ViLT: embeddings, masked words and matching, from text with a picture.

    Without a picture (``images=None``), the transformer reads the text's tokens alone: there are
    no patches and no token for the picture as a whole. The published ViLT never saw that in
    training; the planted checkpoints did.

    A text has 40 tokens at most, special ones included, if the configuration says nothing else.
    A caption fits by the logit of a match less that of none (``itm_score``, index 1 and 0), or by
    the one logit of a model that was tuned for retrieval (``rank_output``).

    Parameters
    ----------
    network
        A :class:`ViltNetwork`.
    tokenizer, processor, name, revision, device
        As of the pixel models.
    missing
        Names of the weights that the file did not have.
    """

    def __init__(self, network, tokenizer, processor, name, revision, device, missing=frozenset()):
        super().__init__(network, tokenizer, processor, name, revision, device)
        self.has_match = "itm_score.fc.weight" not in missing
        self.has_rank = "rank_output.weight" not in missing
        if f"{DECODER}.bias" in missing:
            self.capabilities = self.capabilities - {FILL, FILL_WITH_IMAGES}
        if not (self.has_match or self.has_rank):
            self.capabilities = self.capabilities - {MATCH}

    def encode(self, visual: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the tokens of pictures, and which of them are of the picture."""
        if not visual:
            return {}
        sizes = visual.get("sizes")
        sizes = None if sizes is None else sizes.tolist()
        embedded, shown = patches(self.network.vilt.embeddings, visual["pixel_values"], sizes)
        return {"image_embeds": embedded, "pixel_mask": shown}

    def forward(self, tokens: dict[str, torch.Tensor], visual: dict[str, torch.Tensor]) -> Output:
        """Run the network on a batch; both of a file's matching heads say how well it fits."""
        output = self.network.vilt(**tokens, **(visual or self._none(tokens)))
        text = output.last_hidden_state[:, : tokens["input_ids"].shape[1]]
        return Output(text, match=self._match(output.pooler_output))

    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return the masked-word head's logits for states (n, d): (n, vocabulary)."""
        return self.network.mlm_score(states)

    def _match(self, pooled: torch.Tensor) -> torch.Tensor | None:
        if self.has_match:
            logits = self.network.itm_score.fc(pooled)
            return logits[:, 1] - logits[:, 0]
        return self.network.rank_output(pooled)[:, 0] if self.has_rank else None

    def _none(self, tokens: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return what :meth:`encode` returns of pictures, without a token."""
        ids = tokens["input_ids"]
        nothing = torch.zeros(len(ids), 0, self.network.config.hidden_size, device=ids.device)
        return {"image_embeds": nothing, "pixel_mask": ids[:, :0]}


def patches(
    embeddings, pixel_values: torch.Tensor, sizes: Sequence[Sequence[int]] | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a picture's tokens as ViLT embeds them, in order, all kept.

    Parameters
    ----------
    embeddings
        The ``vilt.embeddings`` of a network, with patches of p pixels.
    pixel_values
        (n, 3, height, width); smaller pictures lie at the upper left, with zeros around.
    sizes
        Height and width of each picture, (n, 2); ``None`` if all are of one size.

    Returns
    -------
    tuple of torch.Tensor
        Tokens (n, 1 + (height / p)(width / p), d), the first for the whole picture, and 1 where a
        token is of the picture and 0 where it is of the zeros.
    """
    grid = embeddings.patch_embeddings(pixel_values)
    n, _, height, width = grid.shape
    tall, wide = pixel_values.shape[-2:]
    covered = [
        (_covered(h, tall, height), _covered(w, wide, width))
        for h, w in sizes or [(tall, wide)] * n
    ]
    different = list(dict.fromkeys(covered))
    places = torch.cat([_places(embeddings, *part, height, width) for part in different])
    real = torch.zeros(len(different), height, width, dtype=torch.long)
    for grid_of, (rows, columns) in zip(real, different, strict=True):
        grid_of[:rows, :columns] = 1
    index = torch.tensor([different.index(part) for part in covered])
    index = index.to(grid.device, non_blocking=True)
    shown = real.flatten(1).to(grid.device, non_blocking=True)[index]
    whole = embeddings.cls_token + embeddings.position_embeddings[:, :1]
    patched = (grid + places[index]).flatten(2).mT
    tokens = torch.cat([whole.expand(n, -1, -1), patched], dim=1)
    return tokens, torch.cat([shown.new_ones(n, 1), shown], dim=1)


def _covered(size: int, whole: int, n_patches: int) -> int:
    """Return how many patches along one side begin within a picture of a size."""
    return sum(place * whole // n_patches < size for place in range(n_patches))


def _places(embeddings, rows: int, columns: int, height: int, width: int) -> torch.Tensor:
    """Return position embeddings stretched over the part of the grid that a picture covers."""
    side = embeddings.config.image_size // embeddings.config.patch_size
    square = embeddings.position_embeddings[:, 1:].mT.unflatten(2, (side, side))
    stretched = torch.nn.functional.interpolate(
        square, size=(rows, columns), mode="bilinear", align_corners=True
    )
    return torch.nn.functional.pad(stretched, (0, width - columns, 0, height - rows))


def load(entry: Entry, folder: Path, device: str) -> Vilt:
    """Load ViLT from a folder, with the heads that it has.

    Raises
    ------
    CheckpointError
        If weights other than those of heads are missing or left over, or there is no tokenizer.
    """
    network, missing = read_network(ViltNetwork, folder, entry.name, OPTIONAL, IGNORED)
    missing = complete_words(network, missing)
    tokenizer, processor = read_tokenizer(folder, of_bert=True), read_image_processor(folder)
    return Vilt(network, tokenizer, processor, entry.name, revision_of(folder), device, missing)


def complete_words(network: ViltNetwork, missing: set[str]) -> set[str]:
    """Fill in what the masked-word head shares with other parts, and return what is missing still.

    A file without the decoder's matrix means the word embeddings by it; its bias may be beside it.
    """
    missing = set(missing)
    if "mlm_score.transform.dense.weight" in missing:
        return missing
    decoder = network.get_output_embeddings()
    if f"{DECODER}.weight" in missing:
        decoder.weight = network.get_input_embeddings().weight
    if f"{DECODER}.bias" in missing and BIAS_BESIDE not in missing:
        decoder.bias = network.mlm_score.bias
        missing.remove(f"{DECODER}.bias")
    return missing
