"""Where a run happens and what it ran: profile, device, data, progress, store, provenance stamp."""

from biaslib.runtime._data import data_folder
from biaslib.runtime._errors import UnknownNameError, first_few, unknown_name
from biaslib.runtime._files import (
    file_sha256,
    files_below,
    is_hidden,
    naming,
    read_table,
    read_text,
    source_hash,
)
from biaslib.runtime._lock import ChecksumError, Lock, one_at_a_time
from biaslib.runtime._prepare import Needs, prepare
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
from biaslib.runtime._stamp import (
    USED,
    Provenance,
    note_batches,
    note_device,
    note_files,
    note_outputs,
    start,
    used,
)
from biaslib.runtime._store import Store
from biaslib.runtime._text import INVISIBLE, MISSING, cleaned, look_alikes, says_nothing

__all__ = [
    "INVISIBLE",
    "MISSING",
    "PROFILES",
    "USED",
    "ChecksumError",
    "Lock",
    "Needs",
    "ProfileError",
    "Provenance",
    "Store",
    "UnknownNameError",
    "cleaned",
    "data_folder",
    "device",
    "file_sha256",
    "files_below",
    "first_few",
    "free_memory",
    "in_book",
    "is_hidden",
    "look_alikes",
    "naming",
    "note_batches",
    "note_device",
    "note_files",
    "note_model",
    "note_outputs",
    "one_at_a_time",
    "prepare",
    "profile",
    "progress",
    "provider",
    "providers",
    "read_table",
    "read_text",
    "says_nothing",
    "source_hash",
    "start",
    "unknown_name",
    "used",
]
