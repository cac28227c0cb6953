"""The numbers of errata that the chapter does not show, recomputed from the printed tables."""

import itertools
from collections.abc import Sequence

import pandas

from biaslib.published import casc_tables, table
from companion.published_numbers import CELL, METRICS, printed_scores, repeated_cells

PRINTED_WORDS = 374
"""The size of the taxonomy that the text gives."""

PRINTED_TOTAL = 10_228
"""The number of images that the text gives."""


def experiment_3_totals() -> pandas.DataFrame:
    """Return the significant tests of Experiment 3 per column of Table 7, under both readings."""
    counts = table("ross2021", 7).query("experiment == 3")
    sums = counts.groupby("column").agg(
        table4=("model_table4_order", "first"),
        inferred=("model_inferred", "first"),
        significant=("significant", "sum"),
        masked_text=("significant", lambda s: s[counts["level"] == "T"].sum()),
        masked_image=("significant", lambda s: s[counts["level"] == "I"].sum()),
    )
    numbers = ["significant", "masked_text", "masked_image"]
    return sums.astype(dict.fromkeys(numbers, int)).reset_index()


def image_totals() -> dict[str, int]:
    """Return Table 1's number of images by source and in all (A5)."""
    sums = table("ross2021", 1).groupby("source", sort=False)["images"].sum()
    return {**{name: int(each) for name, each in sums.items()}, "all": int(sums.sum())}


def subsets_with_sum(values: Sequence[int], target: int) -> int:
    """Count the subsets of values that sum to ``target`` (A5, B1)."""
    return sum(
        sum(chosen) == target
        for size in range(1, len(values) + 1)
        for chosen in itertools.combinations(values, size)
    )


def image_excess() -> dict[str, int]:
    """Return by how much Table 1 exceeds the text's total, and the subsets that explain it (A5)."""
    images, totals = table("ross2021", 1), image_totals()
    google = images.query("source == 'google'")["images"].tolist()
    excess = {name: totals[name] - PRINTED_TOTAL for name in ("google", "all")}
    return {
        **excess,
        "subsets_google": subsets_with_sum(google, excess["google"]),
        "subsets_all": subsets_with_sum(images["images"].tolist(), excess["all"]),
    }


def not_divisible_by_four() -> pandas.DataFrame:
    """Return Table 1's counts that four equal target-attribute pairs cannot make (A6)."""
    images = table("ross2021", 1)
    rest = images[images["images"] % 4 != 0].drop(columns="label")
    return rest.assign(odd=rest["images"] % 2 == 1).reset_index(drop=True)


def near_bound(threshold: float = 1.9) -> pandas.DataFrame:
    """Return the effect sizes near the bound 2 (A7)."""
    effects = pandas.concat([table("ross2021", number) for number in (3, 4, 5, 6)])
    large = effects[effects["effect_size"].abs() >= threshold]
    return large.drop(columns=["label", "printed"]).reset_index(drop=True)


def repeated_masked_values(model: str = "VL-BERT") -> pandas.DataFrame:
    """Return the tests whose gender and race effects agree once words are masked (A7)."""
    masked = table("ross2021", 5).query("level == 'T' and model == @model")
    masked = masked.assign(test=masked["test"].str.replace("-gender|-race", "", regex=True))
    pairs = masked.pivot(index="test", columns="kind", values="effect_size").dropna()
    alike = pairs[pairs["gender"] == pairs["race"]].rename(columns={"gender": "effect_size"})
    return alike[["effect_size"]].reset_index().rename_axis(columns=None)


def dashes() -> pandas.DataFrame:
    """Return how many cells of each table, model and level are printed as a dash (A8)."""
    effects = pandas.concat([table("ross2021", number) for number in (3, 4, 5, 6)])
    missing = effects[effects["effect_size"].isna()]
    by = ["table", "level", "model"]
    return missing.groupby(by, as_index=False).agg(
        cells=("printed", "size"), tests=("test", ", ".join)
    )


def domain_strength() -> pandas.DataFrame:
    """Return the mean of ``|d|`` in and out of domain, on the tests that both have (A11)."""
    inside = table("ross2021", 6).query("experiment < 3")
    outside = pandas.concat([table("ross2021", 3), table("ross2021", 4)])
    outside = outside[outside["test"].isin(inside["test"])]
    sizes = pandas.concat([outside, inside]).dropna(subset="effect_size")
    sizes = sizes.assign(effect_size=sizes["effect_size"].abs())
    return sizes.groupby("source", as_index=False).agg(
        mean_absolute_effect=("effect_size", "mean"), cells=("effect_size", "size")
    )


def taxonomy_counts() -> pandas.DataFrame:
    """Return the number of entries by type of bias (B1, B2)."""
    sizes = table("hamidieh2023", 2).groupby("bias_type", sort=False).size()
    return sizes.rename("entries").reset_index()


def taxonomy_size() -> dict[str, int]:
    """Return the taxonomy's size and the subsets of types that make the text's number (B1)."""
    words, counts = table("hamidieh2023", 2), taxonomy_counts()["entries"].tolist()
    sets = [set(group["word"]) for _, group in words.groupby("bias_type")]
    distinct = sum(
        len(set().union(*chosen)) == PRINTED_WORDS
        for size in range(1, len(sets) + 1)
        for chosen in itertools.combinations(sets, size)
    )
    return {
        "entries": len(words),
        "distinct": words["word"].nunique(),
        "types": len(counts),
        "subsets_entries": subsets_with_sum(counts, PRINTED_WORDS),
        "subsets_distinct": distinct,
    }


def words_in_two_types() -> dict[str, list[str]]:
    """Return the words that the taxonomy lists under two types (B1)."""
    types = table("hamidieh2023", 2).groupby("word")["bias_type"].agg(list)
    return types[types.str.len() > 1].to_dict()


def alphabetical_breaks(bias_type: str) -> list[str]:
    """Return the words of a type that come before their predecessor in the alphabet (B1)."""
    words = table("hamidieh2023", 2).query("bias_type == @bias_type")["word"].tolist()
    pairs = itertools.pairwise(words)
    return [after for before, after in pairs if after.lower() < before.lower()]


def repeated_tables() -> pandas.DataFrame:
    """Return the pairs of small and full tables with the share of cells printed alike (B4)."""
    cells = repeated_cells()
    cells["alike"] = cells["casc_small"] == cells["casc_full"]
    found = cells.groupby(["table_small", "table_full"])["alike"].agg(["sum", "size"])
    found = found.reset_index().set_axis(["small", "full", "alike", "repeated"], axis=1)
    found["cells"] = [len(table("hamidieh2023", number)) for number in found["small"]]
    return found


def words_outside_taxonomy() -> dict[int, list[str]]:
    """Return, by table, the words that the taxonomy does not list anywhere (B2, B6)."""
    casc = casc_tables()
    outside = casc[~casc["word"].isin(table("hamidieh2023", 2)["word"])]
    words = outside.groupby("table")["word"].agg(lambda s: list(dict.fromkeys(s)))
    return {int(number): listed for number, listed in words.items()}


def category_conflicts() -> pandas.DataFrame:
    """Return words of one group with different values under two categories (B7)."""
    full = pandas.concat([table("hamidieh2023", number) for number in (11, 12, *range(13, 19))])
    full = full.drop_duplicates(CELL)
    pairs = full.merge(full, on=["group", "word"], suffixes=("_first", "_second"))
    pairs = pairs[pairs["table_first"] < pairs["table_second"]]
    columns = ["word", "group", "table_first", "casc_first", "table_second", "casc_second"]
    return pairs[pairs["casc_first"] != pairs["casc_second"]][columns].reset_index(drop=True)


def gendered_occupations() -> list[str]:
    """Return the words of Table 4 that name a gender: on -man, or with a form on -ess (B10)."""
    known = set(table("hamidieh2023", 2)["word"])
    words = table("hamidieh2023", 4)["word"]
    feminine = [word.removesuffix("er").removesuffix("or") + "ress" for word in words]
    return [
        word
        for word, other in zip(words, feminine, strict=True)
        if word.endswith(("man", "woman")) or other in known
    ]


def pronoun_order_breaks() -> list[str]:
    """Return the words of Table 1 that break its rising order of men's pronouns (B10)."""
    rows = table("hamidieh2023", 1)
    return rows["word"][rows["male"] > rows["male"].shift(-1)].tolist()


def coverage() -> pandas.DataFrame:
    """Return, by type of the taxonomy, its tables by gender and by race (B11)."""
    casc = casc_tables()

    def numbers(bias_type, facet):
        found = casc.query("category == @bias_type and facet == @facet")["table"]
        return ", ".join(str(each) for each in sorted(set(found)))

    types = taxonomy_counts()["bias_type"]
    return pandas.DataFrame(
        [
            {"bias_type": t, "gender": numbers(t, "gender"), "race": numbers(t, "race")}
            for t in types
        ]
    )


def weighted_overall(model: str, sizes: dict[str, int]) -> dict[str, float]:
    """Return a model's overall scores if Table 4 were weighted by these sizes (C1)."""
    cells = printed_scores(4).query("model == @model")
    weights = cells["category"].map(sizes)
    sums = (cells["value"] * weights).groupby(cells["metric"]).sum() / sum(sizes.values())
    return {metric: round(float(sums[metric]), 2) for metric in METRICS}


def harmonic_mean(vlrs: pandas.Series, vlbs: pandas.Series) -> pandas.Series:
    """Return ivlas, ``2 vlrs (100 - vlbs) / (vlrs + 100 - vlbs)``, in percent."""
    return 2 * vlrs * (100 - vlbs) / (vlrs + 100 - vlbs)


def category_order() -> pandas.DataFrame:
    """Return each model's vlbs by category, the highest category, and gender's lead (C5)."""
    rows = table("zhou2022", 4).query("metric == 'vlbs'")
    wide = rows.pivot(index="model", columns="category", values="value")
    others = wide.drop(columns="gender").max(axis=1)
    return wide.assign(highest=wide.idxmax(axis=1), gender_lead=(wide["gender"] - others).round(2))


def below_random() -> list[str]:
    """Return the models whose overall vlbs is below the random model's (C4)."""
    rows = table("zhou2022", 3).query("metric == 'vlbs'").set_index("model")["value"]
    return [each for each in sorted(table("zhou2022", 2)["model"]) if rows[each] < rows["RAM"]]


def entity_against_image() -> pandas.DataFrame:
    """Return, by image of Table 3, the probability of the right and the wrong entity (D2)."""
    rows = table("srinivasan2021", 3)
    named = rows.assign(is_shown=rows["mark"].map({"✓": "right", "✗": "wrong"}))
    wide = named.pivot(index="image", columns="is_shown", values="probability")
    wide = wide.assign(ratio=wide["wrong"] / wide["right"])
    return wide.reset_index().rename_axis(columns=None)


def article_slips() -> list[str]:
    """Return the captions in which the template's article does not fit the entity (D3)."""
    rows = table("srinivasan2021", 2)
    filled = [
        f"{template.removeprefix('The [AGENT] is ').removesuffix(' E .')} {entity}"
        for template, entity in zip(rows["template"], rows["entity"], strict=True)
    ]
    return [text for text in filled if " a " in text and text.split(" a ")[1][0] in "aeiou"]
