"""Texts as two arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from govtool.arrays.texts import Texts

lists = st.lists(st.text(max_size=8), max_size=30)


@given(lists)
def test_texts_are_what_they_were_made_of(values):
    texts = Texts.of(values)
    assert list(texts) == values
    assert [texts[number] for number in range(len(texts))] == values
    assert texts.take(np.arange(len(values))[::-1]) == values[::-1]


@given(lists, lists, st.text(max_size=8))
def test_joined_texts_are_found(first, second, extra):
    texts = Texts.joined([Texts.of(first), Texts.of(second)])
    values = first + second
    assert list(texts) == values
    wanted = {*first[:2], extra}
    assert texts.find(wanted).tolist() == [number for number, value in enumerate(values) if value in wanted]


def test_parts_of_arrow_arrays_are_taken_as_they_are():
    whole = pa.array(["a", "bb", "", "ccc"])
    assert list(Texts.of(whole.slice(1, 2))) == ["bb", ""]
    assert list(Texts.of(pa.chunked_array([whole, whole.slice(3)]))) == ["a", "bb", "", "ccc", "ccc"]
    with pytest.raises(ValueError, match="missing"):
        Texts.of(pa.array(["a", None]))


def test_few_of_many_are_taken_one_by_one():
    texts = Texts.of(str(number) for number in range(1000))
    assert texts.take(np.array([999, 0])) == ["999", "0"]


def test_half_of_a_surrogate_pair_is_refused():
    with pytest.raises(UnicodeEncodeError):
        Texts.of(["\ud800"])
