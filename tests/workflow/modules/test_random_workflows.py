"""A few of the random workflows of ``random_workflows.py``, which compares as many as are wanted."""

from __future__ import annotations

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

from random_workflows import run


@pytest.mark.parametrize("seed", [0, 1, 3, 4])  # 3: a comparison with a COUNT that is over nothing afterwards
def test_answers_are_those_of_the_reference(seed):
    wrong, _, cases = run(range(seed, seed + 1))
    assert (wrong, cases) == ([], 1)
