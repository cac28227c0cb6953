"""Word lists and sentence templates of the tests and audits, with the source of every list.

The tests are WEAT 1 to 10 of Caliskan et al. (2017) and the 13 tests of study 1 (Ross et al.,
2021). The lists are data files in ``data/``: ``words.csv`` (the words of each set, with their
grammatical kind), ``sets.csv`` (what a set holds, and its source), ``tests.json`` (which sets a
test compares) and ``templates.json`` (our sentences). To add a test, add rows;
``tests/test_stimuli.py`` checks them.

The taxonomy SO-B-IT of study 3 (Hamidieh et al., 2023) is :func:`taxonomy`; its words are those of
:mod:`biaslib.published`, their kinds our own, row by row in ``taxonomy_kinds.csv``.

.. warning:: Content note. The lists repeat stereotypes about women, Black people, old people and
   people with mental illness, and words for violence and death, because the tests measure whether
   a model associates them. They describe the stereotype and not the people. The taxonomy adds
   slurs, and words for crime, poverty, illness and religion.

>>> test = association_test("C6")
>>> test.title
'Names of men and women; career and family'
>>> test.X[:2], test.B[:2]
(('John', 'Paul'), ('home', 'parents'))
>>> association_test("C6", level="sentence").X[0]
'Someone mentioned John.'
"""

from biaslib.stimuli._association import (
    LEVELS,
    AssociationTest,
    all_words,
    association_test,
    association_tests,
)
from biaslib.stimuli._data import data_checksum, word_frame
from biaslib.stimuli._entities import entities, own_entities
from biaslib.stimuli._seat import seat_test
from biaslib.stimuli._sentences import frames, indefinite_article, phrases, sentences, templates
from biaslib.stimuli._taxonomy import (
    CAPTION_TEMPLATES,
    GENDERED_OCCUPATIONS,
    TAXONOMIES,
    caption,
    innocent_things,
    printed_outside,
    taxonomy,
    taxonomy_kinds,
)

__all__ = [
    "CAPTION_TEMPLATES",
    "GENDERED_OCCUPATIONS",
    "LEVELS",
    "TAXONOMIES",
    "AssociationTest",
    "all_words",
    "association_test",
    "association_tests",
    "caption",
    "data_checksum",
    "entities",
    "frames",
    "indefinite_article",
    "innocent_things",
    "own_entities",
    "phrases",
    "printed_outside",
    "seat_test",
    "sentences",
    "taxonomy",
    "taxonomy_kinds",
    "templates",
    "word_frame",
]
