"""Answers of a hostile server, to those who ask for pictures and to those who ask for weights."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pandas
from support import hostile

from attack import Outcome
from biaslib import datasets, runtime
from biaslib.datasets import links
from biaslib.models.images import ImageError, open_image
from biaslib.runtime import DownloadError, _transfer

LONGER = {"status": ("204", "403", "404", "429", "500", "503"), "status_without_body": ("204",)}


def addresses() -> list[str]:
    """Return what a server is asked for: each behaviour by its name, statuses with a number."""
    return [
        f"{name}/{number}" if number else name
        for name in sorted(hostile.BEHAVIOURS)
        for number in LONGER.get(name, ("",))
    ]


@contextlib.contextmanager
def in_a_hurry() -> Iterator[None]:
    """Let this machine be asked, wait for nothing, and give up early."""
    with (
        mock.patch.object(links, "_is_public", lambda host: host == "127.0.0.1"),
        mock.patch.object(links, "sleep", return_value=None),
        mock.patch.object(links, "DEADLINE", 1.0),
        mock.patch.object(_transfer, "BEGIN", 1.0),
        mock.patch.object(_transfer, "UNANNOUNCED", 2e6),
    ):
        yield


def hostile_answers() -> Outcome:
    """Ask for a picture and for weights at each address, twice, as one who tries again."""
    outcome = Outcome("answers of a hostile server")
    with tempfile.TemporaryDirectory() as name, in_a_hurry():
        with hostile.serving() as server:
            for number, address in enumerate(addresses()):
                _picture(server, address, Path(name) / f"picture-{number}", outcome)
        body = b"\x80\x02" + bytes(range(256)) * 20
        with hostile.serving(body) as server:
            for number, address in enumerate(addresses()):
                _weights(server, address, Path(name) / f"weights-{number}", body, outcome)
    return outcome


def _picture(server, address: str, folder: Path, outcome: Outcome) -> None:
    """Ask for a picture beside a good one: a row each, and whatever has a name can be opened."""
    rows = [("bad.jpg", address), ("good.jpg", "good")]
    wanted = pandas.DataFrame(
        [(file, f"{server.address}/{path}") for file, path in rows], columns=["file", "url"]
    )
    for _ in range(2):
        outcome.tried += 1
        try:
            found = datasets.download_images(wanted, folder)
        except Exception:
            outcome.raw += 1
            continue
        bad, good = found["outcome"]
        outcome.lost += good != "here"
        there = (folder / "bad.jpg").is_file()
        outcome.wrong += there != (bad == "here")
        if there:
            try:
                open_image(folder / "bad.jpg")
            except ImageError:
                outcome.wrong += 1


def _weights(server, address: str, folder: Path, body: bytes, outcome: Outcome) -> None:
    """Ask for a file whose hash is known: what gets its name has it, and a good answer ends it."""
    path = folder / "a.bin"

    def check(file: Path) -> None:
        if file.read_bytes() != body:
            raise DownloadError(f"{file} is not the file that was declared")

    for url in (address, address):
        outcome.tried += 1
        try:
            runtime.download(f"{server.address}/{url}", path, check=check)
        except DownloadError:
            pass
        except Exception:
            outcome.raw += 1
        outcome.wrong += path.exists() and path.read_bytes() != body
        path.unlink(missing_ok=True)
    runtime.download(f"{server.address}/good", path, check=check)
    outcome.lost += path.read_bytes() != body
