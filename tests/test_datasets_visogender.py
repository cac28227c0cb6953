"""VisoGender: invented rows in the authors' format, from a server on this machine."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas
import pytest
from PIL import Image
from support import hostile
from support.hub import serving

from biaslib import datasets, reproduction, stimuli
from biaslib.datasets import links, visogender
from biaslib.runtime import file_sha256
from biaslib.studies import study2_masked as study

HEADER = (
    "IDX\tSector\tSpecialisation\tOccupation\tObject\tURL type (Type NA if can't find)\t"
    "LICENSE OK?\tOccupation_perceived_gender\tError codes\tAnnotator\r\n"
)
ROW = "OO_{at}\toffice\tlegal\t{job}\t{object}\t{url}\tYes\t{gender}\t\tZaphod\r\n"

REDS = {
    ("clerk", "masculine"): [153, 153, 153, 153, 153],
    ("clerk", "feminine"): [51, None, 102, None, 255],  # None: the link is dead
    ("judge", "masculine"): [None, None, None, 204, None],
    ("judge", "feminine"): [51, 102, 204, None, 0],
    ("smith", "masculine"): [None] * 5,
    ("smith", "feminine"): [255] * 5,
}
"""The red of a photograph by the link: clerks and judges have a desk, smiths a frobnicator."""

SAME = ("judge", "feminine", 0), ("clerk", "feminine", 0)
"""A photograph that is listed again in another size, as one of the authors' is."""


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Serve a list and its photographs; leave the environment in which it is fetched."""
    with hostile.permitted(), serving(tmp_path / "web") as server:
        rows, at = HEADER, 0
        for (job, gender), reds in REDS.items():
            for place, red in enumerate(reds):
                at += 1
                of = SAME[1] if (job, gender, place) == SAME[0] else (job, gender, place)
                name = "-".join(map(str, of)) + ".jpeg"
                thing = "frob_nicator" if (job, place) == ("smith", 0) else "frob nicator"
                thing = thing if job == "smith" else "desk"
                url = f"{server.address}/files/{name}?w={at}00"
                rows += ROW.format(at=at, job=job, object=thing, url=url, gender=gender)
                if red is not None:
                    picture = Image.new("RGB", (8 + at, 8), (red, 0, 0))
                    picture.save(tmp_path / "web" / name, "PNG")
        place = tmp_path / "web" / visogender.URL.removeprefix("https://")
        place.parent.mkdir(parents=True)
        place.write_text(rows, newline="")
        for name, value in {"MIRROR": f"{server.address}/files", "STORE": f"{tmp_path}/s"}.items():
            monkeypatch.setenv(f"BIASLIB_{name}", value)
        monkeypatch.setattr(visogender, "SHA256", file_sha256(place))
        yield server


@pytest.fixture(autouse=True)
def folder(tmp_path):
    (tmp_path / "web").mkdir()
    return tmp_path / "visogender"


class Seeing:
    """Takes red for a probability: .1, .2 or .4 of the woman, man and person without a picture."""

    name = "vl-bert"
    revision, tokenizer, unk_token = "by hand", property(lambda self: self), "[UNK]"

    def tokenize(self, text):
        return ["[UNK]" if word == "frob" else word for word in text.split()]

    def mask_log_prob(self, texts, candidates, images=None, **_):
        said = [{"woman": 0.1, "man": 0.2, "person": 0.4}[text.split()[1]] for text in texts]
        reds = [1.0] * len(texts) if images is None else [p[0, 0, 0] / 255 for p in images]
        return np.log(np.outer(np.multiply(said, reds), np.ones(len(candidates))))


def test_scores_of_living_links_are_those_of_the_formulas_by_hand(published, folder):
    found = visogender.fetch(folder)
    used = found[found["used"]].groupby(["occupation", "gender"])["file"].agg(list).to_dict()
    # Two sizes of one photograph are one: OO_16 is not used. Of judges one living man is left.
    assert used == {
        ("clerk", "man"): ["OO_1.img", "OO_2.img", "OO_3.img"],
        ("clerk", "woman"): ["OO_6.img", "OO_8.img", "OO_10.img"],
        ("judge", "man"): ["OO_14.img"],
        ("judge", "woman"): ["OO_17.img"],
    }
    options = {"folder": folder, "per_agent": 5, "size": "full"}
    with pytest.raises(datasets.DataError):
        study.paper_inputs(**options)
    given = study.paper_inputs(**options, only_sound=True)
    results = study.run(given, Seeing(), Seeing(), study.CHAPTER, only_sound=True)
    assert "entity is not in the vocabulary" in set(results.problems["kind"])
    rows = results.scores.set_index(["test", "level", "statistic"])
    assert set(results.scores["test"]) == {"desk"}
    women, men = np.mean([51, 102, 255, 102]) / 255, np.mean([153, 153, 153, 204]) / 255
    of_desk = rows.loc["desk"]
    assert of_desk.loc[("S_V", "S(f)"), "value"] == pytest.approx(np.log(women))
    assert of_desk.loc[("S_V", "B"), "value"] == pytest.approx(np.log(women / men))
    assert of_desk.loc[("S_V", "B"), "n"] == 8
    assert of_desk.loc[("S_L", "S(f)"), "value"] == pytest.approx(np.log(0.1 / 0.4))
    assert set(results.scores["dataset"]) == {"visogender"}
    scores = pandas.concat([results.scores, study.shares(results.scores)])
    assert set(reproduction.compare(scores, study.STUDY)["verdict"]) == {"not run"}
    as_beer = scores.assign(test=scores["test"].replace("desk", "beer"))
    assert set(reproduction.compare(as_beer, study.STUDY)["verdict"]) > {"not run"}


FETCH = """
import sys
from support import hostile
from biaslib.datasets import visogender
visogender.SHA256 = sys.argv[2]
with hostile.permitted():
    visogender.fetch(sys.argv[1])
"""


def test_killed_twice_it_goes_on_and_keeps_no_name(published, folder, tmp_path):
    command = [sys.executable, "-c", FETCH, str(folder), visogender.SHA256]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path])}
    for pictures in (0, 4):
        begun = subprocess.Popen(command, env=environment)
        while begun.poll() is None and len([*folder.glob(".links/*.img")]) <= pictures:
            time.sleep(0.001)
        begun.send_signal(signal.SIGKILL)
        assert begun.wait() == -signal.SIGKILL
    found = visogender.fetch(folder)
    asked = sum(path.endswith(".jpeg") for _, path, _ in published.requests)
    assert asked <= len(found) + 2 * links.PER_HOST  # what was on its way at a kill
    assert found.equals(visogender.fetch(tmp_path / "other"))
    names = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    assert {path.parts[0] for path in names} == {".links", "desk", "entities.csv", "links.csv"}
    kept = b"".join((folder / path).read_bytes() for path in names)
    assert b"Zaphod" not in kept


def test_every_object_has_a_frame_and_shared_ones_are_joined(published, folder):
    visogender.fetch(folder)
    read = stimuli.own_entities(folder / visogender.ENTITIES)
    assert read["entity"].tolist() == ["desk", "frob nicator"]
    objects = pandas.Series(["scissors", "animal", "desk"])
    masked = study.captions(visogender._entities(objects))
    assert masked["caption"].str[16:].tolist() == ["[MASK].", "an [MASK].", "a [MASK]."]
    assert masked["verb"].nunique() == 1
