"""The planted world's exact answers against enumeration and against samples of the world."""

import functools

import numpy as np
import pandas
import pytest
from scipy.special import expit, logsumexp

import plantedworld
from biaslib import published, stimuli
from plantedworld._frames import content_of_form
from plantedworld._tables import CAPTION_GENDER, PICTURE_GENDER, TONE, fit_margins
from plantedworld._truth import planted_strengths
from plantedworld._words import SLOT_SHARES

WORDS = plantedworld.content_words()
SLOTS = WORDS["slot"].to_numpy()


@functools.cache
def sample(dose=1.0, seed=0, n=400_000):
    """A world and n of its scenes, each with its caption and what its picture shows."""
    world = plantedworld.world(dose, seed)
    rng = np.random.default_rng(20 + seed)
    scenes = world.scenes(n, rng)
    shown = plantedworld.shown_evidence(scenes).add_prefix("shown ")
    return world, pandas.concat([scenes, world.captions(scenes, rng), shown], axis=1)


def assert_within_noise(z, largest=4.5):
    """Check standardised differences of many words: none large, few above 2."""
    assert len(z) > 20
    assert np.abs(z).max() < largest
    assert (np.abs(z) > 2).mean() < 0.1


def count_ratio(rows, column, one, other):
    """Log ratio of the counts of each content word among two kinds of rows, and its error."""
    counts = pandas.crosstab(rows["content"], rows[column])[[one, other]]
    counts = counts[(counts > 50).all(axis=1)]
    sizes = (rows[column] == one).sum(), (rows[column] == other).sum()
    ratio = np.log(counts[one] / counts[other]) - np.log(sizes[0] / sizes[1])
    return counts.index.tolist(), ratio.to_numpy(), np.sqrt((1 / counts).sum(axis=1)).to_numpy()


@pytest.mark.parametrize(
    ("given", "column"), [("picture", "gender"), ("caption", "caption_gender")]
)
@pytest.mark.parametrize("seed", [0, 5_004])
def test_log_ratios_of_women_and_men_are_those_of_samples(seed, given, column):
    world, rows = sample(seed=seed)
    words, found, error = count_ratio(rows, column, "woman", "man")
    assert_within_noise((found - world.truth.log_ratio(words, given)) / error)


def test_log_ratios_of_tones_are_those_of_samples():
    world, rows = sample()
    words, found, error = count_ratio(rows, "tone", 5, 1)
    assert_within_noise((found - world.truth.tone_log_ratio(words)) / error)


def test_the_share_of_wrong_genders_is_the_one_asked_for():
    _, rows = sample()
    agents = plantedworld.agent_words().set_index("word")["gender"]
    said = rows["agent"].map(agents).fillna("")
    wrong = (said != rows["gender"])[said != ""]
    error = np.sqrt(0.1 * 0.9 / len(wrong))
    assert len(wrong) > 50_000
    assert abs(wrong.mean() - 0.1) < 4 * error


def test_log_words_have_the_planted_odds_ratios():
    world = plantedworld.world(strength=1.5, seed=1)
    planted_words = planted_strengths(world.plan, "captions")
    table = world.truth.log_words
    picture, caption = np.array([0.5, -0.5])[[PICTURE_GENDER, CAPTION_GENDER]]
    y = (TONE - 3) / 4
    for slot in ("role", "object", "attribute", "thing"):
        rows = slot == SLOTS
        has = (planted_words[["gender", "tone", "interaction"]] != 0).any(axis=1).to_numpy()
        unplanted = table[rows & ~has]
        assert np.abs(unplanted - unplanted[:, :1]).max(initial=0) < 1e-12
        rows = rows & has
        if not rows.any():
            continue
        gender, tone, both = planted_words.loc[rows, ["gender", "tone", "interaction"]].T.to_numpy()
        share = planted_words.loc[rows, ["share"]].to_numpy()
        x = share * caption + (1 - share) * picture
        expected = 1.5 * (gender[:, None] * x + np.outer(tone, y) + 2 * both[:, None] * x * y)
        left = table[rows] - expected
        left = left - left[:1] - left[:, :1] + left[0, 0]
        assert np.abs(left).max() < 1e-9


@pytest.mark.parametrize("dose", [0, 1, 3])
def test_words_keep_their_frequency_at_any_dose(dose):
    truth = plantedworld.world(dose, 2).truth
    frequency = plantedworld.frequencies(truth.design.plan)
    found = np.exp(logsumexp(truth.log_words + truth.design.log_cells, axis=1))
    for slot, share in SLOT_SHARES.items():
        if slot != "agent":
            weights = frequency[slot == SLOTS].to_numpy()
            np.testing.assert_allclose(found[slot == SLOTS], share * weights / weights.sum())
    np.testing.assert_allclose(np.exp(logsumexp(truth.log_words, axis=0)), 1)


@pytest.mark.parametrize("seed", [0, 4, 5_000])
def test_table_1_of_study_3_holds_exactly_at_dose_1(seed):
    printed = published.table("hamidieh2023", 1)
    words = printed["word"].str.lower().tolist()
    women = expit(plantedworld.world(1, seed).truth.log_ratio(words, given="caption"))
    expected = (printed["female"] / 100).to_numpy()
    np.testing.assert_allclose(women, expected, atol=1e-6)


def test_at_dose_0_captions_and_pictures_share_nothing_but_people():
    world = plantedworld.world(0, 1)
    rows = SLOTS != "agent"
    assert np.ptp(world.truth.log_words[rows], axis=1).max() < 1e-12
    texts = ["the person is a nurse.", "a photo of a lazy person", "the person is wearing a suit."]
    similarity = world.truth.similarity(texts, plantedworld.faces(3, np.random.default_rng(0)))
    assert np.ptp(similarity[[1, 2]], axis=1).max() < 1e-12
    children = plantedworld.faces(3, np.random.default_rng(0)).query("age == 'child'")
    somebody = -np.log(1 - SLOT_SHARES["thing"])
    np.testing.assert_allclose(world.truth.similarity(texts, children), somebody)


@pytest.mark.parametrize(("place", "held"), [("text", CAPTION_GENDER), ("images", PICTURE_GENDER)])
def test_a_world_planted_in_one_place_follows_that_gender_alone(place, held):
    truth = plantedworld.world(2, 0, planted_in=place).truth
    rows = truth.log_words[SLOTS != "agent"]
    for gender in (0, 1):
        for tone in range(1, 6):
            cells = (held == gender) & (tone == TONE)
            assert np.ptp(rows[:, cells], axis=1).max() < 1e-9
    other = {"text": "picture", "images": "caption"}[place]
    own = {"text": "caption", "images": "picture"}[place]
    strong, weak = (np.abs(truth.log_ratio(["purse"], given)) for given in (own, other))
    assert strong > weak > 0


def test_fitting_margins_keeps_odds_ratios():
    rng = np.random.default_rng(0)
    start = rng.normal(size=(7, 4))
    rows, columns = (np.log(rng.dirichlet(np.ones(n))) for n in (7, 4))
    fitted = fit_margins(start, rows, columns)
    np.testing.assert_allclose(logsumexp(fitted, axis=1), rows, atol=1e-11)
    np.testing.assert_allclose(logsumexp(fitted, axis=0), columns, atol=1e-11)

    def odds(table):
        return table - table[:1] - table[:, :1] + table[0, 0]

    np.testing.assert_allclose(odds(fitted), odds(start), atol=1e-10)


def enumerated(truth, scene, content, agent, frame):
    """P(caption, what the picture shows) as a plain sum over every role, object and cell."""
    evidence = truth.evidence
    slots = {name: np.flatnonzero(name == SLOTS) for name in ("role", "object")}
    roles, objects = (WORDS.index[rows] for rows in slots.values())
    of_role, of_object = (
        np.exp(truth.log_words[rows]) / SLOT_SHARES[name] for name, rows in slots.items()
    )
    drawn = roles.isin(plantedworld.PICTURED_ROLES) & (scene.age == "adult")
    p_role = (
        (roles == scene.role) * drawn * evidence.shown_role
        if scene.role_shown
        else 1 - drawn * evidence.shown_role
    )
    pairs = {frozenset(pair) for pair in plantedworld.object_pairs().to_numpy().tolist()}
    pair = next((pair for pair in pairs if scene.object in pair), frozenset())
    p_object = {
        "visible": (objects == scene.object) * evidence.shown_object,
        "ambiguous": objects.isin(pair) * evidence.ambiguous_object,
        "hidden": np.full(len(objects), 1 - evidence.shown_object - evidence.ambiguous_object),
    }[scene.object_view]
    total = 0.0
    word = WORDS.index.get_loc(content)
    agents = plantedworld.agent_words()["word"].tolist()
    place = plantedworld.frames()[frame].place
    for cell in range(20):
        gender = ("woman", "man")[PICTURE_GENDER[cell]]
        if TONE[cell] != scene.tone or (scene.gender_shown and gender != scene.gender):
            continue
        joint = np.outer(p_role * of_role[:, cell], p_object * of_object[:, cell])
        if SLOTS[word] == "role":
            joint = joint * (roles == content)[:, None] * SLOT_SHARES["role"]
        elif SLOTS[word] == "object":
            joint = joint * (objects == content) * SLOT_SHARES["object"]
        else:
            joint = joint * np.exp(truth.log_words[word, cell])
        p_agent = np.exp(truth.log_agents[place][agents.index(agent), cell]) if place else 1.0
        total += np.exp(truth.design.log_cells[cell]) * joint.sum() * p_agent
    return total * np.exp(truth.log_frames[word, frame])


EVIDENCE = {
    "portrait": {},
    "child": {"age": "child"},
    "gender hidden": {"gender_shown": False},
    "object visible": {"object": "apron", "object_view": "visible"},
    "object ambiguous": {"object": "apron", "object_view": "ambiguous", "tone": 5},
    "gender hidden, object visible": {
        "gender_shown": False,
        "object": "suit",
        "object_view": "visible",
    },
    "costume": {"role": "nurse", "role_shown": True},
    "costume and object": {
        "role": "judge",
        "role_shown": True,
        "object": "suit",
        "object_view": "ambiguous",
        "gender_shown": False,
    },
}


def scene_of(**columns):
    scene = plantedworld.faces(2, np.random.default_rng(0)).iloc[[1]]
    return scene.drop(columns="group").assign(**columns).reset_index(drop=True)


@pytest.mark.parametrize("shows", EVIDENCE)
@pytest.mark.parametrize("seed", [1])
def test_masked_posteriors_are_those_of_enumeration(shows, seed):
    truth = plantedworld.world(2, seed).truth
    scene = scene_of(**EVIDENCE[shows])
    row = next(scene.itertuples())
    (reading,) = plantedworld.read("the woman is wearing a [MASK].")
    words = sorted(content_of_form(reading.frame, reading.content_form))
    joint = np.array([enumerated(truth, row, word, "woman", reading.frame) for word in words])
    found = np.exp(truth.mask_log_prob(["the woman is wearing a [MASK]."], words, scene)[0])
    np.testing.assert_allclose(found, joint / joint.sum(), atol=1e-12)

    (reading,) = plantedworld.read("the [MASK] is a nurse.")
    agents = ["person", "woman", "man", "girl", "boy", "mother", "father"]
    if EVIDENCE[shows].get("role") == "judge":
        with pytest.raises(ValueError, match="no word fits"):
            truth.mask_log_prob(["the [MASK] is a nurse."], agents, scene)
        return
    joint = np.array([enumerated(truth, row, "nurse", agent, reading.frame) for agent in agents])
    found = truth.mask_log_prob(["the [MASK] is a nurse."], agents, scene)[0]
    np.testing.assert_allclose(found - found[0], np.log(joint / joint[0]), atol=1e-9)


@pytest.mark.parametrize("shows", EVIDENCE)
def test_pointwise_mutual_information_is_that_of_enumeration(shows):
    truth = plantedworld.world(2, 0).truth
    scene = scene_of(**EVIDENCE[shows])
    row = next(scene.itertuples())
    texts = {
        "she is wearing an apron.": ("apron", "she"),
        "the man is lazy.": ("lazy", "man"),
        "the man is a judge.": ("judge", "man"),
    }
    everything = [
        enumerated(truth, row, word, "woman", frame)
        for word in ("lazy", "calm")
        for (frame,) in [[plantedworld.read(f"the woman is {word}.")[0].frame]]
    ]
    assert min(everything) > 0
    for text, (content, agent) in texts.items():
        frame = plantedworld.read(text)[0].frame
        joint = enumerated(truth, row, content, agent, frame)
        with np.errstate(divide="ignore"):
            expected = np.log(joint)
        np.testing.assert_allclose(truth.log_joint([text], scene)[0, 0], expected, atol=1e-9)
        expected = expected - truth.log_joint([text])[0, 0] - truth.log_image(scene)[0]
        np.testing.assert_allclose(truth.similarity([text], scene)[0, 0], expected, atol=1e-9)


def test_the_probability_of_what_a_picture_shows_is_its_frequency():
    world, rows = sample()
    columns = [name for name in rows if name.startswith("shown ")]
    counts = rows.groupby(columns)["look"].agg(["size", lambda look: look.index[0]])
    counts.columns = ["size", "first"]
    adults = rows["age"] == "adult"
    counts = counts[counts["size"] > 150]
    log_image = world.truth.log_image(rows.loc[counts["first"]])
    adult = counts.index.get_level_values("shown adult")
    gender = counts.index.get_level_values("shown gender") != ""
    person = counts.index.get_level_values("shown person")
    up_to = np.where(person, np.where(adult, 0.7, 0.3) * np.where(gender, 0.9, 0.1), 1.0)
    expected = np.exp(log_image) * up_to * len(rows)
    assert adults.mean() == pytest.approx(0.7, abs=0.01)
    assert_within_noise((counts["size"] - expected) / np.sqrt(expected))


def test_captions_of_the_world_are_as_frequent_as_the_truth_says():
    world, rows = sample()
    counts = rows["text"].value_counts()
    counts = counts[counts > 150]
    expected = np.exp(world.truth.log_joint(counts.index.tolist())[:, 0]) * len(rows)
    assert_within_noise((counts - expected) / np.sqrt(expected))


def test_wrong_labels_bound_the_log_odds():
    world, rows = sample(2.0, 3, 20_000)
    kept = rows[rows["object_view"] == "visible"].iloc[:5]
    texts = [["a photo of a clover", row.text] for row in kept.itertuples()]
    exact = world.truth.match(kept, texts)
    assert np.isneginf(exact[:, 0]).all()
    found = world.truth.match(kept, texts, mislabelled=0.01)
    np.testing.assert_allclose(expit(found), 0.99 * expit(exact) + 0.01 * expit(-exact))


def test_every_caption_of_the_world_has_the_reading_that_it_was_written_from():
    _, rows = sample(2.0, 3, 20_000)
    for row in rows.drop_duplicates("text").itertuples():
        found = {(each.frame, each.content, each.agent) for each in plantedworld.read(row.text)}
        assert (row.frame, row.content, row.agent) in found


def test_what_the_studies_say_has_a_reading():
    for name in stimuli.association_tests()["name"]:
        test = stimuli.association_test(name, "sentence")
        for role in "XYAB":
            for text, word in zip(getattr(test, role), test.words[role], strict=True):
                assert word.lower() in {reading.content for reading in plantedworld.read(text)}
    for row in stimuli.taxonomy("sobit").itertuples():
        assert row.word.lower() in {reading.content for reading in plantedworld.read(row.caption)}
    for row in stimuli.entities().itertuples():
        for agent in ("person", "woman", "man"):
            (reading,) = plantedworld.read(row.frame.format(agent=agent, entity=row.entity))
            assert (reading.content, reading.agent) == (row.entity, agent)
