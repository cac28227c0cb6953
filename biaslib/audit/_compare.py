"""Two models on the same stimuli: the interval of the difference, not two intervals."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas

from biaslib import inference, runtime
from biaslib.audit import _parts as parts
from biaslib.audit import nulls
from biaslib.audit._folder import OwnFolder
from biaslib.audit._run import Audit
from biaslib.studies import study4_captions as selection

__all__ = ["compare"]

ENDS = ["value", "low", "high", "p_value", "p_least"]
COLUMNS = ["study", "measured", "first", "second", *ENDS, "n", "of", "stays the same"]

FIXED = {
    "masked words, caption alone": "these sentences",
    "masked words, with images": "these sentences and pictures",
}
"""By part of study 2: what its entities were seen in, of which no other ones are drawn."""


def compare(first: Audit, second: Audit, store: runtime.Store | None = None) -> pandas.DataFrame:
    r"""Compare two audited models word by word, person by person, and picture by picture.

    Of everything that both models scored, the difference is taken first. In study 3, with
    :math:`z_1` and :math:`z_2` the models' similarities in standard deviations of each word, it is

    .. math:: \Delta = \operatorname{mean}_{i \in g} t_i - \operatorname{mean}_{i \notin g} t_i,
              \quad t_i = \operatorname{mean}_{w \in W_1} (z_1 - z_2)_{wi}
                         - \operatorname{mean}_{w \in W_2} (z_1 - z_2)_{wi}

    and it is judged as that of one model is, by words *and* people
    (:func:`biaslib.audit.nulls.portrait_contrast`). Study 2 draws entities anew and holds the
    sentences and pictures that they are seen in, study 4 draws triplets of captions with their
    pictures. Effect sizes of study 1 are divided by each model's own spread, and are not compared.

    Parameters
    ----------
    first, second
        Audits on the same stimuli. A part that one of the models cannot do is left out.
    store
        Of the models' answers.

    Returns
    -------
    pandas.DataFrame
        *study*, *measured*, *first* and *second* (the models' own values), *value* (first less
        second), *low*, *high*, *p_value*, *p_least* and *p_holm* (over all rows), *n*, *of* (what n
        counts), *stays the same* (of what no other ones are drawn).

    Raises
    ------
    ValueError
        If pictures, people or labels differ, one audit lacks a part that the other one has and its
        model can do, or no part was run with both; the message names what, and what to do.
    """
    _require_same_stimuli(first, second)
    _require_same_parts(first, second)
    rows = [
        *_entities(first, second),
        *_portraits(first, second, store),
        *_captions(first, second, store),
    ]
    if not rows:
        ran = " and ".join(
            f"{each.audited.name} ({', '.join(each.scores['part'].unique()) or 'nothing'})"
            for each in (first, second)
        )
        raise ValueError(f"{ran} have no part in common that is compared")
    table = pandas.DataFrame(rows)[COLUMNS]
    return table.assign(p_holm=inference.adjust(np.minimum(table["p_value"], 1.0), "holm"))


def _require_same_stimuli(first: Audit, second: Audit) -> None:
    """Compare the tables and pictures themselves: a folder keeps its name when they change."""
    stimuli = [
        audit.profile if audit.folder is None else _labelled_pictures(audit.folder)
        for audit in (first, second)
    ]
    if stimuli[0] != stimuli[1]:
        names = [audit.folder.name if audit.folder else audit.profile for audit in (first, second)]
        raise ValueError(
            f"the audits have other stimuli: pictures or labels of {names[0]!r} and of "
            f"{names[1]!r} differ. Run both on one folder, or both on the same data, and compare "
            "these"
        )


def _labelled_pictures(folder: OwnFolder) -> dict[tuple[str, str], str]:
    """Return each picture's labels, by the picture's hash and the name of the column."""
    table = folder.people.set_axis(list(folder.pictures.ids))
    return table.drop(columns="file").stack().to_dict()


def _require_same_parts(first: Audit, second: Audit) -> None:
    """Refuse a part that one audit ran and the other one did not, though its model can do it."""
    for has, lacks in ((first, second), (second, first)):
        left = lacks.not_run[lacks.not_run["kind"] != "not possible"]
        for part, reason in zip(left["part"], left["reason"], strict=True):
            if part in set(has.scores["part"]):
                raise ValueError(
                    f"the audit of {has.audited.name} has the part {part!r}, that of "
                    f"{lacks.audited.name} has not ({reason}): run both with the same parts"
                )


def _entities(first: Audit, second: Audit) -> Iterator[dict[str, Any]]:
    tables = [audit.scores[audit.scores["statistic"] == "B"] for audit in (first, second)]
    if any(table.empty for table in tables):
        return
    keys = ["part", "test", "level", "stereotype"]
    table = tables[0].merge(tables[1][[*keys, "value"]], on=keys, suffixes=("", "_second"))
    table = table[table["stereotype"].isin(["women", "men"])]
    for (part, level), rows in table.groupby(["part", "level"], sort=False):
        side = rows["stereotype"] == "women"
        apart = rows["value"] - rows["value_second"]
        means = [rows.loc[each, ["value", "value_second"]].mean() for each in (side, ~side)]
        yield {
            "study": "srinivasan2021",
            "measured": f"B of entities expected of women against those of men ({level})",
            **dict(zip(("first", "second"), means[0] - means[1], strict=True)),
            **nulls.contrast(apart[side], apart[~side]),
            "of": "entities",
            "stays the same": FIXED[part],
        }


def _portraits(
    first: Audit, second: Audit, store: runtime.Store | None
) -> Iterator[dict[str, Any]]:
    """Compare by cosine, or by matching: only where both were asked in the same way."""
    heads = {"portraits by word": "contrastive", "portraits by word, matching": "matching"}
    for part, head in heads.items():
        if not all((audit.scores["part"] == part).any() for audit in (first, second)):
            continue
        setting, z = parts.Setting(first.profile, store, first.folder), []
        for audit in (first, second):
            given, table, scores = parts.shown_portraits(audit.audited, setting, head)
            listed = (table["use"] == "list").to_numpy()
            z.append(nulls.standardised(scores[listed]))
        for facet, members in given.groups.items():
            for group in parts.asked_groups(members):
                inside = members[group].to_numpy(bool)
                fixed = {"stays the same": "the sentence around each word"}
                labels = {"study": "hamidieh2023"} | fixed
                for name, row in differences(*z, table[listed], inside, given.units).items():
                    of = f"words, and {row['n_units']} {given.unit_name}"
                    yield labels | row | {"measured": f"{facet}, {group}: {name}", "of": of}


def differences(
    first: np.ndarray,
    second: np.ndarray,
    table: pandas.DataFrame,
    inside: np.ndarray,
    units: np.ndarray,
    n_resamples: int = nulls.RESAMPLES,
) -> dict[str, dict[str, Any]]:
    """Return the contrast of pairs of word lists, of two models' z of listed words."""
    found = {}
    models = [parts.word_sides(z, table) for z in (first, second)]
    for name, lists in parts.word_sides(first - second, table).items():
        means = [[nulls.group_apart(z, inside).mean() for z in each[name]] for each in models]
        own = {label: a - b for label, (a, b) in zip(("first", "second"), means, strict=True)}
        found[name] = own | nulls.portrait_contrast(*lists, inside, units, n_resamples)
    return found


def _captions(first: Audit, second: Audit, store: runtime.Store | None) -> Iterator[dict[str, Any]]:
    models = {f"{at}: {audit.audited.name}": audit for at, audit in enumerate((first, second))}
    heads = {"matching": "captions by matching logit", "contrastive": "captions by cosine"}
    for head, part in heads.items():
        if not all((audit.scores["part"] == part).any() for audit in models.values()):
            continue
        ways = [selection.ModelHead(label, head, True, label, label) for label in models]
        given = selection.inputs(first.profile, size="full")
        given = given.part(selection.selected(given))
        result = selection.run(ways, given, lambda way: models[way.model].audited.model, store)
        scores = selection.selection_scores(result, n_resamples=0)
        overall = scores[(scores["test"] == "overall") & (scores["statistic"] == "vlbs")]
        (row,) = selection.paired_tests(result, "vlbs").to_dict("records")
        vlbs_first, vlbs_second = overall["value"]
        yield {
            "study": "zhou2022",
            "measured": f"vlbs, {part}",
            "first": vlbs_first,
            "second": vlbs_second,
            "value": row["difference"],
            "low": row["low"],
            "high": row["high"],
            "p_value": row["p_high"],
            "p_least": nulls.least_of_signs(row["triplets"]),
            "n": row["n"],
            "of": f"images of {row['triplets']} triplets of captions",
            "stays the same": "–",
        }
