"""Traces of random plans are those of the reference: back, against and forward."""

from __future__ import annotations

import pytest
from differential import run


@pytest.mark.parametrize("first", range(0, 320, 40))
def test_traces_are_those_of_the_reference(first):
    report = run(range(first, first + 40))
    assert report.wrong == []
    assert report.cases == 40
    assert report.traces > report.supersets
