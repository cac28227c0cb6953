"""One image asked for politely: public addresses alone, bounded in time and size.

A server may be named by a link that a stranger wrote, so that each address is checked before it is
connected to, those that redirects and name servers give included.
"""

import contextlib
import email.utils
import functools
import http.client
import ipaddress
import socket
import ssl
import threading
import urllib.request
from time import monotonic, sleep, time
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

HERE = "here"
"""The outcome of an answer that has arrived; others say what went wrong."""

BUSY = ("error 429", "error 5")
"""Outcomes of a server that may answer in a moment."""

LARGEST = 30_000_000
"""Bytes of an image at most."""

SECONDS, DEADLINE = 20.0, 120.0
"""How long a server may be silent, and until when an image must have arrived."""

REDIRECTS, TRIES = 10, 3

PAUSE, LONGEST_PAUSE = 2.0, 60.0
"""Seconds before a busy server is asked again, twice as many before the third time; and those of
its Retry-After that are waited for at most."""

HEADERS = {
    "User-Agent": "biaslib (research companion; images that papers link to)",
    "Accept-Encoding": "identity",
    "Connection": "close",
}

KEPT = "!#$%&'()*+,/:;=?@[]~"
"""Characters of an address that are sent as they are."""

NAT64 = ipaddress.ip_network("64:ff9b::/96")
UNICAST = ipaddress.ip_network("2000::/3")
"""The addresses of IPv6 that lead to single hosts of the public network."""


class RefusedError(Exception):
    """An address that is not asked, or an answer that is not kept."""


def tried(url: str) -> tuple[str, Any, bytes]:
    """Return the outcome of asking an address, if need be several times; headers and body."""
    if not url or url.startswith("//"):
        told = "an address without https: before it" if url else "no address"
        return f"refused: {told}", {}, b""
    for attempt in range(TRIES):
        outcome, headers, body = _fetched(url)
        if not outcome.startswith(BUSY) or attempt == TRIES - 1:
            break
        sleep(max(PAUSE * 2**attempt, _retry_after(headers)))
    return outcome, headers, body


def _fetched(url: str, seconds: float = DEADLINE) -> tuple[str, Any, bytes]:
    """Return the outcome of asking an address once, headers and body."""
    end, sockets = monotonic() + seconds, []
    timer = threading.Timer(seconds, _break_off, [sockets])
    timer.daemon = True
    timer.start()
    try:
        with contextlib.closing(_answer(url, sockets, end)) as response:
            outcome = HERE if response.status == 200 else f"error {response.status}"
            body = _body(response) if outcome == HERE else b""
            if monotonic() >= end:
                raise TimeoutError
            return outcome, response.headers, body
    except RefusedError as error:
        return str(error), {}, b""
    except (http.client.HTTPException, OSError) as error:
        late = monotonic() >= end
        told = f"whole answer within {seconds:g} s" if late else f"answer: {type(error).__name__}"
        return f"no {told}", {}, b""
    except ValueError:  # no host, a long label, a NUL, a bad IDN
        return "refused: not an address", {}, b""
    finally:
        timer.cancel()
        for each in sockets:
            each.close()


def _break_off(sockets: list[socket.socket]) -> None:
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _answer(url: str, sockets: list[socket.socket], end: float) -> Any:
    """Ask an address, and those that it leads to; what comes with a redirect is not read."""
    for _ in range(REDIRECTS + 1):
        response = _asked(url, sockets)
        place = response.headers.get("Location")
        if not (place and response.status in (301, 302, 303, 307, 308)):
            return response
        response.close()
        if monotonic() >= end:
            raise TimeoutError
        url = urljoin(url, place)
    raise http.client.HTTPException("too many redirects")


def _asked(url: str, sockets: list[socket.socket]) -> Any:
    """Ask a public address: the very one that was checked, or through the environment's proxy."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise RefusedError("refused: not an http or https address")
    host, tls = parts.hostname or "", parts.scheme == "https"
    port, proxy = parts.port or (443 if tls else 80), urllib.request.getproxies().get(parts.scheme)
    path = quote(f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}", safe=KEPT)
    if proxy and not urllib.request.proxy_bypass(host):
        with contextlib.suppress(socket.gaierror):
            _public_addresses(host)
        place = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=SECONDS)
        if tls:
            connection = http.client.HTTPSConnection(
                place.hostname, place.port, timeout=SECONDS, context=_context()
            )
            connection.set_tunnel(host, port)
        path = path if tls else f"http://{parts.netloc}{path}"
    else:
        connection = http.client.HTTPConnection(parts.netloc.rpartition("@")[2])
        connection.sock = _connected(_public_addresses(host), port)
        sockets.append(connection.sock.dup())
        if tls:
            connection.sock = _context().wrap_socket(connection.sock, server_hostname=host)
        sockets.append(connection.sock)
    connection.request("GET", path, headers=HEADERS)
    return connection.getresponse()


def _connected(addresses: list[str], port: int) -> socket.socket:
    """Connect to the first of several addresses that can be reached."""
    for each in addresses[:-1]:
        with contextlib.suppress(OSError):
            return socket.create_connection((each, port), SECONDS)
    return socket.create_connection((addresses[-1], port), SECONDS)


@functools.cache
def _context() -> ssl.SSLContext:
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


def _body(response: Any) -> bytes:
    """Return the body of an answer, as long as it is no longer than an image may be."""
    if (encoding := response.headers.get("Content-Encoding", "identity")) != "identity":
        raise RefusedError(f"encoded as {encoding[:30]}, which was not asked for")
    announced = response.headers.get("Content-Length", "")
    announced = int(announced) if announced.isdecimal() else None
    body = response.read(LARGEST + 1) if (announced or 0) <= LARGEST else b""
    if max(announced or 0, len(body)) > LARGEST:
        raise RefusedError(f"larger than {LARGEST / 1e6:.0f} MB")
    if announced is not None and len(body) < announced:
        raise http.client.IncompleteRead(body, announced - len(body))
    return body


def _retry_after(headers: Any) -> float:
    """Return the seconds of the header Retry-After, which gives seconds or a date; 0 without it."""
    value = headers.get("Retry-After", "0").strip()
    try:
        date = email.utils.parsedate_to_datetime
        seconds = float(value) if value.isdecimal() else date(value).timestamp() - time()
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(max(seconds, 0.0), LONGEST_PAUSE)


def _leads_out(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Tell whether an address is one host's of the public network, one that it embeds included.

    Examples
    --------
    >>> every = ("8.8.8.8", "64:ff9b::808:808", "64:ff9b::a00:1", "2002:a00:1::", "224.0.0.1")
    >>> [_leads_out(ipaddress.ip_address(each)) for each in every]
    [True, True, False, False, False]
    """
    if address.version == 4:
        return address.is_global and not address.is_multicast
    embedded = address.ipv4_mapped
    if address in NAT64:
        embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if embedded:
        return _leads_out(embedded)
    tunnelled = address.sixtofour or address.teredo
    return address.is_global and address in UNICAST and not tunnelled


def _addresses(host: str) -> list[str]:
    return [found[4][0] for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def _public_addresses(host: str) -> list[str]:
    """Return the addresses of a host, each checked: names may lead elsewhere a moment later."""
    found = _addresses(host)
    if not all(_is_public(each) for each in found):
        raise RefusedError("refused: address of a private network")
    return found


def _is_public(host: str) -> bool:
    return all(_leads_out(ipaddress.ip_address(each)) for each in _addresses(host))
