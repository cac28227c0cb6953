"""The planted world's chapter: its parts against slow ones, its claims as values."""

import numpy as np
import pandas
import pytest
from scipy import stats

import plantedworld
from biaslib import models, stimuli
from companion import planted_world as plots
from plantedworld.models.perfect import PerfectModel
from plantedworld.studies import measures as study
from plantedworld.studies.recorded import recorded


class NoisyClip:
    """The oracle with noise behind the interface of a dual encoder: it counts pictures."""

    scale, name = 4.0, "clip"

    def __init__(self, dose, seed, scenes):
        self.oracle = PerfectModel(plantedworld.world(dose, seed), scenes=scenes)
        self.scenes, self.rng = scenes, np.random.default_rng([int(dose), seed])

    def encode_text(self, texts):
        exact = self.oracle.encode_text(texts) / self.scale
        return exact + self.rng.normal(0, 0.02, exact.shape)

    def encode_image(self, pictures):
        assert pictures.dtype == np.uint8
        return self.oracle.encode_image(self.scenes.iloc[: len(pictures)])


@pytest.fixture(scope="module")
def people():
    return study.portraits(3)


@pytest.fixture(scope="module")
def masked():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "_shipped", lambda family, seeds: set())
        return study.run_masked([0, 1])


@pytest.fixture(scope="module")
def similarity(people):
    pictures = {"twemoji": plantedworld.draw(people)}
    load = models.load

    def noisy(name, **options):
        if name != "clip":
            return load(name, **options)
        return NoisyClip(options["dose"], options["seed"], people)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "_shipped", lambda family, seeds: set(study._worlds(seeds)))
        patch.setattr(models, "load", noisy)
        return study.run_similarity(people, pictures, [0, 1])


@pytest.fixture(scope="module")
def scores(masked, similarity):
    return pandas.concat([masked, similarity], ignore_index=True)


@pytest.fixture(scope="module")
def summary(scores):
    return study.summarise(study.of_words(scores, "roles and objects"))


def value(summary, measure, model, dose, column, style=("", "twemoji")):
    rows = summary.query("measure == @measure and model == @model and dose == @dose")
    return rows[rows["style"].isin(style)][column].mean()


# The words


def test_every_word_has_a_caption_that_the_world_can_read():
    table = study.words()
    assert table["word"].is_unique
    assert set(table["word"]) >= set(stimuli.entities()["entity"])
    assert set(table["word"]) >= set(stimuli.taxonomy("sobit")["word"].str.lower())
    for row in table.itertuples():
        assert row.word in {reading.content for reading in plantedworld.read(row.caption)}


# The measures


@pytest.mark.slow
def test_the_oracle_is_right_to_a_millionth_where_the_measure_is_exact(masked, similarity, people):
    """By another route: log-odds of the text corpus, and what a portrait's cells give a word.

    Women and men have different totals over the words that fit a sentence, and no portrait shows
    or hides an attribute.
    """
    for (dose, seed), group in masked[masked["model"] == "oracle"].groupby(["dose", "seed"]):
        truth = plantedworld.world(dose, seed).text_truth
        errors = group["value"] - truth.log_ratio(group["word"].tolist(), "caption")
        errors -= errors.groupby(group["frame"]).transform("mean")
        assert errors.abs().max() < 1e-6
    exact = similarity.query("model == 'oracle' and measure == 'logit' and slot == 'attribute'")
    women = (people["gender"] == "woman").to_numpy()
    for (dose, seed), group in exact.groupby(["dose", "seed"]):
        truth = plantedworld.world(dose, seed).truth
        of_words = truth.log_words[plantedworld.word_indices(group["word"].tolist())]
        log_p = np.logaddexp.reduce(
            of_words[:, np.newaxis] + truth.log_cells_of_images(people), axis=2
        )
        expected = log_p[:, women].mean(axis=1) - log_p[:, ~women].mean(axis=1)
        np.testing.assert_allclose(group["value"], expected, atol=1e-6)


def test_the_bias_score_is_the_difference_of_log_probabilities():
    oracle = models.load("oracle", dose=3, seed=1, corpus="text")
    table = study.masked_scores(oracle, 3, 1).set_index("word")
    texts = ["the woman is a [MASK].", "the man is a [MASK]."]
    woman, man = oracle.mask_log_prob(texts, ["nurse"])[:, 0]
    assert table.at["nurse", "value"] == pytest.approx(woman - man, abs=1e-12)
    np.testing.assert_allclose(table["value"], table["truth"], atol=1e-12)


def test_retrieval_shares_out_ties():
    women = np.array([True, False, False, True, *[False] * 16])
    similar = np.array([[2.0, 1, 1, 1, *[0] * 16]])
    found = study.similarity_scores(similar, 1, women)["top_k"]
    assert found[0] == pytest.approx((1 + 1 / 3) / 2 - 0.5)


def test_a_word_without_spread_has_no_c_asc():
    women = np.array([True, True, False, False])
    found = study.similarity_scores(np.full((1, 4), 0.3), 1, women)
    assert np.isnan(found["c_asc"][0])
    assert found["logit"][0] == pytest.approx(0)


# The statistics


def test_corpora_have_the_sizes_of_training():
    from plantedworld.training import bert, clip

    assert study.CORPUS_SIZES == {"text": bert.N_CAPTIONS, "captions": clip.N_PAIRS}


def test_intervals_over_seeds_are_student_s():
    values = [0.8, 0.9, 1.0, 0.95]
    found = study.mean_over_seeds(values)
    expected = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert (found["low"], found["high"]) == pytest.approx(expected)
    assert np.isnan(study.mean_over_seeds([1.0])["low"])
    assert study.mean_over_seeds([])["n"] == 0


def test_a_summary_says_rank_slope_and_sign():
    truth = np.array([-2.0, -1, 0, 1, 2])
    rows = pandas.DataFrame({"value": truth / 4, "truth": truth, "planted": truth / 2})
    labels = {"measure": "logit", "model": "m", "style": "", "dose": 2, "seed": 0}
    found = study.summarise(rows.assign(**labels)).iloc[0]
    assert found[["rank", "slope", "response", "signs", "mean"]].tolist() == pytest.approx(
        [1, 0.25, 0.5, 1, 0]
    )


def test_equivalence_needs_the_whole_interval_within_the_bound():
    truth = np.linspace(-1, 1, 21)
    rng = np.random.default_rng(0)

    def zero(slopes):
        tables = [
            pandas.DataFrame({"value": slope * truth, "truth": 0.0, "planted": truth}).assign(
                measure="logit", model="m", style="", dose=0, seed=seed
            )
            for seed, slope in enumerate(slopes)
        ]
        found = study.dose_zero(pandas.concat(tables)).set_index("statistic")
        return found.loc["slope", "within"]

    assert zero(rng.normal(0, 0.02, 5))
    assert not zero([-0.9, 0.8, 0.4, -0.6, 0.5])
    assert not zero([0.14, 0.15, 0.16, 0.14, 0.15])
    assert zero([0.0]) is None


SEEDS_OF_FLOORS = [5, 7, 11, 12, 13]


def test_the_noise_floor_leaves_its_own_seed_out():
    tables = [
        pandas.DataFrame({"value": [size] * 10, "dose": 0, "seed": seed}).assign(
            measure="logit", model="m", style=""
        )
        for seed, size in zip(SEEDS_OF_FLOORS, [9.0, 1, 1, 1, 1], strict=True)
    ]
    floor = study.noise_floor(pandas.concat(tables)).set_index("seed")["floor"]
    assert floor.index.tolist() == SEEDS_OF_FLOORS
    assert floor[5] == 1
    assert floor[7] > 1


def test_words_are_chosen_by_a_name_that_is_there():
    table = pandas.DataFrame({"taxonomy": [True, False], "slot": ["attribute", "role"]})
    assert study.of_words(table, "taxonomy").index.tolist() == [0]
    with pytest.raises(ValueError, match="Taxonomy"):
        study.of_words(table, "Taxonomy")


# What the chapter says


def test_c_asc_saturates_for_the_oracle_itself(scores, summary):
    exact = scores.query("model == 'oracle' and measure == 'c_asc' and dose == 3")
    exact = study.of_words(exact, "roles and objects")
    assert (exact["value"].abs() > 1.8).mean() > 0.8
    assert value(summary, "c_asc", "oracle", 3, "rank") < 0.95
    assert value(summary, "logit", "oracle", 3, "rank") > 0.999
    growth = [value(summary, "c_asc", "oracle", dose, "response") for dose in (1, 3)]
    assert growth[1] / growth[0] < 1.1
    growth = [value(summary, "logit", "oracle", dose, "response") for dose in (1, 3)]
    assert growth[1] / growth[0] > 2.5


def test_the_oracle_finds_nothing_in_control_words_and_has_no_c_asc_for_most(scores):
    sizes = study.control_scores(scores).query("model == 'oracle' and dose == 1")
    sizes = sizes.set_index(["measure", "words"])["mean"]
    assert sizes["logit", "planted"] > 0.5
    assert sizes["logit", "left out"] < 0.01
    of_control = scores.query("model == 'oracle' and dose == 1 and control and paired")
    assert of_control.query("measure == 'c_asc'")["value"].isna().mean() > 0.9


def test_a_visible_entity_leaves_nothing_to_measure():
    seen = dict(list(recorded("in_plain_sight").groupby("view")))
    assert seen["visible"][["S_L", "S_V"]].abs().max().max() < 1e-9
    hidden = seen["hidden"].query("entity in ['purse', 'briefcase', 'wine', 'beer']")
    assert np.sign(hidden["S_L"]).tolist() == np.sign(hidden["truth"]).tolist()


def test_a_count_has_noise_and_no_bias_at_dose_0(summary):
    for measure, floor in (("masked", 0.05), ("logit", 0.1)):
        assert value(summary, measure, "count", 0, "rms") > floor
        assert abs(value(summary, measure, "count", 0, "slope")) < 0.05
        assert value(summary, measure, "count", 3, "slope") == pytest.approx(1, abs=0.05)
    # Words of the image corpus are noisier than the bound whatever the model.
    assert value(summary, "logit", "count", 0, "rms") > study.EQUIVALENCE


# Counts and recorded worlds


def test_drawn_counts_are_those_of_captions_that_are_written():
    """Chi-square, against captions drawn one by one; *mother* goes with one gender alone."""
    world, n = plantedworld.world(3, 0), 40_000
    corpus = world.text_corpus(n, np.random.default_rng(0))
    written = pandas.crosstab(corpus["caption_gender"], corpus["content"])
    drawn = study.drawn_counts(world.text_truth, "caption", n, np.random.default_rng(1)) - 0.5
    assert drawn.to_numpy().sum() == n
    kept = written.columns[(written.sum() > 40) & (written.columns.isin(drawn))]
    first, second = written.loc[list(drawn.index), kept], drawn[kept]
    cells = ((first - second) ** 2 / (first + second)).stack()
    assert len(cells) > 500
    assert stats.chi2.sf(cells.sum(), len(cells)) > 0.001
    log_ratio = world.text_truth.log_ratio(["nurse"], given="caption")[0]
    many = study.drawn_counts(world.text_truth, "caption", 10**8, np.random.default_rng(2))["nurse"]
    assert np.log(many["woman"] / many["man"]) == pytest.approx(log_ratio, abs=0.02)


def test_only_harmless_words_are_written_into_pictures():
    entities = set(stimuli.entities()["entity"])
    assert set(plots.planted_words(1, 0)["word"]) <= {*plantedworld.PICTURED_ROLES, *entities}


def test_harder_worlds_do_to_a_perfect_model_what_the_chapter_says():
    worlds = recorded("harder_worlds").set_index(["measure", "option"])
    slopes, ranks = worlds.loc["logit", "slope"], worlds.loc["c_asc", "rank within signs"]
    hidden = ["clothes, gender not shown", "age, gender not shown"]
    assert slopes[hidden].between(0.2, 0.3).all()
    assert slopes["noisy labels"] == pytest.approx(0.8, abs=0.03)
    assert slopes.drop([*hidden, "noisy labels"]).to_numpy() == pytest.approx(1, abs=1e-3)
    assert worlds.loc["logit", "rank within signs"].min() > 0.999
    assert ranks["as it is"] == pytest.approx(0.5, abs=0.03)
    assert (ranks[[*hidden, "noisy labels"]] < 0.25).all()
    errors = recorded("harder_frequencies").query("zipf == 1").set_index("third")["error"]
    assert errors["rarest"] > 2 * errors["commonest"]
    groups = recorded("harder_intersections").set_index("groups")["size"]
    alone = ["women against men", "tone 5 against tone 1"]
    assert (groups[alone] < 0.1).all()
    assert (groups.drop(alone) > 1.5).all()


def test_the_bound_that_the_chapter_types_is_that_of_the_study():
    assert study.EQUIVALENCE == 0.15
