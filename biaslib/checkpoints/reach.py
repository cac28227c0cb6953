"""Whether sources answer: one header of each, all asked for at once, before anything is fetched."""

import concurrent.futures
import os
import urllib.parse
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from biaslib.checkpoints import client, downloads
from biaslib.checkpoints.names import SITE

__all__ = ["SILENT", "Refusal", "refusals"]

SECONDS = 4.0
"""For a connection, and for a header."""

SILENT = "no answer"


class Refusal(NamedTuple):
    """What is wrong with a source.

    Attributes
    ----------
    host
        Who was asked.
    why
        :data:`SILENT`, or what the host answers.
    fix
        What a person can do.
    """

    host: str
    why: str
    fix: str


def refusals(sources: Iterable[str]) -> dict[str, Refusal]:
    """Ask each source for one header, all at once; return what is wrong with those that fail.

    A source of several addresses fails if each of them does. It takes nine seconds at most.

    Parameters
    ----------
    sources
        As :class:`biaslib.models.Entry` writes them; ``data owner/name``, of a data set on the hub;
        or an address as such, for whose host any answer will do. What has none is not asked.
    """
    asked = {source: _addresses(source) for source in dict.fromkeys(sources)}
    pool = concurrent.futures.ThreadPoolExecutor(max(1, sum(map(len, asked.values()))))
    begun = {s: {a: pool.submit(_ask, s, a) for a in each} for s, each in asked.items()}
    every = [answer for answers in begun.values() for answer in answers.values()]
    concurrent.futures.wait(every, timeout=2 * SECONDS + 1)  # a name server may never answer
    pool.shutdown(wait=False, cancel_futures=True)
    found = {}
    for source, answers in begun.items():
        said = [each.result() if each.done() else _silent(at) for at, each in answers.items()]
        if said and all(said):
            found[source] = next((each for each in said if each.why != SILENT), said[0])
    return found


def _addresses(source: str) -> list[str]:
    """Return where a source is asked for: of the hub, whether this person may have it."""
    kind, _, name = source.partition(" ")
    if kind in ("hub", "data"):
        kind = "models" if kind == "hub" else "datasets"
        return [f"{os.environ.get('HF_ENDPOINT') or SITE}/api/{kind}/{name}/auth-check"]
    if kind not in ("url", "by"):
        return [downloads.mirrored(source)] if "://" in source else []
    _, names, addresses = downloads.place_of(downloads.entry_of(source), Path())
    return [downloads.mirrored(downloads.BRACES.sub(names[-1], each)) for each in addresses]


def _ask(source: str, address: str) -> Refusal | None:
    """Return what is wrong with the answer of an address, if anything is."""
    from huggingface_hub.utils import build_hf_headers

    of_hub, name = source.startswith(("hub ", "data ")), source.partition(" ")[2]
    headers = build_hf_headers() if of_hub else {"Accept-Encoding": "identity"}
    try:
        with client.session(retries=0) as asking:
            for method in ("HEAD", "GET")[of_hub:]:  # some hosts know the second alone
                how = {"headers": headers, "stream": True, "timeout": SECONDS}
                if (answer := asking.request(method, address, **how)).ok:
                    break
    except (OSError, ValueError):
        return _silent(address)
    host, status, entry = _host(address), answer.status_code, downloads.entry_of(source)
    by_hand = f"go by {downloads.steps_for(entry)}"
    if "://" in source.partition(" ")[0]:
        return Refusal(host, f"refuses ({status})", "wait some minutes") if status >= 500 else None
    if not of_hub:
        page = entry.name and answer.headers.get("Content-Type", "").startswith("text/html")
        why = "gives a web page in its place" if answer.ok else f"gives no file ({status})"
        return Refusal(host, why, by_hand) if page or not answer.ok else None
    if answer.headers.get("X-Error-Code") == "RepoNotFound":
        return Refusal(host, f"has no {name} ({status})", f"look for its new name, or {by_hand}")
    if status in (401, 403):
        page = f"{SITE}/{'datasets/' * source.startswith('data ')}{name}"
        fix = f"accept the terms on {page} and set HF_TOKEN to a token of yours"
        return Refusal(host, f"wants a token ({status})", fix)
    refused = status >= 400 and status != 404  # a mirror need not know the question
    return Refusal(host, f"refuses ({status})", "wait some minutes") if refused else None


def _host(address: str) -> str:
    return urllib.parse.urlsplit(address).netloc


def _silent(address: str) -> Refusal:
    mirrors = [name for name in ("HF_ENDPOINT", "BIASLIB_MIRROR") if os.environ.get(name)]
    return Refusal(_host(address), SILENT, " and ".join(["look at the connection", *mirrors]))
