"""The counts of VLStereoSet under the name by which the ledger imports them."""

from biaslib.published import zhou2022

__all__ = ["zhou2022"]
