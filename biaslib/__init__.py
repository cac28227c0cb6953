"""Measuring social bias in vision-language models: the package behind the companion's notebooks.

Layers, from the top down (an import only ever points down): ``display``, ``studies``, ``models``,
``stimuli`` and ``published``, ``inference``, ``metrics``, ``runtime``. Importing ``biaslib`` itself
imports none of them, so that it is instant and never needs torch.
"""

__version__ = "0.2.0"

__all__ = ["__version__"]
