"""The client that files of other hosts than the hub come by: patient, and over https alone."""

import urllib.parse
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import Retry

RETRIES, BUSY = 2, (429, 500, 502, 503, 504)
"""How often a host is asked again that does not answer, or answers so."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Encrypted(HTTPAdapter):
    """Asks over encrypted connections alone, each of several redirects anew."""

    def send(self, request: requests.PreparedRequest, *arguments: Any, **settings: Any) -> Any:
        """Ask, or refuse an address that is not https and none of this machine."""
        place = urllib.parse.urlsplit(request.url)
        if place.scheme != "https" and place.hostname not in LOOPBACK:
            raise ValueError(f"{request.url} is not an https address")
        return super().send(request, *arguments, **settings)


def session(retries: int = RETRIES) -> requests.Session:
    """Return a client that asks a busy host again."""
    client = requests.Session()
    for scheme in ("http://", "https://"):
        retry = Retry(retries, backoff_factor=0.5, status_forcelist=BUSY, raise_on_status=False)
        client.mount(scheme, Encrypted(max_retries=retry))
    return client
