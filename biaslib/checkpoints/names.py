"""What names a model: a folder that is there, a registered name, or a repository of the hub."""

import os
import re
from pathlib import Path

from biaslib.checkpoints.entries import ENTRIES
from biaslib.errors import CheckpointError

SITE = "https://huggingface.co"

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96}(@[\w./-]+)?", re.ASCII)

HUB_PAGE = re.compile(r"((https?://)?(www\.)?(huggingface\.co|hf\.co)/|hf://|hf[-_]hub:)(models/)?")

PART_OF_PAGE = re.compile(r"(?<=.)/(tree|blob|resolve|commit)/(?P<revision>[^/?#]+).*|[?#].*")

WEIGHT_ENDINGS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf")


def place_of(given: str | Path) -> Path | str:
    """Return the path that is there, or else the name that is meant; no hub is asked.

    A folder goes before a registered name, and a file does not.

    Parameters
    ----------
    given
        A folder, ``~`` and all; a registered name; ``owner/name`` or ``owner/name@revision`` of the
        model hub, as such, behind ``hf-hub:`` or as its page's address; a name of OpenCLIP.

    Raises
    ------
    CheckpointError
        If it is a path and not there, or an address of anything but a model on the hub.

    Examples
    --------
    >>> place_of("https://huggingface.co/openai/clip-vit-base-patch32/")
    'openai/clip-vit-base-patch32'
    >>> place_of("./my-clip")
    Traceback (most recent call last):
    biaslib.errors.CheckpointError: ./my-clip is not there, and no name of the model hub, \
which is owner/name: check the path
    """
    text = str(given).strip()
    path = _existing(given) if text else None
    if path and not (path.is_file() and any(entry.name == text for entry in ENTRIES)):
        return path
    if re.fullmatch(r"[^./~\\][^/\\]*", text) and not isinstance(given, Path):
        return text
    name = text.removeprefix(f"{os.environ.get('HF_ENDPOINT', SITE)}/")
    name = PART_OF_PAGE.sub(_revision_of_page, HUB_PAGE.sub("", name)).rstrip("/")
    is_file = name.endswith(WEIGHT_ENDINGS) or isinstance(given, Path)
    if is_file or not HUB_NAME.fullmatch(name):
        raise CheckpointError(
            f"{given} is not there, and no name of the model hub, which is owner/name: check the "
            "path",
            path=given if text and "://" not in text else None,
        )
    return name


def _existing(given: str | Path) -> Path | None:
    try:
        path = Path(given).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long; nobody's home; a null character
        return None


def _revision_of_page(part: re.Match) -> str:
    return f"@{part['revision']}" if part["revision"] else ""
