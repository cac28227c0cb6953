"""One image asked for politely: public addresses alone, bounded in size and in time.

A server may be named by a link that a stranger wrote, so that each address is checked before
anything is sent to it, those that redirects lead to included.
"""

import contextlib
import ipaddress
import socket
import string
from time import monotonic
from typing import Any
from urllib.parse import quote, urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.exceptions import InvalidSchema, InvalidURL, MissingSchema

LARGEST = 30_000_000
"""Bytes of an image at most."""

SECONDS, DEADLINE = 20.0, 120.0
"""How long a server may be silent, and until when an image must have arrived."""

REDIRECTS, TRIES = 10, 3

PAUSE, LONGEST_PAUSE = 2.0, 60.0
"""Of seconds: factor of the pauses before a busy server is asked again; and those of its
Retry-After that are waited for at most."""

BUSY = (429, *range(500, 600))
"""Answers of a server that may have the image in a moment."""

HEADERS = {
    "User-Agent": "biaslib (research companion; images that papers link to)",
    "Accept-Encoding": "identity",
    "Connection": "close",
}

CHUNK = 1 << 16

NO_ADDRESS = (InvalidSchema, InvalidURL, MissingSchema, UnicodeError)

NAT64 = ipaddress.ip_network("64:ff9b::/96")
UNICAST = ipaddress.ip_network("2000::/3")
"""The addresses of IPv6 that lead to single hosts of the public network."""


class RefusedError(Exception):
    """An address that is not asked, or an answer that is not kept."""


def fetched(url: str) -> tuple[str, Any, bytes]:
    """Ask an address, if need be several times; return what went wrong, headers and body."""
    if not url or url.startswith("//"):
        reason = "an address without https: before it" if url else "no address"
        return f"refused: {reason}", {}, b""
    end = monotonic() + DEADLINE
    if _is_private(url):
        return "refused: address of a private network", {}, b""
    try:
        with (
            _session() as session,
            session.get(url, headers=HEADERS, stream=True, timeout=SECONDS) as response,
        ):
            if response.status_code != 200:
                return f"error {response.status_code}", response.headers, b""
            return "", response.headers, _body(response, end)
    except RefusedError as error:
        return str(error), {}, b""
    except NO_ADDRESS:
        return "refused: not an http or https address", {}, b""
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        return f"no answer: {type(error).__name__}", {}, b""


def _body(response: requests.Response, end: float) -> bytes:
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise RefusedError(f"encoded as {encoding[:30]}, which was not asked for")
    body = bytearray()
    for part in response.iter_content(CHUNK):
        body += part
        if len(body) > LARGEST:
            raise RefusedError(f"larger than {LARGEST / 1e6:.0f} MB")
        if monotonic() > end:
            raise requests.Timeout
    return bytes(body)


def _session() -> requests.Session:
    none = {"connect": 0, "read": 0, "other": 0, "raise_on_status": False}
    retry = _Patient(TRIES - 1, status_forcelist=BUSY, backoff_factor=PAUSE, **none)
    session = _Session()
    session.max_redirects = REDIRECTS
    for scheme in ("http://", "https://"):
        session.mount(scheme, _PublicOnly(max_retries=retry))
    return session


class _Session(requests.Session):
    """Follows a redirect whose address is not ASCII, byte by byte as the server wrote it."""

    def get_redirect_target(self, response: requests.Response) -> str | None:
        if not response.is_redirect:
            return None
        return quote(response.headers["location"], string.punctuation, "latin-1")


class _Patient(urllib3.Retry):
    """Retries after the pause that a server names, if it is not too long."""

    def get_retry_after(self, response: Any) -> float | None:
        with contextlib.suppress(urllib3.exceptions.InvalidHeader):
            return min(super().get_retry_after(response) or 0.0, LONGEST_PAUSE)
        return None


class _PublicOnly(HTTPAdapter):
    """Asks hosts of the public network, each of several redirects anew."""

    def init_poolmanager(self, *arguments: Any, **settings: Any) -> None:
        super().init_poolmanager(*arguments, **settings)
        self.poolmanager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}

    def send(self, request: requests.PreparedRequest, *arguments: Any, **settings: Any) -> Any:
        with contextlib.suppress(socket.gaierror):  # a name that only a proxy may know
            for found in _addresses(urlsplit(request.url).hostname):
                _require_public(found)
        return super().send(request, *arguments, **settings)


class _Public:
    """A connection whose other end is public, whatever the name of the host led to before."""

    def _new_conn(self) -> socket.socket:
        connected = super()._new_conn()
        try:
            _require_public(connected.getpeername()[0])
        except RefusedError:
            connected.close()
            raise
        return connected


class _Http(_Public, urllib3.connection.HTTPConnection):
    pass


class _Https(_Public, urllib3.connection.HTTPSConnection):
    pass


class _HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Http


class _HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _Https


def _is_private(url: str) -> bool:
    """Tell whether a link has a private address itself; that of a name may be another tomorrow."""
    with contextlib.suppress(OSError, ValueError):
        host = urlsplit(url).hostname
        return bool(host) and not all(map(is_public, _addresses(host, socket.AI_NUMERICHOST)))
    return False


def _addresses(host: str, flags: int = 0) -> list[str]:
    answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=flags)
    return [answer[4][0] for answer in answers]


def _require_public(address: str) -> None:
    """Refuse what a name, or a redirect, leads to: of a page to log in, or of a name server."""
    if not is_public(address):
        raise RefusedError("no answer: led to an address of a private network")


def is_public(host: str) -> bool:
    """Tell whether an address is one host's of the public network.

    Examples
    --------
    >>> every = ("8.8.8.8", "64:ff9b::808:808", "64:ff9b::a00:1", "2002:a00:1::", "224.0.0.1")
    >>> [is_public(each) for each in every]
    [True, True, False, False, False]
    """
    address = ipaddress.ip_address(host)
    if address in NAT64:  # an address of IPv4, by way of a gateway
        address = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.version == 4:
        return address.is_global and not address.is_multicast
    # Others of IPv6 may hold an address of IPv4, and that of any network.
    return address in UNICAST and address.is_global and not (address.sixtofour or address.teredo)
