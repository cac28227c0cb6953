"""Answers of servers: one way to ask for a file, bounded in time and size, checked as it arrives.

Images of links and checkpoints are both asked for here, through httpx.
"""

import contextlib
import contextvars
import math
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic

import httpcore
import httpx

__all__ = ["AnswerError", "Asker", "RefusedError", "blocks", "is_page", "length"]

SECONDS = 20
"""How long a server may be silent."""

PACE = 1 << 20
"""Bytes of a long answer for which there is more time."""

REDIRECTS = 10
"""How often an address may lead to another one."""

HEADERS = {
    "User-Agent": "biaslib (research companion; images and checkpoints that papers link to)",
    "Accept-Encoding": "identity",
}

PAGES = (b"<!doctype", b"<!--", b"<html", b"<head", b"<body", b"<title", b"<?xml", b"<script")
"""How web pages begin, which some servers send in place of a file."""

BROKEN = (
    *(httpx.HTTPError, httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError),
    httpcore.UnsupportedProtocol,
)

_end: contextvars.ContextVar[float] = contextvars.ContextVar("_end", default=math.inf)
"""When the answer that this thread waits for must have arrived."""


class AnswerError(Exception):
    """An answer that is none, or not what was asked for; its text says what came instead."""


class RefusedError(AnswerError):
    """An address that is not asked."""


class Asker:
    """Asks servers for files, from any thread; close it, or use it as a context manager.

    Encodings are not asked for, and redirects are followed without reading what comes with them.
    Where the environment names a proxy, that one connects: the deadline then holds between the
    pieces that arrive, and ``addresses`` is not asked.

    Parameters
    ----------
    require
        Called with every request, of redirects too; raises an error for those that must not be
        made.
    addresses
        Host -> the addresses to connect to, in this order; the host itself where it is left out.
    """

    def __init__(
        self,
        require: Callable[[httpx.Request], None],
        addresses: Callable[[str], Iterable[str]] = lambda host: [host],
    ) -> None:
        self.require = require
        proxies = urllib.request.getproxies()
        proxied = any(proxies.get(scheme) for scheme in ("http", "https", "all"))
        transport = None if proxied else _Transport(addresses)
        self.client = httpx.Client(transport=transport, headers=HEADERS, timeout=SECONDS)

    def __enter__(self) -> "Asker":
        return self

    def __exit__(self, *error: object) -> None:
        self.client.close()

    @contextlib.contextmanager
    def __call__(
        self, url: str, seconds: float = math.inf, headers: Mapping[str, str] | None = None
    ) -> Iterator[httpx.Response]:
        """Ask for a file; its body is read by :func:`blocks` while the block lasts.

        Parameters
        ----------
        url
            The address.
        seconds
            Until the answer must be complete, body included.
        headers
            Sent to this host, an authorization to no other.

        Raises
        ------
        AnswerError
            If the connection fails or the time is up, during the block too; RefusedError for what
            is no address.
        """
        before = _end.set(monotonic() + seconds)
        try:
            with contextlib.closing(self._answer(url, headers)) as response:
                yield response
        except BROKEN as error:
            late = f"no whole answer within {seconds:g} s"
            told = late if monotonic() >= _end.get() else f"no answer: {type(error).__name__}"
            raise AnswerError(told) from error
        finally:
            _end.reset(before)

    def _answer(self, url: str, headers: Mapping[str, str] | None) -> httpx.Response:
        try:
            request = self.client.build_request("GET", url, headers=headers)
            for _ in range(REDIRECTS + 1):
                self.require(request)
                response = self.client.send(request, stream=True)
                if response.next_request is None:
                    return response
                response.close()
                request = response.next_request
        except (httpx.InvalidURL, ValueError) as error:  # no host, a long label, a NUL, a bad IDN
            raise RefusedError("refused: not an address") from error
        raise httpx.TooManyRedirects(f"more than {REDIRECTS} redirects")


def blocks(response: httpx.Response, largest: float = math.inf, pace: float = 0) -> Iterator[bytes]:
    """Yield the body of an answer as it arrives.

    Parameters
    ----------
    response
        As :class:`Asker` gives it.
    largest
        Bytes at most.
    pace
        Seconds that each further :data:`PACE` of bytes may take, in place of the time that the
        whole answer was given; 0 keeps that.

    Raises
    ------
    AnswerError
        If it is encoded, or larger: before it arrives where the server says so.
    """
    encoding = response.headers.get("Content-Encoding", "identity").strip()
    if encoding.lower() not in ("", "identity"):
        raise AnswerError(f"encoded as {encoding[:30]}, which was not asked for")
    _require_size(length(response) or 0, largest)
    size = 0
    for block in response.iter_raw():
        if pace and (size + len(block)) // PACE > size // PACE:
            _end.set(monotonic() + pace)
        size += len(block)
        _require_size(size, largest)
        _left()
        yield block


def _require_size(size: int, largest: float) -> None:
    if size > largest:
        raise AnswerError(f"larger than {largest / 1e6:.0f} MB")


def length(response: httpx.Response) -> int | None:
    """Return the bytes that an answer announces; ``None`` for one in chunks, or without a length.

    Examples
    --------
    >>> length(httpx.Response(200, content=b"abc"))
    3
    """
    if "Transfer-Encoding" in response.headers or "Content-Length" not in response.headers:
        return None
    return int(response.headers["Content-Length"])


def is_page(start: bytes) -> bool:
    r"""Tell whether a file that begins like this is a web page.

    Examples
    --------
    >>> is_page(b"\xef\xbb\xbf \n<!DOCTYPE html>"), is_page(b"\x89PNG")
    (True, False)
    """
    return start.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(PAGES)


# Connections


def _left(timeout: float | None = None) -> float | None:
    """Return the seconds that an operation may take, of those that are left for the answer."""
    left = _end.get() - monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("the time for this answer is up")
    if timeout is None:
        return None if left == math.inf else left
    return min(timeout, left)


class _Transport(httpx.BaseTransport):
    """httpx's way to httpcore, with connections of our own."""

    def __init__(self, addresses: Callable[[str], Iterable[str]]) -> None:
        self.pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=None,
            max_keepalive_connections=20,
            keepalive_expiry=5,
            network_backend=_Backend(addresses),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        found = self.pool.handle_request(asked)
        return httpx.Response(found.status, headers=found.headers, stream=_Body(found))

    def close(self) -> None:
        self.pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self.response = response

    def __iter__(self) -> Iterator[bytes]:
        return self.response.iter_stream()

    def close(self) -> None:
        self.response.close()


class _Backend(httpcore.SyncBackend):
    """Connects to the very addresses that were checked, and ends what takes too long."""

    def __init__(self, addresses: Callable[[str], Iterable[str]]) -> None:
        self.addresses = addresses

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *rest: object, **more: object
    ) -> httpcore.NetworkStream:
        failed: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in self.addresses(host):
            try:
                stream = super().connect_tcp(address, port, _left(timeout), *rest, **more)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
            else:
                return _Stream(stream)
        raise failed


class _Stream(httpcore.NetworkStream):
    """A connection whose every operation ends when the time for the answer is up."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self.stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self.stream.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.stream.write(buffer, _left(timeout))

    def close(self) -> None:
        self.stream.close()

    def start_tls(self, *of: object, timeout: float | None = None, **more: object) -> "_Stream":
        return _Stream(self.stream.start_tls(*of, timeout=_left(timeout), **more))

    def get_extra_info(self, info: str) -> object:
        return self.stream.get_extra_info(info)
