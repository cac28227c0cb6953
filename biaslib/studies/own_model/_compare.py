"""Two models on the same stimuli: the interval of the difference, not two intervals."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas

from biaslib import inference, runtime
from biaslib.models.capabilities import ENCODE, MATCH
from biaslib.studies import study4_captions as selection
from biaslib.studies.own_model import _nulls as nulls
from biaslib.studies.own_model._audit import Audit

__all__ = ["compare"]

COLUMNS = ("study", "measured", "first", "second", "value", "low", "high", "p_value", "n", "of")


def compare(first: Audit, second: Audit, store: runtime.Store | None = None) -> pandas.DataFrame:
    r"""Compare two audited models word by word, entity by entity and picture by picture.

    Of every word that both models scored, the difference is taken first; an interval then draws
    words anew, the same for both models:

    .. math:: \Delta = \operatorname{mean}_{w \in W_1} \bigl( s_1(w) - s_2(w) \bigr)
                       - \operatorname{mean}_{w \in W_2} \bigl( s_1(w) - s_2(w) \bigr)

    Study 4 draws triplets of captions anew. Effect sizes of study 1 are divided by each model's own
    spread, and are not compared.

    Parameters
    ----------
    first, second
        Audits on the same stimuli.
    store
        Of the models' answers.

    Returns
    -------
    pandas.DataFrame
        *study*, *measured*, *first* and *second* (the models' own values), *value* (first less
        second), *low*, *high*, *p_value* and *p_holm* (over all rows), *n*, *of* (what n counts).

    Raises
    ------
    ValueError
        If the stimuli differ, or no part was run with both models.
    """
    names = [each.folder.name if each.folder else each.profile for each in (first, second)]
    if names[0] != names[1]:
        raise ValueError(f"the audits have other stimuli, {names[0]} and {names[1]}: run them anew")
    rows = [*_entities(first, second), *_words(first, second), *_captions(first, second, store)]
    if not rows:
        raise ValueError(
            f"{first.own.given} and {second.own.given} have no part in common that is compared"
        )
    table = pandas.DataFrame(rows)[list(COLUMNS)]
    return table.assign(p_holm=inference.adjust(np.minimum(table["p_value"], 1.0), "holm"))


def _paired(first: Audit, second: Audit, statistic: str, keys: list[str]) -> pandas.DataFrame:
    """Return the rows of a statistic that both audits have, with both values."""
    tables = [each.scores[each.scores["statistic"] == statistic] for each in (first, second)]
    if any(each.empty for each in tables):
        return pandas.DataFrame()
    wanted = [*keys, "value"]
    return tables[0].merge(tables[1][wanted], on=keys, suffixes=("", "_second"))


def _differences(table: pandas.DataFrame, side: pandas.Series) -> dict[str, Any]:
    """Return the contrast of two sides, of each model and of their difference."""
    apart = table["value"] - table["value_second"]
    found = nulls.contrast(apart[side], apart[~side])
    each = {
        name: table.loc[side, column].mean() - table.loc[~side, column].mean()
        for name, column in (("first", "value"), ("second", "value_second"))
    }
    return {**found, **each}


def _entities(first: Audit, second: Audit) -> Iterator[dict[str, Any]]:
    table = _paired(first, second, "B", ["part", "test", "level", "stereotype"])
    if table.empty:
        return
    table = table[table["stereotype"].isin(["women", "men"])]
    for level, part in table.groupby("level", sort=False):
        found = _differences(part, part["stereotype"] == "women")
        what = f"B of entities expected of women against those of men ({level})"
        yield {"study": "srinivasan2021", "measured": what, "of": "entities", **found}


def _words(first: Audit, second: Audit) -> Iterator[dict[str, Any]]:
    """Compare by cosine, or by matching: only where both were asked in the same way."""
    keys = ["part", "test", "level", "group", "bias_type", "kind"]
    table = _paired(first, second, "c_asc of a listed word", keys)
    if table.empty:
        return
    for (facet, group, name), part in table.groupby(["level", "group", "bias_type"], sort=False):
        found = _differences(part, part["kind"] == "0")
        what = f"{facet}, {group}: {name}"
        yield {"study": "hamidieh2023", "measured": what, "of": "words", **found}


def _captions(first: Audit, second: Audit, store: runtime.Store | None) -> Iterator[dict[str, Any]]:
    heads = {"matching": MATCH, "contrastive": ENCODE}
    for head, part in zip(heads, ("captions by matching logit", "captions by cosine"), strict=True):
        if not all((each.scores["part"] == part).any() for each in (first, second)):
            continue
        owns = {f"{at}: {each.own.given}": each.own for at, each in enumerate((first, second))}
        ways = [
            selection.ModelHead(label, head, True, own.registered, own.registered)
            for label, own in owns.items()
        ]
        given = selection.inputs(first.profile)
        found = selection.run(ways, given, lambda way: owns[way.model].model, store)  # noqa: B023
        scores = selection.selection_scores(found, n_resamples=0)
        overall = scores[(scores["test"] == "overall") & (scores["statistic"] == "vlbs")]
        values = dict(zip(("first", "second"), overall["value"], strict=True))
        (row,) = selection.paired_tests(found, "vlbs").to_dict("records")
        bounds = {"p_value": row["p_high"], **{name: row[name] for name in ("low", "high", "n")}}
        what = {"measured": f"vlbs, {part}", "value": row["difference"], "of": "images"}
        yield {"study": "zhou2022", **what, **values, **bounds}
