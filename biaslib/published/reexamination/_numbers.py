"""The computed numbers of each erratum, by name."""

from collections.abc import Callable

from biaslib.published._tables import table
from biaslib.published.reexamination import hamidieh2023 as casc
from biaslib.published.reexamination import ross2021 as grounded
from biaslib.published.reexamination import srinivasan2021 as vlbert
from biaslib.published.reexamination import zhou2022 as stereo
from biaslib.runtime import unknown_name


def _a1() -> dict:
    orders = grounded.column_orders().set_index("order")["conflicts"]
    return {
        "conflicts in Table 4's order": int(orders[", ".join(grounded.table4_order())]),
        "conflicts in the best order": int(orders.iloc[0]),
        "conflicts in the next best": int(orders.iloc[1]),
        "counts compared": len(grounded.column_order_conflicts(grounded.table4_order())),
    }


def _a2() -> dict:
    cells = grounded.identical_cells()
    return {
        "tests printed alike": ", ".join(grounded.identical_tests()),
        "their cells": int(cells["test"].isin(grounded.identical_tests()).sum()),
        "other cells printed alike": int((~cells["test"].isin(grounded.identical_tests())).sum()),
    }


def _a3() -> dict:
    rows = grounded.masking_distances().round(3).to_dict("records")
    return {
        f"{row['model']}, from Experiment {e}": row[f"experiment_{e}"]
        for row in rows
        for e in (1, 2)
    }


def _a4() -> dict:
    totals = grounded.significant_totals().groupby("experiment")["significant"].sum()
    return {
        "significant, Experiment 1": int(totals[1]),
        "significant, Experiment 2": int(totals[2]),
        "mean |d|, Experiment 1": round(grounded.mean_absolute_effect(3)[0], 3),
        "mean |d|, Experiment 2": round(grounded.mean_absolute_effect(4)[0], 3),
    }


def _a5() -> dict:
    totals, excess = grounded.image_totals(), grounded.image_excess()
    return {
        "images, Google": totals["google"],
        "images, COCO": totals["coco"],
        "images, Conceptual Captions": totals["conceptual_captions"],
        "images, all": totals["all"],
        "excess, Google": excess["google"],
        "excess, all": excess["all"],
    }


def _a6() -> dict:
    rows = grounded.not_divisible_by_four()
    return {"not divisible by 4": len(rows), "odd": int(rows["odd"].sum())}


def _a7() -> dict:
    return {
        "|d| of 1.9 or more": len(grounded.near_bound()),
        "of them VL-BERT": int((grounded.near_bound()["model"] == "VL-BERT").sum()),
        "masked tests alike for gender and race": len(grounded.repeated_masked_values()),
    }


def _a8() -> dict:
    rows = grounded.dashes()
    return {"dashes": int(rows["cells"].sum()), "groups of dashes": len(rows)}


def _a11() -> dict:
    rows = grounded.domain_strength().set_index("source")["mean_absolute_effect"].round(3)
    return {f"mean |d|, {name}": float(value) for name, value in rows.items()}


def _b1() -> dict:
    size = casc.taxonomy_size()
    return {"entries": size["entries"], "distinct words": size["distinct"]}


def _b3() -> dict:
    return {
        "repeated cells": len(casc.repeated_cells()),
        "that differ": len(casc.value_conflicts()),
        "order breaks": len(casc.order_breaks()),
        "ranked lists": casc.ranked_lists(),
    }


def _b4() -> dict:
    row = casc.repeated_tables().set_index("small").loc[10]
    return {"cells alike in Tables 10 and 12": int(row["alike"]), "cells": int(row["cells"])}


def _b5() -> dict:
    return {
        "words Table 8 skips": sum(
            len(each.split(", ")) for each in casc.list_differences(8)["skips"] if each
        ),
        "groups with another list in Table 9": int((casc.list_differences(9)["adds"] != "").sum()),
        "swapped neighbours": len(casc.swapped_ties()),
    }


def _b6() -> dict:
    outside = casc.words_outside_taxonomy()
    race = sum(len(words) for number, words in outside.items() if number > 6)
    return {"words of race tables outside": race, "words of Table 5 outside": len(outside[5])}


def _b10() -> dict:
    return {
        "gendered occupations": ", ".join(casc.gendered_occupations()),
        "order breaks of Table 1": ", ".join(casc.pronoun_order_breaks()),
    }


def _b11() -> dict:
    rows = casc.coverage()
    return {
        "types with no table": int(((rows["gender"] == "") & (rows["race"] == "")).sum()),
        "types with no gender table": int((rows["gender"] == "").sum()),
    }


def _c1() -> dict:
    best = stereo.category_assignments().iloc[0]
    printed = stereo.fitting_cells(stereo.printed_sizes())
    vilt_left_out = [each for each in table("zhou2022", 2)["model"] if each != "ViLT"]
    cells = stereo.fitting_cells(stereo.printed_sizes(), vilt_left_out)
    n = int((cells["category"] != "religion").sum())
    released = {f"{name}, from the file": n for name, n in stereo.released_sizes().items()}
    return {
        **released,
        "cells that fit the best assignment, ViLT and religion left out": (
            f"{best['fit_without_religion']} of {n}"
        ),
        "cells that do not fit as printed": f"{(~printed['fits']).sum()} of {len(printed)}",
    }


def _c2() -> dict:
    rows = stereo.overall_counts().query("model == 'ViLT'").set_index("metric")
    return {
        f"{metric}, {what}": int(rows.loc[metric, what])
        for metric in stereo.METRICS
        for what in ("count", "n")
    }


def _c3() -> dict:
    rows = stereo.ivlas_check()
    return {
        "checked": len(rows),
        "to the last digit": int(rows["to_the_digit"].sum()),
        "within rounding": int(rows["within_rounding"].sum()),
        "exact from counts": len(stereo.ivlas_from_counts()),
    }


def _c5() -> dict:
    rows = stereo.category_order().set_index("model")
    return {
        "gender highest, models": int((rows["highest"] == "gender").sum()),
        "gender's lead, CLIP": float(rows.loc["CLIP", "gender_lead"]),
        "gender's lead, FLAVA": float(rows.loc["FLAVA", "gender_lead"]),
    }


def _d2() -> dict:
    rows = vlbert.entity_against_image()
    return {"images": len(rows), "wrong entity ahead": int((rows["ratio"] > 1).sum())}


_NUMBERS: dict[str, Callable[[], dict]] = {
    **{"A1": _a1, "A2": _a2, "A3": _a3, "A4": _a4, "A5": _a5, "A6": _a6, "A7": _a7, "A8": _a8},
    **{"A9": dict, "A10": dict, "A11": _a11, "A12": dict},
    "B1": _b1,
    "B2": lambda: {"types": casc.taxonomy_size()["types"]},
    **{"B3": _b3, "B4": _b4, "B5": _b5, "B6": _b6},
    "B7": lambda: {"pairs with two values": len(casc.category_conflicts())},
    **{"B8": dict, "B9": dict, "B10": _b10, "B11": _b11},
    **{"C1": _c1, "C2": _c2, "C3": _c3},
    "C4": lambda: {"below random": ", ".join(stereo.below_random())},
    **{"C5": _c5, "C6": dict, "D1": dict, "D2": _d2},
    "D3": lambda: {"article does not fit": ", ".join(vlbert.article_slips())},
}


def computed(erratum: str) -> dict[str, float | int | str]:
    """Return the numbers of an erratum, computed from the tables; empty where it is about words.

    >>> computed("A4")["significant, Experiment 1"], computed("A4")["significant, Experiment 2"]
    (83, 84)
    """
    if erratum not in _NUMBERS:
        raise unknown_name("erratum", erratum, _NUMBERS)
    return _NUMBERS[erratum]()
