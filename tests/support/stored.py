"""What a store holds, looked at from outside."""

import contextlib
import json

import pandas
from safetensors import SafetensorError, safe_open

KEY = ("model", "revision", "output")


def table(store):
    """Return one row a key: its parts, its rows, its megabytes, and its shards set aside."""
    folders = sorted(path.parent for path in store.folder.glob("*/key.json"))
    columns = [*KEY, "options", "rows", "MB", "damaged"]
    return pandas.DataFrame([_described(folder) for folder in folders], columns=columns)


def _described(folder):
    try:
        key = {**dict.fromkeys(KEY, ""), **json.loads((folder / "key.json").read_bytes())}
    except (ValueError, TypeError):
        key = dict.fromkeys(KEY, "") | {"key.json": "damaged"}
    options = {part: value for part, value in key.items() if part not in KEY}
    shards = list(folder.glob("*.safetensors"))
    return {
        **{part: key[part] for part in KEY},
        "options": ", ".join(f"{part}={value}" for part, value in sorted(options.items())),
        "rows": _n_rows(shards),
        "MB": sum(shard.stat().st_size for shard in shards) / 1e6,
        "damaged": len(list(folder.glob("*.damaged"))),
    }


def _n_rows(shards):
    """Return how many ids have a row in any shard; one that cannot be read has none."""
    found = set()
    for path in shards:
        with contextlib.suppress(SafetensorError, OSError), safe_open(path, "numpy") as shard:
            found.update(digest.tobytes() for digest in shard.get_tensor("ids"))
    return len(found)
