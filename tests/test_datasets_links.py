"""Lists of links, against a server on this machine."""

import email.utils
import errno
import os
import subprocess
import sys
import threading
import time

import httpx
import pandas
import pytest
from support import hostile

from biaslib import datasets
from biaslib.datasets import links, ross2021
from biaslib.models.images import open_image


@pytest.fixture
def bad(monkeypatch):
    """A server that answers badly, on a loopback that is permitted."""
    real = links._is_public
    monkeypatch.setattr(links, "_is_public", lambda host: host == "127.0.0.1" or real(host))
    monkeypatch.setattr(links, "sleep", lambda seconds: None)
    with hostile.serving() as running:
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
    counted = datasets.coverage(found).iloc[0]
    assert counted[["links", "here", "share"]].tolist() == [3, 1, 1 / 3]
    assert "error 404 (1)" in counted["reasons"]


def test_a_picture_that_is_cut_off_is_no_image(bad, tmp_path):
    bad.body = bad.body[:-40]
    assert asked(bad, tmp_path, "good")[0].startswith("not an image: is truncated")


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


@pytest.fixture
def pauses(bad, monkeypatch):
    """What was slept, without sleeping."""
    slept = []
    monkeypatch.setattr(links, "sleep", slept.append)
    return slept


def test_a_busy_server_is_asked_again_after_the_pause_that_it_names(bad, tmp_path, pauses):
    bad.busy = {
        "/good/0": [(429, "7"), (503, None)],
        "/good/1": [(500, None), (429, "999")],
    }
    assert asked(bad, tmp_path, "good/0", "good/1", n_workers=1) == ["here", "here"]
    assert bad.requests == ["/good/0"] * 3 + ["/good/1"] * 3
    assert pauses == [7.0, 4.0, 2.0, links.LONGEST_PAUSE]


def test_a_server_may_name_a_date(bad, tmp_path, pauses):
    past = "Wed, 21 Oct 2015 07:28:00 GMT"
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    bad.busy = {"/good/0": [(429, date), (429, past)], "/good/1": [(429, "soon")]}
    asked(bad, tmp_path, "good/0", "good/1", n_workers=1)
    assert pauses == [pytest.approx(30, abs=3), 4.0, 2.0]


def test_what_may_yet_answer_is_asked_by_the_next_run_and_what_is_gone_is_not(
    bad, tmp_path, pauses
):
    statuses = [f"status/{number}" for number in (403, 404, 410)]
    wanted = ("good/0", "good/1", *statuses, "login_page", "redirect_to_private")
    bad.busy = {"/good/0": [(429, None)] * 3, "/good/1": [(503, None)] * 3}
    found = asked(bad, tmp_path, *wanted, n_workers=1)
    assert found[:5] == [f"error {number}" for number in (429, 503, 403, 404, 410)]
    assert pauses == [2.0, 4.0] * 2
    bad.requests.clear()
    again = asked(bad, tmp_path, *wanted, n_workers=1)
    assert bad.requests == ["/good/0", "/good/1", "/status/403", "/login_page"]
    assert again[:2] == ["here", "here"]


def test_a_run_without_a_network_settles_nothing(bad, tmp_path, pauses, monkeypatch):
    def unreachable(self, request, **how):
        raise httpx.ConnectError("no network")

    with monkeypatch.context() as offline:
        offline.setattr(httpx.Client, "send", unreachable)
        assert asked(bad, tmp_path, "good", "good") == ["no answer: ConnectError"] * 2
    assert (bad.requests, pauses) == ([], [])
    assert asked(bad, tmp_path, "good", "good") == ["here", "here"]


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
        ("\u200b \r\n", "refused: no address"),
        ("//example.org/a.jpg", "refused: an address without https:"),
        ("http://[64:ff9b::a9fe:a9fe]/a.jpg", "refused: address of a private network"),
        ("http://[ff02::1]/a.jpg", "refused: address of a private network"),
    ],
)
def test_addresses_that_are_not_asked(url, outcome, tmp_path):
    found = datasets.download_images(pandas.DataFrame({"file": ["a.jpg"], "url": [url]}), tmp_path)
    assert found["outcome"][0].startswith(outcome)


def test_a_bad_link_among_good_ones_is_a_row_and_the_rest_is_downloaded(bad, tmp_path):
    wanted = table(bad, "good", "redirect_to_empty_label", "good", "good")
    wanted.loc[2, "url"] = "http://a..b/x"
    wanted.loc[3, "file"] = f"{'a' * 300}.jpg"
    found = datasets.download_images(wanted, tmp_path)["outcome"].tolist()
    assert [found[0], found[2]] == ["here", "refused: not an address"]
    assert found[1].startswith(("refused", "no answer"))
    assert found[3] == "cannot be written: File name too long"
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
    (coverage,) = datasets.coverage(found).to_dict("records")
    assert (coverage["test"], coverage["links"], coverage["here"]) == ("weat6", 4, 2)
    bad.requests.clear()
    again, _ = ross2021.fetch_images(tmp_path, "google")
    assert bad.requests == []
    assert again["outcome"].tolist() == found["outcome"].tolist()


@pytest.mark.parametrize(
    ("names", "row"),
    [
        (("a.jpg", "a.jpg"), 1),
        (("a.jpg", "./a.jpg"), 1),
        (("a.jpg", "b/../a.jpg"), 1),
        (("a.jpg", "../a.jpg"), 1),
        (("/etc/a.jpg",), 0),
        (("a.jpg", ""), 1),
        (("a.jpg", " "), 1),
        (("a.jpg", "."), 1),
        (("a.jpg", "b/.."), 1),
        (("a.jpg", None), 1),
        (("a.jpg", float("nan")), 1),
        (("downloads.csv",), 0),
        (("a.jpg", "DOWNLOADS.csv"), 1),
        (("./downloads.csv",), 0),
        (("b//../Downloads.CSV",), 0),
        (("downloads.csv/a.jpg",), 0),
        (("downloads.csv.",), 0),
        (("downloads.csv ",), 0),
        (("downloads.csv::$DATA",), 0),
        (("down\u200bloads.csv",), 0),
        ((".downloads.csv.lock",), 0),
        ((".Downloads.csv.LOCK",), 0),
        ((".parts-1/a.jpg",), 0),
        ((".PARTS-1",), 0),
    ],
)
def test_names_that_would_overwrite_are_refused(bad, tmp_path, names, row):
    asked(bad, tmp_path, "good")
    before = (tmp_path / "downloads.csv").read_bytes()
    wanted = pandas.DataFrame({"file": names, "url": f"{bad.address}/good/x"}, dtype=object)
    with pytest.raises(datasets.DataError) as caught:
        datasets.download_images(wanted, tmp_path)
    assert (caught.value.path, caught.value.row) == (tmp_path, row)
    assert caught.value.word is names[row]
    assert (tmp_path / "downloads.csv").read_bytes() == before


def test_a_link_to_the_record_is_the_record(bad, tmp_path):
    asked(bad, tmp_path, "good")
    (tmp_path / "other.jpg").symlink_to(tmp_path / "downloads.csv")
    wanted = pandas.DataFrame({"file": ["other.jpg"], "url": [f"{bad.address}/good"]})
    with pytest.raises(datasets.DataError) as caught:
        datasets.download_images(wanted, tmp_path)
    assert caught.value.word == "other.jpg"


@pytest.mark.parametrize("name", ["my downloads.csv", "below/downloads.csv", "parts-1.jpg"])
def test_names_like_those_of_the_record_are_taken(bad, tmp_path, name):
    wanted = pandas.DataFrame({"file": [name], "url": [f"{bad.address}/good"]})
    assert datasets.download_images(wanted, tmp_path)["outcome"].tolist() == ["here"]
    assert (tmp_path / name).read_bytes() == bad.body


AROUND = ["{}\r", " {}", "{}\t", "\ufeff{}", "\n{}\r\n", "\u200b{}\u00a0", "{}\u2028", "\u200e{}"]


def test_blanks_around_an_address_are_no_part_of_it(bad, tmp_path):
    urls = [each.format(f"{bad.address}/good/{at}") for at, each in enumerate(AROUND)]
    files = [f"{at}.jpg" for at in range(len(urls))]
    wanted = pandas.DataFrame({"file": files, "url": urls})
    found = datasets.download_images(wanted, tmp_path)
    assert found["outcome"].tolist() == ["here"] * len(urls)
    assert sorted(bad.requests) == [f"/good/{at}" for at in range(len(urls))]
    for each in files:
        (tmp_path / each).unlink()
    gone = datasets.outcomes(wanted, tmp_path)["outcome"]
    assert gone.tolist() == ["downloaded, and gone since"] * len(urls)


PUBLIC = ["8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]
INSIDE = [
    *("127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "192.0.2.1"),
    *("224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "::1", "::"),
    *("::127.0.0.1", "::10.0.0.1", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "::ffff:0:127.0.0.1"),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::e000:1", "64:ff9b:1::a00:1"),
    *("2002:7f00:1::", "2002:a9fe:a9fe::", "2001:0:7f00:1::", "2001:0:808:808:0:0:f5ff:fffe"),
    *("fe80::1", "fec0::1", "fc00::1", "ff02::1", "ff0e::1", "2001:db8::1", "4000::1"),
]


@pytest.mark.parametrize("address", [*PUBLIC, *INSIDE])
def test_only_addresses_of_the_public_network_are_asked(address):
    assert links._is_public(address) == (address in PUBLIC)


# A hostile server


AGAIN = {
    "login_page": "a page in place of an image",
    "login_page_without_type": "a page in place of an image",
    "login_page_as_image": "a page in place of an image",
    "login_json": "a page in place of an image",
    "login_text": "a page in place of an image",
    "redirect_to_login": "a page in place of an image",
    "empty": "an empty answer",
    "gzipped": "encoded as gzip, which was not asked for",
    "gzip_bomb": "encoded as gzip, gzip, which was not asked for",
    "status/204": "error 204",
    "status_without_body/204": "error 204",
    "unasked_part": "error 206",
    "unasked_part_of": "error 206",
    "status/500": "error 500",
    "truncated": "no answer: RemoteProtocolError",
    "truncated_without_length": "cut short, or damaged",
    "two_lengths": "no answer: RemoteProtocolError",
    "length_in_words": "no answer: RemoteProtocolError",
    "negative_length": "no answer: RemoteProtocolError",
    "bad_chunk": "no answer: RemoteProtocolError",
    "cut_chunk": "no answer: RemoteProtocolError",
    "slow": "no whole answer within 1 s",
    "slow_head": "no whole answer within 1 s",
    "silent": "no whole answer within 1 s",
    "hang_up": "no answer: RemoteProtocolError",
    "reset": "no answer: ReadError",
    "not_http": "no answer: RemoteProtocolError",
    "long_head": "no answer: RemoteProtocolError",
    "redirect_loop": "no answer: TooManyRedirects",
    "redirect_without_place": "error 302",
    "redirect_to_port": "no answer: ConnectError",
    "redirect_to_bracket": "no answer: RemoteProtocolError",
}
"""What comes of each behaviour, and is asked again by the next run."""

SETTLED = {
    "noise": "not an image: is not an image that Pillow reads",
    "pixel_bomb": "larger than 40 megapixels",
    "huge": "larger than 30 MB",
    "endless": "larger than 30 MB",
    "status/404": "error 404",
    "redirect_to_private": "refused: address of a private network",
    "redirect_to_file": "refused: not an http or https address",
    "redirect_to_empty_label": "refused: not an address",
    "redirect_to_long_label": "refused: not an address",
    "redirect_to_punycode": "refused: not an address",
}
"""What comes of each behaviour, and is not asked again."""

NOISE = (
    "is not an image that Pillow reads as JPEG, PNG, WEBP, GIF, BMP, TIFF, PPM, JPEG2000, AVIF; "
    "remove it or save it as PNG"
)

TAKEN = ["good", "picture_as_page", "without_length", "redirect_with_body"]


@pytest.mark.parametrize("name", [*AGAIN, *SETTLED, *TAKEN])
def test_a_bad_answer_is_a_row_beside_a_good_one(bad, tmp_path, name):
    expected = {**AGAIN, **SETTLED}.get(name, "here")
    with hostile.impatient():
        found = asked(bad, tmp_path, name, "good")
    assert found[0].startswith(expected)
    assert found[1] == "here"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["1.jpg", "downloads.csv", *["0.jpg"] * (name in TAKEN)]
    )
    before = len(bad.requests)
    with hostile.impatient():
        assert asked(bad, tmp_path, name, "good") == found
    assert (len(bad.requests) > before) == (name in AGAIN)


def test_fifty_login_pages_are_asked_again_when_the_network_lets_them(bad, tmp_path, monkeypatch):
    behaviours = dict(hostile.BEHAVIOURS)
    monkeypatch.setitem(hostile.BEHAVIOURS, "good", behaviours["login_page"])
    first = asked(bad, tmp_path, *["good"] * 50)
    assert first == ["a page in place of an image"] * 50
    monkeypatch.setitem(hostile.BEHAVIOURS, "good", behaviours["good"])
    assert asked(bad, tmp_path, *["good"] * 50) == ["here"] * 50


def test_no_encoding_is_asked_for(bad, tmp_path):
    asked(bad, tmp_path, "good")
    assert bad.headers[0]["Accept-Encoding"] == "identity"


def test_a_slow_host_holds_its_own_share_of_the_workers(bad, tmp_path):
    with hostile.serving() as other:
        slow = [(f"s{at}.jpg", f"{bad.address}/silent/{at}") for at in range(6)]
        fast = [(f"f{at}.jpg", f"{other.address}/good/{at}") for at in range(30)]
        table = pandas.DataFrame(slow + fast, columns=["file", "url"])
        waiting = threading.Thread(
            target=datasets.download_images, args=(table, tmp_path), kwargs={"n_workers": 3}
        )
        waiting.start()
        ended = time.monotonic() + 60
        while len(other.requests) < 30 and time.monotonic() < ended:
            time.sleep(0.01)
        held = len(bad.requests)
        bad.ended.set()
        waiting.join()
    assert held == links.PER_HOST
    assert len(bad.requests) == 6


def test_the_address_that_is_checked_is_the_one_that_is_asked(bad, tmp_path, monkeypatch):
    """A name may lead to a public address when it is checked and to this machine a moment later."""
    real = links._is_public
    monkeypatch.setattr(
        links, "_is_public", lambda host: host == "localhost" or host == "127.0.0.9"
    )
    port = bad.address.rpartition(":")[2]
    table = pandas.DataFrame({"file": ["a.jpg"], "url": [f"http://localhost:{port}/good"]})
    found = datasets.download_images(table, tmp_path)
    assert found["outcome"].tolist() == ["refused: address of a private network"]
    assert bad.requests == []
    assert not real("10.0.0.1")


@pytest.mark.parametrize(
    "url", [None, float("nan"), 7, "http://a\ud800b.org/x", 'http://a b/\r,"x']
)
def test_an_address_that_is_no_text_or_odd_text_is_a_row(bad, tmp_path, url):
    good = f"{bad.address}/good"
    table = pandas.DataFrame({"file": ["a.jpg", "b.jpg"], "url": [url, good]}, dtype=object)
    for _ in range(2):
        found = datasets.download_images(table, tmp_path)["outcome"].tolist()
        assert found[0].startswith(("refused", "no answer"))
        assert found[1] == "here"


DOWNLOAD = """
import sys
import pandas
from biaslib import datasets
from biaslib.datasets import links
links._is_public = lambda host: True
links.sleep = lambda seconds: None
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
    (tmp_path / ".parts-of-a-killed-run").mkdir()
    (tmp_path / ".parts-of-a-killed-run" / "7").write_bytes(b"half")
    with open(tmp_path / "downloads.csv", "a") as stream:
        stream.write('1.jpg,"http://half a li')
    assert asked(bad, tmp_path, "good", "good") == ["here", "here"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.jpg", "1.jpg", "downloads.csv"]
    assert asked(bad, tmp_path, "good", "good") == ["here", "here"]
    assert len(bad.requests) == 2


@pytest.mark.parametrize("number", ["ENOSPC", "EROFS", "EACCES"])
@pytest.mark.parametrize("at", ["image", "record"])
def test_a_disk_that_takes_no_more_is_said_and_the_next_run_goes_on(
    bad, tmp_path, monkeypatch, number, at
):
    assert asked(bad, tmp_path, "good") == ["here"]
    left = [2]

    def full(path, mode="r", **how):
        wanted = str(path).endswith("downloads.csv") == (at == "record")
        if wanted and mode[0] in "aw":
            left[0] -= 1
            if left[0] < 0:
                code = getattr(errno, number)
                raise OSError(code, os.strerror(code), str(path))
        return open(path, mode, **how)

    names = ["good"] * 8
    with monkeypatch.context() as patch:
        patch.setattr(links, "open", full, raising=False)
        with pytest.raises(datasets.DataError) as caught:
            asked(bad, tmp_path, *names, n_workers=1)
    assert str(tmp_path) in str(caught.value)
    assert "run the same call again" in str(caught.value)
    before = len(bad.requests)
    assert asked(bad, tmp_path, *names) == ["here"] * 8
    assert 4 <= len(bad.requests) - before <= 7
    assert len(list(tmp_path.iterdir())) == 9


def test_a_complete_folder_may_be_read_only(bad, tmp_path, monkeypatch):
    assert asked(bad, tmp_path, "good", "noise") == ["here", "not an image: " + NOISE]

    def refused(*arguments):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(links, "one_at_a_time", refused)
    assert asked(bad, tmp_path, "good", "noise") == ["here", "not an image: " + NOISE]
    with pytest.raises(datasets.DataError, match=r"Read-only file system\. Make room"):
        asked(bad, tmp_path, "good", "noise", again=True)


def test_half_a_line_is_no_outcome(tmp_path):
    known = 'file,url,outcome\na,http://x/a,error 404\nb,"http://x/'
    (tmp_path / "downloads.csv").write_text(known)
    table = pandas.DataFrame({"file": ["a", "b"], "url": ["http://x/a", "http://x/b"]})
    assert datasets.outcomes(table, tmp_path)["outcome"].tolist() == ["error 404", "not downloaded"]


@pytest.mark.parametrize("content", [b"name,link\na,b\n", b"\xff\xd8\xff\xe0 a picture\n\x01\n"])
def test_a_record_that_is_none_is_named(tmp_path, content):
    (tmp_path / "downloads.csv").write_bytes(content)
    wanted = pandas.DataFrame({"file": ["a"], "url": ["http://x/a"]})
    for read in (datasets.outcomes, datasets.download_images):
        with pytest.raises(datasets.DataError) as caught:
            read(wanted, tmp_path)
        assert caught.value.path == tmp_path / "downloads.csv"
    assert (tmp_path / "downloads.csv").read_bytes() == content


def test_a_date_that_is_out_of_range_is_no_date(bad):
    value = "Wed, 21 Oct 99999999999999999999 07:28:00 GMT"
    assert links._retry_after(httpx.Response(429, headers={"Retry-After": value})) == 0.0
    assert links._retry_after(httpx.Response(429, headers={"Retry-After": "9" * 400})) == 60.0
