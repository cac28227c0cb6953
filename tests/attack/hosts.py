"""Answers of a hostile server, to those who ask for pictures and to those who ask for weights."""

import contextlib
import hashlib
import ipaddress
import itertools
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pandas
from support import hostile

from attack import Outcome
from biaslib import datasets
from biaslib.checkpoints import downloads
from biaslib.datasets import _fetcher
from biaslib.errors import CheckpointError
from biaslib.pictures.images import ImageError, open_image

LONGER = {"status": ("204", "403", "404", "429", "500", "503"), "status_without_body": ("204",)}


def addresses() -> list[str]:
    """Return what a server is asked for: each behaviour by its name, statuses with a number."""
    return [
        f"{name}/{number}" if number else name
        for name in sorted(hostile.BEHAVIOURS)
        for number in LONGER.get(name, ("",))
    ]


PUBLIC, PRIVATE = "93.184.215.14", "127.0.0.1"
STILL, MOVING = "still.example", "moving.example"
"""A name that leads to a public address, and one that leads to a private one from then on."""


@contextlib.contextmanager
def names(server: hostile.Hostile) -> Iterator[list[str]]:
    """Let the server answer at the public address of two names; yield all addresses connected to.

    Every check of addresses is the package's own: only where names and connections lead is ours.
    """
    looked_up, connect = _fetcher._addresses, socket.create_connection
    places = {
        STILL: itertools.repeat(PUBLIC),
        MOVING: itertools.chain([PUBLIC], itertools.repeat(PRIVATE)),
    }
    connected = []

    def addresses_of(host: str) -> list[str]:
        return [next(places[host])] if host in places else looked_up(host)

    def create_connection(address: tuple[str, int], *rest, **more):
        connected.append(address[0])
        if address[0] != PUBLIC:
            raise OSError("nobody is there")
        return connect((PRIVATE, server.server.server_address[1]), *rest, **more)

    direct = {
        name: each for name, each in os.environ.items() if not name.lower().endswith("_proxy")
    }
    with (
        mock.patch.dict(os.environ, direct, clear=True),
        mock.patch.object(_fetcher, "_addresses", addresses_of),
        mock.patch.object(_fetcher, "sleep", return_value=None),
        mock.patch.object(_fetcher.socket, "create_connection", create_connection),
    ):
        yield connected


def hostile_answers() -> Outcome:
    """Ask for a picture and for weights at each address, twice, as one who tries again."""
    outcome = Outcome("answers of a hostile server")
    with tempfile.TemporaryDirectory() as name, hostile.impatient():
        with hostile.serving() as server, names(server) as connected:
            for number, address in enumerate(addresses()):
                _picture(f"http://{STILL}", address, Path(name) / f"picture-{number}", outcome)
            moved(Path(name) / "moved", outcome)
            outcome.run += sum(not ipaddress.ip_address(each).is_global for each in connected)
        body = b"\x80\x02" + bytes(range(256)) * 20
        with hostile.serving(body) as server:
            ended = [each for each in addresses() if each not in hostile.WITHOUT_END]
            for number, address in enumerate(ended):
                _weights(server, address, Path(name) / f"weights-{number}", body, outcome)
    return outcome


def moved(folder: Path, outcome: Outcome) -> None:
    """Ask twice at a name that leads to this machine once its address was checked."""
    outcome.tried += 1
    rows = [("a.jpg", f"http://{MOVING}/good"), ("b.jpg", f"http://{MOVING}/good/2")]
    wanted = pandas.DataFrame(rows, columns=["file", "url"])
    found = datasets.download_images(wanted, folder, n_workers=1)["outcome"]
    outcome.wrong += sorted(each.partition(":")[0] for each in found) != ["here", "refused"]


def _picture(server: str, address: str, folder: Path, outcome: Outcome) -> None:
    """Ask for a picture beside a good one: a row each, and whatever has a name can be opened."""
    rows = [("bad.jpg", address), ("good.jpg", "good")]
    wanted = pandas.DataFrame(
        [(file, f"{server}/{path}") for file, path in rows], columns=["file", "url"]
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
    path, sha256 = folder / "a.bin", hashlib.sha256(body).hexdigest()
    for url in (address, address):
        outcome.tried += 1
        try:
            downloads.retrieve([f"{server.address}/{url}"], path, sha256)
        except CheckpointError:
            pass
        except Exception:
            outcome.raw += 1
        outcome.wrong += path.exists() and path.read_bytes() != body
        path.unlink(missing_ok=True)
    downloads.retrieve([f"{server.address}/good"], path, sha256)
    outcome.lost += path.read_bytes() != body
