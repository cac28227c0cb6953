"""Ask every address of the registry for its headers: ``python tools/addresses.py [file.csv]``.

Writes one row an address: whether it answers with a file, its size, date, ETag and hash where the
server gives them. Nothing is downloaded. What died is printed; the exit status is 1 if a file of a
model has no living address left.
"""

import os
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from biaslib import models  # noqa: E402
from biaslib.checkpoints import downloads  # noqa: E402

TABLE = ROOT / "_build" / "addresses.csv"
COLUMNS = ["model", "address", "problem", "bytes", "date", "etag", "hash"]
SECONDS = 30
START = "bytes=0-511"
"""What is asked for where a server does not answer to HEAD."""

HASHES = ("x-linked-etag", "x-amz-checksum-sha256", "x-goog-hash", "content-md5")
"""Headers in which servers give a hash of a file."""


def addresses_of(entry: models.Entry) -> list[str]:
    """Return the addresses of an entry's files outside the hub, in order of trust."""
    if not entry.source.startswith(("url ", "by hand ")):
        return list(entry.beside)
    _, names, addresses = downloads.place_of(entry, Path())
    found = [downloads.BRACES.sub(name, address) for address in addresses for name in names]
    return [*found, *entry.beside]


def rows_of(entry: models.Entry) -> list[dict]:
    """Return what the servers say of an entry's files: one row an address."""
    rows = [asked(address) for address in addresses_of(entry)]
    if entry.source.startswith("hub "):
        rows += on_hub(entry)
    if entry.source.startswith("by hand "):
        rows.append(asked(entry.source.rpartition(" from ")[2], page=True))
    return [row | {"model": entry.name} for row in rows]


def on_hub(entry: models.Entry) -> list[dict]:
    """Return what the hub lists of a repository's weights."""
    from huggingface_hub import HfApi

    name = entry.source.removeprefix("hub ")
    address = f"{downloads.SITE}/{name}"
    try:
        found = HfApi(endpoint=os.environ.get("HF_ENDPOINT", downloads.SITE)).model_info(
            name, revision=entry.revision or None, files_metadata=True, timeout=SECONDS
        )
    except Exception as error:  # the library raises those of the one it uses for connections
        return [_row(address, f"{type(error).__name__}: {str(error).strip().splitlines()[0]}")]
    weights = [each for each in found.siblings or [] if each.lfs]
    date = str(getattr(found, "last_modified", None) or "")
    rows = [
        _row(f"{address}/resolve/{found.sha}/{each.rfilename}", "", each.size, date)
        | {"hash": f"sha256 {each.lfs.sha256}"}
        for each in weights
    ]
    return rows or [_row(address, "lists no weights")]


def asked(address: str, page: bool = False) -> dict:
    """Return what a server says of an address, from the headers of its answer alone."""
    try:
        headers = _headers(address)
    except (OSError, ValueError) as error:
        return _row(address, str(getattr(error, "code", "") or error))
    is_page = headers.get("Content-Type", "").startswith("text/html")
    problem = "a web page in place of a file" if is_page and not page else ""
    total = headers.get("Content-Range", "").rpartition("/")[2] or headers.get("Content-Length")
    hashes = [f"{name} {headers[name]}" for name in HASHES if headers.get(name)]
    row = _row(address, problem, total, headers.get("Last-Modified", ""))
    return row | {"etag": headers.get("ETag", ""), "hash": "; ".join(hashes)}


def _headers(address: str):
    """Return the headers that HEAD gives, or those of the file's first bytes."""
    place = downloads.mirrored(address)
    try:
        return _answer(urllib.request.Request(place, method="HEAD"))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (404, 410):
            raise
    return _answer(urllib.request.Request(place, headers={"Range": START}))


def _answer(request: urllib.request.Request):
    request.add_header("User-Agent", "biaslib")
    with urllib.request.urlopen(request, timeout=SECONDS) as response:
        return response.headers


def _row(address: str, problem: str, size: object = "", date: str = "") -> dict:
    values = ["", address, problem, "" if size is None else size, date, "", ""]
    return dict(zip(COLUMNS, values, strict=True))


def main(path: str | Path = TABLE) -> int:
    """Write the table, and print what died; return the exit status."""
    entries = list(models.REGISTRY.values())
    with ThreadPoolExecutor(8) as pool:
        rows = [row for some in pool.map(rows_of, entries) for row in some]
    table = pandas.DataFrame(rows, columns=COLUMNS)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False)
    for row in table[table["problem"] != ""].itertuples():
        print(f"dead: {row.model}: {row.address}: {row.problem}")
    file = table["address"].str.rpartition("/")[2]
    dead = table["problem"] != ""
    lost = [name for name, some in dead.groupby([table["model"], file]) if some.all()]
    for name in lost:
        print(f"no address left: {' '.join(name)}")
    alive = (table["problem"] == "").sum()
    print(f"{path}: {alive} of {len(table)} addresses answer")
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
