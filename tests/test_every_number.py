"""Every number that is typed into a page is derived."""

import pytest
import test_typed_numbers
from support import typed, typed_values

VALUES = vars(typed_values) | {
    name: value for name, value in vars(test_typed_numbers).items() if not name.startswith("_")
}


def typed_words(page):
    return [
        test_typed_numbers.words_with(words, values)
        for words, values in test_typed_numbers.TYPED.get(page, [])
    ]


@pytest.mark.parametrize("page", typed.pages())
def test_every_typed_number_is_derived(page):
    assert typed.faults(page, typed.source(page), VALUES, typed_words(page)) == []


@pytest.mark.parametrize("page", typed.rows())
def test_rows_compute(page):
    assert typed.without_a_source(typed.rows()[page]) == []
