"""The permutation test on a real encoder: sixty p-values, exact or of a known error."""

from pathlib import Path

import numpy as np
import pandas
import pytest

from biaslib import inference, stimuli
from biaslib.runtime import Store
from biaslib.studies import text_encoders

PINNED = Path(__file__).parent / "golden" / "encoder_p_values.csv"

pytestmark = pytest.mark.slow


def scores_of(embedded, units):
    return embedded.word_scores() if units == "words" else embedded.split(embedded.scores)


def test_p_values_and_decisions_of_a_real_encoder(encoder):
    pinned = pandas.read_csv(PINNED)
    names = stimuli.association_tests()["name"].tolist()
    found = []
    for level in ("word", "sentence"):
        embedded = text_encoders.embed_tests(encoder, names, level, store=Store())
        by_name = {each.name: each for each in embedded}
        of_level = pinned[pinned["level"] == level]
        found += [
            inference.permutation_test(*scores_of(by_name[row.test], row.units)).p_value
            for row in of_level.itertuples()
        ]
    expected = pinned["p_value"].to_numpy()
    assert len(found) == 60
    # Embeddings differ between machines in their seventh digit.
    often = expected > 1e-4
    np.testing.assert_allclose(np.array(found)[often], expected[often], rtol=0.01)
    np.testing.assert_allclose(np.log(found), np.log(expected), rtol=0.01, atol=0.15)
    assert ((np.array(found) < 0.05) == (expected < 0.05)).all()
