"""Guards in DuckDB: a value on which it is not exact is found in whatever row it stands."""

from __future__ import annotations

import pytest

from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan.expressions import Attribute, Call, Case, Cast, Literal, Named
from govtool.records.plan.nodes import Filter, LocalRows, Project, Range, Session
from govtool.records.plan.types import BOOLEAN, BYTE, INTEGER, LONG, SHORT, STRING, Decimal
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


NUMBER = Attribute(1, "n", LONG)


def sum_of(name, *parts):
    return Call(name, parts, LONG, "legacy")


@pytest.mark.parametrize("comparison", ["<", "=", "in"])
@pytest.mark.parametrize(
    "value",
    [
        sum_of("+", NUMBER, Literal(1, LONG)),
        sum_of("-", NUMBER, Literal(-1, LONG)),
        sum_of("*", NUMBER, Literal(2, LONG)),
        *(Cast(NUMBER, kind, "legacy") for kind in (BYTE, SHORT, INTEGER, Decimal(5, 0))),
        Cast(Cast(NUMBER, INTEGER, "legacy"), LONG, "legacy"),
    ],
)
def test_a_number_that_does_not_fit_is_refused_in_a_comparison_too(value, comparison) -> None:
    """Spark without ANSI mode goes on with another number; DuckDB would compare without the sum or the cast."""
    other = Cast(Literal(6, LONG), Decimal(5, 0)) if isinstance(value.type, Decimal) else Literal(6, value.type)
    condition = Call(comparison, (value, other), BOOLEAN)
    executor = DuckExecutor(Session("", ansi=False, zone="UTC"))
    few = LocalRows(0, (NUMBER,), ((2,), (3,), (5,), (6,), (None,)))
    assert len(executor.fetch(Filter(few, condition))) in (1, 2, 3)
    with pytest.raises(NotExact):
        executor.fetch(Filter(LocalRows(0, (NUMBER,), ((5,), (2**63 - 1,))), condition))
