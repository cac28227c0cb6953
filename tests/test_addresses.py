"""``make addresses``: what servers say of the registry's addresses, on servers of this machine."""

import dataclasses
import hashlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas
import pytest
from support import repositories
from support.hub import instead_of_the_real_one
from support.servers import answering

from biaslib import models

BERT = models.REGISTRY["bert"]
DATE = "Tue, 01 Sep 2020 10:00:00 GMT"


class Files(BaseHTTPRequestHandler):
    """A server of which one file is whole, one does not answer to HEAD, and others are gone."""

    asked: list[str]

    def log_message(self, *arguments):
        """Say nothing."""

    def do_HEAD(self):
        self.asked.append(f"HEAD {self.path}")
        if self.path == "/no-head.bin":
            self.answer(405)
        elif self.path == "/whole.bin":
            headers = {"Content-Length": "262000000", "ETag": '"abc-32"', "Last-Modified": DATE}
            self.answer(200, headers | {"x-goog-hash": "md5=aaa"})
        elif self.path == "/page.bin":
            self.answer(200, {"Content-Type": "text/html; charset=utf-8"})
        else:
            self.answer(404)

    def do_GET(self):
        self.asked.append(f"GET {self.path} {self.headers.get('Range')}")
        self.answer(206, {"Content-Range": "bytes 0-511/12345", "Content-Length": "512"})

    def answer(self, status, headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()


@pytest.fixture
def addresses(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "tools")
    import addresses

    return addresses


@pytest.fixture
def server():
    handler = type("Handler", (Files,), {"asked": []})
    with answering(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as address:
        yield address, handler.asked


def test_headers_alone_tell_size_date_and_hash(addresses, server):
    host, asked = server
    row = addresses.asked(f"{host}/whole.bin")
    assert row["problem"] == ""
    assert (row["bytes"], row["date"], row["etag"]) == ("262000000", DATE, '"abc-32"')
    assert row["hash"] == "x-goog-hash md5=aaa"
    assert asked == ["HEAD /whole.bin"]


def test_the_first_bytes_are_asked_for_where_head_is_refused(addresses, server):
    host, asked = server
    row = addresses.asked(f"{host}/no-head.bin")
    assert (row["problem"], row["bytes"]) == ("", "12345")
    assert asked == ["HEAD /no-head.bin", "GET /no-head.bin bytes=0-511"]


def test_what_died_is_named_and_a_model_without_any_address_fails(
    addresses, server, tmp_path, monkeypatch, capsys
):
    host, _ = server
    alive = dataclasses.replace(
        BERT,
        name="alive",
        source=f"url {host}/gone/whole.bin",
        mirrors=(f"{host}/gone/too/whole.bin", f"{host}/whole.bin"),
    )
    lost = dataclasses.replace(BERT, name="lost", source=f"url {host}/page.bin", mirrors=())
    monkeypatch.setattr(addresses.models, "REGISTRY", {"alive": alive})
    assert addresses.main(tmp_path / "a.csv") == 0
    told = capsys.readouterr().out
    assert f"dead: alive: {host}/gone/whole.bin: 404" in told
    assert f"dead: alive: {host}/gone/too/whole.bin: 404" in told
    assert "1 of 3 addresses answer" in told
    monkeypatch.setattr(addresses.models, "REGISTRY", {"alive": alive, "lost": lost})
    assert addresses.main(tmp_path / "a.csv") == 1
    told = capsys.readouterr().out
    assert f"dead: lost: {host}/page.bin: a web page in place of a file" in told
    assert "no address left: lost page.bin" in told
    written = pandas.read_csv(tmp_path / "a.csv")
    assert list(written.columns) == addresses.COLUMNS
    assert len(written) == 4


def test_the_hub_says_size_and_sha256_of_weights(addresses, tmp_path):
    served = tmp_path / "served"
    repositories.build("bert", served)
    weights = served / "google-bert" / "bert-base-uncased" / "model.safetensors"
    with instead_of_the_real_one(served, tmp_path):
        rows = {Path(row["address"]).name: row for row in addresses.rows_of(BERT)}
        gone = dataclasses.replace(BERT, source="hub nobody/nothing")
        (lost,) = addresses.rows_of(gone)
    found = rows["model.safetensors"]
    assert found["hash"] == f"sha256 {hashlib.sha256(weights.read_bytes()).hexdigest()}"
    assert found["bytes"] == weights.stat().st_size
    assert "404" in lost["problem"] or "NotFound" in lost["problem"]


def test_every_model_outside_a_package_has_an_address(addresses):
    for entry in models.REGISTRY.values():
        outside = addresses.addresses_of(entry) or entry.source.startswith(("hub ", "by hand "))
        assert bool(outside) != entry.source.startswith(("package ", "planted "))
        assert all(each.startswith("https://") for each in addresses.addresses_of(entry))
        assert not any("{" in each for each in addresses.addresses_of(entry))
