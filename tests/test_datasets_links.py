"""Lists of links, against a server on this machine."""

import csv
import email.utils
import errno
import functools
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pandas
import pytest
from support import hostile

from biaslib import datasets
from biaslib.datasets import _fetcher, links, ross2021
from biaslib.pictures.images import open_image


@pytest.fixture
def bad(monkeypatch):
    """A server that answers badly, on a loopback that is permitted."""
    real = _fetcher._is_public
    monkeypatch.setattr(_fetcher, "_is_public", lambda host: host == "127.0.0.1" or real(host))
    monkeypatch.setattr(_fetcher, "sleep", lambda seconds: None)
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
    monkeypatch.setattr(_fetcher, "sleep", pauses.append)
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    past = "Wed, 21 Oct 2015 07:28:00 GMT"
    bad.busy = {
        "/good/0": [(429, "7"), (503, None)],
        "/good/1": [(500, None), (429, "999")],
        "/good/2": [(429, date), (429, past)],
        "/good/3": [(429, "soon"), (429, "Wed, 21 Oct 99999999999999999999 07:28:00 GMT")],
        "/good/4": [(503, None)] * 3,
    }
    for at in range(5):
        expected = "error 503" if at == 4 else "here"
        assert asked(bad, tmp_path / str(at), f"good/{at}") == [expected]
    assert pauses[:4] == [7.0, 4.0, 2.0, _fetcher.LONGEST_PAUSE]
    assert pauses[4:] == [pytest.approx(30, abs=3), 4.0, 2.0, 4.0, 2.0, 4.0]
    assert asked(bad, tmp_path / "4", "good/4") == ["here"]


def test_a_run_without_a_network_settles_nothing(bad, tmp_path, monkeypatch):
    with monkeypatch.context() as offline:
        offline.setattr(_fetcher, "_connected", lambda *to: (_ for _ in ()).throw(OSError(101)))
        assert asked(bad, tmp_path, "good", "good") == ["no answer: OSError"] * 2
    assert bad.requests == []
    assert asked(bad, tmp_path, "good", "good") == ["here", "here"]


ODD = {
    "ftp://example.org/a.jpg": "refused: not an http or https address",
    "file:///etc/hostname": "refused: not an http or https address",
    "http://192.168.0.1/a.jpg": "refused: address of a private network",
    "http://[::1]/a.jpg": "refused: address of a private network",
    "http://[64:ff9b::a9fe:a9fe]/a.jpg": "refused: address of a private network",
    "http://167772161/a.jpg": "refused: address of a private network",
    "not an address": "refused: not an http or https address",
    "http://[::1": "refused: not an address",
    "http://a..b/x.jpg": "refused: not an address",
    f"http://{'a' * 64}.org/x.jpg": "refused: not an address",
    "http://xn--/x.jpg": "no answer",
    "http://a\0b.org/x.jpg": "no answer",
    "http://a\ud800b.org/x": "refused",
    'http://a b/,"x': "no answer",
    "\u200b \r\n": "refused: no address",
    "//example.org/a.jpg": "refused: an address without https:",
    None: "refused: no address",
    7: "refused: no address",
}


def test_a_bad_link_among_good_ones_is_a_row_and_the_rest_is_downloaded(bad, tmp_path):
    files = [f"{at}.jpg" for at in range(len(ODD))] + ["good.jpg", f"{'a' * 300}.jpg"]
    urls = [*ODD, *[f"{bad.address}/good"] * 2]
    wanted = pandas.DataFrame({"file": files, "url": urls}, dtype=object)
    for _ in range(2):
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


@pytest.mark.parametrize(
    "names",
    [
        *[("a.jpg", each) for each in ("a.jpg", "b/../a.jpg", "../a.jpg", "", ".", "b/..", None)],
        *[(each,) for each in ("/etc/a.jpg", "b//../Downloads.CSV", "downloads.csv/a.jpg")],
        *[(each,) for each in ("downloads.csv. ", "downloads.csv::$DATA", "down\u200bloads.csv")],
        *[(each,) for each in (".Downloads.csv.LOCK", ".PART-1", "link.jpg")],
    ],
)
def test_names_that_would_overwrite_are_refused(bad, tmp_path, names):
    asked(bad, tmp_path, "good")
    (tmp_path / "link.jpg").symlink_to(tmp_path / "downloads.csv")
    before = (tmp_path / "downloads.csv").read_bytes()
    wanted = pandas.DataFrame({"file": names, "url": f"{bad.address}/good/x"}, dtype=object)
    with pytest.raises(datasets.DataError) as caught:
        datasets.download_images(wanted, tmp_path)
    assert (caught.value.path, caught.value.row) == (tmp_path, len(names) - 1)
    assert caught.value.word is names[-1]
    assert (tmp_path / "downloads.csv").read_bytes() == before


AROUND = ["{}\r", "\ufeff{}", "\u200b{}\u00a0", "{}\u2028"]


def test_blanks_around_an_address_are_no_part_of_it(bad, tmp_path):
    urls = [each.format(f"{bad.address}/good/{at}") for at, each in enumerate(AROUND)]
    files = [f"my downloads.csv-{at}.jpg" for at in range(len(urls))]
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


def test_only_addresses_of_the_public_network_are_asked():
    assert [each for each in PUBLIC + INSIDE if _fetcher._is_public(each)] == PUBLIC


def test_the_address_that_is_checked_is_the_one_that_is_asked(bad, tmp_path, monkeypatch):
    """A name may lead to a public address when it is checked and to this machine a moment later."""
    answers, real = iter(["127.0.0.1", "10.0.0.1"]), _fetcher._addresses
    moving = {"moving.example"}
    monkeypatch.setattr(
        _fetcher, "_addresses", lambda host: [next(answers)] if host in moving else real(host)
    )
    port = bad.address.rpartition(":")[2]
    url = f"http://moving.example:{port}/good"
    wanted = pandas.DataFrame({"file": ["a.jpg", "b.jpg"], "url": [url, f"{url}/2"]})
    found = datasets.download_images(wanted, tmp_path, n_workers=1)["outcome"].tolist()
    assert found == ["here", "refused: address of a private network"]
    assert bad.headers[0]["Host"] == f"moving.example:{port}"
    assert len(bad.requests) == 1
    two = {"two.example": ["127.0.0.1", "10.0.0.1"]}
    monkeypatch.setattr(_fetcher, "_addresses", lambda host: two.get(host) or real(host))
    with pytest.raises(_fetcher.RefusedError):
        _fetcher._public_addresses("two.example")


# A hostile server


AGAIN = {
    **dict.fromkeys(["login_page", "login_page_without_type"], "a page in place of an image"),
    **dict.fromkeys(["login_page_as_image", "redirect_to_login"], "a page in place of an image"),
    **dict.fromkeys(["login_json", "login_text"], "a page in place of an image"),
    **dict.fromkeys(["empty", "length_in_words", "negative_length"], "an empty answer"),
    **dict.fromkeys(["gzipped", "gzip_bomb"], "encoded as gzip"),
    **dict.fromkeys(["status/204", "status_without_body/204"], "error 204"),
    **dict.fromkeys(["unasked_part", "unasked_part_of"], "error 206"),
    "status/500": "error 500",
    "truncated_without_length": "cut short, or damaged",
    **dict.fromkeys(["slow", "slow_head", "silent"], "no whole answer within 1 s"),
    **dict.fromkeys(["truncated", "bad_chunk", "cut_chunk", "hang_up", "reset"], "no answer"),
    **dict.fromkeys(["not_http", "long_head", "redirect_loop"], "no answer"),
    "redirect_without_place": "error 302",
}
"""What comes of each behaviour, and is asked again by the next run."""

SETTLED = {
    "noise": "not an image: is not an image that Pillow reads",
    "two_lengths": "not an image",
    "pixel_bomb": "larger than 40 megapixels",
    **dict.fromkeys(["huge", "endless"], "larger than 30 MB"),
    "status/404": "error 404",
    "redirect_to_private": "refused: address of a private network",
    "redirect_to_file": "refused: not an http or https address",
    **dict.fromkeys(["redirect_to_empty_label", "redirect_to_long_label"], "refused: not an add"),
    **dict.fromkeys(["redirect_to_port", "redirect_to_bracket"], "refused: not an address"),
}
"""What comes of each behaviour, and is not asked again."""

TAKEN = ["good", "picture_as_page", "without_length", "redirect_with_body"]


@pytest.mark.parametrize("name", [*AGAIN, *SETTLED, *TAKEN])
def test_a_bad_answer_is_a_row_beside_a_good_one(bad, tmp_path, name):
    with hostile.impatient():
        found = asked(bad, tmp_path, name, "good")
    assert found[0].startswith({**AGAIN, **SETTLED}.get(name, "here"))
    assert found[1] == "here"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["1.jpg", "downloads.csv", *["0.jpg"] * (name in TAKEN)]
    )
    before = len(bad.requests)
    with hostile.impatient():
        assert asked(bad, tmp_path, name, "good") == found
    assert (len(bad.requests) > before) == (name in AGAIN)


def test_a_slow_host_holds_its_own_share_of_the_workers(bad, tmp_path):
    with hostile.serving() as other:
        slow = [(f"s{at}.jpg", f"{bad.address}/silent/{at}") for at in range(6)]
        fast = [(f"f{at}.jpg", f"{other.address}/good/{at}") for at in range(30)]
        wanted = pandas.DataFrame(slow + fast, columns=["file", "url"])
        waiting = threading.Thread(
            target=datasets.download_images, args=(wanted, tmp_path), kwargs={"n_workers": 3}
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


DOWNLOAD = """
import sys
import pandas
from biaslib import datasets
from biaslib.datasets import _fetcher
_fetcher._is_public = lambda host: True
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


@pytest.mark.parametrize("what", ["image", "record"])
def test_a_disk_that_takes_no_more_is_said_and_the_next_run_goes_on(
    bad, tmp_path, monkeypatch, what
):
    assert asked(bad, tmp_path, "good") == ["here"]
    left, write = [2], links.Path.write_bytes

    def full(real, *arguments, **options):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **options)

    with monkeypatch.context() as patch:
        if what == "image":
            patch.setattr(links.Path, "write_bytes", lambda *given: full(write, *given))
        else:
            own = SimpleNamespace(writer=functools.partial(full, csv.writer))
            patch.setattr(links, "csv", own)
        with pytest.raises(datasets.DataError, match=r"No space left.*run the same call again"):
            asked(bad, tmp_path, *["good"] * 8, n_workers=1)
    before = len(bad.requests)
    assert asked(bad, tmp_path, *["good"] * 8) == ["here"] * 8
    assert 4 <= len(bad.requests) - before <= 7
    assert len(list(tmp_path.iterdir())) == 9


def test_a_complete_folder_may_be_read_only(bad, tmp_path, monkeypatch):
    assert asked(bad, tmp_path, "good") == ["here"]

    def refused(*arguments):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(links, "one_at_a_time", refused)
    assert asked(bad, tmp_path, "good") == ["here"]


def test_a_record_that_is_none_is_named(tmp_path):
    content = b"\xff\xd8\xff\xe0 a picture\n\x01\n"
    (tmp_path / "downloads.csv").write_bytes(content)
    wanted = pandas.DataFrame({"file": ["a"], "url": ["http://x/a"]})
    for read in (datasets.outcomes, datasets.download_images):
        with pytest.raises(datasets.DataError) as caught:
            read(wanted, tmp_path)
        assert caught.value.path == tmp_path / "downloads.csv"
    assert (tmp_path / "downloads.csv").read_bytes() == content
