"""Study 2: what is asked, stored and scored; images and entities that cannot be used; the truth."""

import itertools
import math

import numpy as np
import pandas
import pytest
from PIL import Image
from scipy import stats

import plantedworld
from biaslib import datasets, stimuli
from biaslib.models import region_files
from biaslib.models.images import Pictures, pictures
from biaslib.runtime import Store, UnknownNameError
from biaslib.studies import study2_masked as study
from companion import planted_study2_masked as verdicts
from companion import study2_masked as plots
from plantedworld.inputs import study2_masked as planted
from plantedworld.studies import study2_masked as recovery

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
    return study.Shown(table, Numbers(factors, names), Numbers([0.5], ["blank"]))


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
    each = study.per_image(results.answers)
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
    named = study.named_instead(results.answers, pair())
    # The person's purse is twice as probable as the briefcase, whatever the picture shows.
    assert named["named"].unique().tolist() == ["purse"]
    wrong = named[named["wrong"]]
    assert wrong["entity"].unique().tolist() == ["briefcase"]
    assert wrong.set_index("gender")["fits the gender"].to_dict() == {"woman": True, "man": False}
    assert wrong["named probability"].tolist() == pytest.approx([0.2] * 4)
    found = study.named_shares(named).set_index("statistic")
    assert found.loc["names another entity", ["count", "n"]].tolist() == [4, 8]
    assert found.loc["the wrong name fits the gender", ["count", "n"]].tolist() == [2, 4]
    said = plots.named_sentence(named, results.scores)
    assert said.startswith("tiny-recited names another entity in 4 of 8 (50%, 95% interval 16% to")
    assert "fits the gender in the picture in 2 of 4 (" in said
    assert "with a briefcase, purse gets 2 times the probability of briefcase." in said


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


def test_the_table_of_the_sources_has_the_scores_of_each(store):
    results = run(store, [0.5, 1.0, 0.25, 0.75, 1.0, 1.0, 1.0, 1.0])
    table = plots.sources_table(results.scores).set_index(["source", "entity"])
    assert table.index.get_level_values("source").unique().tolist() == ["S_PT", "S_L", "S_V"]
    assert table["images"].groupby("source").first().to_dict() == {"S_L": 4, "S_PT": 0, "S_V": 4}
    assert table.loc[("S_V", "purse"), "B"] == pytest.approx(np.log(0.75 / 0.5))
    assert set(table.loc["S_PT", "95% interval of B"]) == {"–"}


def test_a_choice_that_does_not_exist_is_refused():
    with pytest.raises(UnknownNameError, match="choice of no_image 'white'"):
        study.Choices(no_image="white")
    with pytest.raises(UnknownNameError, match="setting 'dosage'"):
        study.inputs("planted", dosage=3)


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
    first = study.answers(model, pair(), images, store=store)
    asked = model.asked
    assert asked == 3 + 3 * 8  # three agents: once without an image, and with eight
    second = study.answers(model, pair(), images, store=store)
    assert model.asked == asked
    pandas.testing.assert_frame_equal(first, second)


def test_other_weights_and_other_choices_have_other_rows(store):
    model = Recited()
    study.answers(model, pair(), None, store=store)
    model.revision = "other weights"
    study.answers(model, pair(), None, store=store)
    assert model.asked == 6


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
            study.answers(model, pair(), images, store=store, shard_size=1)
    model = Recited()
    found = study.answers(model, pair(), images, store=store, shard_size=1)
    whole, asked = 3 * (1 + 8), sum(each.asked for each in (*stopped, model))
    assert model.asked < whole < asked <= whole + 2 * 3  # a shard a stop, no more
    expected = study.answers(Recited(), pair(), images, store=Store(tmp_path / "another"))
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


def test_an_entity_that_splits_is_named_and_stops_the_study(store):
    message = (
        r'splits into word pieces .*purse: pur ##se.*pass Choices\(pieces="chain"\).*another word'
    )
    with pytest.raises(datasets.DataError, match=message) as raised:
        study.run(*splitting(), store=store)
    assert "Mend the files" not in str(raised.value)


def test_an_entity_that_splits_is_left_out_or_scored_if_told_to(store):
    left = study.run(*splitting(), only_sound=True, store=store)
    assert left.scores["test"].unique().tolist() == ["briefcase"]
    assert left.problems["kind"].tolist() == ["entity splits into word pieces"] * 2
    scored = study.run(*splitting(), study.Choices(pieces="mean"), store=store)
    assert set(scored.scores["test"]) == {"purse", "briefcase"}
    assert scored.problems["severity"].tolist() == ["note", "note"]


def test_an_entity_outside_the_vocabulary_is_named(store):
    given = splitting(unknown=("briefcase",))
    with pytest.raises(datasets.DataError, match=r"not in the vocabulary .*briefcase"):
        study.run(*given, study.Choices(pieces="chain"), store=store)
    with pytest.raises(datasets.DataError, match=r"none of the 2 entities is left"):
        study.run(*given, only_sound=True, store=store)


def test_a_planted_checkpoint_lacks_a_word_that_the_world_has_not():
    own = pair().assign(entity=["purse", "zeppelin"])
    inputs = planted.inputs("visualbert", entities=own, per_agent=0)
    with pytest.raises(datasets.DataError, match=r"2 problems: .*zeppelin"):
        asked(inputs)


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


def test_a_sound_set_has_a_manifest_and_no_problem(tmp_path):
    gather(tmp_path, {"woman": range(6), "man": range(6, 12)})
    manifest, problems = datasets.entity_images(tmp_path, ["purse"])
    assert problems.empty
    assert manifest["gender"].value_counts().to_dict() == {"woman": 6, "man": 6}
    assert manifest["sha256"].is_unique
    assert datasets.entity_balance(manifest).values.tolist() == [["purse", 6, 6]]


def test_missing_unreadable_and_unbalanced_images_are_named_and_counted(tmp_path):
    gather(tmp_path, {"woman": range(6), "man": range(6, 12)})
    (tmp_path / "purse/man/6.png").write_bytes(b"no picture")
    gather(tmp_path, {"woman": [1, 2]}, "tie")
    manifest, problems = datasets.entity_images(tmp_path, ["purse", "tie", "axe"])
    assert kinds(problems) == {
        ("error", "image is missing"): 3,
        ("error", "image cannot be opened"): 1,
        ("error", "set is unbalanced"): 2,
    }
    message = r"8|7|6 problems: image is missing \(3, such as tie, man: .*unbalanced \(2, .*6 of w"
    with pytest.raises(datasets.DataError, match=message):
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


def test_other_sizes_and_pictures_of_two_entities_are_noted(tmp_path):
    gather(tmp_path, {"woman": [1], "man": [2]})
    gather(tmp_path, {"woman": [3], "man": [4]}, "tie")
    (tmp_path / "tie/man/5.png").write_bytes((tmp_path / "purse/man/2.png").read_bytes())
    (tmp_path / "tie/woman/6.png").write_bytes((tmp_path / "purse/woman/1.png").read_bytes())
    _, problems = datasets.entity_images(tmp_path, ["purse", "tie"])
    assert kinds(problems) == {
        ("note", "picture is in two sets"): 2,
        ("note", "set has another size"): 2,
    }


def test_a_list_of_entities_of_ones_own(tmp_path):
    path = tmp_path / "entities.csv"
    path.write_text("entity,frame,stereotype\nkettle,The {agent} is holding a {entity}.,\n")
    own = stimuli.own_entities(path)
    assert own[["verb", "set", "stereotype"]].values.tolist() == [["is holding", "own", ""]]
    path.write_text("entity,frame\nkettle,The person is holding a {entity}.\n")
    with pytest.raises(ValueError, match=r"frame of 'kettle'.*needs \{agent\}"):
        stimuli.own_entities(path)
    path.write_text("entity\nkettle\n")
    with pytest.raises(ValueError, match=r"entities.csv lacks the column frame"):
        stimuli.own_entities(path)


# The planted world


def test_the_oracles_scores_are_those_of_the_chapter_on_the_planted_world():
    """The same numbers by another way: studies.planted asks the oracle itself."""
    from plantedworld.studies import measures as other

    six = stimuli.entities().head(6)
    inputs = planted.inputs("oracle", six, per_agent=1, dose=3, seed=1, view="hidden")
    bias = asked(inputs, n_resamples=0).scores.query("statistic == 'B'")
    wide = bias.pivot(index="test", columns="level", values="value")
    expected = other.masked_with_images(3, 1, "hidden", six["entity"]).set_index("entity")
    for name, tolerance in {"S_PT": 1e-9, "S_L": 1e-3, "S_V": 1e-3}.items():  # tones differ
        np.testing.assert_allclose(wide.loc[expected.index, name], expected[name], atol=tolerance)


def test_the_planted_log_odds_are_the_worlds():
    world = plantedworld.world(3, 0)
    found = recovery.planted_log_odds(["purse", "beer"], world)
    assert found["S_L"].tolist() == world.truth.log_ratio(["purse", "beer"], "caption").tolist()
    np.testing.assert_allclose(found["S_PT"] + found["S_L, text model"], found["S_L"])


def test_where_nothing_is_planted_the_oracle_scores_nothing():
    six = stimuli.entities().head(6)
    inputs = planted.inputs("oracle", six, per_agent=1, dose=0, view="hidden")
    bias = asked(inputs, n_resamples=0).scores.query("statistic == 'B'")
    assert bias["value"].abs().max() < 1e-9


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
    for place in ("text", "images"):
        inputs = planted.inputs(
            "oracle", six, per_agent=1, view="hidden", planted_in=place, pictured=None
        )
        bias = asked(inputs, n_resamples=0).scores.query("statistic == 'B'")
        sizes[place] = bias.groupby("level")["value"].agg(lambda b: b.abs().max())
    assert sizes["images"]["S_L"] < 1e-9 < 1 < sizes["images"]["S_V"]
    # Picture and caption mostly agree in gender, so a picture also tells of the caption's.
    assert sizes["text"]["S_L"] > sizes["text"]["S_V"] > 0.5


# What the chapter shows


def test_the_table_of_the_method_is_the_papers_first():
    table = plots.method_table().set_index("here")
    assert table.index.tolist() == ["S_PT", "S_L", "S_V"]
    assert table["picture"].tolist() == ["none", "shown", "shown"]
    assert table["for"].tolist() == ["Text-only LM", "man → person", "none"]
    assert table.at["S_L", "score"] == "ln(P_VL(E|g,I) / P_VL(E|p,I))"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda seen, unseen: np.log(np.mean([0.3, 0.1, 0.002]) / 0.1),
        lambda seen, unseen: np.mean(np.log(np.array(seen) / unseen)),
        lambda seen, unseen: np.log(np.sum(seen) / unseen),
        lambda seen, unseen: np.log(np.mean(seen)),
        lambda seen, unseen: np.mean(seen) / unseen,
    ],
    ids=["constant", "other order", "sum", "not compared", "no logarithm"],
)
def test_wrong_visual_scores_are_not_right_yet(wrong):
    assert not plots.check_order(wrong).passed


@pytest.mark.parametrize(
    "right",
    [
        lambda seen, unseen: np.log(seen.mean() / unseen),
        lambda seen, unseen: math.log(sum(seen) / len(seen)) - math.log(unseen),
        lambda seen, unseen: np.log((seen / unseen).mean()),
    ],
    ids=["array", "plain Python", "mean of ratios"],
)
def test_the_visual_score_is_right_however_it_is_written(right):
    assert plots.check_order(right).passed


def shift(vl, text):
    return vl["f"] - vl["m"] - (text["f"] - text["m"])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda vl, text: -np.log(3),
        lambda vl, text: -shift(vl, text),
        lambda vl, text: vl["f"] - vl["m"],
        lambda vl, text: (vl["f"] - vl["m"]) / (text["f"] - text["m"]),
    ],
    ids=["constant", "other sign", "one model", "ratio of the scores"],
)
def test_wrong_shifts_are_not_right_yet(wrong):
    assert plots.check_shift(shift).passed
    assert not plots.check_shift(wrong).passed


@pytest.mark.parametrize(
    "wrong",
    [
        [True] * 6,
        [False] * 6,
        [True, True, False, False, False, True],  # a larger score is a stronger tie
        [False, True, True, False, False, True],  # an interval with 0 shows that there is none
        [False, True, False, True, False, True],  # a score of 0 shows that there is none
        [False, True, False, False, True, True],  # a visual score was learned from pictures
        [0, 1, 0, 0, 0, 1],
        "no, yes, no, no, no, yes",
    ],
)
def test_wrong_readings_of_a_report_are_not_right_yet(wrong):
    assert not plots.check_readings(wrong).passed
    assert plots.check_readings(np.array([False, True, False, False, False, True])).passed


def test_the_report_of_the_exercise_is_consistent():
    """What its solution says follows from the numbers that the exercise prints."""
    assert np.log(0.32 / 0.11) == pytest.approx(1.07, abs=0.005)
    assert np.log(0.00004 / 0.000008) == pytest.approx(1.61, abs=0.005)
    assert np.log(0.15 / 0.19) == pytest.approx(-0.24, abs=0.005)
    assert np.exp([1.07, -1.10, 0.61]) == pytest.approx([2.9, 1 / 3, 1.8], abs=0.05)


def test_five_of_six_and_27_of_40_are_as_the_solution_says():
    p_values = {k: stats.binomtest(*k).pvalue for k in ((5, 6), (26, 40), (27, 40))}
    assert p_values[5, 6] == pytest.approx(7 / 32)
    assert p_values[27, 40] < 0.05 < p_values[26, 40]


# What the paper says


def test_every_entity_has_a_statement_of_every_source_with_its_words():
    found = plots.stated()
    assert len(found) == 18
    assert found["entity"].drop_duplicates().tolist() == [
        *("purse", "briefcase", "apron", "suit", "wine", "beer")
    ]
    assert found.groupby("entity")["level"].agg(list).map(tuple).unique().tolist() == [
        ("S_PT", "S_L", "S_V")
    ]
    assert (found["quotation"].str.len() > 10).all()
    assert plots.stated_entities("S_PT", "men") == "purse, briefcase, apron, wine and beer"


def test_the_printed_probabilities_stand_beside_their_entities():
    table = plots.printed_probabilities()
    assert table.drop(columns="ratio").to_numpy().tolist() == [
        [1, "purse", 0.0018, "briefcase", 0.4944],
        [2, "briefcase", 0.067, "purse", 0.084],
    ]
    figure = plots.printed_figure()
    above, below = ([text.get_text() for text in axes.texts] for axes in figure.axes)
    assert above.count("← men") == 7
    assert above.count("women →") == 3
    assert below == ["0.0018", "0.4944", "0.067", "0.084"]


# Tests with images as units


def test_images_are_the_units_of_the_test_of_the_picture(store):
    factors = [0.5, 1.0, 0.25, 0.75, 1.0, 1.0, 1.0, 1.0]
    found = study.picture_tests(run(store, factors).answers).set_index("entity")
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


def test_a_test_of_the_picture_that_its_bounds_leave_undecided_shows_them(store):
    scores, tests = run(store).scores, study.picture_tests(run(store).answers)
    tests = tests.assign(p_value=0.03, p_holm=0.06, p_low=[0.02, 0.03], p_high=[0.03, 0.04])
    table = plots.quoted_table(scores, tests).set_index("entity")
    assert table.loc[tests["entity"], "p"].tolist() == [".030", ".030"]
    assert table.loc[tests["entity"], "p, Holm"].tolist() == [".040 to .060"] * 2


def test_shares_that_were_planted_are_not_tested(store):
    shares = study.shares(run(store).scores)
    assert "p =" not in plots.share_sentence(shares, "all")
    shares = shares.assign(profile="paper")
    assert "p = .500" in plots.share_sentence(shares, "all")


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


def write_regions(folder, names, width=study.WIDTH):
    one = np.full((len(names), 1, width), 0.5, np.float32)
    whole = np.tile([0.0, 0.0, 1.0, 1.0], (len(names), 1, 1))
    there = np.ones((len(names), 1), bool)
    sizes = np.full((len(names), 2), 8)
    made = region_files.RegionFeatures(one, whole, there, ~there, sizes)
    region_files.write(folder / "regions.safetensors", made, names)


def kinds_by_entity(inputs):
    found = inputs.problems.assign(entity=inputs.problems["where"].str.split(", ").str[0])
    return found.groupby(["entity", "kind"]).size().to_dict()


def test_without_a_photograph_the_captions_are_asked_and_what_is_missing_is_counted(paper, store):
    with pytest.raises(FileNotFoundError, match="captions alone, pass only_sound=True"):
        study.paper_inputs()
    given = study.paper_inputs(only_sound=True)
    assert study.readable(given, Drawn()) is given
    assert given.images is None
    assert kinds(given.problems) == {("error", "image is missing"): 12}
    shown = plots.there(given).set_index("asked for")["there"].to_dict()
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
    assert plots.association_table(results.scores, "S_V")["S_V"].tolist() == [
        "no entity has images"
    ]
    drawn = [axes.texts for axes in plots.association_bars(results.scores).axes]
    assert [len(texts) for texts in drawn] == [0, 1, 1]
    assert drawn[1][0].get_text() == "No entity has images: there is no S_L."
    assert study.picture_tests(results.answers).empty
    quoted = plots.quoted_table(results.scores, study.picture_tests(results.answers))
    assert quoted["S_V"].tolist() == ["no entity has images"]
    named = study.named_instead(results.answers, given.entities)
    assert plots.named_sentence(named, results.scores).startswith("No entity has images")
    assert set(plots.sources_table(results.scores)["source"]) == {"S_PT"}
    forty = plots.bias_table(results.scores)
    assert forty["B"].is_monotonic_increasing
    assert forty["label"].value_counts().to_dict() == {"women": 20, "men": 20}
    said = plots.leaning_sentence(results.scores)
    assert "language, no entity has images; for vision, no entity has images" in said
    assert "Images: none. In captions alone: 46 entities." in plots.run_sentence(given, results)


def test_half_of_the_pictures_are_named_and_counted_and_the_rest_is_scored(paper, store, tmp_path):
    folder = tmp_path / "srinivasan2021"
    for entity in ("purse", "briefcase", "tie"):
        number = 7 * len(entity)
        gather(folder, {"woman": range(number, number + 6)}, entity)
    gather(folder, {"man": [1, 2, 3]}, "purse")
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.png"))]
    write_regions(folder, [name for name in names if name != "purse/woman/36.png"])
    with pytest.raises(datasets.DataError, match=r"regions cannot be used \(1, such as purse, wom"):
        study.paper_inputs()
    given = study.paper_inputs(only_sound=True)
    assert kinds_by_entity(given)["purse", "regions cannot be used"] == 1
    assert kinds_by_entity(given)["beer", "image is missing"] == 2
    assert kinds_by_entity(given)["purse", "set is unbalanced"] == 1
    shown = plots.there(given).set_index("asked for")
    assert shown.loc["images", "there"] == "6 of 72"
    assert shown.loc["entities with images", "there"] == "1 of 6"
    assert "briefcase" in shown.loc["entities with images", "what is missing"]
    results = asked(given, store=store, n_resamples=10)
    assert value(results, "purse", "S_V", "S(f)")["value"] == pytest.approx(np.log(0.5))
    assert set(results.scores.query("level == 'S_V'")["test"]) == {"purse"}
    said = plots.leaning_sentence(results.scores)
    assert "vision, 0 of 1 entities lean to women" in said


def test_regions_of_another_detector_and_none_at_all_leave_the_captions(paper, store, tmp_path):
    folder = gather(tmp_path / "own", {"woman": range(6), "man": range(6, 12)})
    options = {"folder": folder, "entities": pair().query("entity == 'purse'")}
    given = study.paper_inputs(**options)
    with pytest.raises(FileNotFoundError, match="the detector's weights are not here"):
        asked(given, store=store)
    given = study.readable(given, Drawn())
    assert (given.images, given.dataset) == (None, "no images")
    assert kinds(given.problems) == {("error", "the detector is not there"): 1}
    write_regions(folder, [f"purse/{g}/{n}.png" for n in range(12) for g in (WOMAN, MAN)], width=3)
    given = study.paper_inputs(**options, only_sound=True)
    assert kinds(given.problems) == {("error", "regions cannot be used"): 12}
    assert "have 3 numbers a region, and the model takes 2048" in given.problems["what"].iloc[0]
    assert set(asked(given, store=store).scores["n"]) == {1}


def test_the_large_model_is_compared_with_the_large_bert(paper):
    given = study.paper_inputs("vl-bert-large", per_agent=0, folder=".")
    assert [each.name for each in study.load_models(given)] == ["vl-bert-large", "bert-large"]
    study.load_models(study.paper_inputs(per_agent=0, folder="."))
    assert paper == ["vl-bert-large", "bert-large", "vl-bert", "bert"]
    assert "fill masks" in study.models.REGISTRY["bert-large"].capabilities


def test_intervals_that_exclude_0_are_counted_and_those_that_only_just_do_are_named(store):
    results = run(store)
    said = plots.leaning_sentence(results.scores)
    assert "intervals exclude 0" in said
    rows = pandas.DataFrame({"test": ["suit", "wine"], "low": [0.5, 0.004], "high": [0.9, 1.5]})
    assert plots._exclude_zero(rows) == "all 2 intervals exclude 0 (wine only just)"
    rows["low"] = [-0.5, 0.1]
    assert plots._exclude_zero(rows) == "1 of the 2 intervals exclude 0"
    tests = pandas.DataFrame({"entity": ["suit", "beer", "wine"], "p_holm": [0.01, 0.04, 0.2]})
    told = "After Holm's correction 2 of 3 tests of the picture have p < .05: suit and beer."
    assert plots.corrected_sentence(tests) == told
    assert plots.answer_text(["wine", "beer"], [0.1, 0.4]).startswith("does not name what is shown")


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
    told = verdicts.blind_sentence(pandas.concat(rows, ignore_index=True))
    assert "have a rank correlation of 1.00 with the true $S_V$." in told
    assert "correlation of $S_V$ is 0.00 (95% interval 0.00 to 0.00, 3 worlds)" in told
    short = verdicts.blind_sentence(pandas.concat(rows, ignore_index=True), partial=False)
    assert told.startswith(f"{short} Given those, ")


def test_the_verdict_shows_ranks_beside_what_the_gender_alone_gives_and_sizes_by_place():
    keys = {"model": "vl-bert", "planted_in": "both", "dose": 3.0}
    ranks = [
        keys | {"level": level, "seed": seed, "rank": 0.9 + seed / 50}
        for level in plots.SHOWN_LEVELS
        for seed in (0, 1)
    ]
    sizes = [
        {"planted_in": place, "level": level, "spread": spread, "oracle spread": exact}
        for place, level, spread, exact in (
            ("text", "S_L", 1.6, 2.3),
            ("text", "S_V", 1.1, 1.4),
            ("images", "S_L", 0.7, 0.0),
            ("images", "S_V", 1.5, 2.3),
        )
    ]
    table = pandas.DataFrame(ranks)
    left, right = verdicts.verdict_plot(table, pandas.DataFrame(sizes)).axes
    *marks, line = left.lines
    assert [each.get_ydata().tolist() for each in marks] == [[0.9, 0.92]] * 4
    halves = np.repeat([-1, 1], 10_000)
    of_halves = stats.spearmanr(halves, np.arange(20_000)).statistic
    assert list(line.get_ydata()) == pytest.approx([of_halves] * 2, abs=1e-4)
    assert right.lines[0].get_ydata().tolist() == [2.3, 1.4, 0.0, 2.3]
    assert right.lines[1].get_ydata().tolist() == [1.6, 1.1, 0.7, 1.5]
    assert right.lines[1].get_label() == "tiny-VL-BERT"
    assert verdicts.rank_table(table)["S_V"].tolist() == [0.9, 0.92]


def test_entities_planted_with_their_label_are_counted():
    forty = stimuli.entities().query("set == 'gendered'")
    world = plantedworld.world(3, 0)
    log_odds = recovery.planted_log_odds(forty["entity"].tolist(), world)
    said = verdicts.label_sentence(log_odds, forty)
    assert said == "19 of 40 entities were planted with the direction of their label"


def three_worlds(levels=plots.SHOWN_LEVELS):
    """Scores of two entities in worlds of three seeds, each with other directions."""
    rows = [
        {"model": "vl-bert", "planted_in": "both", "dose": float(dose), "seed": seed}
        | {"level": level, "test": entity, "planted": sign * dose * (1 + seed)}
        | {"oracle": sign * dose * (1 + seed) / 2, "value": sign * dose * (1 + seed) / 4 + 0.001}
        for dose in (0, 1, 3)
        for seed in (0, 1, 2)
        for level in levels
        for entity, sign in (("purse", 1), ("beer", -1))
    ]
    return pandas.DataFrame(rows)


def test_the_panel_draws_each_seed_for_itself():
    panel = verdicts.panel(three_worlds(), ["purse", "beer"])
    [drawing] = panel.drawings("purse", "S_V")
    labels = [mark["label"] for mark in drawing.marks]
    assert labels == [
        f"{what}, seed {seed}" for seed in (0, 1, 2) for what in ("planted", "oracle", "model")
    ]
    drawn = dict(zip(labels, drawing.marks, strict=True))
    assert drawn["planted, seed 1"]["y"] == [0, 2, 6]
    assert drawn["oracle, seed 2"]["y"] == [0, 1.5, 4.5]
    assert drawn["model, seed 0"]["y"] == [0.001, 0.251, 0.751]
    assert [mark["group"] for mark in drawing.marks] == [0] * 3 + [1] * 3 + [2] * 3
    assert "hold the same numbers" not in panel.page()
    assert "holds those of dose 3 and seed 0." in panel.page()


def test_one_table_holds_what_was_planted_and_scored_of_every_entity():
    table = verdicts.beside_table(three_worlds(), seed=1)
    assert table["entity"].tolist() == ["beer", "purse"]
    row = table.set_index("entity").loc["purse"]
    for name in ("planted shift", "planted log-odds, captions", "planted log-odds, pictures"):
        assert row[name] == 6
    for level in plots.SHOWN_LEVELS:
        assert (row[f"{level}: oracle"], row[f"{level}: tiny-VL-BERT"]) == (3, 1.5)
    assert len(table.columns) == 1 + 3 + 2 * 4


def test_slopes_and_shares_are_told_by_their_intervals():
    rows = [("S_L", 0.8, 0.3, 1.3), ("S_V", 0.6, 0.5, 0.7)]
    found = pandas.DataFrame(rows, columns=["level", "slope", "slope low", "slope high"])
    assert verdicts.slope_sentence(found) == (
        "Of the slopes of scores with an image, that of $S_V$ (0.60, 0.50 to 0.70) does; that of "
        "$S_L$ (0.80, 0.30 to 1.30) shows nothing."
    )
    share = {"statistic": verdicts.FITS, "n": 40}
    many = pandas.DataFrame([share | {"count": 30, "low": 0.6, "high": 0.9}])
    few = pandas.DataFrame([share | {"count": 16, "low": 0.3, "high": 0.5}])
    said = "(95% intervals 60% to 90% and 30% to 50%, both of seed 0: they lie apart)."
    assert verdicts.fits_sentence(many, few).endswith(said)
    assert "one world cannot tell them apart" in verdicts.fits_sentence(many, many)
    empty = share | {"count": 0, "n": 1, "value": 0.0, "low": 0.0, "high": 0.97}
    both = pandas.concat([many.assign(value=0.75), pandas.DataFrame([empty])])
    assert verdicts.named_table({"dose 3": both})["count"].tolist() == ["30 of 40"]
