"""Lists of links, against a server on this machine."""

import errno
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from unittest import mock

import pandas
import pytest
from support import hostile

from biaslib import datasets
from biaslib.datasets import _fetcher, links, ross2021
from biaslib.pictures.images import open_image


@pytest.fixture
def bad():
    """A server that answers badly, on a loopback that is permitted."""
    with hostile.permitted(), hostile.serving() as running:
        yield running


def table(running, *paths):
    """Return links to what a server has at some paths."""
    rows = [(f"{at}.jpg", f"{running.address}/{path}") for at, path in enumerate(paths)]
    return pandas.DataFrame(rows, columns=["file", "url"]).assign(test="weat6", group="targ1")


def asked(running, folder, *paths, **how):
    """Download what is at some paths; return what came of each."""
    return datasets.download_images(table(running, *paths), folder, **how)["outcome"].tolist()


def test_every_link_is_accounted_for(bad, tmp_path):
    found = datasets.download_images(table(bad, "good", "status/404", "login_page"), tmp_path)
    assert open_image(tmp_path / "0.jpg").size == (40, 30)
    assert found.loc[0, "bytes"] == str(len(bad.body))
    assert bad.headers[0]["Accept-Encoding"] == "identity"
    counted = datasets.coverage(found).iloc[0]
    assert counted[["links", "here", "share"]].tolist() == [3, 1, 1 / 3]
    assert "error 404 (1)" in counted["reasons"]


def test_what_is_settled_is_not_asked_again(bad, tmp_path):
    wanted = ("good/0", "good/1", "status/404")
    asked(bad, tmp_path, *wanted)
    (tmp_path / "0.jpg").unlink()
    (tmp_path / "1.jpg").write_bytes(b"changed")
    bad.requests.clear()
    assert asked(bad, tmp_path, *wanted) == ["here", "here", "error 404"]
    assert sorted(bad.requests) == ["/good/0", "/good/1"]
    asked(bad, tmp_path, *wanted, again=True)
    assert bad.requests[-1] == "/status/404"


def test_a_busy_server_is_asked_again_after_the_pause_that_it_names(bad, tmp_path, monkeypatch):
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    bad.busy = {
        "/good/0": [(429, "7"), (503, None)],
        "/good/1": [(500, "999"), (429, "soon")],
        "/good/2": [(503, None)] * 3,
    }
    found = [asked(bad, tmp_path, f"good/{at}")[0] for at in range(3)]
    assert found == ["here", "here", "error 503"]
    assert [each for each in pauses if each > 0.5] == [7.0, _fetcher.LONGEST_PAUSE]
    assert asked(bad, tmp_path, "good/2") == ["here"]


def test_a_run_without_a_network_settles_nothing(bad, tmp_path, monkeypatch):
    with monkeypatch.context() as offline:
        offline.setattr(_fetcher._Public, "_new_conn", lambda _: (_ for _ in ()).throw(OSError))
        assert asked(bad, tmp_path, "good", "good") == ["no answer: ConnectionError"] * 2
    assert bad.requests == []
    assert asked(bad, tmp_path, "good", "good") == ["here", "here"]


ODD = {
    "ftp://example.org/a.jpg": "refused: not an http or https address",
    "file:///etc/hostname": "refused: not an http or https address",
    "http://192.168.0.1/a.jpg": "refused: address of a private network",
    "http://[::1]/a.jpg": "refused: address of a private network",
    "http://167772161/a.jpg": "refused: address of a private network",
    "not an address": "refused: not an http or https address",
    "http://[::1": "refused: not an http or https address",
    f"http://{'a' * 64}.org/x.jpg": "refused: not an http or https address",
    "http://a\0b.org/x.jpg": "refused: no address",
    "http://example.org/a\rb.jpg": "refused: no address",
    "http://example.org/a\nb.jpg": "refused: no address",
    "http://me:secret@10.0.0.1:8080/a.jpg": "refused: address of a private network",
    "http://[fd00::1]:80/a.jpg": "refused: address of a private network",
    "http://a\ud800b.org/x": "refused: no address",
    "\u200b \r\n": "refused: no address",
    "//example.org/a.jpg": "refused: an address without https:",
    None: "refused: no address",
}


def test_a_bad_link_among_good_ones_is_a_row_and_the_rest_is_downloaded(bad, tmp_path):
    files = [f"{at}.jpg" for at in range(len(ODD))] + ["good.jpg", f"{'a' * 300}.jpg"]
    urls = [*ODD, *[f"{bad.address}/good"] * 2]
    wanted = pandas.DataFrame({"file": files, "url": urls}, dtype=object)
    found = datasets.download_images(wanted, tmp_path)["outcome"].tolist()
    for url, outcome in zip(ODD, found, strict=False):
        assert outcome.startswith(ODD[url]), url
    assert found[-2:] == ["here", "cannot be written: File name too long"]
    assert datasets.outcomes(wanted, tmp_path)["outcome"].tolist() == found


def test_lists_of_study_1_are_fetched_and_gone_on_with(bad, tmp_path):
    path = tmp_path / "data" / "google-images" / "weat6" / "targ1" / "get.sh"
    path.parent.mkdir(parents=True)
    paths = {"red": "good/0", "blue": "good/1", "gone": "status/404"}
    lines = [f"wget --tries=2 -O {name}.jpg {bad.address}/{at}" for name, at in paths.items()]
    path.write_text("\n".join(["sleep 3", *lines, "wget -O lost.jpg ", "curl x"]))
    found, problems = ross2021.fetch_images(tmp_path, "google")
    assert found["outcome"].tolist() == ["here", "here", "error 404", "refused: no address"]
    assert (tmp_path / "images/google/weat6/targ1/red.jpg").is_file()
    assert problems["severity"].tolist() == ["note", "error", "error"]
    bad.requests.clear()
    again, _ = ross2021.fetch_images(tmp_path, "google")
    assert bad.requests == []
    assert again["outcome"].tolist() == found["outcome"].tolist()


NAMES = [
    "a.jpg",
    "c\rd.jpg",
    "c.jpg\n",
    "c\ud800.jpg",
    "b/../a.jpg",
    "../a.jpg",
    "/etc/a.jpg",
    "b//../downloads.csv",
    "link.jpg",
    "",
    ".",
]


@pytest.mark.parametrize("name", [*NAMES, "", None])
def test_names_that_would_overwrite_are_refused(bad, tmp_path, name):
    asked(bad, tmp_path, "good")
    (tmp_path / "link.jpg").symlink_to(tmp_path / "downloads.csv")
    before = (tmp_path / "downloads.csv").read_bytes()
    urls = f"{bad.address}/good/x"
    wanted = pandas.DataFrame({"file": ["a.jpg", name], "url": urls}, dtype=object)
    with pytest.raises(datasets.DataError) as caught:
        datasets.download_images(wanted, tmp_path)
    assert (caught.value.path, caught.value.row) == (tmp_path, 1)
    assert (tmp_path / "downloads.csv").read_bytes() == before


def test_blanks_around_an_address_are_no_part_of_it(bad, tmp_path):
    around = ["{}\r", "\ufeff{}", "\u200b{}\u00a0"]
    urls = [each.format(f"{bad.address}/good/{at}") for at, each in enumerate(around)]
    files = [f"my downloads.csv-{at}.jpg" for at in range(len(urls))]
    wanted = pandas.DataFrame({"file": files, "url": urls})
    found = datasets.download_images(wanted, tmp_path)
    assert found["outcome"].tolist() == ["here"] * len(urls)
    assert sorted(bad.requests) == [f"/good/{at}" for at in range(len(urls))]
    for each in files:
        (tmp_path / each).unlink()
    gone = datasets.outcomes(wanted, tmp_path)["outcome"]
    assert gone.tolist() == ["downloaded, and gone since"] * len(urls)


REALLY_PUBLIC, LOOK_UP = _fetcher.is_public, socket.getaddrinfo


def by_name(answer):
    """Return a look-up that gives one answer for every name; numbers stay what they are."""

    def look_up(host, port, *rest, flags=0, **more):
        try:
            return LOOK_UP(host, port, *rest, flags=flags | socket.AI_NUMERICHOST, **more)
        except socket.gaierror:
            if flags & socket.AI_NUMERICHOST:
                raise
            return answer

    return look_up


PUBLIC = ["8.8.8.8", "2001:4860:4860::8888", "64:ff9b::8.8.8.8"]
INSIDE = [
    "127.0.0.1",
    "10.0.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "192.0.2.1",
    "224.0.0.1",
    "240.0.0.1",
    "::1",
    "::127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::",
    "2001:0:7f00:1::",
    "fe80::1",
    "fc00::1",
    "ff0e::1",
    "2001:db8::1",
    "4000::1",
]


def test_only_addresses_of_the_public_network_are_asked():
    assert [each for each in PUBLIC + INSIDE if _fetcher.is_public(each)] == PUBLIC


@pytest.mark.parametrize("address", ["192.168.1.1", "0.0.0.0", "198.18.0.7", "fd00::1"])
def test_a_name_server_that_leads_to_private_addresses_settles_nothing(bad, tmp_path, address):
    """A router's page to log in, a filter, a proxy: on another day the names lead elsewhere."""
    wanted = pandas.DataFrame({"file": ["0.jpg"], "url": "http://pictures.example/good"})
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0))]
    with (
        mock.patch.object(_fetcher, "is_public", REALLY_PUBLIC),
        mock.patch.object(socket, "getaddrinfo", side_effect=by_name(answer)),
    ):
        came = datasets.download_images(wanted, tmp_path)["outcome"].tolist()
    assert came == ["no answer: led to an address of a private network"]
    assert bad.requests == []
    port = int(bad.address.rpartition(":")[2])
    wanted["url"] = f"http://pictures.example:{port}/good"
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    with mock.patch.object(socket, "getaddrinfo", side_effect=by_name(answer)):
        assert datasets.download_images(wanted, tmp_path)["outcome"].tolist() == ["here"]


@pytest.mark.parametrize("answers", [[True, False], [True, True, False]])
def test_nothing_is_sent_to_a_name_that_leads_to_a_private_address(bad, tmp_path, answers):
    """Also where it led to a public one when it was looked up a moment before."""
    # Not by monkeypatch, which an earlier fixture set up: it would outlive the permission of bad.
    with mock.patch.object(_fetcher, "is_public", side_effect=answers):
        came = asked(bad, tmp_path, "good")
    assert came == ["no answer: led to an address of a private network"]
    assert "/good" not in bad.requests
    assert not any(bad.headers)


# A hostile server


AGAIN = {
    "login_page": "a page in place of an image",
    "login_page_as_image": "a page in place of an image",
    "redirect_to_login": "a page in place of an image",
    "login_json": "a page in place of an image",
    "empty": "an empty answer",
    "gzipped": "encoded as gzip",
    "status/500": "error 500",
    "unasked_part": "error 206",
    "truncated_without_length": "cut short, or damaged",
    "truncated": "no answer",
    "cut_chunk": "no answer",
    "reset": "no answer",
    "silent": "no answer",
    "slow": "no answer",
    "two_lengths": "no answer",
    "not_http": "no answer",
    "redirect_loop": "no answer",
    "redirect_to_private": "no answer: led to an address of a private network",
}
"""What comes of each behaviour, and is asked again by the next run."""

SETTLED = {
    "noise": "not an image: is not an image that Pillow reads",
    "endless": "larger than 30 MB",
    "status/404": "error 404",
    "redirect_to_file": "refused: not an http or https address",
    "good": "here",
    "picture_as_page": "here",
    "without_length": "here",
}
"""What comes of each behaviour, and is not asked again."""


@pytest.mark.parametrize(("name", "outcome"), (AGAIN | SETTLED).items())
def test_a_bad_answer_is_a_row_beside_a_good_one(bad, tmp_path, name, outcome):
    bad.interval = 0.002  # some 1.5 seconds for a picture
    found = asked(bad, tmp_path, name, "good")
    assert found[0].startswith(outcome)
    assert found[1] == "here"
    expected = {"1.jpg", "downloads.csv"} | ({"0.jpg"} if outcome == "here" else set())
    assert {path.name for path in tmp_path.iterdir()} == expected
    before = len(bad.requests)
    assert asked(bad, tmp_path, name, "good") == found
    assert (len(bad.requests) > before) == (name in AGAIN)


@pytest.mark.parametrize("name", ["redirect_in_utf8", "redirect_in_latin1"])
def test_a_redirect_that_is_not_ascii_is_followed_as_urllib_follows_it(bad, tmp_path, name):
    assert asked(bad, tmp_path, name) == ["here"]
    ours, bad.requests = bad.requests, []
    urllib.request.urlopen(f"{bad.address}/{name}").close()
    assert ours == bad.requests


def test_a_slow_host_holds_its_own_share_of_the_workers(tmp_path):
    with hostile.permitted(60.0), hostile.serving() as slow, hostile.serving() as fast:
        rows = [(f"s{at}.jpg", f"{slow.address}/silent/{at}") for at in range(6)]
        rows += [(f"f{at}.jpg", f"{fast.address}/good/{at}") for at in range(30)]
        wanted = pandas.DataFrame(rows, columns=["file", "url"])
        waiting = threading.Thread(
            target=datasets.download_images, args=(wanted, tmp_path), kwargs={"n_workers": 3}
        )
        waiting.start()
        ended = time.monotonic() + 60
        while len(fast.requests) < 30 and time.monotonic() < ended:
            time.sleep(0.01)
        held = len(slow.requests)
        slow.ended.set()
        waiting.join()
    assert held == links.PER_HOST
    assert len(slow.requests) == 6


DOWNLOAD = """
import sys
import pandas
from biaslib import datasets
from biaslib.datasets import _fetcher
_fetcher.is_public = lambda host: True
address, folder = sys.argv[1:]
wanted = [(f"{at}.jpg", f"{address}/good/{at}") for at in range(40)]
table = pandas.DataFrame(wanted, columns=["file", "url"])
print((datasets.download_images(table, folder)["outcome"] == "here").sum())
"""


def test_two_processes_share_a_folder(bad, tmp_path):
    command = [sys.executable, "-c", DOWNLOAD, bad.address, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [each.communicate()[0].strip() for each in running] == ["40", "40"]
    assert len(bad.requests) == 40
    assert len(pandas.read_csv(tmp_path / "downloads.csv")) == 40
    assert len(list(tmp_path.iterdir())) == 41


def test_what_a_killed_run_left_is_cleared_away(bad, tmp_path):
    asked(bad, tmp_path, "good")
    (tmp_path / ".part-7").write_bytes(b"half")
    with open(tmp_path / "downloads.csv", "a") as stream:
        stream.write('1.jpg,"http://half a li')
    outcome = datasets.outcomes(table(bad, "good", "good"), tmp_path)["outcome"]
    assert outcome.tolist() == ["here", "not downloaded"]
    assert asked(bad, tmp_path, "good", "good") == ["here", "here"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.jpg", "1.jpg", "downloads.csv"]
    assert asked(bad, tmp_path, "good", "good") == ["here", "here"]
    assert len(bad.requests) == 2


def test_a_disk_that_takes_no_more_is_said_and_the_next_run_goes_on(bad, tmp_path, monkeypatch):
    assert asked(bad, tmp_path, "good") == ["here"]
    left, write = [2], links.Path.write_bytes

    def full(*arguments):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(*arguments)

    paths = ["good"] * 8
    with monkeypatch.context() as patch:
        patch.setattr(links.Path, "write_bytes", full)
        with pytest.raises(datasets.DataError):
            asked(bad, tmp_path, *paths, n_workers=1)
    before = len(bad.requests)
    assert asked(bad, tmp_path, *paths) == ["here"] * 8
    assert 4 <= len(bad.requests) - before <= 7
    assert len(list(tmp_path.iterdir())) == 9


def test_a_complete_folder_may_be_read_only(bad, tmp_path, monkeypatch):
    assert asked(bad, tmp_path, "good") == ["here"]

    def refused(*arguments):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(links, "one_at_a_time", refused)
    assert asked(bad, tmp_path, "good") == ["here"]
