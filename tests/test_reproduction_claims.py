"""The numbers behind the answers about claims, recomputed from the printed tables."""

import pandas
import pytest

from biaslib import published, reproduction

SIX = ("VisualBERT", "LXMERT", "ViLT", "CLIP", "ALBEF", "FLAVA")


def table(paper, numbers):
    numbers = numbers if isinstance(numbers, list) else [numbers]
    return pandas.concat([published.table(paper, number) for number in numbers])


TAKE = {
    "sum": lambda values: values.sum(),
    "mean": lambda values: values.mean(),
    "mean size": lambda values: values.abs().mean(),
    "highest": lambda values: values.max(),
    "lowest": lambda values: values.min(),
    "count": lambda values: values.notna().sum(),
    "different": lambda values: values.nunique(),
    "cell": lambda values: values.drop_duplicates().item(),
}


def recomputed(paper, number):
    """A number of a claim: of a function below, or one thing that is taken of a column."""
    if "function" in number:
        return FUNCTIONS[number["function"]]()
    rows = table(paper, number["table"])
    for column, wanted in number.get("where", {}).items():
        rows = rows[rows[column].isin(wanted if isinstance(wanted, list) else [wanted])]
    rows = rows.dropna(subset=number["column"])
    if "above" in number:
        rows = rows[rows[number["column"]] > number["above"]]
    if "by" in number:
        return rows.groupby(number["by"])[number["column"]].agg(TAKE[number["take"]]).to_dict()
    return TAKE[number["take"]](rows[number["column"]])


# Ross, Katz and Barbu (2021)


def effects(*numbers):
    return table("ross2021", list(numbers)).set_index(["test", "level", "model"])["effect_size"]


def apart():
    """Effects of Experiments 1 and 2 without C8, which is printed alike."""
    both = pandas.DataFrame({"one": effects(3), "two": effects(4)}).dropna()
    return both[both.index.get_level_values("test") != "C8"]


def large():
    both = apart()
    return both[both["one"] >= 0.5]


def levels():
    return effects(3).unstack("level")


def moved(hidden):
    """How far hiding words (T) or people (I) moves d of sentences, a row a test and model."""
    sight = effects(3).unstack("level")["S"]
    return (effects(5).unstack("level")[hidden] - sight).abs().dropna()


def domains():
    """Effects on the training's pictures beside those on Google's."""
    own = table("ross2021", 6)
    own = own[own["level"].isin(["W", "S", "C"])]
    keys = ["experiment", "test", "level", "model"]
    google, own = (rows.set_index(keys)["effect_size"] for rows in (table("ross2021", [3, 4]), own))
    return pandas.DataFrame({"google": google, "own": own}).dropna()


def sizes(experiment):
    return domains().query("experiment == @experiment")[["google", "own"]].abs()


def domain_correlation(experiment):
    rows = domains().query("experiment == @experiment")
    return rows["google"].corr(rows["own"])


# Hamidieh et al. (2023)


def crime_words():
    """The group with the highest printed C-ASC of each word of criminal justice."""
    rows = table("hamidieh2023", 18).sort_values("casc").drop_duplicates("word", keep="last")
    return rows.set_index("word")["group"]


# Zhou, Lai and Jiang (2022)


def scores(number, metric):
    rows = published.table("zhou2022", number).query("metric == @metric and model in @SIX")
    return rows.pivot(index="model", columns="category", values="value")


def overall():
    return pandas.DataFrame({name: scores(3, name)["overall"] for name in ("vlrs", "vlbs")})


def harmonic():
    rows = table("zhou2022", [3, 4]).query("model != 'BIM'")
    wide = rows.pivot(index=["model", "category"], columns="metric", values="value")
    ours = 2 / (1 / wide["vlrs"] + 1 / (100 - wide["vlbs"]))
    return int(((ours - wide["ivlas"]).abs() < 0.0101).sum()), len(wide)


def whole_counts():
    """Scores vlrs of the five models other than ViLT that are whole counts of the printed sizes."""
    sizes = published.table("zhou2022", 1).set_index("category")["images"]
    wide = scores(4, "vlrs").drop("ViLT")
    counts = wide / 100 * sizes[wide.columns]
    return int(((counts - counts.round()).abs() <= 0.005 / 100 * sizes[wide.columns]).sum().sum())


FUNCTIONS = {
    "large effects": lambda: len(large()),
    "large effects that stay above 0": lambda: (large()["two"] > 0).sum(),
    "mean change": lambda: (apart()["two"] - apart()["one"]).abs().mean(),
    "changed signs": lambda: (apart().prod(axis=1) < 0).sum(),
    "correlation of words and sentences": lambda: levels()["W"].corr(levels()["S"]),
    "correlation of words and contextual": lambda: levels()["W"].corr(levels()["C"]),
    "correlation of sentences and contextual": lambda: levels()["S"].corr(levels()["C"]),
    "moved without words": lambda: moved("T").groupby("model").mean().drop("VisualBERT").to_dict(),
    "moved without people": lambda: moved("I").groupby("model").mean().to_dict(),
    "out of domain, 1": lambda: sizes(1)["google"].mean(),
    "in domain, 1": lambda: sizes(1)["own"].mean(),
    "difference of domains, 1": lambda: sizes(1).mean().diff().mul(-1)["own"],
    "difference of domains, 2": lambda: sizes(2).mean().diff().mul(-1)["own"],
    "correlation of domains, 1": lambda: domain_correlation(1),
    "correlation of domains, 2": lambda: domain_correlation(2),
    "no multiple of four": lambda: (table("ross2021", 1)["images"] % 4 != 0).sum(),
    "crime words": lambda: len(crime_words()),
    "crime words nearest to others than White": lambda: (crime_words() != "White").sum(),
    "gender highest": lambda: (scores(4, "vlbs").idxmax(axis=1) == "gender").sum(),
    "Pearson": lambda: overall().corr().iloc[0, 1],
    "Spearman": lambda: overall().rank().corr().iloc[0, 1],
    "Pearson without FLAVA": lambda: overall().drop("FLAVA").corr().iloc[0, 1],
    "harmonic means": lambda: harmonic()[0],
    "scores with a harmonic mean": lambda: harmonic()[1],
    "whole counts": whole_counts,
}


def test_the_numbers_behind_every_answer_are_those_of_the_printed_tables():
    n, wrong = 0, []
    for claim in reproduction.claims().to_dict("records"):
        for number in claim["numbers"]:
            found, n = recomputed(claim["paper"], number), n + 1
            if found != pytest.approx(number["value"], abs=6e-4):
                wrong.append((claim["id"], number["what"], found))
    assert wrong == []
    assert n > 150


AGAINST_ALL_THREE = "hamidieh2023/claim/9"


def test_three_of_seven_indoor_activities_lean_to_men_so_that_the_claim_holds_in_part():
    """The two claims on single activities are of words that lean as they say."""
    claims = reproduction.claims("hamidieh2023").set_index("id")["answer"]
    men = table("hamidieh2023", 5).pivot(index="word", columns="group", values="casc")
    men = men["Male"].fillna(-men["Female"])
    indoor = "coding investing cooking knitting sewing decorating designing_fashion"
    leaning = men[[each.replace("_", " ") for each in indoor.split()]] > 0
    assert leaning[leaning].index.tolist() == ["coding", "investing", "cooking"]
    assert claims[AGAINST_ALL_THREE] == "in part"
    assert (men[["fixing cars", "fishing"]] > 0).all()
    assert men["sewing"] < 0
    assert set(claims[[f"hamidieh2023/claim/{number}" for number in (18, 19)]]) == {"follows"}
