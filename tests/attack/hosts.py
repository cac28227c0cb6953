"""Answers of a hostile server, to those who ask for pictures and to those who ask for weights."""

import hashlib
import tempfile
from pathlib import Path

import pandas
from support import hostile

from attack import Outcome
from biaslib import datasets
from biaslib.checkpoints import downloads
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


def hostile_answers() -> Outcome:
    """Ask for a picture and for weights at each address, twice, as one who tries again."""
    outcome = Outcome("answers of a hostile server")
    with tempfile.TemporaryDirectory() as name, hostile.permitted():
        with hostile.serving() as server:
            for number, address in enumerate(addresses()):
                if address not in hostile.WITHOUT_END:
                    folder = Path(name) / f"picture-{number}"
                    _picture(server.address, address, folder, outcome)
        body = b"\x80\x02" + bytes(range(256)) * 20
        with hostile.serving(body) as server:
            ended = [each for each in addresses() if each not in hostile.WITHOUT_END]
            for number, address in enumerate(ended):
                _weights(server, address, Path(name) / f"weights-{number}", body, outcome)
    return outcome


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
