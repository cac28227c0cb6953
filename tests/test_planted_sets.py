"""Sets of scenes in the studies' shapes: sizes, balance, what is shown, determinism."""

import numpy as np
import pandas
import pytest

import plantedworld
from biaslib import stimuli
from plantedworld._truth import planted_strengths


def rng(seed=0):
    return np.random.default_rng(seed)


WORLD = plantedworld.world(strength=1, seed=0)
GENDERED = {"woman", "man"}


def choices(seed=0, n=20, world=WORLD):
    return plantedworld.caption_choices(world, n, rng(seed))


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: plantedworld.faces(2, rng(seed)),
        lambda seed: plantedworld.agents_with_entities(rng(seed), ["apron", "suit"]),
        lambda seed: choices(seed, 2),
        lambda seed: plantedworld.grounded_sets("occupation-race", rng(seed))["Ax"],
    ],
    ids=["faces", "agents", "choices", "grounded"],
)
def test_a_set_follows_from_its_seed_and_can_be_drawn(make):
    pandas.testing.assert_frame_equal(make(5), make(5))
    assert not make(5)["layout"].equals(make(6)["layout"])
    assert make(5)["look"].isin(plantedworld.looks("tune")).all()
    assert len(plantedworld.draw(make(5))) == len(make(5))


def test_faces_are_balanced_and_show_nothing_but_a_person():
    faces = plantedworld.faces(6, rng())
    assert len(faces) == 60
    assert (faces.groupby(["gender", "tone", "age"]).size() == 2).all()
    assert faces.groupby("group").size().to_dict() == {
        f"{group}, tone {tone}": 6 for group in ("women", "men") for tone in range(1, 6)
    }
    shown = plantedworld.shown_evidence(faces)
    assert shown["gender"].tolist() == faces["gender"].tolist()
    assert shown["tone"].tolist() == faces["tone"].tolist()
    assert (shown["role"] == "").all()
    assert (shown["object"] == "").all()


@pytest.mark.parametrize("view", ["visible", "ambiguous", "hidden"])
def test_agents_with_entities_show_what_the_view_says(view):
    scenes = plantedworld.agents_with_entities(rng(), view=view)
    entities = stimuli.entities()
    assert len(scenes) == 2 * 6 * len(entities)
    assert (scenes.groupby(["entity", "gender"]).size() == 6).all()
    tones = scenes.groupby(["entity", "gender"])["tone"].apply(sorted).unstack()
    assert (tones["woman"] == tones["man"]).all()
    partner = {a: b for pair in plantedworld.object_pairs().values for a, b in (pair, pair[::-1])}
    expected = {
        "visible": scenes["entity"],
        "ambiguous": scenes["entity"].map(lambda name: "|".join(sorted([name, partner[name]]))),
        "hidden": pandas.Series("", scenes.index),
    }[view]
    shown = plantedworld.shown_evidence(scenes)
    assert shown["object"].tolist() == expected.tolist()
    assert set(shown["gender"]) == GENDERED
    assert (shown["role"] == "").all()
    assert (scenes["set"] == "case study").sum() == 6 * 12


def test_caption_choices_are_balanced():
    table = choices(n=20)
    counts = table.groupby(["category", "label"]).size()
    assert counts.to_dict() == {
        (category, label): 10
        for category in ("gender", "profession", "tone", "age")
        for label in ("stereotype", "anti-stereotype")
    }
    by_gender = table.query("category == 'gender'").groupby(["label", "gender"]).size()
    assert (by_gender == 5).all()


def test_the_picture_shows_the_label_where_it_is_said_to():
    table = choices(n=40)
    shown = plantedworld.shown_evidence(table)
    there = table["stereotype word"].where(
        table["label"] == "stereotype", table["anti-stereotype word"]
    )
    seen = table["category"].map({"gender": "object", "profession": "role"})
    assert table["label_shown"].equals(seen.notna())
    for column in ("object", "role"):
        rows = seen == column
        assert shown.loc[rows, column].tolist() == there[rows].tolist()
        assert (shown.loc[~rows, column] == "").all()
    assert table.loc[seen.isna(), "attribute"].tolist() == there[seen.isna()].tolist()


@pytest.mark.parametrize("seed", [0, 3])
def test_the_stereotype_is_what_the_planted_odds_give_to_the_person(seed):
    world = plantedworld.world(strength=1, seed=seed)
    truth = world.truth
    table = choices(seed, 20, world)
    for category in ("gender", "profession"):
        rows = table[table["category"] == category]
        ratio = truth.log_ratio(rows["stereotype word"].tolist()) - truth.log_ratio(
            rows["anti-stereotype word"].tolist()
        )
        assert (np.sign(ratio) == np.where(rows["gender"] == "woman", 1, -1)).all()
    rows = table.query("category == 'tone'")
    ratio = truth.tone_log_ratio(rows["stereotype word"].tolist()) - truth.tone_log_ratio(
        rows["anti-stereotype word"].tolist()
    )
    assert (np.sign(ratio) == np.where(rows["tone"] == 5, 1, -1)).all()


def test_the_stereotypes_do_not_depend_on_the_dose():
    one, other = choices(world=plantedworld.world(0, 3)), choices(world=plantedworld.world(3, 3))
    pandas.testing.assert_frame_equal(one, other)


def test_choices_are_equally_frequent_and_differ_in_one_word():
    table = choices(n=40)
    words = plantedworld.content_words()
    stereotype, anti = (
        words.loc[table[name]] for name in ("stereotype word", "anti-stereotype word")
    )
    assert stereotype["weight"].tolist() == anti["weight"].tolist()
    for first, second in zip(stereotype["groups"], anti["groups"], strict=True):
        assert set(first.split()) == set(second.split())
    for name in ("stereotype", "anti-stereotype"):
        texts = zip(table[name], table[f"{name} word"], table["target"], strict=True)
        neutral = table[f"neutral {name}"]
        for (text, word, target), plain in zip(texts, neutral, strict=True):
            assert word in text
            assert target in text
            assert plain in (text.replace(target, "the person"), text.replace(target, "person"))
            assert plantedworld.read(text)
    things = [plantedworld.read(text)[0].content for text in table["photo of a thing"]]
    assert (words.loc[things, "slot"] == "thing").all()


@pytest.mark.parametrize("seed", [1])
def test_an_irrelevant_caption_keeps_person_and_frame_and_the_picture_rules_its_word_out(seed):
    world = plantedworld.world(3, seed)
    table = choices(seed, 40, world)
    shown = table[table["label_shown"]]
    words = plantedworld.content_words()
    lean = planted_strengths(world.plan, "captions")["gender"]
    for row in shown.to_dict("records"):
        first, third = (plantedworld.read(row[name])[0] for name in ("stereotype", "irrelevant"))
        assert (first.frame, first.agent) == (third.frame, third.agent)
        first, third = first.content, third.content
        assert third not in (row["stereotype word"], row["anti-stereotype word"])
        assert words.at[third, "weight"] == words.at[first, "weight"]
        side = 1 if row["gender"] == "woman" else -1
        assert side * lean[third] <= side * lean[first]
    ruled_out = world.truth.log_joint(shown["irrelevant"].tolist()[:8], shown.iloc[:8])
    assert np.isneginf(np.diag(ruled_out)).all()
    others = table[~table["label_shown"]]
    assert others["irrelevant"].equals(others["photo of a thing"])


def test_the_white_picture_shows_nothing_and_is_white():
    scene = plantedworld.blank(2)
    assert (plantedworld.draw(scene) == 255).all()
    assert plantedworld.boxes(scene)[["person", "object"]].isna().all(axis=None)
    texts = ["a photo of a nurse", "the woman talks about an office.", "a photo of a clover"]
    truth = plantedworld.world(3, 0).truth
    np.testing.assert_allclose(truth.similarity(texts, scene), 0, atol=1e-9)
    masked = ["the woman is wearing a [MASK].", "a photo of [MASK]"]
    np.testing.assert_allclose(
        truth.mask_log_prob(masked, ["apron", "john"], scene),
        truth.mask_log_prob(masked, ["apron", "john"]),
    )


@pytest.mark.parametrize(
    ("name", "drawn"),
    [("C6", "XY"), ("C3", "XY"), ("ABW", "XY"), ("C8", "AB"), ("occupation-gender", "XYAB")],
)
def test_grounded_sets_show_attributes_on_the_people_of_the_targets(name, drawn):
    sets = plantedworld.grounded_sets(name, rng(), n_per_word=2)
    test = stimuli.association_test(name)
    sizes = {key: len(scenes) for key, scenes in sets.items()}
    n_a, n_b = 2 * len(test.A), 2 * len(test.B)
    assert sizes == {
        "X": 2 * len(test.X),
        "Y": 2 * len(test.Y),
        "Ax": n_a,
        "Ay": n_a,
        "Bx": n_b,
        "By": n_b,
    }
    for target, attributes in (("X", ("Ax", "Bx")), ("Y", ("Ay", "By"))):
        people = plantedworld.shown_evidence(sets[target])
        for attribute in attributes:
            seen = plantedworld.shown_evidence(sets[attribute])
            if people["person"].any():
                assert set(seen["gender"]) <= set(people["gender"])
                assert set(seen["tone"]) <= set(people["tone"])
            roles = sets[attribute].loc[sets[attribute]["role_shown"], "word"]
            assert seen.loc[seen["role"] != "", "role"].tolist() == roles.tolist()
    assert {key[0] for key, scenes in sets.items() if scenes["drawn"].any()} == set(drawn)


def test_contexts_are_alike_in_the_sets_that_are_compared():
    sets = plantedworld.grounded_sets("C3", rng())
    for one, other in (("Ax", "Bx"), ("Ay", "By")):
        assert sets[one]["gender"].tolist() == sets[other]["gender"].tolist()
        assert sets[one]["tone"].tolist() == sets[other]["tone"].tolist()
