"""Two models on the same stimuli: the interval of the difference, not two intervals."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas

from biaslib import inference, runtime
from biaslib.audit import _nulls as nulls
from biaslib.audit._run import Audit
from biaslib.studies import study4_captions as selection

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
    names = [audit.folder.name if audit.folder else audit.profile for audit in (first, second)]
    if names[0] != names[1]:
        raise ValueError(f"the audits have other stimuli, {names[0]} and {names[1]}: run them anew")
    rows = [*_entities(first, second), *_words(first, second), *_captions(first, second, store)]
    if not rows:
        both = f"{first.audited.name} and {second.audited.name}"
        raise ValueError(f"{both} have no part in common that is compared")
    table = pandas.DataFrame(rows)[list(COLUMNS)]
    return table.assign(p_holm=inference.adjust(np.minimum(table["p_value"], 1.0), "holm"))


def _paired(first: Audit, second: Audit, statistic: str, keys: list[str]) -> pandas.DataFrame:
    """Return the rows of a statistic that both audits have, with both values."""
    tables = [audit.scores[audit.scores["statistic"] == statistic] for audit in (first, second)]
    if any(table.empty for table in tables):
        return pandas.DataFrame()
    return tables[0].merge(tables[1][[*keys, "value"]], on=keys, suffixes=("", "_second"))


def _differences(table: pandas.DataFrame, side: pandas.Series) -> dict[str, Any]:
    """Return the contrast of two sides, of each model and of their difference."""
    apart = table["value"] - table["value_second"]
    means = [table.loc[rows, ["value", "value_second"]].mean() for rows in (side, ~side)]
    of_models = dict(zip(("first", "second"), means[0] - means[1], strict=True))
    return nulls.contrast(apart[side], apart[~side]) | of_models


def _entities(first: Audit, second: Audit) -> Iterator[dict[str, Any]]:
    table = _paired(first, second, "B", ["part", "test", "level", "stereotype"])
    if table.empty:
        return
    table = table[table["stereotype"].isin(["women", "men"])]
    for level, part in table.groupby("level", sort=False):
        what = f"B of entities expected of women against those of men ({level})"
        labels = {"study": "srinivasan2021", "measured": what, "of": "entities"}
        yield labels | _differences(part, part["stereotype"] == "women")


def _words(first: Audit, second: Audit) -> Iterator[dict[str, Any]]:
    """Compare by cosine, or by matching: only where both were asked in the same way."""
    keys = ["part", "test", "level", "group", "bias_type", "kind"]
    table = _paired(first, second, "c_asc of a listed word", keys)
    if table.empty:
        return
    for (facet, group, name), part in table.groupby(["level", "group", "bias_type"], sort=False):
        labels = {"study": "hamidieh2023", "measured": f"{facet}, {group}: {name}", "of": "words"}
        yield labels | _differences(part, part["kind"] == "0")


def _captions(first: Audit, second: Audit, store: runtime.Store | None) -> Iterator[dict[str, Any]]:
    models = {f"{at}: {audit.audited.name}": audit for at, audit in enumerate((first, second))}
    parts = {"matching": "captions by matching logit", "contrastive": "captions by cosine"}
    for head, part in parts.items():
        if not all((audit.scores["part"] == part).any() for audit in models.values()):
            continue
        ways = [selection.ModelHead(label, head, True, label, label) for label in models]
        given, load = selection.inputs(first.profile), lambda way: models[way.model].audited.model
        result = selection.run(ways, given, load, store)
        scores = selection.selection_scores(result, n_resamples=0)
        overall = scores[(scores["test"] == "overall") & (scores["statistic"] == "vlbs")]
        (row,) = selection.paired_tests(result, "vlbs").to_dict("records")
        yield {
            **{"study": "zhou2022", "measured": f"vlbs, {part}", "of": "images"},
            **dict(zip(("first", "second"), overall["value"], strict=True)),
            **{name: row[name] for name in ("low", "high", "n")},
            **{"value": row["difference"], "p_value": row["p_high"]},
        }
