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
from support.hostile import permitted
from support.hub import instead_of_the_real_one

from biaslib import reproduction, runtime
from biaslib.checkpoints import downloads
from biaslib.datasets import vlstereoset
from biaslib.errors import CheckpointError, InputError
from biaslib.runtime import TASTE, file_sha256
from biaslib.studies import study4_captions as study
from companion import study4_captions as plots

PAGE = vlstereoset.URL.removeprefix("https://")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The table as its publisher has it, and the weights of a taste; half of the links are dead."""
    folder = tmp_path / "hub"
    repositories.build("tinyclip", folder)
    monkeypatch.setenv("BIASLIB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BIASLIB_PRECISION", "")
    with instead_of_the_real_one(folder, tmp_path) as running, permitted(10.0):
        rows = pandas.DataFrame(sample.rows())
        files = rows["Imaeg URL"].str.removeprefix("https://")
        for at, file in enumerate(files[files.index % 4 < 2]):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            repositories.picture(at).save(folder / file)
        rows["Imaeg URL"] = f"{running.address}/files/" + files
        sample.write(folder / PAGE, rows.to_dict("records"))
        monkeypatch.setattr(vlstereoset, "SHA256", file_sha256(folder / PAGE))
        running.rows = rows.assign(path=[folder / file for file in files])
        yield running


def asked(hub):
    return {path for _, path, _ in hub.requests if "example.org" in path}


def picks_of_transformers(hub, table):
    """Which caption the released network itself puts first, picture by picture."""
    folder = hub.folder / "wkcn" / "TinyCLIP-ViT-8M-16-Text-3M-YFCC15M"
    network = transformers.CLIPModel.from_pretrained(folder).eval()
    processor = transformers.CLIPProcessor.from_pretrained(folder)
    found = []
    for row in table.to_dict("records"):
        captions = [row[name] for name in ("stereotype", "anti-stereotype", "unrelated")]
        image = Image.open(row["path"])
        given = processor(text=captions, images=image, return_tensors="pt", padding=True)
        with torch.inference_mode():
            found.append(int(network(**given).logits_per_image.argmax()))
    return np.array(found)


def test_a_taste_goes_from_nothing_to_a_record_that_no_printed_number_judges(hub, tmp_path):
    folder, beside, missing = reproduction.reproduce("zhou2022", tmp_path, "taste")
    gender = hub.rows[hub.rows["bias_type"] == "gender"]
    here = gender[[path.is_file() for path in gender["path"]]]
    assert len(gender) > len(here) > 5
    assert asked(hub) == set(gender["Imaeg URL"].str.removeprefix(hub.address))
    [row] = missing.to_dict("records")
    assert row["without it"].startswith(f"{len(here)} of {len(gender)} rows are left")
    assert row["reason"] == f"error 404 ({len(gender) - len(here)})"
    scores, stamp = reproduction.read(folder)
    assert folder.name.startswith("zhou2022-taste-")
    assert stamp["pictures"] == {"asked": len(gender), "there": len(here)}
    assert list(stamp["networks"]) == ["tinyclip"]
    assert scores[["profile", "dataset"]].drop_duplicates().to_numpy().tolist() == [
        ["taste", "VLStereoSet, gender"]
    ]
    assert set(beside["verdict"]) == {"not run"}
    label = here["label"].map(dict(zip("01", vlstereoset.LABELS, strict=True)))
    drawn = vlstereoset.balanced(here.assign(label=label, category="gender"), seed=0)
    anti, picked = (
        (drawn["label"] == "anti-stereotype").to_numpy(),
        picks_of_transformers(hub, drawn),
    )
    values = scores[scores["level"] == "images"].set_index(["test", "statistic"])
    for name, hits in (("vlrs", picked != 2), ("vlbs", picked[anti] == 0)):
        assert values.loc[("gender", name), "value"] == pytest.approx(100 * hits.mean())
        assert values.loc[("gender", name), "n"] == len(hits)
        assert np.isfinite(values.loc[("gender", name), ["low", "high"]].astype(float)).all()


def test_what_was_fetched_is_not_asked_for_again_and_dead_links_stay_counted(hub):
    first = study.fetch("taste")
    hub.requests.clear()
    pandas.testing.assert_frame_equal(study.fetch("taste"), first)
    assert hub.requests == []


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
