"""The whole image as a further region in front, as VL-BERT and ViLBERT were trained with it."""

import torch

__all__ = ["with_whole_image"]


def with_whole_image(
    visual: dict[str, torch.Tensor], counted: torch.Tensor, whole: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Put the whole image before the regions; its features are the mean of theirs.

    Parameters
    ----------
    visual
        features (n, k, d), boxes (n, k, b) and real (n, k).
    counted
        (n, k): regions that the mean is taken over. Where there are none it is zero.
    whole
        (n, b) or (b,): the whole image's box.

    Returns
    -------
    dict
        The same with k + 1 regions.

    Examples
    --------
    >>> regions = {"features": torch.tensor([[[1.0], [3.0]]]), "boxes": torch.zeros(1, 2, 4),
    ...            "real": torch.tensor([[True, True]])}
    >>> box = torch.tensor([0.0, 0.0, 1.0, 1.0])
    >>> with_whole_image(regions, regions["real"], box)["features"].flatten().tolist()
    [2.0, 1.0, 3.0]
    """
    features, boxes, real = visual["features"], visual["boxes"], visual["real"]
    counts = counted.sum(dim=1, keepdim=True).clamp(min=1)
    mean = (features * counted[..., None]).sum(dim=1) / counts
    whole = whole.to(boxes.dtype).expand(len(boxes), -1)
    return {
        "features": torch.cat([mean[:, None], features], dim=1),
        "boxes": torch.cat([whole[:, None], boxes], dim=1),
        "real": torch.cat([torch.ones_like(real[:, :1]), real], dim=1),
    }
