"""Study 1's release: the authors' own files where they are at hand, and ours with every oddity."""

import json
import re
import shutil
from pathlib import Path

import pandas
import pytest
from PIL import Image
from support import released
from support.hub import instead_of_the_real_one

from biaslib import datasets, published, runtime
from biaslib.datasets import ross2021
from biaslib.errors import CheckpointError
from biaslib.runtime import file_sha256
from biaslib.studies import study1_grounded as study
from biaslib.studies._fetch import Part

needs_real = pytest.mark.skipif(
    not released.REAL.is_dir(), reason="the files of Ross et al. (2021) are not in ../shared"
)

NO_LINK = {
    "ea_female_astronomy_0.jpg",
    "ea_weak_weak_4.jpg",
    "male_librarian_1.jpg",
    *(f"male_cashier_{n}.jpg" for n in range(10)),
}
"""Images that the authors' tests name and no list has an address for, read off their files."""


@pytest.fixture
def ours(tmp_path, monkeypatch):
    """Our release in small, as the data of study 1; no picture is there."""
    monkeypatch.setenv("BIASLIB_DATA", str(tmp_path))
    return released.written(tmp_path / "ross2021")


# Links


def test_every_kind_of_line_in_a_list_is_read_or_counted(ours):
    found, problems = ross2021.links(ours, "google")
    urls = found.set_index("file")["url"]
    assert (
        urls["weat6/targ1/escaped_0.jpg"] == "https://example.org/768x0/filters:no_upscale()/a.jpg"
    )
    assert urls["weat6/targ1/quoted 0.jpg"] == "http://example.org/b c.jpg?x=1&y=2"
    assert urls["weat6/attr1/Ax_executive_0.jpg"] == "https://example.org/0.jpg?w=612&h=612"
    assert urls["weat6/targ1/addressless_0.jpg"] == ""
    assert problems[["severity", "kind", "where"]].to_numpy().tolist() == [
        ["note", "command that fetches nothing", "weat6/targ1/get.sh, line 7"],
        ["error", "line gives no image", "weat6/targ1/get.sh, line 11"],
        ["error", "line gives no image", "weat6/targ1/get.sh, line 12"],
        ["error", "line gives no image", "weat6/targ1/get.sh, line 13"],
        ["error", "name is there twice", "weat6/targ1/escaped_0.jpg"],
        ["error", "image without an address", "weat6"],
    ]
    assert problems["what"].tolist()[2] == "curl https://example.org/a.jpg"


def test_a_number_of_conceptual_captions_is_the_checksum_of_its_address(ours):
    """The check value that the definition of CRC-32 prints: of the digits 1 to 9, CBF43926."""
    path = ours / "tests" / "grounded-tests" / "concap" / "weat6.jsonl"
    content = json.loads(path.read_text())
    content["targ1"]["images"] = {str(0xCBF43926): [0], "17": [0]}
    path.write_text(json.dumps(content))
    captions = ours / "Validation_GCC-1.1.0-Validation.tsv"
    captions.write_text(captions.read_text() + "nine digits\t123456789\r\n")
    found, problems = ross2021.links(ours, "concap")
    assert found.set_index("file")["url"].loc[["3421780262", "17"]].tolist() == ["123456789", ""]
    assert problems[["kind", "what"]].to_numpy().tolist() == [["image without an address", "17"]]
    names = found["file"].str.startswith("COCO_")
    assert names.sum() == 8  # weat8 shows pictures of COCO here too
    assert found.loc[names, "url"].str.startswith("http://images.cocodataset.org/val2014/").all()


@needs_real
def test_the_authors_lists_are_read_whole():
    found, problems = ross2021.links(released.REAL, "google")
    lists = (released.REAL / "data" / "google-images").glob("*/*/get.sh")
    lines = [line for path in lists for line in path.read_text().splitlines() if line.strip()]
    assert (len(lines), sum(line.strip() == "sleep 3" for line in lines)) == (12_313, 32)
    assert (found["url"] != "").sum() == 12_280
    assert problems.groupby(["severity", "kind"])["what"].agg(list).to_dict() == {
        ("error", "image without an address"): ["occupations-gender/attr1/male_librarian_1.jpg"],
        ("note", "command that fetches nothing"): ["sleep 3"] * 32,
    }
    escaped = [line.split()[-1] for line in lines if "\\" in line]
    plain = {re.sub(r"\\(.)", r"\1", address) for address in escaped}
    assert (len(escaped), len(set(escaped))) == (175, 151)
    assert plain <= set(found["url"])
    assert set(found["url"].str.partition(":")[0]) == {"http", "https", ""}


@needs_real
def test_images_that_the_authors_list_twice_with_other_captions_are_noted():
    """Their JSON has such keys in 11 of its files; whoever reads it takes the last of each."""
    paths = sorted((released.REAL / "tests" / "grounded-tests").glob("*/*.jsonl"))
    notes = [datasets.grounded_test(path).problems for path in paths]
    counts = [(each["kind"] == "image is listed twice").sum() for each in notes]
    assert (sum(counts), sum(count > 0 for count in counts)) == (76, 11)


@needs_real
def test_each_image_of_coco_and_conceptual_captions_has_an_address(tmp_path):
    coco, problems = ross2021.links(released.REAL, "coco")
    assert (len(coco), len(problems)) == (649, 0)
    shutil.copytree(released.REAL / "tests", tmp_path / "tests")
    known = json.loads((released.REAL / "concap_urls.json").read_text())
    lines = [f"a caption\t{url}\n" for urls in known.values() for url in urls]
    (tmp_path / "Validation_GCC-1.1.0-Validation.tsv").write_text("".join(lines))
    concap, problems = ross2021.links(tmp_path, "concap")
    numbers = concap[~concap["file"].str.startswith("COCO_")]
    assert (len(numbers), len(concap), len(problems)) == (212, 212 + 173, 0)
    assert numbers.set_index("file")["url"].to_dict() == {k: urls[0] for k, urls in known.items()}


# What is there, and what is run


@pytest.mark.slow
@needs_real
def test_with_a_picture_at_every_link_every_test_runs_at_all_its_levels(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASLIB_DATA", str(tmp_path))
    shutil.copytree(released.REAL / "tests", tmp_path / "ross2021" / "tests")
    shutil.copytree(released.REAL / "data", tmp_path / "ross2021" / "data")
    assert fill(tmp_path / "ross2021") == 12_280
    every = study.inputs("paper", only_sound=True)
    runs = every.left.groupby("file")["run"].agg(set)
    assert len(runs) == 26
    assert runs.map(lambda levels: levels in WHOLE).all()
    assert (every.asked["outcome"] == "run").sum() == len(every.asked) == 13 * 3
    assert len(every["lxmert"]) == 13 * 3
    errors = every.problems[every.problems["severity"] == "error"]
    assert set(errors["kind"]) == {"image is missing"}
    assert set(errors["what"]) == NO_LINK
    lacking = {
        (sets.test, name): round(n * (1 - sets.shares[name]))
        for sets in every["lxmert"]
        for name, n in sets.listed.items()
        if sets.shares[name] < 1
    }
    n = pandas.Series(lacking).groupby(level=0).sum().to_dict()
    assert n == {"C13": 1, "DB-competent-race": 1, "occupation-gender": 11}
    for sets in every["lxmert"]:
        assert where_shown(sets) == LISTS.get(sets.test, LISTS["any"])


WHOLE = ({"word"}, {"sentence, contextual"})
LISTS = {
    "any": {"X": "targ1", "Y": "targ2", "Ax": "attr1", "Bx": "attr1", "Ay": "attr2", "By": "attr2"},
    "C8": {"X": "targ1", "Y": "targ2", "Ax": "attr1", "Ay": "attr1", "Bx": "attr2", "By": "attr2"},
}


def where_shown(sets):
    """The folders in which the pictures of each set lie."""
    folders = [path.split("/")[-2] for path in map(sets.images.name, range(len(sets.images)))]
    found = sets.rows["image"].map(lambda place: folders[place]).groupby(sets.rows["set"])
    return found.agg(lambda each: "/".join(sorted(set(each)))).to_dict()


def fill(root):
    """Place a picture at every name that the lists write with an address; return how many."""
    names = [
        path.parent.relative_to(root / "data" / "google-images") / name
        for path in sorted((root / "data" / "google-images").glob("*/*/get.sh"))
        for name in released.LISTED.findall(path.read_text())
    ]
    picture = root / "picture.png"
    Image.new("RGB", (4, 4)).save(picture)
    for name in set(names):
        path = root / "images" / "google" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.hardlink_to(picture)
    return len(set(names))


def test_our_release_runs_at_all_its_levels_and_what_is_odd_is_told(ours):
    released.place(ours)
    every = study.inputs("paper", only_sound=True)
    outcomes = every.asked.groupby("test")["outcome"].agg(set)
    there = {"C6", "C8", "DB-competent-gender", "occupation-gender"}
    assert set(outcomes.index[outcomes == {"run"}]) == there
    assert all(outcomes.drop(there) == {"not there"})
    errors = every.problems[every.problems["severity"] == "error"]
    assert errors[["kind", "where", "what"]].to_numpy().tolist() == [
        ["image without a caption", "google/sent-occ_gender.jsonl, Y", "Y_nobody_0.jpg"],
        ["image is missing", "google/weat6.jsonl, X", "addressless_0.jpg"],
    ]
    assert "folder of another test" in set(every.problems["kind"])
    assert (every.left["images_left"].sum(), every.left["n_images"].sum()) == (96, 97)
    assert every.left["n_images"].dtype.kind == "i"


@needs_real
def test_the_authors_files_list_as_many_images_as_table_1_prints():
    printed = published.table("ross2021", 1).set_index(["source", "test"])["images"]
    counted = ross2021.image_counts(released.REAL).set_index(["source", "test"])["images"]
    assert counted.reindex(printed.index).to_dict() == printed.to_dict()
    assert len(printed) == 17


def test_images_are_counted_in_the_files_and_their_share_on_disk(ours):
    released.place(ours)
    lost = ours / "images" / "google" / "weat6" / "targ1"
    for path in sorted(lost.iterdir())[:1]:
        path.unlink()
    (ours / "tests" / "grounded-tests" / "coco" / "weat6.jsonl").write_text("no test")
    every = study.inputs("paper", only_sound=True)
    own = study.inputs("paper", domain="in domain", names=["C6"], only_sound=True)
    counted = study.for_record([], every, own).counts["ross2021_images"]
    counted = counted.set_index(["source", "test"])
    # Two words a set with a picture each, in six sets; C6 has one without an address besides.
    assert counted["images"]["google", "C6"] == 13
    assert counted["images"]["google", "C8"] == 12
    left = every.left.set_index(["file", "set"])["share"]
    files = {"word": "weat6.jsonl", "sentence": "sent-weat6.jsonl"}
    for sets in every["lxmert"]:
        if (sets.test, sets.level) in [("C6", level) for level in files]:
            assert sets.shares == left[files[sets.level]].to_dict()
            assert sets.shares["X"] < 1
        elif sets.test == "C8":
            assert set(sets.shares.values()) == {1}
    shutil.rmtree(ours / "images" / "google")
    again = ross2021.image_counts(ours).set_index(["source", "test"])["images"]
    pandas.testing.assert_series_equal(again, counted["images"])


def test_a_file_whose_name_is_not_known_is_told(ours):
    released.place(ours)
    folder = ours / "tests" / "grounded-tests" / "google"
    (folder / "weat6.jsonl").rename(folder / "weat6 (1).jsonl")
    (folder / "notes.txt").write_text("not a test")
    (folder / ".DS_Store").write_text("no file of anybody's")
    every = study.inputs("paper", only_sound=True)
    strange = every.problems[every.problems["kind"] == "file is not a released test"]
    assert set(strange["where"]) == {"google/weat6 (1).jsonl", "google/notes.txt"}
    outcomes = every.asked.query("test == 'C6'").set_index("level")["outcome"]
    assert outcomes.to_dict() == {"word": "not there", "sentence": "run", "contextual": "run"}


@pytest.mark.parametrize(
    ("lacking", "left"), [(["coco"], ["vilbert", "vl-bert"]), (["coco", "concap"], [])]
)
def test_in_domain_goes_on_without_a_source(ours, lacking, left):
    released.place(ours)
    for source in lacking:
        shutil.rmtree(ours / "images" / source)
    every = study.inputs("paper", domain="in domain", names=["C6"], only_sound=True)
    assert sorted(every) == sorted(left)
    told = every.problems[every.problems["kind"] == "source is not there"]
    assert told["where"].tolist() == lacking
    assert told["what"].str.contains("fetch_images").all()
    unread = every.asked.groupby("source")["outcome"].agg(set)
    assert all(unread[lacking] == {"not there"})


# From nothing


@needs_real
def test_the_files_that_are_fetched_are_those_that_are_read_with_the_hashes_they_have():
    """The authors' files lie here as their repository has them at commit 1622980."""
    listed = pandas.read_csv(ross2021.DATA / "ross2021_files.csv").set_index("file")["sha256"]
    read = [
        path for each in ross2021.SOURCES for path in ross2021.files_of_tests(released.REAL, each)
    ]
    read += (released.REAL / "data" / "google-images").glob("*/*/get.sh")
    hashes = {p.relative_to(released.REAL).as_posix(): file_sha256(p) for p in read}
    assert hashes == listed.to_dict()


@needs_real
def test_a_taste_has_four_pictures_of_each_of_eight_words_in_every_set_at_both_levels():
    urls = ross2021.links(released.REAL, "google")[0].set_index("file")["url"]
    assert (urls[ross2021.taste()] != "").all()
    names = {file.rsplit("/", 1)[1] for file in ross2021.taste()}
    for file in ("weat6", "sent-weat6"):
        path = released.REAL / "tests" / "grounded-tests" / "google" / f"{file}.jsonl"
        pairs = datasets.grounded_test(path).pairs.drop_duplicates(["set", "image"])
        left = pairs[pairs["image"].isin(names)]
        counts = left.groupby(["set", "word"])["image"].nunique()
        assert counts.tolist() == [4] * 48


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A mirror of the authors' repository, here of three files, and nothing else on the network."""
    (tmp_path / "lists").mkdir()
    made = released.written(tmp_path / "made")
    root = tmp_path / "hub" / ross2021.FILES.removeprefix("https://")
    rows = ["file,sha256"]
    for path in sorted(made.rglob("google/weat*.jsonl")):
        file = path.relative_to(made).as_posix()
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, root / file)
        rows.append(f"{file},{file_sha256(path)}")
    (tmp_path / "lists" / "ross2021_files.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.setattr(ross2021, "DATA", tmp_path / "lists")
    with instead_of_the_real_one(tmp_path / "hub", tmp_path) as running:
        yield running


def test_a_mirror_that_lies_is_named_and_the_next_call_goes_on(hub, tmp_path):
    hub.corrupt = "weat8.jsonl"
    with pytest.raises(CheckpointError, match=r"weat8\.jsonl .*another hash") as refused:
        ross2021.fetch_files(tmp_path / "data")
    assert refused.value.path.name == "weat8.jsonl"
    kept = [path.name for path in (tmp_path / "data").rglob("*.json*")]
    assert kept == ["weat6.jsonl"]
    hub.corrupt = ""
    ross2021.fetch_files(tmp_path / "data")
    asked = [path.rsplit("/", 1)[1] for method, path, _ in hub.requests if method == "GET"]
    assert asked == ["weat6.jsonl", "weat8.jsonl", "weat8.jsonl"]


def test_a_folder_with_another_version_is_left_as_it_is(hub, tmp_path):
    own = tmp_path / "data" / "tests" / "grounded-tests" / "google" / "weat6.jsonl"
    own.parent.mkdir(parents=True)
    own.write_text("{}")
    ross2021.fetch_files(tmp_path / "data")
    assert [path.name for path in own.parent.iterdir()] == ["weat6.jsonl"]
    assert not hub.requests


class Weights:
    """A model in name alone: of regions, if it is to be."""

    def __init__(self, name):
        self.name, self.revision = name, f"{name} of today"


class OfRegions(Weights):
    regions_of = None

    @property
    def detector(self):
        raise CheckpointError("the detector could not be downloaded")


def test_what_cannot_be_had_is_left_out_and_told_and_without_any_model_there_is_no_study(
    ours, monkeypatch
):
    released.place(ours)
    given, run = study.inputs("paper", only_sound=True, names=["C6"]), runtime.start("paper")

    def load(name):
        if name == "vl-bert":
            raise CheckpointError("Drive sends a page")
        return (OfRegions if name == "lxmert" else Weights)(name)

    monkeypatch.setattr(study.models, "load", load)
    with pytest.warns(UserWarning, match="is left out") as told:
        loaded = study.load_models(given, run)
    assert list(loaded) == list(run.weights) == ["visualbert", "vilbert"]
    assert [str(each.message).split(" is")[0] for each in told] == ["lxmert", "vl-bert"]
    with (
        pytest.warns(UserWarning, match="lxmert"),
        pytest.raises(CheckpointError, match="detector"),
    ):
        study.load_models({"lxmert": given["lxmert"]}, run)


def test_a_table_says_what_goes_without_and_the_detector_is_needed_first(ours, monkeypatch):
    (without,) = [part for part in study.parts() if part.what == "weights of detector"]
    assert without.without == ""
    monkeypatch.setattr(study, "weights_of", lambda name, without="": Part(name, "", 0, "", bool))
    asked = []
    monkeypatch.setattr(
        ross2021, "download_images", lambda links, folder, again: asked.append(folder.name)
    )
    (ours / ross2021.CAPTIONS).unlink()
    missing = study.fetch("full")
    assert missing["what"].tolist() == ["the authors' region features", "pictures of concap"]
    assert missing["reason"].str.contains("profiles.md|download the validation split").all()
    assert asked == ["coco", "google"]


def test_a_taste_is_one_test_of_chosen_pictures_in_a_profile_of_its_own(ours, monkeypatch):
    released.place(ours)
    files = ross2021.links(ours, "google")[0].query("test == 'weat6'")["file"].tolist()
    chosen = [file for file in files if "_0.jpg" in file and "addressless" not in file][:-1]
    monkeypatch.setattr(ross2021, "taste", lambda: chosen)
    given = study.inputs("paper", size="taste", only_sound=True)
    assert (list(given), given.labels["profile"]) == (["vilt"], "taste")
    assert {sets.test for sets in given["vilt"]} == {"C6"}
    assert {Path(given["vilt"][0].images.name(row)).name for row in range(11)} <= {
        Path(file).name for file in chosen
    }
    assert set(given["vilt"][0].shares.values()) == {1.0}  # of the taste's, of which all are there
    assert dict(study.inputs("paper", domain="in domain", size="taste", only_sound=True)) == {}


def test_pictures_are_here_once_each_link_of_theirs_was_asked(ours, monkeypatch):
    """Not those of the study after a taste of it, nor after a run that was killed."""

    def here(size):
        return [part.here() for part in study.parts(size) if part.what == "pictures of google"]

    files = ross2021.links(ours, "google")[0]["file"].tolist()
    monkeypatch.setattr(ross2021, "taste", lambda: files[:2])
    assert (here("taste"), here("full")) == ([False], [False])
    for file in files[:2]:
        (ours / "images" / "google" / file).parent.mkdir(parents=True, exist_ok=True)
        (ours / "images" / "google" / file).touch()
    assert (here("taste"), here("full")) == ([True], [False])
    rows = ross2021.links(ours, "google")[0].assign(outcome="error 404")[["file", "url", "outcome"]]
    rows.to_csv(ours / "images" / "google" / "downloads.csv", index=False)
    assert (here("taste"), here("full")) == ([True], [True])
