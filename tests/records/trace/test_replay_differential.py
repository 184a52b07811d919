"""Replays of random plans are the reference's evaluation without the rows that are left out."""

from __future__ import annotations

import pytest
from depth import LONG
from replays import run


@pytest.mark.parametrize("first", range(0, 160 if LONG else 80, 40))
def test_replays_are_those_of_the_reference(first):
    report = run(range(first, first + 40))
    assert report.wrong == []
    assert report.cases == 40
    assert report.narrowed > 3
    assert report.different > 5


def test_replays_over_files_are_those_of_the_reference(tmp_path):
    report = run(range(1000, 1030), tmp_path)
    assert report.wrong == []
    assert report.skipped < 10
