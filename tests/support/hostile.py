"""A server on this machine's loopback that answers badly, each way under a name of its own.

``{address}/{name}/...`` is answered by the function of that name in :data:`BEHAVIOURS`, the same
way every time. A connection carries one answer.
"""

import contextlib
import gzip
import http.client
import io
import os
import re
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from unittest import mock

from PIL import Image
from support.servers import answering

from biaslib.datasets import _fetcher

PAGE = b"<!DOCTYPE html><html><body>Sign in to continue</body></html>"
BEGUN = 1_000
"""Bytes of a file after which those behaviours stop that let a download be gone on with."""

CHUNK = 1 << 16
ENDLESS = 200_000_000
"""Bytes after which an answer without an end is broken off."""


def picture() -> bytes:
    """Return a small JPEG file."""
    stream = io.BytesIO()
    Image.new("RGB", (40, 30), "teal").save(stream, "JPEG")
    return stream.getvalue()


class Hostile:
    """A running server.

    Attributes
    ----------
    body
        The file that it pretends to have.
    interval
        Seconds between the bytes of a slow answer.
    busy
        Path -> the answers before its own: a status each, and the header Retry-After or None.
    requests
        The path of every request, in order.
    headers
        The headers of every request, in order.
    """

    def __init__(self, body: bytes) -> None:
        self.body, self.interval = body, 0.02
        self.busy: dict[str, list[tuple[int, str | None]]] = {}
        self.requests: list[str] = []
        self.headers: list[http.client.HTTPMessage] = []
        self.ended = threading.Event()
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Handler)
        self.server.daemon_threads, self.server.hostile = True, self
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"


@contextlib.contextmanager
def serving(body: bytes = b"") -> Iterator[Hostile]:
    """Serve until the block ends; without a body it is a small picture."""
    hostile = Hostile(body or picture())
    with answering(hostile.server):
        try:
            yield hostile
        finally:
            hostile.ended.set()


class Answer:
    """What a behaviour answers with: raw bytes, or a head and then bytes."""

    def __init__(self, handler: "_Handler", path: str, headers: http.client.HTTPMessage) -> None:
        self.hostile, self.connection = handler.server.hostile, handler.connection
        self.send, self.path = handler.wfile.write, path
        asked = re.fullmatch(r"bytes=(\d+)-", headers.get("Range", ""))
        self.start = int(asked.group(1)) if asked else 0

    @property
    def body(self) -> bytes:
        return self.hostile.body

    def head(self, status: int = 200, **headers: object) -> None:
        """Send a status and headers, whose underscores are hyphens."""
        lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, 'Odd')}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1"))

    def whole(self, body: bytes, status: int = 200, **headers: object) -> None:
        """Send a complete answer."""
        self.head(status, Content_Length=len(body), **headers)
        self.send(body)

    def begun(self) -> None:
        """Break off after the first bytes of a file that can be gone on with."""
        self.head(Content_Length=len(self.body), ETag='"one"')
        self.send(self.body[:BEGUN])

    def drip(self, content: bytes) -> None:
        """Send a byte at a time."""
        for byte in content:
            if self.hostile.ended.wait(self.hostile.interval):
                return
            self.send(bytes([byte]))

    def zeros(self) -> None:
        """Send chunks as if they had no end: no more than a disk has room for, were all kept."""
        for _ in range(ENDLESS // CHUNK):
            self.send(b"%x\r\n" % CHUNK + bytes(CHUNK) + b"\r\n")


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            words = self.rfile.readline().decode("latin-1").split()
            headers = http.client.parse_headers(self.rfile)
            path = words[1] if len(words) > 1 else "/"
            self.server.hostile.requests.append(path)
            self.server.hostile.headers.append(headers)
            answer = Answer(self, path, headers)
            if self.server.hostile.busy.get(path):
                number, wait = self.server.hostile.busy[path].pop(0)
                return answer.whole(b"", number, **({"Retry_After": wait} if wait else {}))
            BEHAVIOURS.get(path.split("/")[1], _not_found)(answer)


def _not_found(answer: Answer) -> None:
    answer.whole(b"", 404)


BEHAVIOURS: dict[str, Callable[[Answer], None]] = {}


def _named(behaviour: Callable[[Answer], None]) -> Callable[[Answer], None]:
    BEHAVIOURS[behaviour.__name__] = behaviour
    return behaviour


def _always(name: str, body: bytes | None = None, status: int = 200, **headers: object) -> None:
    BEHAVIOURS[name] = lambda answer: answer.whole(
        answer.body if body is None else body, status, **headers
    )


# Answers that are complete


@_named
def good(answer: Answer) -> None:
    """Answer as a server should, parts of the file included."""
    if not answer.start:
        return answer.whole(answer.body, ETag='"one"')
    last, size = len(answer.body) - 1, len(answer.body)
    span = f"bytes {answer.start}-{last}/{size}"
    answer.whole(answer.body[answer.start :], 206, ETag='"one"', Content_Range=span)


@_named
def status(answer: Answer) -> None:
    """Answer ``/status/503`` with 503 and the file, as for any other number."""
    answer.whole(answer.body, int(answer.path.split("/")[2]))


_always("empty", b"")
_always("login_page", PAGE, Content_Type="text/html; charset=utf-8")
_always("login_page_as_image", b"\xef\xbb\xbf<!-- us --> \n" + PAGE, Content_Type="image/jpeg")
_always("login_json", b'{"error": "log in"}', Content_Type="application/json")
_always("picture_as_page", Content_Type="text/html")
_always("noise", bytes(range(256)) * 8, Content_Type="image/jpeg")
_always("unasked_part", status=206)


# Encodings and sizes


@_named
def gzipped(answer: Answer) -> None:
    """Encode the file, asked for or not."""
    answer.whole(gzip.compress(answer.body), Content_Encoding="gzip")


@_named
def endless(answer: Answer) -> None:
    """Send far too many zeros, without saying how many."""
    answer.head(Transfer_Encoding="chunked")
    answer.zeros()


# Lengths and ranges


@_named
def truncated(answer: Answer) -> None:
    """Announce more than is sent."""
    answer.head(Content_Length=len(answer.body) + 100)
    answer.send(answer.body)


@_named
def truncated_without_length(answer: Answer) -> None:
    """Send half the file and no length."""
    answer.head()
    answer.send(answer.body[: len(answer.body) // 2])


@_named
def without_length(answer: Answer) -> None:
    """Send the whole file and no length."""
    answer.head()
    answer.send(answer.body)


@_named
def more_than_announced(answer: Answer) -> None:
    """Break off, and then announce a part of the file and send more."""
    if not answer.start:
        return answer.begun()
    span = f"bytes {answer.start}-{len(answer.body) - 1}/{len(answer.body)}"
    answer.whole(answer.body[answer.start :] + bytes(50), 206, ETag='"one"', Content_Range=span)


@_named
def wrong_range(answer: Answer) -> None:
    """Break off, and then go on from elsewhere."""
    if not answer.start:
        return answer.begun()
    start, size = answer.start - 500, len(answer.body)
    span = f"bytes {start}-{size - 1}/{size}"
    answer.whole(answer.body[start:], 206, ETag='"one"', Content_Range=span)


@_named
def range_without_span(answer: Answer) -> None:
    """Break off, and then send what may be any part."""
    if not answer.start:
        return answer.begun()
    answer.whole(answer.body[500:], 206, ETag='"one"')


@_named
def never_the_range(answer: Answer) -> None:
    """Break off, and then refuse every range."""
    if not answer.start:
        return answer.begun()
    answer.whole(b"", 416)


@_named
def two_lengths(answer: Answer) -> None:
    """Give two lengths."""
    answer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\n1234567")


@_named
def cut_chunk(answer: Answer) -> None:
    """End within a chunk."""
    answer.head(Transfer_Encoding="chunked")
    answer.send(b"ffff\r\n" + answer.body)


# Slow ones, and ones that are no server


@contextlib.contextmanager
def permitted(seconds: float = 1.0) -> Iterator[None]:
    """Let this machine's loopback count as public, and give up soon on it; ask again at once."""
    public = _fetcher.is_public
    with (
        mock.patch.object(_fetcher, "is_public", lambda host: host == "127.0.0.1" or public(host)),
        mock.patch.multiple(_fetcher, SECONDS=seconds, DEADLINE=seconds, PAUSE=0.0),
    ):
        yield


@_named
def slow(answer: Answer) -> None:
    """Send the file a byte at a time."""
    answer.head(Content_Length=len(answer.body))
    answer.drip(answer.body)


@_named
def silent(answer: Answer) -> None:
    """Answer nothing."""
    answer.hostile.ended.wait()


@_named
def reset(answer: Answer) -> None:
    """Break the connection off in the middle of the file."""
    answer.head(Content_Length=len(answer.body))
    answer.send(answer.body[:100])
    answer.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(answer.connection.detach())


@_named
def not_http(answer: Answer) -> None:
    """Answer as another kind of server."""
    answer.send(b"SSH-2.0-OpenSSH_9.6\r\n")


# Redirects

ELSEWHERE = {
    "redirect_loop": "/redirect_loop",
    "redirect_to_login": "/login_page",
    "redirect_to_private": "http://10.0.0.1/secret.jpg",
    "redirect_to_file": "file:///etc/hostname",
    "redirect_in_utf8": "/good/müller.png?a=1%20b".encode().decode("latin-1"),
    "redirect_in_latin1": "/good/müller.png?a=1%20b",
}
for _name, _place in ELSEWHERE.items():
    _always(_name, b"", 302, Location=_place)
