"""The perfect model's scores, through the metrics, against closed expressions of the truth."""

import subprocess
import sys

import numpy as np
import pandas
import pytest
from scipy.special import expit, logsumexp

import plantedworld
from biaslib import capabilities, models, stimuli
from biaslib.metrics import association, caption_association, caption_selection
from plantedworld._tables import PICTURE_GENDER, TONE
from plantedworld._truth import planted_strengths, word_indices
from plantedworld.inputs.study1_grounded import planted_signs
from plantedworld.models.perfect import LOWEST, PerfectModel

SEEDS = (0, 1)
WORDS = plantedworld.content_words()
CAPTIONS = [*caption_selection.CAPTIONS]
NEUTRAL = ["neutral stereotype", "neutral anti-stereotype"]


def oracle(dose=1.0, seed=0, **options):
    return models.load("oracle", dose=dose, seed=seed, **options)


def rng():
    return np.random.default_rng(0)


def test_it_has_every_capability_and_needs_no_torch():
    of_networks = {capabilities.UNIMODAL, capabilities.DETECT, capabilities.LIKELIHOOD}
    assert oracle().capabilities == set(capabilities.NAMES) - of_networks
    code = (
        "import sys; from biaslib import models; model = models.load('oracle', dose=3, seed=1, "
        "corpus='text'); print(model.revision); assert 'torch' not in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "dose 3, seed 1" in run.stdout


# Study 2: masked words


def masked(row, agent):
    return row.frame.format(agent=agent, entity="[MASK]")


@pytest.mark.parametrize("seed", SEEDS)
def test_bias_scores_of_hidden_entities_are_the_planted_log_odds(seed):
    """Their share that goes with the caption's gender, up to a constant for each frame."""
    model = oracle(1, seed)
    scenes = plantedworld.agents_with_entities(rng(), n_per_agent=2, view="hidden")
    rows = []
    for row in stimuli.entities().itertuples():
        images = scenes[scenes["entity"] == row.entity]
        agents = {
            agent: model.mask_log_prob([masked(row, agent)] * len(images), [row.entity], images)
            for agent in ("woman", "man")
        }
        bias = (agents["woman"] - agents["man"]).mean()
        rows.append((row.frame.replace("an {", "a {"), row.entity, bias))
    table = pandas.DataFrame(rows, columns=["frame", "entity", "bias"]).set_index("entity")
    drawn = planted_strengths(model.world.plan, "captions").loc[table.index]
    planted = drawn["gender"] * drawn["share"]
    assert np.ptp(planted) > 1.5
    for _, difference in (table["bias"] - planted).groupby(table["frame"]):
        assert np.ptp(difference) < 1e-9


# Study 3: similarities of captions and portraits


@pytest.fixture(scope="module")
def portraits():
    return plantedworld.faces(6, np.random.default_rng(1))


def sobit():
    captions = stimuli.taxonomy("sobit").drop_duplicates("caption")["caption"]
    somebody = [plantedworld.read(text)[0].content for text in captions]
    return captions[(WORDS.loc[somebody, "slot"] != "thing").to_numpy()].tolist()


def test_products_of_text_and_image_are_the_similarities(portraits):
    model, texts = oracle(1, 0), sobit()
    found = model.encode_text(texts) @ model.encode_image(portraits).T
    np.testing.assert_allclose(found, model.truth.similarity(texts, portraits), atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(model.encode_image(portraits), axis=1), 1)


def test_a_perfect_model_knows_the_scenes_that_it_is_given():
    made = plantedworld.world(1, 3)
    scenes = made.scenes(100, rng())
    model = PerfectModel(made, scenes=scenes)
    texts = made.captions(scenes, rng())["text"].tolist()
    exact = made.truth.similarity(texts, scenes)
    found = model.encode_text(texts) @ model.encode_image(scenes).T
    np.testing.assert_allclose(found, np.maximum(exact, LOWEST), atol=1e-9)
    assert np.isneginf(exact).any()


@pytest.mark.parametrize("seed", SEEDS)
def test_caption_association_is_that_of_the_similarities(portraits, seed):
    model, texts = oracle(1, seed), sobit()
    groups = pandas.get_dummies(portraits["group"]).to_numpy()
    women = (portraits["gender"] == "woman").to_numpy()[:, None]
    members = np.hstack([groups, women])
    # A word of the control pair is as likely with every portrait: its C-ASC is 0 / 0.
    spread = np.ptp(model.truth.similarity(texts, portraits), axis=1)
    assert (spread < 1e-9).sum() < 10
    texts = [text for text, each in zip(texts, spread, strict=True) if each > 1e-9]
    exact = model.truth.similarity(texts, portraits)
    text, image = model.encode_text(texts), model.encode_image(portraits)
    cosines = association.cosines(text, image)
    found = caption_association.c_asc(cosines, members)
    np.testing.assert_allclose(found, caption_association.c_asc(exact, members), atol=1e-6)
    means = exact[:, women[:, 0]].mean(axis=1) - exact[:, ~women[:, 0]].mean(axis=1)
    np.testing.assert_allclose(found[:, -1], means / exact.std(axis=1, ddof=1), atol=1e-6)


# Study 1: association tests


def embedded(model, name, level):
    test = stimuli.association_test(name, level)
    return [
        model.embed(getattr(test, role), level=level, words=test.words[role]) for role in "XYAB"
    ]


@pytest.mark.parametrize("seed", [*SEEDS, 5_000, 5_001, 5_002])
def test_association_tests_have_the_sign_that_is_planted_and_controls_none(seed):
    """Of a control pair every score is 0, and an effect size, a ratio of two zeros, not defined."""
    model, planted = oracle(1, seed), planted_signs(seed).set_index("test")["sign"]
    signs = planted.drop("occupation-race")
    assert (signs == 0).any()
    for name, sign in signs.items():
        X, Y, A, B = embedded(model, name, "word")
        scores = association.association(np.concatenate([X, Y]), A, B)
        if sign == 0:
            assert np.abs(scores).max() < 1e-9
        else:
            assert sign * association.effect_size(X, Y, A, B) > 0.5


@pytest.mark.parametrize("level", ["sentence", "contextual"])
def test_sentences_and_words_in_them_tell_what_words_tell(level):
    of_words = association.effect_size(*embedded(oracle(1, 1), "C6", "word"))
    of_sentences = association.effect_size(*embedded(oracle(1, 1), "C6", level))
    assert of_sentences == pytest.approx(of_words, rel=0.05)


def test_inner_products_are_the_lift_of_two_captions_about_the_same_cell():
    model = oracle(2, 0)
    names = ["nurse", "john", "lazy", "apron", "joy"]
    vectors = model.embed(names, level="word")
    joint = np.exp(model.truth.log_words[word_indices(names)] + model.truth.design.log_cells)
    of_word = joint.sum(axis=1)
    together = (joint / np.exp(model.truth.design.log_cells)) @ joint.T
    lift = together / np.outer(of_word, of_word)
    off = ~np.eye(len(names), dtype=bool)
    np.testing.assert_allclose((vectors @ vectors.T)[off], (lift - 1)[off], atol=1e-9)


def test_images_add_what_they_show_to_a_text():
    model = oracle(1, 0)
    scenes = plantedworld.faces(1, rng())
    texts = ["the person is a nurse."] * len(scenes)
    vectors = model.embed(texts, scenes)[:, :20]
    log_cells = model.truth.design.log_cells
    posterior = vectors * np.exp(log_cells / 2) + np.exp(log_cells)
    np.testing.assert_allclose(posterior.sum(axis=1), 1)
    for row, scene in zip(posterior, scenes.itertuples(), strict=True):
        gender = ["woman", "man"].index(scene.gender)
        shown = (gender == PICTURE_GENDER) & (scene.tone == TONE)
        assert row[~shown].max() < 1e-12
    np.testing.assert_allclose(
        model.embed(texts[:1], plantedworld.blank()), model.embed(texts[:1]), atol=1e-9
    )


# Study 4: caption choices


def scores_of(model, table, columns):
    return model.match(table, table[columns].to_numpy().tolist())


@pytest.mark.parametrize("seed", SEEDS)
def test_selection_scores_of_what_the_picture_shows_are_ideal(seed):
    model = oracle(1, seed)
    table = plantedworld.caption_choices(model.world, 10, rng()).query("label_shown")
    scores = scores_of(model, table, CAPTIONS)
    opposite = (table["label"] == "anti-stereotype").to_numpy()
    assert caption_selection.vlrs(scores).value == 100
    assert caption_selection.vlbs(scores, opposite).value == 0


@pytest.mark.slow
def test_scores_of_shift_are_those_of_the_truth():
    model = oracle(1, 1)
    table = plantedworld.caption_choices(model.world, 2, rng())
    table = table[table["label"] == "anti-stereotype"]
    pair = CAPTIONS[:2]
    white = plantedworld.blank(len(table))
    original = caption_selection.two_way(scores_of(model, table, pair))
    neutral = caption_selection.two_way(scores_of(model, table, NEUTRAL))
    unseen = caption_selection.two_way(model.match(white, table[NEUTRAL].to_numpy().tolist()))

    def log_share(scenes, columns):
        exact = np.array(
            [
                [_match(model.truth, text, scenes.iloc[[index]]) for text in row]
                for index, row in enumerate(table[columns].to_numpy())
            ]
        )
        p = 0.99 * expit(exact) + 0.01 * expit(-exact)
        logits = np.log(p) - np.log1p(-p)
        return logits[:, 0] - logsumexp(logits, axis=1)

    np.testing.assert_allclose(
        caption_selection.lmss(original, neutral).values,
        log_share(table, pair) - log_share(table, NEUTRAL),
        atol=1e-6,
    )
    np.testing.assert_allclose(
        caption_selection.vlss(neutral, unseen).values,
        log_share(table, NEUTRAL) - log_share(white, NEUTRAL),
        atol=1e-6,
    )


def _match(truth, text, scene):
    """Log-odds of a match from joint probabilities of whole captions, swaps written out."""
    log_image = truth.log_image(scene)[0]
    readings = plantedworld.read(text)
    swap = 0.0
    for reading in readings:
        frame = plantedworld.frames()[reading.frame]
        others = [
            word
            for word in WORDS.index[frame.carries()]
            if "{phrase}" not in frame.text or WORDS.at[word, "phrase"] == reading.content_form
        ]
        rows = word_indices(others)
        frequency = np.exp(logsumexp(truth.log_words[rows] + truth.design.log_cells, axis=1))
        frequency *= np.exp(truth.log_frames[rows, reading.frame])
        drawn = frequency[others.index(reading.content)] / frequency.sum()
        captions = [frame.write(word, reading.agent) for word in others]
        swap += drawn * np.exp(truth.log_joint(captions, scene)[:, 0] - log_image).sum()
    with np.errstate(divide="ignore"):
        match = truth.log_joint([text], scene)[0, 0] - log_image
        return match - np.log(0.5 * np.exp(truth.log_joint([text])[0, 0]) + 0.5 * swap)
