"""Of the same text, SQL and what ran mean the same: the truth of the cases is held against the SQL extractor, too."""

from __future__ import annotations

import pytest
from lake_cases import CHANGES, DELETE_IN, UPDATE_IN, WRITES
from lake_formats import in_sql

COMPARED = [case for case in (*CHANGES, UPDATE_IN, DELETE_IN, *WRITES) if case.same_in_sql and case.edges]


@pytest.mark.parametrize("case", COMPARED, ids=lambda case: case.text[:60])
def test_sql_text_says_the_same(case):
    assert in_sql(case) == frozenset(case.edges)
