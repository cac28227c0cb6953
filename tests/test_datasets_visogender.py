"""VisoGender: invented rows in the authors' format, from a server on this machine."""

import numpy as np
import pandas
import pytest
from PIL import Image
from support import hostile
from support.hub import serving

from biaslib import datasets, reproduction
from biaslib.datasets import visogender
from biaslib.runtime import file_sha256
from biaslib.studies import study2_masked as study

HEADER = (
    "IDX\tSector\tSpecialisation\tOccupation\tObject\tURL type (Type NA if can't find)\t"
    "LICENSE OK?\tOccupation_perceived_gender\tError codes\tAnnotator\r\n"
)
REDS = {
    ("clerk", "masculine"): [153, 153, 153, 153, 153],
    ("clerk", "feminine"): [51, None, 102, None, 255],  # None: the link is dead
    ("judge", "masculine"): [None, None, None, 204, None],
    ("judge", "feminine"): [51, 102, 204, None, 0],
    ("smith", "masculine"): [None] * 5,
    ("smith", "feminine"): [255] * 5,
}
"""The red of a photograph by the link: clerks and judges have a desk, smiths a frobnicator."""

SAME = {("judge", "feminine", 0): ("clerk", "feminine", 0)}
"""A photograph that is listed again in another size, as one of the authors' is."""


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A server with a list and its photographs, as the mirror of the authors' repository."""
    web = tmp_path / "web"
    path = web / visogender.URL.removeprefix("https://")
    path.parent.mkdir(parents=True)
    with hostile.permitted(), serving(web) as server:
        rows = HEADER
        listed = [(*key, n, red) for key, reds in REDS.items() for n, red in enumerate(reds)]
        for at, (job, gender, n, red) in enumerate(listed, start=1):
            name = "{}-{}-{}.jpeg".format(*SAME.get((job, gender, n), (job, gender, n)))
            thing = ("frob_nicator" if n else "frob nicator") if job == "smith" else "desk"
            url = f"{server.address}/files/{name}?w={at}00"
            rows += f"OO_{at}\toffice\tlegal\t{job}\t{thing}\t{url}\tYes\t{gender}\t\tZaphod\r\n"
            if red is not None:
                Image.new("RGB", (8 + at, 8), (red, 0, 0)).save(web / name, "PNG")
        path.write_text(rows, newline="")
        monkeypatch.setenv("BIASLIB_MIRROR", f"{server.address}/files")
        monkeypatch.setenv("BIASLIB_STORE", str(tmp_path / "store"))
        monkeypatch.setattr(visogender, "SHA256", file_sha256(path))
        yield server


class Seeing:
    """Takes red for the factor of .1, .2 and .4: of the woman, man and person in a caption."""

    name = "vl-bert"
    revision, tokenizer, unk_token = "by hand", property(lambda self: self), "[UNK]"

    def tokenize(self, text):
        return ["[UNK]" if word == "frob" else word for word in text.split()]

    def mask_log_prob(self, texts, candidates, images=None, **_):
        said = [{"woman": 0.1, "man": 0.2, "person": 0.4}[text.split()[1]] for text in texts]
        reds = 1 if images is None else [picture[0, 0, 0] / 255 for picture in images]
        return np.log(np.outer(np.multiply(said, reds), np.ones(len(candidates))))


def test_scores_of_living_links_are_those_of_the_formulas_by_hand(published, tmp_path):
    folder = tmp_path / "visogender"
    found = visogender.fetch(folder)
    pandas.testing.assert_frame_equal(found, visogender.fetch(folder))
    files = [path for path in folder.rglob("*") if path.is_file()]
    top = {path.relative_to(folder).parts[0] for path in files}
    assert top == {".links", "desk", "entities.csv", "links.csv"}
    assert not any(b"Zaphod" in path.read_bytes() for path in files)  # no name is kept
    used = found[found["used"]].groupby(["occupation", "gender"])["file"].agg("".join).to_dict()
    # Two sizes of one photograph are one: OO_16 is not used. Of judges one living man is left.
    assert used == {
        ("clerk", "man"): "OO_1.imgOO_2.imgOO_3.img",
        ("clerk", "woman"): "OO_6.imgOO_8.imgOO_10.img",
        ("judge", "man"): "OO_14.img",
        ("judge", "woman"): "OO_17.img",
    }
    options = {"folder": folder, "per_agent": 5, "size": "full"}
    with pytest.raises(datasets.DataError):
        study.paper_inputs(**options)
    given = study.paper_inputs(**options, only_sound=True)
    assert given.entities["entity"].tolist() == ["desk", "frob nicator"]
    results = study.run(given, Seeing(), Seeing(), study.CHAPTER, only_sound=True)
    assert "entity is not in the vocabulary" in set(results.problems["kind"])
    scores = results.scores.set_index(["test", "level", "statistic"])[["value", "n"]]
    women, men = np.mean([51, 102, 255, 102]) / 255, np.mean([153, 153, 153, 204]) / 255
    assert scores.loc["desk", "S_V", "S(f)"].tolist() == [pytest.approx(np.log(women)), 4]
    assert scores.loc["desk", "S_V", "B"].tolist() == [pytest.approx(np.log(women / men)), 8]
    assert scores.loc["desk", "S_L", "S(f)"].tolist() == [pytest.approx(np.log(0.1 / 0.4)), 8]
    recorded = pandas.concat([results.scores, study.shares(results.scores)])
    assert set(reproduction.compare(recorded, study.STUDY)["verdict"]) == {"not run"}
    as_beer = recorded.replace({"test": {"desk": "beer"}})  # an entity of the paper's
    assert set(reproduction.compare(as_beer, study.STUDY)["verdict"]) > {"not run"}
