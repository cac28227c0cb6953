"""What a model is shown: pictures opened and collated, their transforms, regions, the detector."""

from biaslib.errors import brought_by

with brought_by("models"):
    import PIL  # noqa: F401
