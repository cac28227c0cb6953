"""Study 1 as published: against numbers that the authors' released code returned.

How they were made is in tests/golden/ross_released/NOTICE. VisualBERT, whose released loader does
not run without AllenNLP, is compared with the bare network of transformers, input by input.
"""

import dataclasses
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from support import small_models

from biaslib import models, runtime
from biaslib.capabilities import CapabilityError
from biaslib.metrics.grounded import grounded
from biaslib.models import lxmert, vilbert, visualbert, vl_bert
from biaslib.models import study1_as_released as released
from biaslib.models.networks.vilbert import VilbertConfig, VilbertNetwork
from biaslib.models.networks.vl_bert import VlBertConfig, VlBertNetwork
from biaslib.pictures.regions import RegionFeatures
from biaslib.studies import study1_grounded as study
from companion import study1_grounded as chapter
from plantedworld.inputs import study1_grounded as planted

FOLDER = Path(__file__).parent / "golden" / "ross_released"
TOLERANCE = 2e-5
BERT = {
    "vocab_size": len(small_models.VOCABULARY),
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 32,
}
STREAMS = {
    "max_position_embeddings": 40,
    "v_target_size": 5,
    "v_hidden_size": 24,
    "v_num_hidden_layers": 2,
    "v_num_attention_heads": 4,
    "v_intermediate_size": 24,
    "bi_hidden_size": 16,
    "bi_num_attention_heads": 4,
    "t_biattention_id": (0, 1),
    "v_biattention_id": (0, 1),
}
LAYERS = {"l_layers": 2, "x_layers": 2, "r_layers": 1, "visual_feat_dim": 12}
LAYERS |= {"num_qa_labels": 3, "num_object_labels": 4, "num_attr_labels": 3}
LAYERS |= {"max_position_embeddings": 20}
NAMES = ("vilbert", "lxmert", "vl-bert")
RUNS = [("plain/full_seq", "sentence", "none"), ("plain/contextual", "contextual", "none")]
RUNS += [("masked_text/full_seq", "sentence", "words")]
RUNS += [("masked_image/full_seq", "sentence", "persons")]


@cache
def arrays(name):
    with np.load(FOLDER / f"{name}.npz") as file:
        return {key: file[key] for key in file}


def regions(kind="wide"):
    """The stand-in pictures, as our own files of regions would give them."""
    told = arrays("inputs")
    sizes, boxes = told["sizes"], told["boxes"] / np.tile(told["sizes"], 2)[:, None]
    real = np.ones(boxes.shape[:2], dtype=bool)
    return RegionFeatures(
        told[kind] / 2,
        boxes,
        real,
        ~real,
        sizes,
        classes=told["classes"],
        class_names=tuple(told["names"].tolist()),
    )


def texts():
    return arrays("inputs")["texts"].tolist()


def words():
    return arrays("inputs")["words"].tolist()


def shown(name):
    return regions("slim" if name == "lxmert" else "wide")[arrays("inputs")["image"]]


def network(name):
    made = {
        "vilbert": lambda: VilbertNetwork(VilbertConfig(**BERT, **STREAMS)),
        "vl-bert": lambda: VlBertNetwork(
            VlBertConfig(**BERT, max_position_embeddings=70, visual_region_classes=5)
        ),
        "lxmert": lambda: transformers.LxmertForPreTraining(
            transformers.LxmertConfig(
                **{key: each for key, each in BERT.items() if key != "num_hidden_layers"}, **LAYERS
            )
        ),
    }[name]()
    told = {key.partition("/")[::2]: each for key, each in arrays("weights").items()}
    told = {key: each for (of, key), each in told.items() if of == name}
    state = {key: torch.from_numpy(each / 64).float() for key, each in told.items()}
    left = made.load_state_dict(state, strict=False)
    assert not left.unexpected_keys
    assert all("q_dense" in key or "decoder" in key for key in left.missing_keys)
    return made


ADAPTERS = {"vilbert": vilbert.Vilbert, "lxmert": lxmert.Lxmert, "vl-bert": vl_bert.VlBert}


@cache
def ours(name):
    return ADAPTERS[name](network(name), small_models.tokenizer(), name, "random", "cpu")


def near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)


def order_of_their_run(numbers):
    """The places of regions there, where equal numbers came as that processor's sort left them."""
    rows = np.loadtxt(FOLDER / "order.csv", dtype=int, delimiter=",")
    known = dict(zip(map(tuple, arrays("inputs")["classes"]), rows, strict=True))
    found = np.stack([known[tuple(row)] for row in numbers])
    assert (np.diff(np.take_along_axis(numbers, found, axis=1)) <= 0).all()
    return found


def test_regions_of_one_class_keep_their_order_on_every_processor():
    numbers = np.random.default_rng(0).integers(-1, 4, (3, 100))
    expected = [sorted(range(100), key=lambda at: -row[at]) for row in numbers.tolist()]
    assert released._order(numbers).tolist() == expected


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("what", "level", "masking"), RUNS)
def test_embeddings_are_those_of_the_released_code(name, what, level, masking, monkeypatch):
    monkeypatch.setattr(released, "_order", order_of_their_run)
    reader = released.reader(ours(name))
    found = reader.embed(texts(), shown(name), level, words(), masking)
    near(found, arrays("outputs")[f"{name}/{what}"])


def test_vilbert_s_plain_run_is_masked_by_the_wrong_label_too():
    """Row 0, the mean, is zeroed by region 0's label, and region 35 is never read."""
    told = regions()
    reader = released.reader(ours("vilbert"))
    labels = dataclasses.replace(told, classes=np.full_like(told.classes, 11))
    free = reader.visual(labels, np.array([0]), None)["features"][0]
    near(free[1], told.features[0].mean(axis=0))
    near(free[2:], told.features[0, :35])
    near(free[0], free[1:].mean(dim=0))
    classes = labels.classes.copy()
    classes[0, 5] = 2  # the name of number 2, with "background" in front, is man
    labels = dataclasses.replace(told, classes=classes)
    plain = reader.visual(labels, np.array([0]), None)["features"][0]
    assert np.flatnonzero(~plain.any(dim=1)).tolist() == [6]
    others = [row for row in range(1, 37) if row != 6]
    near(plain[others], free[others])
    hidden = reader.visual(labels, np.array([0]), released.Mask(persons=True))["features"][0]
    near(hidden[1:], plain[1:])
    near(hidden[0], plain[0] * 36 / 37)


def bare_visualbert():
    config = transformers.VisualBertConfig(visual_embedding_dim=12, **BERT)
    torch.manual_seed(0)
    return small_models.random_parameters(transformers.VisualBertForPreTraining(config))


def test_visualbert_reads_144_regions_and_the_padding_that_masking_leaves():
    bare = bare_visualbert()
    model = visualbert.VisualBert(bare, small_models.tokenizer(), "visualbert", "random", "cpu")
    rng = np.random.default_rng(0)
    features = rng.normal(size=(1, 150, 12))
    whole = np.tile([0.0, 0.0, 1.0, 1.0], (1, 150, 1))
    real = np.ones((1, 150), dtype=bool)
    images = RegionFeatures(features, whole, real, ~real, [[64, 48]])
    text = "the woman is carrying a nurse."
    ids = small_models.tokenizer()(text)["input_ids"]
    assert small_models.tokenizer().convert_ids_to_tokens(ids)[4:7] == ["car", "##ry", "##ing"]
    masked = [*ids[:4], small_models.tokenizer().mask_token_id, *ids[7:], 0, 0]

    def states(tokens):
        seen = torch.tensor(features[:, :144]).float()
        with torch.inference_mode():
            return bare.visual_bert(
                input_ids=torch.tensor([tokens]),
                attention_mask=torch.ones(1, len(tokens)),
                visual_embeds=seen,
                visual_attention_mask=torch.ones(1, 144),
                visual_token_type_ids=torch.zeros(1, 144, dtype=torch.long),
            ).last_hidden_state[0]

    reader = released.reader(model)
    near(reader.embed([text], images, words=["carrying"])[0], states(ids)[0])
    near(reader.embed([text], images, words=["carrying"], masking="words")[0], states(masked)[0])
    near(reader.embed([text], images, "contextual", ["carrying", "a"])[0], states(ids)[4])
    with pytest.raises(CapabilityError, match="masks no regions of visualbert"):
        reader.embed([text], images, words=["carrying"], masking="persons")


# Statistics


def embedded():
    sets = {name: arrays("inputs")[f"sets/{name}"] for name in study.SETS}
    names = {key: np.arange(len(each)).astype(str) for key, each in sets.items()}
    return study.EmbeddedSets("C6", "sentence", "none", sets, names, names)


@pytest.mark.parametrize(("experiment", "key"), [(1, "union"), (2, "targ_specific")])
def test_effect_sizes_and_p_values_are_those_of_the_released_code(experiment, key):
    effect, p = arrays("outputs")[f"statistics/{key}"]
    (row,) = chapter.score_as_released([(embedded(), experiment)])
    assert row["value"] == pytest.approx(effect, abs=1e-5)
    # Their 20,000 samples and our 100,000: within three standard errors of theirs.
    assert abs(row["p_value_paper"] - p) < 3 * np.sqrt(p / 20_000)
    assert row["p_value_paper"] * 100_000 == pytest.approx(round(row["p_value_paper"] * 100_000))
    assert row["p_method_paper"] == "sampled"
    ours = study.score(embedded(), experiment, 0)
    assert abs(ours["p_value_paper"] - p) < 3 * np.sqrt(p / 20_000)


def test_experiment_3_has_two_signed_halves_and_a_p_value_of_1():
    x, p_x, y, p_y = arrays("outputs")["statistics/intra_targ"]
    rows = chapter.score_as_released([(embedded(), 3)])
    assert [row["statistic"] for row in rows] == ["effect size of X", "effect size of Y"]
    assert [row["value"] for row in rows] == pytest.approx([x, y], abs=1e-5)
    assert [row["p_value_paper"] for row in rows] == [p_x, p_y] == [1, 1]
    result = grounded(*(arrays("inputs")[f"sets/{name}"] for name in study.SETS), 3)
    assert [row["value"] for row in rows] == [result.x_effect, result.y_effect]


def test_the_longer_target_set_is_cut_for_the_p_value_alone():
    sets = embedded()
    shorter = {**sets.embeddings, "X": sets.embeddings["X"][:24]}
    (row,) = chapter.score_as_released([(dataclasses.replace(sets, embeddings=shorter), 1)])
    effect, p = arrays("outputs")["statistics/union, 24 of X"]
    assert row["value"] == pytest.approx(effect, abs=1e-5)
    assert abs(row["p_value_paper"] - p) < 3 * np.sqrt(p / 20_000)


def test_up_to_20_targets_every_partition_is_counted():
    sets = embedded()
    few = {name: each[:6] for name, each in sets.embeddings.items()}
    (row,) = chapter.score_as_released([(dataclasses.replace(sets, embeddings=few), 1)])
    assert row["p_method_paper"] == "enumeration"
    assert row["p_value_paper"] * 924 == pytest.approx(round(row["p_value_paper"] * 924))


# The switch


def test_the_code_runs_its_own_experiments_and_maskings(tmp_path):
    store = runtime.Store(tmp_path)
    every = planted.planted_stimuli(["C6"], n_per_word=1, n_texts=1)
    given = study.Inputs(dict.fromkeys(["visualbert", "lxmert"], every), "planted", "scenes")
    readers = {name: models.load(name, profile="planted") for name in given}
    settings = {"p_values": False, "n_bootstrap": 20, "domain": "in domain"}
    scores = chapter.run_as_released(readers, given, store=store, **settings)
    assert set(scores["domain"]) == {"in domain"}
    of_sizes = scores["statistic"] == "effect size"
    assert scores["low_pictures"].notna().tolist() == of_sizes.tolist()
    assert set(scores["variant"]) == {"released"}
    assert scores["revision"].str.endswith("as published").all()
    of_model = {name: scores[scores["model"] == name] for name in given}
    ran = of_model["lxmert"].groupby("masking")[["experiment", "level"]].agg(set)
    assert ran.loc["none"].tolist() == [{1, 2, 3}, set(study.LEVELS)]
    assert ran.loc["words"].tolist() == ran.loc["persons"].tolist() == [{1}, {"sentence"}]
    assert set(of_model["visualbert"]["masking"]) == {"none", "words"}
    assert of_model["lxmert"].query("experiment == 3")["statistic"].nunique() == 2
    for name, found in of_model.items():
        reader = released.reader(readers[name])
        sets = next(each for each in every if each.level == "sentence")
        images = sets.images.part(sets.rows["image"].to_numpy())
        states = reader.embed(
            sets.rows["text"].tolist(), images, words=sets.hidden, masking="words"
        )
        parts = [states[(sets.rows["set"] == each).to_numpy()] for each in study.SETS]
        row = found.query("masking == 'words'").iloc[0]
        assert row["value"] == pytest.approx(grounded(*parts, 1).effect_size, abs=1e-5)
