"""Traces around breaks have what the reference has: exactly, where they are called exact."""

from __future__ import annotations

import pytest
from broken_plans import run


@pytest.mark.parametrize("seeds", [range(25), (46, 1064, 1090, 1155, 1177, 1192)])
def test_traces_around_breaks_contain_those_of_the_reference(seeds):
    """``python tests/records/trace/broken_plans.py 1000`` checks more; the second are cases that were wrong once."""
    total = run(seeds)
    assert total.wrong == []
    assert total.grades["superset"]
    assert total.grades["exact"] or total.grades["coarse"]


def test_rows_of_other_inputs_are_not_missed_where_one_is_not_known():
    """``python tests/records/trace/broken_plans.py 1000 --inputs`` checks more; the last is a case that was wrong once."""
    total = run([*range(20), 9100019], inputs=True)
    assert total.wrong == []
    assert total.grades["incomplete"]
