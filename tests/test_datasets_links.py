"""Lists of links, against a server on this machine."""

import email.utils
import http.server
import io
import threading
import time

import httpx
import pandas
import pytest
from PIL import Image

from biaslib import datasets
from biaslib.datasets import links, ross2021
from biaslib.models.images import open_image


def jpeg(colour):
    stream = io.BytesIO()
    Image.new("RGB", (9, 7), colour).save(stream, "JPEG")
    return stream.getvalue()


class Answers(http.server.BaseHTTPRequestHandler):
    """Pictures, and each way in which a link can be dead, or a server busy."""

    asked: list[str] = []  # noqa: RUF012
    busy: dict[str, list] = {}  # noqa: RUF012
    """Path -> the answers before the picture: status and the header Retry-After."""

    def do_GET(self):
        self.asked.append(self.path)
        if self.busy.get(self.path):
            status, wait = self.busy[self.path].pop(0)
            self.send_response(status)
            if wait:
                self.send_header("Retry-After", wait)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", "http://10.0.0.1/secret.jpg")
            self.end_headers()
            return
        if self.path == "/astray":
            self.send_response(302)
            self.send_header("Location", "http://a..b/x.jpg")
            self.end_headers()
            return
        body = {"/page": b"<html>sold</html>", "/cut": jpeg("red")[:-40]}.get(self.path)
        body = jpeg(self.path[1:]) if self.path in ("/red", "/blue") else body
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    Answers.asked, Answers.busy = [], {}
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    real = links._is_public
    monkeypatch.setattr(links, "_is_public", lambda host: host == "127.0.0.1" or real(host))
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()
    thread.join()


def table(server, *names):
    rows = [("weat6", "targ1", f"weat6/targ1/{name}.jpg", f"{server}/{name}") for name in names]
    return pandas.DataFrame(rows, columns=["test", "group", "file", "url"])


def test_every_link_is_accounted_for(server, tmp_path):
    names = ["red", "blue", "gone", "page", "cut", "moved"]
    found = datasets.download_images(table(server, *names), tmp_path).set_index("file")
    outcomes = [found.loc[f"weat6/targ1/{name}.jpg", "outcome"] for name in names]
    assert outcomes[:3] == ["here", "here", "error 404"]
    assert outcomes[3].startswith("not an image: is not an image that Pillow reads")
    assert outcomes[4].startswith("not an image: is truncated")
    assert outcomes[5] == "refused: address of a private network"
    assert open_image(tmp_path / "weat6/targ1/blue.jpg").size == (9, 7)
    assert found.loc["weat6/targ1/red.jpg", "bytes"] == str(len(jpeg("red")))
    assert not list(tmp_path.rglob("*.part"))
    counted = datasets.coverage(found.reset_index()).iloc[0]
    assert counted[["links", "here", "share"]].tolist() == [6, 2, 2 / 6]
    assert "error 404 (1)" in counted["reasons"]


def test_what_is_settled_is_not_asked_again(server, tmp_path):
    wanted = table(server, "red", "blue", "gone")
    datasets.download_images(wanted, tmp_path)
    (tmp_path / "weat6/targ1/red.jpg").unlink()
    (tmp_path / "weat6/targ1/blue.jpg").write_bytes(b"changed")
    Answers.asked.clear()
    found = datasets.download_images(wanted, tmp_path)
    assert sorted(Answers.asked) == ["/blue", "/red"]
    assert found["outcome"].tolist() == ["here", "here", "error 404"]
    datasets.download_images(wanted, tmp_path, again=True)
    assert Answers.asked[-1] == "/gone"


@pytest.fixture
def pauses(monkeypatch):
    """What was slept, without sleeping."""
    slept = []
    monkeypatch.setattr(links, "sleep", slept.append)
    return slept


def test_a_busy_server_is_asked_again_after_the_pause_that_it_names(server, tmp_path, pauses):
    Answers.busy = {
        "/red": [(429, "7"), (503, None)],
        "/blue": [(500, None), (429, "999")],
    }
    found = datasets.download_images(table(server, "red", "blue"), tmp_path, n_workers=1)
    assert found["outcome"].tolist() == ["here", "here"]
    assert Answers.asked == ["/red"] * 3 + ["/blue"] * 3
    assert pauses == [7.0, 4.0, 2.0, links.LONGEST_PAUSE]


def test_a_server_may_name_a_date(server, tmp_path, pauses):
    past = "Wed, 21 Oct 2015 07:28:00 GMT"
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    Answers.busy = {"/red": [(429, date), (429, past)], "/blue": [(429, "soon")]}
    datasets.download_images(table(server, "red", "blue"), tmp_path, n_workers=1)
    assert pauses == [pytest.approx(30, abs=3), 4.0, 2.0]


def test_what_may_yet_answer_is_asked_by_the_next_run_and_what_is_gone_is_not(
    server, tmp_path, pauses
):
    names = ["red", "blue", "green", "gone", "removed", "page", "moved"]
    Answers.busy = {
        "/red": [(429, None)] * 3,
        "/blue": [(503, None)] * 3,
        "/green": [(403, None)],
        "/removed": [(410, None)],
    }
    found = datasets.download_images(table(server, *names), tmp_path, n_workers=1)
    assert found["outcome"].tolist()[:5] == [
        "error 429", "error 503", "error 403", "error 404", "error 410",
    ]  # fmt: skip
    assert pauses == [2.0, 4.0] * 2
    Answers.asked.clear()
    again = datasets.download_images(table(server, *names), tmp_path, n_workers=1)
    assert Answers.asked == ["/red", "/blue", "/green"]
    assert again["outcome"].tolist()[:2] == ["here", "here"]


def test_a_run_without_a_network_settles_nothing(server, tmp_path, pauses, monkeypatch):
    wanted = table(server, "red", "blue")

    def unreachable(self, method, url):
        raise httpx.ConnectError("no network")

    with monkeypatch.context() as offline:
        offline.setattr(httpx.Client, "stream", unreachable)
        found = datasets.download_images(wanted, tmp_path)
    assert found["outcome"].tolist() == ["no answer: ConnectError"] * 2
    assert (Answers.asked, pauses) == ([], [])
    found = datasets.download_images(wanted, tmp_path)
    assert found["outcome"].tolist() == ["here", "here"]


@pytest.mark.parametrize(
    ("url", "outcome"),
    [
        ("ftp://example.org/a.jpg", "refused: not an http or https address"),
        ("file:///etc/hostname", "refused: not an http or https address"),
        ("http://192.168.0.1/a.jpg", "refused: address of a private network"),
        ("http://[::1]/a.jpg", "refused: address of a private network"),
        ("not an address", "refused: not an http or https address"),
        ("http://[::1", "refused: not an address"),
        ("http://a..b/x.jpg", "refused: not an address"),
        (f"http://{'a' * 64}.org/x.jpg", "refused: not an address"),
        ("http://xn--/x.jpg", "refused: not an address"),
        ("http://a\0b.org/x.jpg", "refused: not an address"),
        ("", "refused: no address"),
    ],
)
def test_addresses_that_are_not_asked(url, outcome, tmp_path):
    found = datasets.download_images(pandas.DataFrame({"file": ["a.jpg"], "url": [url]}), tmp_path)
    assert found["outcome"][0].startswith(outcome)


def test_a_bad_link_among_good_ones_is_a_row_and_the_rest_is_downloaded(server, tmp_path):
    long = "a" * 300
    wanted = pandas.concat(
        [
            table(server, "red", "astray"),
            pandas.DataFrame({"file": ["b.jpg"], "url": ["http://a..b/x"]}),
            pandas.DataFrame({"file": [f"{long}.jpg"], "url": [f"{server}/blue"]}),
        ]
    )
    found = datasets.download_images(wanted, tmp_path)["outcome"].tolist()
    assert [found[0], found[2]] == ["here", "refused: not an address"]
    assert found[1].startswith(("refused", "no answer"))
    assert found[3] == "cannot be written: File name too long"
    assert datasets.outcomes(wanted, tmp_path)["outcome"].tolist() == found


def test_lists_of_study_1_are_fetched_and_gone_on_with(server, tmp_path):
    path = tmp_path / "data" / "google-images" / "weat6" / "targ1" / "get.sh"
    path.parent.mkdir(parents=True)
    names = ("red", "blue", "gone")
    lines = [f"wget --tries=2 -O {name}.jpg {server}/{name}" for name in names]
    path.write_text("\n".join(["sleep 3", *lines, "wget -O lost.jpg ", "curl x"]))
    found, problems = ross2021.fetch_images(tmp_path, "google")
    assert found["outcome"].tolist() == ["here", "here", "error 404", "refused: no address"]
    assert (tmp_path / "images/google/weat6/targ1/red.jpg").is_file()
    assert problems["severity"].tolist() == ["note", "error", "error"]
    (coverage,) = datasets.coverage(found).to_dict("records")
    assert (coverage["test"], coverage["links"], coverage["here"]) == ("weat6", 4, 2)
    Answers.asked.clear()
    again, _ = ross2021.fetch_images(tmp_path, "google")
    assert Answers.asked == []
    assert again["outcome"].tolist() == found["outcome"].tolist()


def test_names_that_would_overwrite_are_refused(tmp_path):
    two = pandas.DataFrame({"file": ["a.jpg", "a.jpg"], "url": ["http://a", "http://b"]})
    with pytest.raises(datasets.DataError, match=r"two links have the file a\.jpg"):
        datasets.download_images(two, tmp_path)
    outside = pandas.DataFrame({"file": ["../a.jpg"], "url": ["http://a"]})
    with pytest.raises(datasets.DataError, match="lies outside"):
        datasets.download_images(outside, tmp_path)
