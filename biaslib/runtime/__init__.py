"""Where a run happens and what it ran: profile, device, data, progress, store, provenance stamp."""

from biaslib.runtime._archive import archive, restore
from biaslib.runtime._data import data_folder
from biaslib.runtime._errors import UnknownNameError, first_few, unknown_name
from biaslib.runtime._files import naming, read_rows, read_table, read_text
from biaslib.runtime._gpu import gpu_advice
from biaslib.runtime._lock import ChecksumError, Lock, one_at_a_time
from biaslib.runtime._profile import (
    PROFILES,
    ProfileError,
    device,
    free_memory,
    in_book,
    note_model,
    profile,
    progress,
    provider,
    providers,
)
from biaslib.runtime._sources import (
    USED,
    file_sha256,
    is_current,
    note_files,
    source_hash,
    used,
)
from biaslib.runtime._stamp import Provenance, note_batches, note_device, start
from biaslib.runtime._store import Store
from biaslib.runtime._text import INVISIBLE, MISSING, cleaned, look_alikes

__all__ = [
    "INVISIBLE",
    "MISSING",
    "PROFILES",
    "USED",
    "ChecksumError",
    "Lock",
    "ProfileError",
    "Provenance",
    "Store",
    "UnknownNameError",
    "archive",
    "cleaned",
    "data_folder",
    "device",
    "file_sha256",
    "first_few",
    "free_memory",
    "gpu_advice",
    "in_book",
    "is_current",
    "look_alikes",
    "naming",
    "note_batches",
    "note_device",
    "note_files",
    "note_model",
    "one_at_a_time",
    "profile",
    "progress",
    "provider",
    "providers",
    "read_rows",
    "read_table",
    "read_text",
    "restore",
    "source_hash",
    "start",
    "unknown_name",
    "used",
]
