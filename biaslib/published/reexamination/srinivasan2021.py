"""The case study of VL-BERT (Srinivasan and Bisk 2021): Tables 2 and 3."""

import pandas

from biaslib.published._tables import table


def entity_against_image() -> pandas.DataFrame:
    """Return, by image of Table 3, the probability of the right and the wrong entity (D2).

    >>> entity_against_image()[["right", "wrong"]].values.tolist()
    [[0.0018, 0.4944], [0.067, 0.084]]
    """
    rows = table("srinivasan2021", 3)
    named = rows.assign(is_shown=rows["mark"].map({"✓": "right", "✗": "wrong"}))
    wide = named.pivot(index="image", columns="is_shown", values="probability")
    wide = wide.assign(ratio=wide["wrong"] / wide["right"])
    return wide.reset_index().rename_axis(columns=None)


def article_slips() -> list[str]:
    """Return the captions in which the template's article does not fit the entity (D3).

    >>> article_slips()
    ['wearing a apron']
    """
    rows = table("srinivasan2021", 2)
    filled = [
        f"{template.removeprefix('The [AGENT] is ').removesuffix(' E .')} {entity}"
        for template, entity in zip(rows["template"], rows["entity"], strict=True)
    ]
    return [text for text in filled if " a " in text and text.split(" a ")[1][0] in "aeiou"]
