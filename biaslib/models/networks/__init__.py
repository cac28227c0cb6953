"""The networks that no maintained library has, written out: VL-BERT, ViLBERT, ALBEF.

Each loads the files that its authors published (``load_official``); :func:`save_converted` and
:func:`load_converted` write and read them as safetensors with a configuration.
"""

from biaslib.models.networks.files import WrongCheckpointError, load_converted, save_converted

__all__ = ["WrongCheckpointError", "load_converted", "save_converted"]
