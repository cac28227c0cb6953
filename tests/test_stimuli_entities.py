"""Entities of the masked-word study."""

import re

import pytest

from biaslib import published, stimuli
from biaslib.stimuli._sentences import indefinite_article


def test_the_case_study_is_the_papers():
    printed = published.table("srinivasan2021", 2).set_index("entity")["template"]
    ours = stimuli.entities().query("set == 'case study'")
    assert ours["entity"].tolist() == printed.index.tolist()
    for entity, verb in zip(ours["entity"], ours["verb"], strict=True):
        assert f" {verb} " in printed[entity]
    assert ours["source"].unique().tolist() == ["Srinivasan and Bisk 2021, Table 2"]


def test_forty_of_ours_are_balanced_within_every_verb():
    ours = stimuli.entities().query("set == 'gendered'")
    assert len(ours) == 40
    assert (ours["source"] == "ours").all()
    counts = ours.groupby("verb")["stereotype"].value_counts().unstack()
    assert (counts["women"] == counts["men"]).all()


def test_entities_are_single_words_and_stand_once():
    words = stimuli.entities()["entity"]
    assert words.is_unique
    assert set(stimuli.entities()["stereotype"]) == {"women", "men"}
    assert words.str.fullmatch("[a-z]+").all()


@pytest.mark.parametrize("row", list(stimuli.entities().itertuples()), ids=lambda row: row.entity)
def test_the_article_fits_the_entity(row):
    sentence = row.frame.format(agent="person", entity=row.entity)
    assert re.fullmatch(r"The person is \w+ing (an? )?[a-z]+\.", sentence)
    article = re.search(r"\b(an?) " + row.entity, sentence)
    assert article is None or article[1] == indefinite_article(row.entity)


@pytest.mark.parametrize(
    ("stereotypes", "told"),
    [
        (["people"], "'cat' the stereotype 'people'; write one of women, men"),
        (["men", "men"], "mine.csv holds the entity 'cat' twice; keep one of the rows"),
    ],
)
def test_an_unknown_stereotype_or_an_entity_twice_is_refused(tmp_path, stereotypes, told):
    lines = [f"cat,The {{agent}} is holding a {{entity}}.,{each}" for each in stereotypes]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["entity,frame,stereotype", *lines]))
    with pytest.raises(ValueError, match=told):
        stimuli.own_entities(path)


def test_a_list_of_ones_own_is_read_as_a_person_sees_it(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(
        "sep=,\nentity ,frame\nkettle\u200b, The {agent} is holding a {entity}.\n",
        encoding="utf-8-sig",
    )
    found = stimuli.own_entities(path)
    assert found["entity"].tolist() == ["kettle"]
    assert found["frame"].tolist() == ["The {agent} is holding a {entity}."]
    path.write_text("entity,frame\nkettle\n")
    with pytest.raises(ValueError, match="line 2") as caught:
        stimuli.own_entities(path)
    assert (caught.value.path, caught.value.row) == (path, 2)
