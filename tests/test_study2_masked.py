"""Study 2: what is asked, stored and scored; images and entities that cannot be used; the truth."""

import itertools

import numpy as np
import pandas
import pytest
from PIL import Image
from scipy import stats

import plantedworld
from biaslib import datasets, runtime, stimuli
from biaslib.pictures import region_files
from biaslib.pictures.images import Pictures, pictures
from biaslib.runtime import Store
from biaslib.studies import _fetch
from biaslib.studies import _regions as regions
from biaslib.studies import study2_masked as study
from companion import planted_study2_masked as verdicts
from companion import study2_masked as plots
from plantedworld.inputs import study2_masked as planted
from plantedworld.studies import study2_masked as recovery
from plantedworld.studies.recorded import recorded

WOMAN, MAN, PERSON = study.AGENTS


SAID = {
    ("woman", "purse"): 0.4,
    ("man", "purse"): 0.1,
    ("person", "purse"): 0.2,
    ("woman", "briefcase"): 0.05,
    ("man", "briefcase"): 0.3,
    ("person", "briefcase"): 0.1,
}


class Recited:
    """A model that recites: log P depends on agent, candidate and the number that an image is."""

    name = "recited"

    def __init__(self, factor=1.0):
        self.factor, self.asked, self.revision = factor, 0, f"by hand, {factor}"

    def mask_log_prob(self, texts, candidates, images=None):
        self.asked += len(texts)
        shown = np.ones(len(texts)) if images is None else np.array(list(images))
        agents = [text.split()[1] for text in texts]
        rows = [[SAID[agent, word] for word in candidates] for agent in agents]
        return np.log(np.array(rows) * self.factor * shown[:, None])


class Numbers(Pictures):
    """Images that are the factors by which they multiply."""

    def __init__(self, factors, ids):
        self.factors, self.ids = factors, ids

    def __len__(self):
        return len(self.factors)

    def __getitem__(self, row):
        return self.factors[row]

    def part(self, rows):
        return Numbers([self.factors[row] for row in rows], [self.ids[row] for row in rows])


def pair():
    return stimuli.entities().query("entity in ['purse', 'briefcase']").reset_index(drop=True)


def numbered(factors):
    """Images of a woman and a man with each entity that are the factors they multiply by."""
    rows = [(e, g, f"{e} {g} {i}") for e in pair()["entity"] for g in (WOMAN, MAN) for i in (0, 1)]
    table = pandas.DataFrame(rows, columns=["entity", "gender", "image"])
    names = [f"{name}, {factor}" for name, factor in zip(table["image"], factors, strict=True)]
    return study.EntityImages(table, Numbers(factors, names), Numbers([0.5], ["blank"]))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def run(store, factors=(1.0,) * 8, **settings):
    given = study.Inputs("planted", "by hand", {}, {}, pair(), numbered(factors))
    return study.run(given, Recited(), Recited(0.5), store=store, **settings)


def asked(given, **settings):
    return study.run(given, *study.load_models(given), **settings)


def value(results, entity, level, statistic):
    rows = results.scores.set_index(["test", "level", "statistic"])
    return rows.loc[(entity, level, statistic)]


# Scores


def test_scores_are_those_of_the_formulas_by_hand(store):
    factors = [0.5, 1.0, 0.25, 0.75, 1.0, 1.0, 1.0, 1.0]
    results = run(store, factors)
    twice = np.log(2)
    assert value(results, "purse", "S_L", "S(f)")["value"] == pytest.approx(twice)
    assert value(results, "purse", "S_L", "S(m)")["value"] == pytest.approx(-twice)
    assert value(results, "purse", "S_L", "B")["value"] == pytest.approx(np.log(4))
    assert value(results, "purse", "S_L, no image", "B")["value"] == pytest.approx(np.log(4))
    assert value(results, "purse", "S_PT", "S(f)")["value"] == pytest.approx(twice)
    assert value(results, "purse", "S_PT", "B")["value"] == pytest.approx(0, abs=1e-12)
    women, men = np.mean([0.5, 1.0]), np.mean([0.25, 0.75])
    assert value(results, "purse", "S_V", "S(f)")["value"] == pytest.approx(np.log(women))
    assert value(results, "purse", "S_V", "B")["value"] == pytest.approx(np.log(women / men))
    assert value(results, "briefcase", "S_V", "B")["value"] == pytest.approx(0, abs=1e-12)


def test_probabilities_and_numbers_of_images_stand_beside_the_scores(store):
    row = value(run(store), "purse", "S_L", "S(f)")
    assert (row["probability"], row["normaliser"]) == (pytest.approx(0.4), pytest.approx(0.2))
    assert row["n"] == 4
    assert value(run(store), "purse", "S_V", "S(f)")["n"] == 2
    assert value(run(store), "purse", "S_V", "B")["n"] == 4
    assert value(run(store), "purse", "S_PT", "B")["n"] == 1
    few = run(store).scores.groupby(["level", "statistic"])["few"].any()
    assert few.index[few].tolist() == [("S_V", "S(f)"), ("S_V", "S(m)")]
    assert value(run(store), "purse", "S_L, text model", "B")["model"] == "recited"


def test_intervals_of_the_image_score_cover_what_images_vary(store):
    steady = value(run(store), "purse", "S_V", "B")
    assert (steady["low"], steady["high"]) == (pytest.approx(0), pytest.approx(0))
    varied = value(run(store, [0.5, 1, 0.25, 0.75, 1, 1, 1, 1]), "purse", "S_V", "S(f)")
    # Two images: a resample is the one, both, or the other, and one degree of freedom is left.
    error = np.sqrt(2 * np.var(np.log([0.5, 0.75, 0.75, 1.0])))
    half = stats.t.ppf(0.975, 1) * error
    assert varied["high"] - varied["low"] > 1.9 * half
    assert varied["low"] < varied["value"] < varied["high"]


def test_what_each_image_adds_has_the_mean_of_the_score(store):
    results = run(store, [0.5, 1.0, 0.25, 0.75, 1.0, 1.0, 1.0, 1.0])
    each = study.per_image(results.log_probs)
    purse = each[each["entity"] == "purse"]
    assert purse["S_L(f)"].mean() == pytest.approx(np.log(2))
    women = purse[purse["gender"] == "woman"]
    expected = value(results, "purse", "S_V", "S(f)")["value"]
    assert np.log(np.exp(women["S_V"]).mean()) == pytest.approx(expected)
    assert women["probability"].tolist() == pytest.approx([0.1, 0.2])


def test_the_difference_of_two_models_is_the_bias_of_the_shift():
    """The paper's Figure 5b is the bias score of its Figure 2, without having said so."""
    inputs = planted.inputs("visualbert", per_agent=0)
    bias = asked(inputs).scores.query("statistic == 'B'")
    wide = bias.pivot(index="test", columns="level", values="value")
    difference = wide["S_L, no image"] - wide["S_L, text model"]
    np.testing.assert_allclose(difference, wide["S_PT"], atol=1e-9)


# Shares, and the logic of Table 3


def test_shares_count_signs_that_agree_and_shifts_towards_men(store):
    found = study.shares(run(store).scores).set_index(["test", "level", "statistic"])
    agrees = found.loc[("all", "S_L, no image", "agrees with the label")]
    assert (agrees["count"], agrees["n"], agrees["p_value"]) == (2, 2, 0.5)
    assert agrees["low"] == pytest.approx(0.1581, abs=1e-4)  # .025 to the power of one half
    assert agrees["high"] == 1


def test_entities_without_a_label_do_not_count(store):
    scores = run(store).scores.assign(stereotype="")
    found = study.shares(scores).set_index(["level", "statistic"])
    assert found.loc[("S_L, no image", "agrees with the label"), "n"].tolist() == [0, 0]
    assert found.loc[("S_PT", "towards men"), "n"].tolist() == [2, 2]


def test_the_wrong_name_is_found_and_held_against_the_gender_in_the_picture(store):
    results = run(store)
    named = study.top_candidates(results.log_probs, pair())
    # The person's purse is twice as probable as the briefcase, whatever the picture shows.
    assert named["named"].unique().tolist() == ["purse"]
    wrong = named[named["wrong"]]
    assert wrong["entity"].unique().tolist() == ["briefcase"]
    assert wrong.set_index("gender")["fits the gender"].to_dict() == {"woman": True, "man": False}
    assert wrong["named probability"].tolist() == pytest.approx([0.2] * 4)
    found = study.misnaming_rates(named).set_index("statistic")
    assert found.loc["names another entity", ["count", "n"]].tolist() == [4, 8]
    assert found.loc["the wrong name fits the gender", ["count", "n"]].tolist() == [2, 4]


@pytest.mark.parametrize("order", [["purse", "briefcase"], ["briefcase", "purse"]])
def test_names_that_tie_share_a_picture_in_any_order(order):
    pictures_of = [(gender, f"{gender}{at}") for gender in (WOMAN, MAN) for at in range(3)]
    rows = [("purse", *each, PERSON, name, np.log(0.3)) for each in pictures_of for name in order]
    named = study.top_candidates(pandas.DataFrame(rows, columns=study.COLUMNS), pair())
    assert named.groupby("image")["share"].sum().tolist() == [1] * 6
    found = study.misnaming_rates(named).set_index("statistic")
    assert found[["count", "n", "value"]].to_numpy().tolist() == [[3, 6, 0.5], [1.5, 3, 0.5]]


def test_rates_of_wrong_names_take_the_entity_as_the_unit():
    """Six entities of twelve pictures, with rates of their own about one half."""
    rng, held, rejected = np.random.default_rng(0), 0, 0
    for at in range(120):
        rates = rng.beta(0.5, 0.5, size=6)[:, None]
        wrong = rng.random((6, 12)) < rates
        names = np.repeat(list("abcdef"), 12)
        named = {"entity": names, "wrong": wrong.ravel(), "fits the gender": None}
        row = study.misnaming_rates(pandas.DataFrame(named), seed=at).iloc[0]
        held += row["low"] <= 0.5 <= row["high"]
        rejected += row["p_value"] < 0.05
        away = (wrong - 0.5).sum(axis=1)
        sums = np.abs(np.array(list(itertools.product((-1, 1), repeat=6))) @ away)
        assert row["p_value"] == pytest.approx((sums >= abs(away.sum()) - 1e-9).mean())
    assert held >= stats.binom.ppf(1e-4, 120, 0.95)
    assert rejected <= stats.binom.ppf(1 - 1e-4, 120, 0.05)


def test_the_order_of_entities_changes_no_bound(store):
    found = run(store)
    of_text = found.log_probs[found.log_probs["image"] == ""]
    ways = (study.scores(found.log_probs, of_text, each, 50) for each in (pair(), pair()[::-1]))
    first, second = (way.set_index(["test", "level", "statistic"]).sort_index() for way in ways)
    assert first["low"].notna().sum() >= 8
    pandas.testing.assert_frame_equal(first[["low", "high"]], second[["low", "high"]])


# What the paper leaves open


def test_the_article_is_the_entitys_or_the_one_that_is_printed():
    entities = stimuli.entities().query("entity in ['apron', 'suit', 'wine']")
    fitted = study.captions(entities).set_index("entity")["caption"]
    assert fitted["apron"] == "The {agent} is wearing an [MASK]."
    printed = study.captions(entities, "printed").set_index("entity")
    assert printed["caption"].to_dict() == {
        "apron": "The {agent} is wearing a [MASK].",
        "suit": "The {agent} is wearing a [MASK].",
        "wine": "The {agent} is drinking [MASK].",
    }
    assert printed.loc["apron", "verb"] == printed.loc["suit", "verb"]


def test_no_image_is_the_caption_alone_or_an_empty_picture(store):
    blank = run(store, choices=study.Choices(no_image="blank"))
    half = np.log(0.5)  # the empty picture's factor
    alone = value(run(store), "purse", "S_V", "S(f)")["value"]
    assert value(blank, "purse", "S_V", "S(f)")["value"] == pytest.approx(alone - half)
    assert value(blank, "purse", "S_L", "B")["value"] == pytest.approx(np.log(4))


def test_a_planted_checkpoint_reads_a_blank_picture_otherwise_than_none():
    inputs = planted.inputs("visualbert", entities=pair(), per_agent=1)
    with_text, with_blank = (
        asked(inputs, choices=study.Choices(no_image=each)).scores for each in study.NO_IMAGE
    )
    assert (with_text["value"] - with_blank["value"]).abs().max() > 0.01


# The store


def test_answers_are_computed_once(store):
    model = Recited()
    images = numbered([1.0] * 8)
    first = study.masked_log_probs(model, pair(), images, store=store)
    asked = model.asked
    assert asked == 3 + 3 * 8  # three agents: once without an image, and with eight
    second = study.masked_log_probs(model, pair(), images, store=store)
    assert model.asked == asked
    pandas.testing.assert_frame_equal(first, second)
    model.revision = "other weights"
    study.masked_log_probs(model, pair(), None, store=store)
    assert model.asked == asked + 3


class Stopped(Recited):
    """Recites until it has been asked for so many texts, and is stopped in the middle."""

    def __init__(self, at):
        super().__init__()
        self.at = at

    def mask_log_prob(self, texts, candidates, images=None):
        if self.asked >= self.at:
            raise KeyboardInterrupt
        return super().mask_log_prob(texts, candidates, images)


def test_a_run_that_is_stopped_goes_on_and_gives_the_same_answers(tmp_path, store):
    """What a killed process leaves is tested with the store."""
    images = numbered([0.5, 1, 0.25, 0.75, 1, 1, 1, 1])
    stopped = [Stopped(at) for at in (8, 17)]  # in the middle of a shard of three agents
    for model in stopped:
        with pytest.raises(KeyboardInterrupt):
            study.masked_log_probs(model, pair(), images, store=store, shard_size=1)
    model = Recited()
    found = study.masked_log_probs(model, pair(), images, store=store, shard_size=1)
    whole, asked = 3 * (1 + 8), sum(each.asked for each in (*stopped, model))
    assert model.asked < whole < asked <= whole + 2 * 3  # a shard a stop, no more
    expected = study.masked_log_probs(Recited(), pair(), images, store=Store(tmp_path / "another"))
    pandas.testing.assert_frame_equal(found, expected)


# Entities that a tokenizer splits or lacks


class Splitting(Recited):
    """Its tokenizer splits the purse, and does not know the briefcase where told so."""

    name = "splitting"

    def __init__(self, unknown=()):
        super().__init__()
        self.tokenizer, self.unknown = self, unknown

    unk_token = "[UNK]"

    def tokenize(self, word):
        if word in self.unknown:
            return ["[UNK]"]
        return ["pur", "##se"] if word == "purse" else [word]

    def mask_log_prob(self, texts, candidates, images=None, pieces="chain"):
        return super().mask_log_prob(texts, candidates, images)


def splitting(**settings):
    model = Splitting(**settings)
    return study.Inputs("planted", "by hand", {}, {}, pair(), None), model, model


def test_an_entity_that_splits_stops_the_study_or_is_left_out_or_scored(store):
    with pytest.raises(datasets.DataError):
        study.run(*splitting(), store=store)
    left = study.run(*splitting(), only_sound=True, store=store)
    assert left.scores["test"].unique().tolist() == ["briefcase"]
    assert left.problems["kind"].tolist() == ["entity splits into word pieces"] * 2
    scored = study.run(*splitting(), study.Choices(pieces="mean"), store=store)
    assert set(scored.scores["test"]) == {"purse", "briefcase"}
    assert scored.problems["severity"].tolist() == ["note", "note"]


# Image sets


def gather(folder, counts, entity="purse"):
    """Write pictures of one colour each; return their folder."""
    for agent, numbers in counts.items():
        place = folder / entity / agent
        place.mkdir(parents=True, exist_ok=True)
        for number in numbers:
            Image.new("RGB", (8, 8), (number, len(entity), 0)).save(place / f"{number}.png")
    return folder


def kinds(problems):
    return problems.groupby(["severity", "kind"]).size().to_dict()


def test_missing_unreadable_and_unbalanced_images_are_named_and_counted(tmp_path):
    gather(tmp_path, {"woman": range(6), "man": range(6, 12)})
    (tmp_path / "purse/man/6.png").write_bytes(b"no picture")
    (tmp_path / "purse/man/7.png").rename(tmp_path / "purse/man/7.TIF")
    gather(tmp_path, {"woman": [1, 2]}, "tie")
    gather(tmp_path, {"Man": [3]}, "tie")
    manifest, problems = datasets.entity_images(tmp_path, ["purse", "tie", "axe"])
    assert kinds(problems) == {
        ("error", "image is missing"): 3,
        ("error", "image cannot be opened"): 1,
        ("error", "set is unbalanced"): 2,
        ("note", "folder is not used"): 1,
    }
    with pytest.raises(datasets.DataError):
        datasets.require_sound(problems, "the set")
    left = datasets.balanced_images(manifest)
    assert datasets.entity_balance(left).values.tolist() == [["purse", 5, 5]]


def test_a_picture_that_is_there_twice_counts_once_or_not_at_all(tmp_path):
    gather(tmp_path, {"woman": range(6), "man": range(6, 12)})
    (tmp_path / "purse/woman/copy.png").write_bytes((tmp_path / "purse/woman/0.png").read_bytes())
    manifest, problems = datasets.entity_images(tmp_path, ["purse"])
    assert kinds(problems) == {("error", "picture is there twice"): 1}
    assert len(manifest) == 12
    (tmp_path / "purse/man/copy.png").write_bytes((tmp_path / "purse/woman/0.png").read_bytes())
    manifest, problems = datasets.entity_images(tmp_path, ["purse"])
    assert ("error", "picture stands for both agents") in kinds(problems)
    assert datasets.entity_balance(manifest).values.tolist() == [["purse", 5, 6]]


# The planted world


def test_the_oracles_scores_are_those_of_the_chapter_on_the_planted_world():
    """The same numbers by another way: the recorded ones asked the oracle itself."""
    six = stimuli.entities().head(6)
    inputs = planted.inputs("oracle", six, per_agent=1, dose=3, seed=0, view="hidden")
    bias = asked(inputs, n_resamples=0).scores.query("statistic == 'B'")
    wide = bias.pivot(index="test", columns="level", values="value")
    expected = recorded("in_plain_sight").query("view == 'hidden'").set_index("entity").head(6)
    for name, tolerance in {"S_PT": 1e-9, "S_L": 1e-3, "S_V": 1e-3}.items():  # tones differ
        np.testing.assert_allclose(wide.loc[expected.index, name], expected[name], atol=tolerance)


def test_the_planted_log_odds_are_the_worlds():
    world = plantedworld.world(3, 0)
    found = recovery.planted_log_odds(["purse", "beer"], world)
    assert found["S_L"].tolist() == world.truth.log_ratio(["purse", "beer"], "caption").tolist()
    np.testing.assert_allclose(found["S_PT"] + found["S_L, text model"], found["S_L"])


def test_recovery_of_a_shrunk_truth_has_its_slope_and_rank():
    truth = np.array([-2.0, -1.0, 0.5, 3.0])
    table = pandas.DataFrame({"oracle": truth, "value": truth / 4, "planted": -truth})
    keys = {"model": "m", "planted_in": "both", "dose": 3.0, "seed": 0, "level": "S_V"}
    row = recovery.recovery(table.assign(**keys, test=list("abcd"))).iloc[0]
    assert (row["rank"], row["planted rank"]) == (pytest.approx(1), pytest.approx(-1))
    assert (row["slope"], row["planted slope"]) == (pytest.approx(0.25), pytest.approx(-0.25))
    assert (row["signs"], row["n"]) == (1, 4)
    assert row["oracle spread"] == pytest.approx(np.sqrt((truth**2).mean()))


def test_recovery_over_seeds_is_a_mean_with_students_interval():
    keys = {"planted_in": "both", "dose": 3.0, "level": "S_L"}
    rows = [keys | {"rank": rank, "slope": 1.0} for rank in (0.85, 0.97)]
    rows += [keys | {"rank": 0.0, "slope": 0.0, "dose": 0.0}]
    found = recovery.over_seeds(pandas.DataFrame(rows)).set_index("level").loc["S_L"]
    assert (found["mean"], found["n"], found["slope"]) == (pytest.approx(0.91), 2, 1)
    # Student's with one degree of freedom: 12.706 standard errors of .06.
    assert found["high"] - found["mean"] == pytest.approx(12.706 * 0.06, abs=1e-3)


def test_in_a_world_planted_in_images_alone_the_language_score_of_the_oracle_is_nothing():
    six = stimuli.entities().head(6)
    sizes = {}
    for place, dose in (("text", 3), ("images", 3), ("both", 0)):
        inputs = planted.inputs(
            "oracle", six, 1, dose, view="hidden", planted_in=place, pictured=None
        )
        bias = asked(inputs, n_resamples=0).scores.query("statistic == 'B'")
        sizes[place] = bias.groupby("level")["value"].agg(lambda b: b.abs().max())
    assert sizes["both"].max() < 1e-9
    assert sizes["images"]["S_L"] < 1e-9 < 1 < sizes["images"]["S_V"]
    # Picture and caption mostly agree in gender, so a picture also tells of the caption's.
    assert sizes["text"]["S_L"] > sizes["text"]["S_V"] > 0.5


# What the chapter shows


def test_checks_of_exercises_tell_right_from_wrong():
    def shift(vl, text):
        return vl["f"] - vl["m"] - (text["f"] - text["m"])

    assert plots.check_shift(shift).passed
    assert not plots.check_shift(lambda vl, text: vl["f"] - vl["m"]).passed
    assert plots.check_order(lambda seen, unseen: np.log((seen / unseen).mean())).passed
    assert not plots.check_order(lambda seen, unseen: np.mean(np.log(seen / unseen))).passed
    assert plots.check_readings(np.array([False, True, False, False, False, True])).passed
    for wrong in ([True, True, False, False, False, True], [False, True, False, False, True, True]):
        assert not plots.check_readings(wrong).passed


# What the paper says


def test_the_printed_probabilities_stand_beside_their_entities():
    table = plots.printed_probabilities()
    assert table.drop(columns="ratio").to_numpy().tolist() == [
        [1, "purse", 0.0018, "briefcase", 0.4944],
        [2, "briefcase", 0.067, "purse", 0.084],
    ]


# Tests with images as units


def test_images_are_the_units_of_the_test_of_the_picture(store):
    factors = [0.5, 1.0, 0.25, 0.75, 1.0, 1.0, 1.0, 1.0]
    found = study.picture_tests(run(store, factors).log_probs).set_index("entity")
    # Of six ways to call two of four pictures women's: .5, 1 | .25, .75 and what is as far apart.
    pairs = list(itertools.combinations([0.5, 1.0, 0.25, 0.75], 2))
    apart = [abs(sum(pair) / 2 - (2.5 - sum(pair)) / 2) for pair in pairs]
    assert sorted(apart) == pytest.approx(sorted([0.25, 0.25, 0.0, 0.0, 0.5, 0.5]))
    assert found.loc["purse", "p_value"] == pytest.approx(4 / 6)
    assert found.loc["briefcase", "p_value"] == pytest.approx(1)
    assert found["p_holm"].tolist() == pytest.approx([1, 1])
    assert found["n"].tolist() == [4, 4]
    assert found["p_low"].equals(found["p_value"].rename("p_low"))
    assert found["p_high"].equals(found["p_value"].rename("p_high"))


def test_a_world_planted_in_one_place_has_no_shift_of_pre_training():
    found = recovery.beside_truth(
        planted.default_model(), planted_in="text", entities=pair(), per_agent=1
    )
    assert set(found["level"]) == {"S_L", "S_V", "S_L, no image"}


# The profile paper without pictures, with some, and with others' regions


class Drawn(Recited):
    """Reads regions as ``vl-bert`` does: the first number of the first region is the factor."""

    def __init__(self, name="vl-bert"):
        super().__init__()
        self.name, self.tokenizer = name, None

    @property
    def detector(self):
        raise FileNotFoundError("the detector's weights are not here")

    def regions_of(self, images):
        return pictures(images).regions()

    def mask_log_prob(self, texts, candidates, images=None, **_):
        agents = [text.split()[1] for text in texts]
        rows = [[SAID.get((agent, word), 0.1) for word in candidates] for agent in agents]
        shown = np.ones(len(texts)) if images is None else self.regions_of(images).features[:, 0, 0]
        return np.log(np.array(rows) * shown[:, None])


@pytest.fixture
def paper(monkeypatch, tmp_path):
    """Let ``paper_inputs`` load models by hand, from a data folder that is empty."""
    asked = []

    def load(name, **_):
        asked.append(name)
        return Drawn(name)

    monkeypatch.setattr(study.models, "load", load)
    monkeypatch.setenv("BIASLIB_DATA", str(tmp_path))
    return asked


def write_regions(folder, names, width=regions.WIDTH):
    one = np.full((len(names), 1, width), 0.5, np.float32)
    whole = np.tile([0.0, 0.0, 1.0, 1.0], (len(names), 1, 1))
    there = np.ones((len(names), 1), bool)
    sizes = np.full((len(names), 2), 8)
    made = region_files.RegionFeatures(one, whole, there, ~there, sizes)
    region_files.write(folder / "regions.safetensors", made, names)


def test_without_a_photograph_the_captions_are_asked_and_what_is_missing_is_counted(paper, store):
    with pytest.raises(FileNotFoundError):
        study.paper_inputs()
    given = study.paper_inputs(only_sound=True)
    assert study.readable(given, Drawn()) is given
    assert given.images is None
    assert kinds(given.problems) == {("error", "image is missing"): 12}
    shown = plots.data_availability(given).set_index("asked for")["there"].to_dict()
    assert shown == {
        "models": "2 of 2",
        "entities, by captions alone": "46 of 46",
        "entities with images": "0 of 6",
        "images": "0 of 72",
    }
    results = asked(given, store=store, n_resamples=10)
    assert set(results.scores["level"]) == {"S_PT", "S_L, no image", "S_L, text model"}
    assert results.scores["test"].nunique() == 46
    twice = np.log(0.4 / 0.2)
    assert value(results, "purse", "S_L, no image", "S(f)")["value"] == pytest.approx(twice)
    assert study.picture_tests(results.log_probs).empty
    assert study.top_candidates(results.log_probs, given.entities).empty


def test_regions_of_another_detector_and_none_at_all_leave_the_captions(paper, store, tmp_path):
    folder = gather(tmp_path / "own", {"woman": range(6), "man": range(6, 12)})
    options = {"folder": folder, "entities": pair().query("entity == 'purse'")}
    given = study.paper_inputs(**options)
    with pytest.raises(FileNotFoundError):
        asked(given, store=store)
    given = study.readable(given, Drawn())
    assert (given.images, given.dataset) == (None, "no images")
    assert kinds(given.problems) == {("error", "the detector is not there"): 1}
    write_regions(folder, [f"purse/{g}/{n}.png" for n in range(12) for g in (WOMAN, MAN)], width=3)
    given = study.paper_inputs(**options, only_sound=True)
    assert kinds(given.problems) == {("error", "regions cannot be used"): 12}
    assert "have 3 numbers a region, and the model takes 2048" in given.problems["what"].iloc[0]
    assert set(asked(given, store=store).scores["n"]) == {1}


def test_a_taste_is_captions_alone_of_two_models_below_a_gigabyte(paper):
    done = study.whole(runtime.Provenance("paper", "taste"))
    assert paper == ["visualbert", "bert"]
    assert sum(part.gigabytes for part in study.parts("taste")) < 1
    record = study.recorded(runtime.Provenance("paper", "taste"), done)
    assert (record.asked, record.there, done.results.scores["test"].nunique()) == (0, 0, 46)
    assert set(done.results.scores["profile"]) == {"taste"}


def test_what_is_fetched_goes_by_the_photographs_that_are_there(paper, tmp_path, monkeypatch):
    def fetched():
        got.clear()
        return study.fetch("full")["what"].tolist()

    got = []
    monkeypatch.setattr(_fetch.downloads, "fetch", lambda entry: got.append(entry.name))
    photographs = "72 photographs, which the authors never released"
    assert (fetched(), got) == ([photographs], ["vl-bert", "bert"])
    (tmp_path / study.STUDY).mkdir()
    assert (fetched(), got) == ([], ["vl-bert", "bert", "detector"])
    write_regions(tmp_path / study.STUDY, ["purse/woman/0.png"])
    assert (fetched(), got) == ([], ["vl-bert", "bert"])


def test_the_large_model_is_compared_with_the_large_bert(paper):
    given = study.paper_inputs("vl-bert-large", per_agent=0, folder=".")
    assert [each.name for each in study.load_models(given)] == ["vl-bert-large", "bert-large"]
    study.load_models(study.paper_inputs(per_agent=0, folder="."))
    assert paper == ["vl-bert-large", "bert-large", "vl-bert", "bert"]
    assert "fill masks" in study.models.REGISTRY["bert-large"].capabilities


def test_scores_without_a_picture_are_held_against_the_truth_with_one():
    """A model that copies what it says without a picture has a partial rank of 0."""
    rng, rows = np.random.default_rng(0), []
    for seed in range(3):
        truth = rng.normal(size=40)
        own = {"S_V": truth, "S_L, no image": truth}
        for level, value in own.items():
            part = {"test": [f"word {n}" for n in range(40)], "value": value, "oracle": truth}
            fixed = {"planted_in": "both", "dose": 3.0, "seed": seed, "level": level}
            rows.append(pandas.DataFrame(part).assign(**fixed))
    ranks = verdicts.blind_table(pandas.concat(rows, ignore_index=True))["rank correlation"]
    assert ranks.tolist() == pytest.approx([1, 0])
