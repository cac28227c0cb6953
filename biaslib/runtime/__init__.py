"""Where a run happens and what it ran: profile, device, progress, provenance stamp."""

from biaslib.runtime._errors import UnknownNameError, unknown_name
from biaslib.runtime._lock import ChecksumError, DownloadError, Lock
from biaslib.runtime._profile import PROFILES, device, in_book, profile, progress
from biaslib.runtime._stamp import Provenance, file_sha256, source_hash, start
from biaslib.runtime._transfer import download

__all__ = [
    "PROFILES",
    "ChecksumError",
    "DownloadError",
    "Lock",
    "Provenance",
    "UnknownNameError",
    "device",
    "download",
    "file_sha256",
    "in_book",
    "profile",
    "progress",
    "source_hash",
    "start",
    "unknown_name",
]
