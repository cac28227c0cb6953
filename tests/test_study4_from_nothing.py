"""Study 4 from nothing: its table, the pictures behind its links, its weights; a taste of it."""

import errno
import os

import numpy as np
import pandas
import pytest
import torch
import transformers
from PIL import Image
from support import rehearsal_stereotype as sample
from support import repositories
from support.from_nothing import LINKS, publish_vlstereoset
from support.hub import instead_of_the_real_one

from biaslib import reproduction, runtime
from biaslib.checkpoints import downloads
from biaslib.datasets import _fetcher, vlstereoset
from biaslib.errors import CheckpointError, InputError
from biaslib.runtime import TASTE, _profile, file_sha256
from biaslib.studies import study4_captions as study
from companion import study4_captions as plots

ROWS = pandas.DataFrame(sample.rows())
GENDER = ROWS[ROWS["bias_type"] == "gender"]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The table as its publisher has it, and the weights of a taste; half of the links are dead."""
    folder = tmp_path / "hub"
    repositories.build("tinyclip", folder)
    table = publish_vlstereoset(folder)
    monkeypatch.setattr(vlstereoset, "SHA256", file_sha256(table))
    monkeypatch.setattr(_fetcher, "_addresses", lambda *_: [])  # the proxy knows the hosts
    monkeypatch.setenv("BIASLIB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BIASLIB_PRECISION", "")
    for name, value in (("loaded", []), ("begun", None), ("size", None)):
        monkeypatch.setattr(_profile._Run, name, value)  # what a run begins is over with the test
    with instead_of_the_real_one(folder, tmp_path) as running:
        running.links = folder / LINKS
        yield running


def asked(hub):
    return {path for _, path, _ in hub.requests if path.startswith("http:")}


def picks_of_transformers(hub, table):
    """Which caption the released network itself puts first, picture by picture."""
    folder = hub.folder / "wkcn" / "TinyCLIP-ViT-8M-16-Text-3M-YFCC15M"
    network = transformers.CLIPModel.from_pretrained(folder).eval()
    processor = transformers.CLIPProcessor.from_pretrained(folder)
    found = []
    for row in table.to_dict("records"):
        captions = [row[name] for name in ("stereotype", "anti-stereotype", "unrelated")]
        image = Image.open(hub.links / row["Imaeg URL"].removeprefix("http://"))
        given = processor(text=captions, images=image, return_tensors="pt", padding=True)
        with torch.inference_mode():
            found.append(int(network(**given).logits_per_image.argmax()))
    return np.array(found)


def test_a_taste_goes_from_nothing_to_a_record_that_no_printed_number_judges(hub, tmp_path):
    folder, beside, missing = reproduction.reproduce("zhou2022", tmp_path, "taste")
    here = GENDER[GENDER.index % 4 < 2]
    assert asked(hub) == set(GENDER["Imaeg URL"])
    [row] = missing.to_dict("records")
    assert row["without it"].startswith(f"{len(here)} of {len(GENDER)} rows are left")
    assert row["reason"] == f"error 404 ({len(GENDER) - len(here)})"
    hub.requests.clear()
    pandas.testing.assert_frame_equal(study.fetch("taste"), missing)
    assert hub.requests == []
    scores, stamp = reproduction.read(folder)
    assert folder.name.startswith("zhou2022-taste-")
    assert stamp["pictures"] == {"asked": len(GENDER), "there": len(here)}
    assert list(stamp["networks"]) == ["tinyclip"]
    assert set(scores["profile"] + scores["dataset"]) == {"tasteVLStereoSet, gender"}
    assert set(beside["verdict"]) == {"not run"}
    label = here["label"].map(dict(zip("01", vlstereoset.LABELS, strict=True)))
    drawn = vlstereoset.balanced(here.assign(label=label, category="gender"), seed=0)
    picked, anti = picks_of_transformers(hub, drawn), drawn["label"] == vlstereoset.LABELS[1]
    values = scores[scores["level"] == "images"].set_index(["test", "statistic"])
    for name, hits in (("vlrs", picked != 2), ("vlbs", picked[anti] == 0)):
        assert values.loc[("gender", name), "value"] == pytest.approx(100 * hits.mean())
        assert values.loc[("gender", name), "n"] == len(hits)
        assert np.isfinite(values.loc[("gender", name), ["low", "high"]].astype(float)).all()


def test_tables_of_a_taste_say_so_and_nothing_printed_stands_beside_them(hub):
    run = runtime.start("paper", "taste")
    study.fetch()
    given = study.inputs("paper")
    found = study.run(given.heads, given)
    shown = plots.results(found, study.selection_scores(found, study.selected(given)))
    assert [each.caption.endswith(f"({TASTE})") for each in shown.parts] == [True] * 4
    assert not any(", printed" in name for each in shown.parts for name in each.frame)
    assert run.label == given.profile == "taste"


def test_a_mirror_that_lies_about_the_table_is_refused_and_no_link_is_asked(hub, tmp_path):
    hub.corrupt = vlstereoset.FILE
    with pytest.raises(CheckpointError):
        study.fetch("taste")
    assert not (tmp_path / "data" / "vlstereoset" / vlstereoset.FILE).exists()
    assert asked(hub) == set()
    hub.corrupt = ""
    assert len(study.fetch("taste")) == 1


def test_a_head_whose_weights_cannot_be_had_is_left_out_by_name(hub):
    missing = study.fetch("full").set_index("what")["without it"]
    assert list(missing.index[7:]) == [f"some images of {name}" for name in sorted(sample.TERMS)]
    texts = missing.iloc[:7]
    for head in study.MODEL_HEADS:
        assert head.label in texts[f"weights of {head.paper}"]
    assert texts["weights of detector"] == "VisualBERT; LXMERT: left out"


def test_a_full_disk_ends_the_study_though_it_could_go_on_without_those_weights(hub, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(downloads, "_go_on", full)  # the detector's host is no hub
    monkeypatch.setattr(vlstereoset, "fetch_images", lambda *_, **__: None)
    with pytest.raises(InputError) as error:
        study.fetch("full")
    assert "weights of detector" in str(error.value)
