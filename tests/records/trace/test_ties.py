"""Whether rows tie, by brute force: all values that a choosing function may return are enumerated in Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from govtool.records.execute.chain import ExecutorChain, PlanEngine
from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan import types as t
from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Expression,
    Frame,
    Opaque,
    Outer,
    SortKey,
    WindowCall,
)
from govtool.records.plan.nodes import Filter, LocalRows, Session
from govtool.records.trace.normal import spare_ids
from govtool.records.trace.ties import Choice, TieCheck

SESSION = Session("4.0.0", True, "UTC")
COLUMNS = tuple(
    Attribute(n, name, kind)
    for n, (name, kind) in enumerate(
        [("k", t.INTEGER), ("g", t.STRING), ("by", t.INTEGER), ("v", t.STRING), ("w", t.LONG), ("x", t.DOUBLE)]
    )
)
K, G, BY, V, W, X = COLUMNS
LIST = Call("array", (W, K), t.Array(t.LONG))
VALUES = (V, W, X, BY)
WHOLE = Frame("rows", "unbounded preceding", "unbounded following")
GROWING = Frame("range", "unbounded preceding", "current row")
Row = dict[int, Any]


class Counted:
    """An executor that counts what it fetches."""

    def __init__(self) -> None:
        self.base = DuckExecutor(SESSION)
        self.fetched = 0

    def fetch(self, node: Any) -> list[tuple[Any, ...]]:
        self.fetched += 1
        return self.base.fetch(node)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.base, name)


def drawn_rows(draw: random.Random) -> tuple[tuple[Any, ...], ...]:
    def one(*values: Any) -> Any:
        return draw.choice(values)

    # Few values, so that rows tie often enough, and do not as well.
    return tuple(
        (one(1, 2, None), one("a", "b", None), one(1, 2, 3, 4, None), one("p", "p", "q", None), one(7, 7, 8, None),
         one(0.5, float("nan"), None))
        for _ in range(draw.randint(0, 9))
    )  # fmt: skip


def drawn_call(draw: random.Random) -> AggregateCall:
    name = draw.choice(["first", "last", "any_value", "max_by", "min_by", "mode"])
    value = draw.choice(VALUES)
    by = (draw.choice((BY, W)),) if name in ("max_by", "min_by") else ()
    condition = draw.choice([None, None, Call("is not null", (G,), t.BOOLEAN)])
    options = (("ignore nulls", True),) if name in ("first", "last", "any_value") and draw.random() < 0.5 else ()
    return AggregateCall(name, (value, *by), value.type, filter=condition, options=options, deterministic=False)


def drawn_choices(draw: random.Random, child: LocalRows) -> list[Choice]:
    calls = [drawn_call(draw) for _ in range(draw.randint(1, 5))]
    parts = draw.choice([(), (K,), (K, G), (G,)])
    if draw.random() < 0.5:
        return [Choice(child, parts, call) for call in calls]
    order = (SortKey(draw.choice((BY, W))),)
    frames = [draw.choice((WHOLE, GROWING)) for _ in calls]
    windows = [WindowCall(call, parts, order, frame, call.type) for call, frame in zip(calls, frames, strict=True)]
    return [Choice(child, parts, call, window) for call, window in zip(calls, windows, strict=True)]


def cell(value: Any) -> Any:
    return "NaN" if value != value else value


def grouped(rows: Iterable[Row], columns: Sequence[Expression]) -> list[list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(cell(row[c.id]) for c in columns if isinstance(c, Attribute)), []).append(row)
    return list(found.values())


def brute(choice: Choice, rows: list[Row]) -> bool:
    """Whether some group may return one of several values."""
    call, value = choice.call, choice.call.arguments[0]
    assert isinstance(value, Attribute)
    if call.filter is not None:
        rows = [row for row in rows if row[G.id] is not None]
    if choice.ignores_null:
        rows = [row for row in rows if row[value.id] is not None]
    by = call.arguments[1] if len(call.arguments) > 1 else None
    if isinstance(by, Attribute):
        rows = [row for row in rows if row[by.id] is not None]
    order = [key.value for key in choice.window.order] if choice.window is not None else []
    parts = [*choice.parts]
    if not choice.whole:
        parts += [by] if by is not None else [] if call.name == "mode" else order
    for group in grouped(rows, parts):
        if choice.whole and isinstance(by, Attribute):
            best = (max if call.name == "max_by" else min)(row[by.id] for row in group)
            group = [row for row in group if row[by.id] == best]
        counts = Counter(cell(row[value.id]) for row in group)
        if choice.whole and call.name == "mode":
            counts = Counter({each: n for each, n in counts.items() if n == max(counts.values())})
        if len(counts) > 1:
            return True
    return False


def check(child: LocalRows, around: Any = None) -> tuple[TieCheck, Counted]:
    executor = Counted()
    return TieCheck(executor, spare_ids(child), around or child), executor


@pytest.mark.parametrize("seed", range(40))
def test_rows_tie_where_several_values_may_be_returned(seed):
    draw = random.Random(seed)
    for _ in range(3):
        rows = drawn_rows(draw)
        child = LocalRows(0, COLUMNS, rows)
        choices = drawn_choices(draw, child)
        as_dicts = [dict(zip((c.id for c in COLUMNS), row, strict=True)) for row in rows]
        looked, _ = check(child)
        assert looked(choices, None) == [brute(choice, as_dicts) for choice in choices], (rows, choices)


def chosen(name: str, *arguments: Expression) -> AggregateCall:
    return AggregateCall(name, arguments, arguments[0].type, deterministic=False)


CHILD = LocalRows(0, COLUMNS, ((1, "a", 3, "p", 7, 0.5), (1, "b", 3, "p", 8, 0.5), (2, "a", 1, "q", 9, None)))


@pytest.mark.parametrize(
    ("calls", "tied"),
    [
        ([chosen("first", V), chosen("last", W), chosen("first", X)], [False, True, False]),
        ([chosen("max_by", W, BY), chosen("max_by", V, BY), chosen("min_by", X, W)], [True, False, False]),
    ],
)
def test_choices_of_a_kind_are_looked_at_in_one_evaluation(calls, tied):
    looked, executor = check(CHILD)
    assert looked([Choice(CHILD, (K,), call) for call in calls], None) == tied
    assert executor.fetched == 1


def test_values_that_have_no_order_are_counted():
    looked, _ = check(CHILD)
    choices = [Choice(CHILD, (K,), chosen("first", LIST)), Choice(CHILD, (K, W), chosen("first", LIST))]
    assert looked(choices, None) == [True, False]


def test_a_choice_that_cannot_be_evaluated_leaves_the_others_known():
    lost = Opaque("not here", (V,), t.STRING)
    unknown = Call("not a function of DuckDB", (V,), t.STRING)
    calls = [chosen("first", V), chosen("first", lost), chosen("first", unknown), chosen("first", W)]

    executor = ExecutorChain((PlanEngine("DuckDB", lambda: DuckExecutor(SESSION)),))
    looked = TieCheck(executor, spare_ids(CHILD), CHILD)
    assert looked([Choice(CHILD, (K,), call) for call in calls], None)[:3] == [False, True, True]


@pytest.mark.parametrize(("least", "tied"), [(1, True), (2, False)])
def test_rows_of_a_subquery_tie_for_the_rows_around_it(least, tied):
    """``SELECT … FROM CHILD AS outside WHERE (SELECT max_by(w, by) FROM CHILD WHERE k = outside.k) …``."""
    outside = LocalRows(1, (Attribute(90, "k", t.INTEGER),), ((least,),))
    same = Call("=", (K, Outer(Attribute(90, "k", t.INTEGER))), t.BOOLEAN)
    child = Filter(CHILD, same)
    executor = DuckExecutor(SESSION)
    looked = TieCheck(executor, spare_ids(outside), outside)

    assert looked([Choice(child, (), chosen("max_by", W, BY))], outside) == [tied]
