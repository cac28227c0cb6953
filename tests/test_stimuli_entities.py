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


@pytest.mark.parametrize("row", list(stimuli.entities().itertuples()), ids=lambda row: row.entity)
def test_the_article_fits_the_entity(row):
    sentence = row.frame.format(agent="person", entity=row.entity)
    assert re.fullmatch(r"The person is \w+ing (an? )?[a-z]+\.", sentence)
    article = re.search(r"\b(an?) " + row.entity, sentence)
    assert article is None or article[1] == indefinite_article(row.entity)


def test_a_list_of_ones_own_is_read_as_a_person_sees_it(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(
        "sep=,\nentity ,frame\nkettle\u200b, The {agent} is holding a {entity}.\n",
        encoding="utf-8-sig",
    )
    found = stimuli.own_entities(path)
    assert found["entity"].tolist() == ["kettle"]
    assert found["frame"].tolist() == ["The {agent} is holding a {entity}."]
