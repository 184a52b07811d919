"""Guards in DuckDB: a value on which it is not exact is found in whatever row it stands."""

from __future__ import annotations

import pytest

from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan.expressions import Attribute, Call, Case, Literal, Named
from govtool.records.plan.nodes import Project, Range, Session
from govtool.records.plan.types import BOOLEAN, LONG, STRING
from govtool.records.sql.dialect import NotExact


@pytest.mark.parametrize("method", ["fetch", "arrow", "keep"])
def test_a_guard_beyond_the_first_rows_that_are_read_refuses(method: str) -> None:
    number, rows = Attribute(1, "id", LONG), 200_000
    is_last = Call("=", (number, Literal(rows - 1, LONG)), BOOLEAN)
    text = Case(((is_last, Literal("é", STRING)),), Literal("e", STRING), STRING)
    plan = Project(Range(0, 0, rows, 1, number), (Named(Call("upper", (text,), STRING), 2, "u"),))
    executor = DuckExecutor(Session("", ansi=True, zone="UTC"))
    with pytest.raises(NotExact, match=r"DuckDB: (Invalid Input Error|a value on which it is not exact)"):
        getattr(executor, method)(plan)
