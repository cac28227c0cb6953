"""What the papers state without numbers: the rows, and what runs of either direction are told."""

import itertools

import numpy as np
import pandas
import pytest

from biaslib import published, reproduction, stimuli
from biaslib.reproduction._stated import judged_stated
from biaslib.studies import scores as tidy_scores
from biaslib.studies import study2_masked

PAPERS = tuple(published.PAPERS)
PREFIX = "srinivasan2021/stated/"


def verdicts(found, paper="srinivasan2021"):
    return found.set_index(found["id"].str.removeprefix(f"{paper}/stated/"))["verdict"]


# The rows


# A run of study 2 in either direction

S_PT = {  # with a woman, with a man
    "purse": (-0.4, 0.5),
    "briefcase": (0.2, 1.0),
    "apron": (-1.0, -0.3),
    "suit": (-0.5, -0.5),
    "wine": (-0.8, -0.2),
    "beer": (-0.7, -0.1),
}
S_L = {"purse": 1.0, "briefcase": -0.6, "apron": 0.7, "beer": -0.8, "suit": 0.05, "wine": 0.04}
S_V = {"purse": 1.2, "briefcase": -0.9, "apron": 1.0, "beer": -0.7, "suit": -0.06, "wine": 0.03}
BASE = -3.0


def answers_as_stated():
    """Log-probabilities of two models that agree with every direction that the paper states."""
    rng, rows, text = np.random.default_rng(2), [], []
    for entity in stimuli.entities().to_dict("records"):
        name, sign = entity["entity"], {"women": 1, "men": -1, "": 0}[entity["stereotype"]]
        if name in S_PT:
            without, before = [BASE + each for each in S_PT[name]], [BASE, BASE]
        else:  # B of VL-BERT is .5 towards the label; that of BERT lies further towards women
            before = {1: 1.0, -1: -0.2}[sign] if name != "cigar" else -1.0
            without, before = [BASE + 0.5 * sign, BASE], [BASE + before, BASE]
        for model, (woman, man) in ((rows, without), (text, before)):
            for agent, log_p in zip(study2_masked.AGENTS, (woman, man, BASE), strict=True):
                model.append((name, "", "", agent, name, log_p))
        if name not in S_L:
            continue
        for gender, n in itertools.product(study2_masked.GENDERS, range(6)):
            shown = BASE + S_V[name] * (0.5 if gender == "woman" else -0.5)
            for agent, moved in zip(study2_masked.AGENTS, (0.5, -0.5, 0), strict=True):
                log_p = shown + moved * S_L[name] + rng.normal(0, 0.005)
                rows.append((name, gender, f"{gender} {n}", agent, name, log_p))
    columns = ["entity", "gender", "image", "agent", "candidate", "log_p"]
    return pandas.DataFrame(rows, columns=columns), pandas.DataFrame(text, columns=columns)


def run_as_stated():
    """The scores that study 2 makes of these answers, as its chapter records them."""
    table = study2_masked.scores(*answers_as_stated(), stimuli.entities(), n_resamples=200)
    text = table["level"] == "S_L, text model"
    labels = {"study": "srinivasan2021", "revision": "r", "profile": "paper", "dataset": "own"}
    scores = tidy_scores.tidy(table, model=np.where(text, "bert", "vl-bert"), **labels)
    return pandas.concat([scores, study2_masked.shares(scores)], ignore_index=True)


@pytest.fixture(scope="module")
def as_stated():
    return run_as_stated()


def mirrored(scores):
    """Every log ratio with the other sign, every share as the share of the others."""
    shares = scores["statistic"].isin(["agrees with the label", "towards men"])
    ends = {"value": "value", "low": "high", "high": "low"}
    turned = {name: shares.astype(float) - scores[other] for name, other in ends.items()}
    return scores.assign(**turned)


def test_a_run_that_has_every_stated_direction_right_is_told_so_row_by_row(as_stated):
    found = verdicts(judged_stated("srinivasan2021", as_stated))
    assert len(found) == 38
    assert found[found != "met"].to_dict() == {}
    beside = reproduction.compare(as_stated, "srinivasan2021")
    told = beside[beside["id"].str.startswith(PREFIX)]
    assert (told["verdict"] == "met").all()
    assert len(told) == 38


def test_the_same_run_with_every_sign_turned_is_told_so_row_by_row(as_stated):
    """What is stated of sizes alone, without a direction, stays met."""
    found = verdicts(judged_stated("srinivasan2021", mirrored(as_stated)))
    sizes = found.index.str.endswith("/size")
    assert (found[~sizes] == "not met").all()
    assert sizes.sum() == 9
    assert (found[sizes] == "met").all()


def test_what_is_not_in_a_run_is_named_and_not_judged(as_stated):
    without = as_stated[as_stated["level"] != "S_V"]
    found = judged_stated("srinivasan2021", without)
    missing = found["verdict"] == "not run"
    assert found.loc[missing, "id"].str.contains("/S_V/").all()
    assert missing.sum() == 6
    lost = as_stated[(as_stated["test"] != "beer") | (as_stated["level"] != "S_PT")]
    found = judged_stated("srinivasan2021", lost).set_index("id")
    assert found.loc[f"{PREFIX}S_PT/majority", "verdict"] == "not run"
    for paper in PAPERS:
        assert set(judged_stated(paper, pandas.DataFrame())["verdict"]) == {"not run"}


# Rules, by hand


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-0.9, -0.4, "met"),
        (-0.9, 0.0, "cannot be said"),
        (-0.9, 0.2, "cannot be said"),
        (0.0, 0.2, "not met"),
        (0.1, 0.2, "not met"),
        (np.nan, np.nan, "cannot be said"),
        (-0.9, np.nan, "cannot be said"),
    ],
)
def test_a_side_is_judged_by_an_interval_and_by_nothing_else(low, high, verdict):
    value = np.nanmean([low, high]) if np.isfinite([low, high]).any() else -0.5
    row = {"model": "vl-bert", "test": "beer", "level": "S_V", "statistic": "B"}
    scores = pandas.DataFrame([row | {"value": value, "low": low, "high": high}])
    assert verdicts(judged_stated("srinivasan2021", scores))["S_V/beer/B"] == verdict


def test_captions_alone_are_judged_by_their_number():
    row = {"model": "vl-bert", "level": "S_PT", "statistic": "B", "low": np.nan, "high": np.nan}
    values = {"purse": -0.1, "briefcase": 0.1, "apron": 0.0, "wine": -0.2, "beer": -0.3}
    rows = [row | {"test": name, "value": value} for name, value in values.items()]
    found = verdicts(judged_stated("srinivasan2021", pandas.DataFrame(rows)))
    assert found[[f"S_PT/{name}/B" for name in values]].tolist() == [
        "met", "not met", "not met", "met", "met"
    ]  # fmt: skip
    rows.append(row | {"test": "suit", "value": -0.4})
    found = judged_stated("srinivasan2021", pandas.DataFrame(rows)).set_index("id")
    assert found.loc[f"{PREFIX}S_PT/majority", ["verdict", "value"]].tolist() == ["met", 4 / 6]
    rows[-1]["value"] = 0.4
    found = judged_stated("srinivasan2021", pandas.DataFrame(rows)).set_index("id")
    assert found.loc[f"{PREFIX}S_PT/majority", "verdict"] == "not met"  # 3 of 6 are no majority


@pytest.mark.parametrize(
    ("suit", "verdict"),
    [
        ((-0.1, 0.1), "met"),  # its size ends at .1
        ((-0.5, 0.1), "cannot be said"),  # at .5, where that of beer begins at .3
        ((-0.3, 0.1), "cannot be said"),
        ((-0.9, -0.8), "not met"),  # beer's ends at .7
        ((0.8, 0.9), "not met"),
    ],
)
def test_sizes_are_told_apart_where_intervals_of_sizes_do_not_meet(suit, verdict):
    ends = {"purse": (1, 2), "briefcase": (-2, -1), "apron": (0.9, 1.2), "beer": (-0.7, -0.3)}
    rows = [
        {"model": "vl-bert", "test": name, "level": "S_V", "statistic": "B"}
        | {"value": (low + high) / 2, "low": low, "high": high}
        for name, (low, high) in (ends | {"suit": suit}).items()
    ]
    found = verdicts(judged_stated("srinivasan2021", pandas.DataFrame(rows)))
    assert found["S_V/suit/size"] == verdict


@pytest.mark.parametrize(
    ("below", "open_", "above", "verdict"),
    [
        (70, 0, 7, "met"),  # 70 / 77 is .909
        (69, 0, 8, "not met"),  # .896
        (69, 1, 7, "cannot be said"),
        (70, 7, 0, "met"),
        (60, 9, 8, "not met"),
        (0, 77, 0, "cannot be said"),
    ],
)
def test_almost_all_is_a_share_of_words_of_which_open_ones_may_fall_either_way(
    below, open_, above, verdict
):
    ends = [(0.01, 0.05)] * below + [(0.1, 0.2)] * open_ + [(0.2, 0.3)] * above
    rows = [
        {"model": "open-clip", "level": "race", "statistic": "share", "group": "Black"}
        | {"bias_type": "Behavioral", "test": f"word {at}", "value": low, "low": low, "high": high}
        for at, (low, high) in enumerate(ends)
    ]
    name = "retrieved/behavioral/black"
    found = judged_stated("hamidieh2023", pandas.DataFrame(rows)).set_index("id")
    row = found.loc[f"hamidieh2023/stated/{name}"]
    assert row["verdict"] == verdict
    assert row[["low", "high"]].tolist() == pytest.approx([below / 77, (below + open_) / 77])
    fewer = judged_stated("hamidieh2023", pandas.DataFrame(rows[1:])).set_index("id")
    row = fewer.loc[f"hamidieh2023/stated/{name}"]
    assert (row["verdict"], row["reason"]) == ("not run", "76 of at least 77 scores are in the run")


# Signs beside the printed tables of the same papers


def printed_casc():
    tables = pandas.concat(published.table("hamidieh2023", number) for number in range(3, 19))
    rows = tables.sort_values("table", ascending=False).drop_duplicates(
        ["category", "group", "word"]
    )
    groups = rows["group"].str.replace("/", "_")
    ends = {name: rows["casc"] for name in ("value", "low", "high")}
    same = {"model": "open-clip", "statistic": "c_asc", "level": rows["facet"]}
    return rows.assign(test=rows["word"], group=groups, bias_type=rows["category"], **same, **ends)


def test_signs_of_words_are_those_of_the_printed_tables():
    """Immigrant is higher for Southeast Asian than for Hispanic people, as claim 33 remarks."""
    found = verdicts(judged_stated("hamidieh2023", printed_casc()), "hamidieh2023")
    ran = found[found != "not run"]
    assert ran[ran != "met"].to_dict() == {"c-asc/immigrant/latino-hispanic": "not met"}
    assert set(ran.index) > {
        "c-asc/ambitious/men", "c-asc/bossy/women", "c-asc/sewing/women", "c-asc/maid/women",
        "c-asc/terrorist/middle-eastern", "c-asc/communist/southeast-asian",
        "c-asc/felon/black/first-word", "c-asc/illiterate/indian",
    }  # fmt: skip
    assert not ran.index.str.startswith("retrieved/").any()  # no share is printed


def test_signs_of_models_are_those_of_the_printed_table():
    """In Table 4 two models of six lie above guessing in religion, four in race."""
    rows = pandas.concat([published.table("zhou2022", number) for number in (3, 4)])
    scores = rows.assign(test=rows["category"], level="images", statistic=rows["metric"])
    scores = scores.assign(low=scores["value"], high=scores["value"])
    found = verdicts(judged_stated("zhou2022", scores), "zhou2022")
    ran = found[found != "not run"]
    assert set(ran.index) == {
        "relevant", "vlrs/most", "vlrs/flava", "vlbs/most", "vlbs/flava", "vlbs/clip",
        "ivlas/albef", "vlbs/most/gender", "vlbs/most/profession", "vlbs/most/race",
        "vlbs/most/religion", "vlbs/almost-all", "vlbs/all-categories",
    }  # fmt: skip
    assert ran[ran != "met"].to_dict() == {"vlbs/most/religion": "not met"}
    swapped = scores.replace({"model": {"CLIP": "FLAVA", "FLAVA": "CLIP"}})
    found = verdicts(judged_stated("zhou2022", swapped), "zhou2022")
    turned = {"vlrs/flava", "vlbs/flava", "vlbs/clip", "vlbs/most/religion"}
    assert set(found[found == "not met"].index) == turned


def printed_effects():
    rows = pandas.concat(published.table("ross2021", number) for number in (3, 4, 6))
    rows = rows[rows["level"].isin(["W", "S", "C"])].dropna(subset="effect_size")
    domains = rows["source"].map({"google": "out of domain", "pretraining": "in domain"})
    same = {"masking": "none", "variant": "paper", "statistic": "effect size", "images": "with"}
    ends = {name: rows["effect_size"] for name in ("value", "low", "high")}
    return rows.assign(model=rows["model"].str.lower(), domain=domains, **same, **ends)


def test_shares_of_effects_are_those_of_the_printed_tables():
    """By hand from Tables 3, 4 and 6: 92 of 155 are positive; the sizes of 155 and 48 pairs."""
    found = judged_stated("ross2021", printed_effects()).set_index("id")
    found = found.rename(index=lambda name: name.removeprefix("ross2021/stated/"))
    one, two, own = (
        published.table("ross2021", number).set_index(["test", "level", "model"])
        for number in (3, 4, 6)
    )
    one, two = one["effect_size"], two["effect_size"]
    assert found.loc["direction", "value"] == pytest.approx(92 / 155)
    assert found.loc["overrule", "value"] == pytest.approx((two > 0).sum() / two.notna().sum())
    both = (two.abs() - one.abs()).dropna()
    assert found.loc["attenuated", "value"] == pytest.approx((both < 0).mean())
    apart = []
    for experiment, google in ((1, one), (2, two)):
        rows = own[own["experiment"] == experiment]["effect_size"]
        apart += (google.abs() - rows.abs()).dropna().tolist()
    assert len(apart) == 48
    assert found.loc["out-of-domain", "value"] == pytest.approx(np.mean(np.array(apart) > 0))
    expected = {"direction": "met", "overrule": "met", "attenuated": "not met"}
    assert found.loc[list(expected), "verdict"].to_dict() == expected
    assert found.loc["grounded-and-text", "verdict"] == "not run"


def test_effects_with_pictures_are_told_apart_from_those_of_text_alone():
    """BERT reads no picture, so that its numbers need no interval; those with pictures do."""
    scores = printed_effects().query("experiment == 1 and domain == 'out of domain'")
    with_ends = {"low": np.nan, "high": np.nan}
    with_ends |= {f"{end}_pictures": scores["value"] for end in ("low", "high")}
    alone = scores[scores["model"] == "vilbert"].assign(model="bert", images="without", value=0.1)
    alone = alone.assign(low=np.nan, high=np.nan)
    name = "ross2021/stated/grounded-and-text"
    scores = pandas.concat([scores.assign(**with_ends), alone], ignore_index=True)
    row = judged_stated("ross2021", scores).set_index("id").loc[name]
    larger = published.table("ross2021", 3)["effect_size"].dropna().abs() > 0.1
    assert (row["verdict"], row["value"]) == ("met", pytest.approx(larger.mean()))
    blind = scores.drop(columns=["low_pictures", "high_pictures"])
    row = judged_stated("ross2021", blind).set_index("id").loc[name]
    assert row["verdict"] == "cannot be said"
    assert "the run has no interval" in row["reason"]
