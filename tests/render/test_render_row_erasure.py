"""The cost of an erasure plan, in words."""

from __future__ import annotations

import pytest

from govtool.answers.row_erasure import DatasetErasure, RowErasureAnswer
from govtool.render.row_erasure import _rows_to_read


def plan(*rows):
    datasets = tuple(DatasetErasure(f"d{at}", recompute=True, rows_scanned=each) for at, each in enumerate(rows))
    return RowErasureAnswer(None, ("users.id=1",), (), "r", False, {}, datasets, (), (), ())


@pytest.mark.parametrize(
    ("rows", "words"),
    [((2, 3), "5 rows, "), ((2, None), "at least 2 rows, "), ((None,), ""), ((1,), "1 row, "), ((), "0 rows, ")],
)
def test_rows_to_read_are_a_lower_bound_where_files_do_not_say_how_many_they_hold(rows, words):
    assert _rows_to_read(plan(*rows)) == words
