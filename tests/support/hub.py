"""A model hub on this machine's loopback: serves folders as the real one serves repositories.

It speaks what huggingface_hub asks for (model information, file tree, files with ETag, commit and
ranges) and serves single files under ``/files``, as other hosts do: of ``https://host/path`` under
``/files/host/path``. Faults are switched on by name.
"""

import contextlib
import hashlib
import json
import re
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from huggingface_hub import close_session

from biaslib.checkpoints.downloads import BY_HAND

LARGE = (".bin", ".safetensors", ".ckpt", ".model")
"""Files that the hub keeps in large-file storage and lists with their SHA-256."""

COMMIT = re.compile(r"[0-9a-f]{40}")
"""Any commit that is asked for is served, since the registry pins those of the official files."""


class Hub:
    """A running server.

    Parameters
    ----------
    folder
        Repositories at ``owner/name``, each the files of one commit.

    Attributes
    ----------
    corrupt
        Name of a file of which one byte is changed on the way.
    refuse
        Status to answer with instead, such as 401, 403, 404 or 500; or None.
    redirect_files_to
        Address that every file is redirected to, or an empty string.
    also_listed
        What its listings hold beside the files of a repository: rows such as a hostile mirror
        could make up, with ``rfilename``, ``size`` and ``blobId``.
    false_commit
        What it calls the commit of every repository, None included, or an empty string.
    requests
        Method, path and Range header of every request, in order.
    elsewhere
        Requests for other hosts, of which it is the proxy: each is refused.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.corrupt = ""
        self.refuse: int | None = None
        self.redirect_files_to = ""
        self.also_listed: list[dict] = []
        self.false_commit: str | None = ""
        self.cut_after: list[int] = []
        """Bytes after which the connection is cut, for each of the next bodies."""
        self.hold = ""
        """A part of the path of the file that is held back in its middle until it is released."""
        self.held, self.released = threading.Event(), threading.Event()
        self.links: Path | None = None
        """Folder of what other hosts have, at ``host/path``, for those who ask by this proxy."""
        self.sent = 0
        """Bytes of files that were sent."""
        self.requests: list[tuple[str, str, str]] = []
        self.elsewhere: list[str] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def commit(self, name: str) -> str:
        """Return the repository's commit: 40 digits that change with its files."""
        digest = hashlib.sha1()
        for path in self.files(name):
            digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()

    def files(self, name: str) -> list[Path]:
        """Return the repository's files."""
        return sorted(path for path in (self.folder / name).rglob("*") if path.is_file())


@contextlib.contextmanager
def instead_of_the_real_one(folder: Path, scratch: Path) -> Iterator[Hub]:
    """Serve a folder as the only hub there is, with downloads, store and lock in a scratch folder.

    It is the mirror of other hosts, too, and what has to be placed by hand is in its place. It is
    also the proxy of every other address: a request for one is refused, and an error at the end.
    """
    with serving(folder) as hub, pytest.MonkeyPatch.context() as patch:
        for name in ("http_proxy", "https_proxy"):
            patch.setenv(name, hub.address)
        patch.setenv("no_proxy", "127.0.0.1,localhost")
        patch.setenv("HF_ENDPOINT", hub.address)
        patch.setenv("BIASLIB_MIRROR", f"{hub.address}/files")
        patch.setenv("BIASLIB_CACHE", str(scratch / "cache"))
        patch.setenv("BIASLIB_STORE", str(scratch / "store"))
        patch.setenv("BIASLIB_LOCK", str(scratch / "results" / "biaslib-lock.json"))
        patch.delenv("HF_TOKEN", raising=False)
        if (folder / BY_HAND).is_dir():
            shutil.copytree(folder / BY_HAND, scratch / "cache" / BY_HAND, dirs_exist_ok=True)
        # Else the first request of a process also asks huggingface.co which agents there are.
        patch.setattr("huggingface_hub.utils._detect_agent._registry", {})
        close_session()  # the client keeps the proxy with which it was made
        yield hub
        assert not hub.elsewhere, f"other hosts were asked: {hub.elsewhere}"
    close_session()


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Hub]:
    """Serve a folder of repositories until the block ends."""
    hub = Hub(folder)
    thread = threading.Thread(target=hub.server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.server.shutdown()
        hub.server.server_close()
        thread.join()


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    return type("Handler", (_Handler,), {"hub": hub})


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def log_message(self, *arguments) -> None:
        """Say nothing; requests are in ``Hub.requests``."""

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_CONNECT(self) -> None:
        self.hub.elsewhere.append(self.path)
        self._refuse(403)

    def _answer(self, with_body: bool) -> None:
        if not self.path.startswith("/"):
            return self._for_another_host(with_body)
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append((self.command, path, self.headers.get("Range", "")))
        if self.hub.refuse:
            return self._refuse(self.hub.refuse)
        parts = path.strip("/").split("/")
        if parts[0] == "api" and parts[1] in ("models", "datasets"):
            return self._about(parts[2:])
        parts = parts[1:] if parts[0] == "datasets" else parts
        if parts[0] == "files":
            return self._file(self.hub.folder.joinpath(*parts[1:]), "", with_body)
        if len(parts) >= 5 and parts[2] == "resolve":
            owner, name, _, asked, *file = parts
            path = self.hub.folder.joinpath(owner, name, *file)
            known = self.hub.commit(f"{owner}/{name}")
            return self._file(path, asked if COMMIT.fullmatch(asked) else known, with_body)
        return self._refuse(404)

    def _for_another_host(self, with_body: bool) -> None:
        """Answer what is asked of another host by this proxy: with its file, or with a refusal."""
        address = urlsplit(self.path)
        if self.hub.links is None:
            self.hub.elsewhere.append(self.path)
            return self._refuse(403)
        self.hub.requests.append((self.command, self.path, ""))
        path = self.hub.links / address.netloc / unquote(address.path).lstrip("/")
        return self._file(path, "", with_body)

    def _refuse(self, status: int) -> None:
        """Answer with a status and the header by which the hub says what is wrong."""
        codes = {401: "RepoNotFound", 403: "GatedRepo", 404: "RepoNotFound"}
        self.send_response(status)
        self.send_header("X-Error-Code", codes.get(status, ""))
        self.send_header("X-Error-Message", "as the test wants it")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _about(self, parts: list[str]) -> None:
        """Answer ``owner/name``, with ``revision/...`` or ``tree/...``."""
        name = "/".join(parts[:2])
        if not (self.hub.folder / name).is_dir():
            return self._refuse(404)
        asked = parts[3] if len(parts) > 3 else "main"
        if asked != "main" and not COMMIT.fullmatch(asked):
            return self._refuse(404)
        commit = self.hub.commit(name) if asked == "main" else asked
        commit = commit if self.hub.false_commit == "" else self.hub.false_commit
        root = self.hub.folder / name
        files = [_listed(path, root) for path in self.hub.files(name)] + self.hub.also_listed
        if parts[2:3] == ["tree"]:
            rows = [
                {"type": "file", "path": f["rfilename"], "oid": f["blobId"], **f} for f in files
            ]
            return self._send_json(rows)
        return self._send_json(
            {"id": name, "modelId": name, "sha": commit, "private": False, "siblings": files}
        )

    def _send_json(self, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _file(self, path: Path, commit: str, with_body: bool) -> None:
        if not path.is_file():
            return self._refuse(404)
        if self.hub.redirect_files_to:
            self.send_response(302)
            self.send_header("Location", self.hub.redirect_files_to)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        body = path.read_bytes()
        tag = f'"{_checksum(path, body)}"'
        start = self._start(tag)
        if start >= len(body) > 0 and start:
            return self._refuse(416)
        self.send_response(206 if start else 200)
        if commit:
            self.send_header("X-Repo-Commit", commit)
            self.send_header("X-Linked-Size", str(len(body)))
            self.send_header("X-Linked-Etag", tag)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("ETag", tag)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        if with_body:
            self._send(path.name, body, start)

    def _start(self, tag: str) -> int:
        """Return the first byte asked for: 0 if the file is no longer the one that was begun."""
        asked, condition = self.headers.get("Range", ""), self.headers.get("If-Range", tag)
        if not asked or condition != tag:
            return 0
        return int(asked.removeprefix("bytes=").split("-")[0])

    def _send(self, name: str, body: bytes, start: int) -> None:
        if name == self.hub.corrupt:
            middle = len(body) // 2
            body = body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :]
        body = body[start:]
        if self.hub.cut_after:
            body, self.close_connection = body[: self.hub.cut_after.pop(0)], True
        if self.hub.hold and self.hub.hold in self.path:
            self.wfile.write(body[: len(body) // 2])
            self.hub.sent += len(body) // 2
            self.close_connection = True
            self.hub.held.set()
            self.hub.released.wait()
            return
        self.wfile.write(body)
        self.hub.sent += len(body)


def _checksum(path: Path, body: bytes) -> str:
    """Return what the hub calls a file's content: the SHA-256 of a large one, or git's checksum."""
    if path.suffix in LARGE:
        return hashlib.sha256(body).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()


def _listed(path: Path, root: Path) -> dict:
    """Return what the hub tells of a file: git's checksum, and the SHA-256 of a large one."""
    body = path.read_bytes()
    blob = hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()
    name = path.relative_to(root).as_posix()
    about = {"rfilename": name, "size": len(body), "blobId": blob}
    if path.suffix in LARGE:
        sha256 = hashlib.sha256(body).hexdigest()
        about["lfs"] = {"sha256": sha256, "oid": sha256, "size": len(body), "pointerSize": 134}
    return about
