"""How what a source says is spread over fragments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from govtool.model.spread import buckets_for, number_of


@pytest.mark.parametrize(("size", "wanted"), [(0, 1), (1, 1), (512, 1), (513, 2), (1025, 4), (2048, 4), (2049, 8)])
def test_as_many_fragments_as_a_power_of_two(size, wanted):
    assert buckets_for(size, 512) == wanted


@given(st.integers(0, 10**9), st.integers(1, 10**6))
def test_there_is_room_for_all_and_half_as_many_fragments_have_none(size, target):
    buckets = buckets_for(size, target)
    assert buckets & (buckets - 1) == 0
    assert buckets * target >= size
    assert buckets == 1 or buckets // 2 * target < size


def test_a_name_has_the_same_number_everywhere():
    # What is stored depends on it: another number, and every fragment of every source is written anew.
    assert number_of("etl/users.sql") == 856522657
    assert number_of("\udcff") != number_of("?")
