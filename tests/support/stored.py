"""What a store holds, looked at from outside."""

import contextlib
import json
import sqlite3

import pandas

KEY = ("model", "revision", "output")


def table(store):
    """Return one row a key: its parts, its options and its rows."""
    return pandas.DataFrame(
        [_described(*each) for each in selected(store, "parts, count(item)")],
        columns=[*KEY, "options", "rows"],
    )


def selected(store, what):
    """Return the keys with what is asked of them and of their rows."""
    if not store.path.exists():
        return []
    with contextlib.closing(sqlite3.connect(store.path)) as tables:
        return tables.execute(
            f"select keys.{what} from keys left join rows on rows.key = id group by id"
        ).fetchall()


def _described(key, rows):
    key = json.loads(key)
    options = {part: value for part, value in key.items() if part not in KEY}
    return {
        **{part: key[part] for part in KEY},
        "options": ", ".join(f"{part}={value}" for part, value in sorted(options.items())),
        "rows": rows,
    }
