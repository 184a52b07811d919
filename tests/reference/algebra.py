"""Operators over lists of annotated rows: bag semantics, SQL's three-valued logic, candidates kept.

A plan is a tree of the nodes below; columns are positions. ``evaluate`` gives every row that is there and every candidate
(a row that something takes off) with its annotation; ``present`` leaves the candidates out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from reference.polynomial import (
    ONE,
    ZERO,
    Agg,
    Box,
    Cell,
    Fn,
    Guard,
    Poly,
    Steered,
    Trace,
    Value,
    atom,
    delta,
    plain,
    token,
    total,
    traced,
    traced_cell,
)


@dataclass(frozen=True)
class Row:
    cells: tuple[Cell, ...]
    annotation: Poly

    @property
    def values(self) -> tuple[Any, ...]:
        return tuple(plain(cell) for cell in self.cells)

    @property
    def trace(self) -> Trace:
        """The tokens of the annotation and of the cells' terms."""
        found = traced(self.annotation)
        for cell in self.cells:
            found |= traced_cell(cell)
        return found


Data = dict[str, list[tuple[str, tuple[Any, ...]]]]
"""For each relation its rows: token and values."""

Outer = tuple[Row, ...]
"""The rows of the enclosing queries, the innermost last."""


# Expressions


@dataclass(frozen=True)
class Col:
    at: int


@dataclass(frozen=True)
class Up:
    """A column of the enclosing query's row."""

    at: int


@dataclass(frozen=True)
class Lit:
    value: Any


@dataclass(frozen=True)
class Op:
    """``= <> < <= > >= <=> + - * AND OR NOT ISNULL COALESCE CASE`` over its arguments (CASE: condition, then, else)."""

    name: str
    args: tuple[Any, ...]


@dataclass(frozen=True)
class Scalar:
    """A subquery's one cell; NULL where it has no row."""

    plan: Any


@dataclass(frozen=True)
class Exists:
    plan: Any


@dataclass(frozen=True)
class In:
    """``value IN (plan)``; the plan has one column."""

    value: Any
    plan: Any


def _compared(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool | None]:
    return lambda a, b: None if a is None or b is None else test(a, b)


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: None if None in args else function(*args)


def _and(*args: bool | None) -> bool | None:
    return False if False in args else None if None in args else True


def _or(*args: bool | None) -> bool | None:
    return True if True in args else None if None in args else False


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "=": _compared(lambda a, b: a == b),
    "<>": _compared(lambda a, b: a != b),
    "<": _compared(lambda a, b: a < b),
    "<=": _compared(lambda a, b: a <= b),
    ">": _compared(lambda a, b: a > b),
    ">=": _compared(lambda a, b: a >= b),
    "<=>": lambda a, b: a == b,
    "+": _strict(lambda a, b: a + b),
    "-": _strict(lambda a, b: a - b),
    "*": _strict(lambda a, b: a * b),
    "AND": _and,
    "OR": _or,
    "NOT": _strict(lambda a: not a),
    "ISNULL": lambda a: a is None,
    "COALESCE": lambda *args: next((a for a in args if a is not None), None),
    "CASE": lambda condition, then, other: then if condition is True else other,
}


def evaluated(expression: Any, row: Row, data: Data, outer: Outer) -> Cell:
    """The cell of an expression over a row."""
    match expression:
        case Col(at):
            return row.cells[at]
        case Up(at):
            return outer[-1].cells[at]
        case Lit(value):
            return value
        case Op(name, args):
            return applied(name, FUNCTIONS[name], [evaluated(arg, row, data, outer) for arg in args])
        case Scalar(plan):
            rows = evaluate(plan, data, (*outer, row))
            if len(rows) == 1 and rows[0].annotation == ONE and isinstance(rows[0].cells[0], Value):
                return rows[0].cells[0]
            return Agg("ROW", tuple((r.annotation, r.cells[0]) for r in rows))
        case Exists(plan):
            return Agg("EXISTS", tuple((r.annotation, 1) for r in evaluate(plan, data, (*outer, row))))
        case In(value, plan):
            return _member(evaluated(value, row, data, outer), evaluate(plan, data, (*outer, row)))
    raise AssertionError(expression)


def applied(label: str, function: Callable[..., Any], cells: Sequence[Cell]) -> Cell:
    """A function over cells: a value of its own where one of them is computed from rows."""
    return Fn(label, function, tuple(cells)) if any(isinstance(c, Value) for c in cells) else function(*cells)


def _member(value: Cell, rows: list[Row]) -> Cell:
    """IN outside of a filter's conjunction: true, NULL or false by the rows that match or may."""
    found = Agg("EXISTS", tuple((_guarded(r.annotation, _is_true(_equal(value, r.cells[0]))), 1) for r in rows))
    may = Agg("EXISTS", tuple((_guarded(r.annotation, _not_false(_equal(value, r.cells[0]))), 1) for r in rows))
    return Fn("IN", lambda yes, maybe: True if yes else None if maybe else False, (found, may))


def _equal(a: Cell, b: Cell) -> Cell:
    return applied("=", FUNCTIONS["="], [a, b])


def _is_true(cell: Cell) -> Cell:
    return _truth(cell)


def _not_false(cell: Cell) -> Cell:
    return applied("NOT", FUNCTIONS["NOT"], [applied("<=>", FUNCTIONS["<=>"], [cell, False])])


def _guarded(annotation: Poly, condition: Cell) -> Poly:
    """The annotation under a condition: a guard where it reads computed values."""
    if isinstance(condition, Value):
        return annotation * atom(Guard(condition))
    return annotation if condition is True else ZERO


# Plans


@dataclass(frozen=True)
class Scan:
    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Given:
    """The rows of a relation that are annotated already; the data hold ``Row`` by its name."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Filter:
    child: Any
    condition: Any


@dataclass(frozen=True)
class Project:
    child: Any
    expressions: tuple[Any, ...]


@dataclass(frozen=True)
class Join:
    """``inner left right full semi anti``; the condition's columns count through the left, then the right."""

    kind: str
    left: Any
    right: Any
    condition: Any


@dataclass(frozen=True)
class Union:
    left: Any
    right: Any


@dataclass(frozen=True)
class Distinct:
    child: Any


@dataclass(frozen=True)
class SetOp:
    """``intersect`` or ``except``, of bags where ``every``."""

    kind: str
    every: bool
    left: Any
    right: Any


@dataclass(frozen=True)
class Call:
    """An aggregate: COUNT SUM MIN MAX AVG COLLECT; no argument is COUNT(*)."""

    op: str
    argument: Any = None
    distinct: bool = False
    condition: Any = None


@dataclass(frozen=True)
class Aggregate:
    """Groups by columns; without keys one row always (``keys=None``); ``sets`` are GROUPING SETS over the keys."""

    child: Any
    keys: tuple[int, ...] | None
    calls: tuple[Call, ...]
    sets: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Over:
    """A window function: an aggregate over a frame, or ROW_NUMBER, RANK, LAG over the partition.

    ``frame`` is (ROWS or RANGE, start, end) with offsets from the current row; None is unbounded.
    """

    op: str
    argument: Any
    partition: tuple[int, ...]
    order: tuple[int, ...]
    frame: tuple[str, int | None, int | None] | None = None


@dataclass(frozen=True)
class Window:
    child: Any
    calls: tuple[Over, ...]


@dataclass(frozen=True)
class Explode:
    """One row an element of a column of lists, the element added as a column."""

    child: Any
    at: int
    outer: bool = False


@dataclass(frozen=True)
class Limit:
    """The first rows in the order of columns; NULLs first."""

    child: Any
    order: tuple[int, ...]
    count: int


RULES: dict[type, Callable[[Any, Data, Outer], list[Row]]] = {}


def evaluate(plan: Any, data: Data, outer: Outer = ()) -> list[Row]:
    """Every row of a plan and every candidate, with its annotation."""
    return RULES[type(plan)](plan, data, outer)


def present(plan: Any, data: Data) -> list[Row]:
    """The rows that are there."""
    return [row for row in evaluate(plan, data) if row.annotation.count()]


def bag(plan: Any, data: Data) -> list[tuple[Any, ...]]:
    """The result as SQL gives it: a row as often as its annotation counts."""
    return [row.values for row in evaluate(plan, data) for _ in range(row.annotation.count())]


def without(data: Data, gone: Iterable[str]) -> Data:
    """The data without some of its tokens: what a deletion by re-run reads."""
    dropped = frozenset(gone)
    return {name: [(tok, values) for tok, values in rows if tok not in dropped] for name, rows in data.items()}


def only(data: Data, kept: Iterable[str]) -> Data:
    """The data of some tokens."""
    wanted = frozenset(kept)
    return {name: [(tok, values) for tok, values in rows if tok in wanted] for name, rows in data.items()}


def _scan(plan: Scan, data: Data, outer: Outer) -> list[Row]:
    return [Row(values, token(tok)) for tok, values in data[plan.name]]


def _filter(plan: Filter, data: Data, outer: Outer) -> list[Row]:
    rows = evaluate(plan.child, data, outer)
    for condition in conjuncts(plan.condition):
        rows = [kept for row in rows if (kept := _kept(row, condition, data, outer)).annotation.terms]
    return rows


def conjuncts(condition: Any) -> list[Any]:
    if isinstance(condition, Op) and condition.name == "AND":
        return [part for arg in condition.args for part in conjuncts(arg)]
    return [condition]


def _kept(row: Row, condition: Any, data: Data, outer: Outer) -> Row:
    """A row under one conjunct: subqueries are semijoins and antijoins, computed values guards."""
    match condition:
        case Exists(plan):
            return Row(row.cells, row.annotation * delta(_sum(evaluate(plan, data, (*outer, row)))))
        case Op("NOT", (Exists(plan),)):
            return Row(row.cells, row.annotation * (ONE - _sum(evaluate(plan, data, (*outer, row)))))
        case In(value, plan):
            return Row(row.cells, row.annotation * delta(_matching(value, plan, _is_true, row, data, outer)))
        case Op("NOT", (In(value, plan),)):
            return Row(row.cells, row.annotation * (ONE - _matching(value, plan, _not_false, row, data, outer)))
    return Row(row.cells, _guarded(row.annotation, _truth(evaluated(condition, row, data, outer))))


def _truth(cell: Cell) -> Cell:
    return cell if isinstance(cell, Value) else cell is True


def _matching(value: Any, plan: Any, test: Callable[[Cell], Cell], row: Row, data: Data, outer: Outer) -> Poly:
    cell = evaluated(value, row, data, outer)
    rows = evaluate(plan, data, (*outer, row))
    return total(_guarded(r.annotation, test(_equal(cell, r.cells[0]))) for r in rows)


def _sum(rows: Iterable[Row]) -> Poly:
    return total(row.annotation for row in rows)


def _project(plan: Project, data: Data, outer: Outer) -> list[Row]:
    return [
        Row(tuple(evaluated(e, row, data, outer) for e in plan.expressions), row.annotation)
        for row in evaluate(plan.child, data, outer)
    ]


def _join(plan: Join, data: Data, outer: Outer) -> list[Row]:
    left, right = evaluate(plan.left, data, outer), evaluate(plan.right, data, outer)
    matches = [[_match(a, b, plan.condition, data, outer) for b in right] for a in left]
    against = [total(b.annotation * match for b, match in zip(right, line, strict=True)) for line in matches]
    if plan.kind in ("semi", "anti"):
        shares = [delta(found) if plan.kind == "semi" else ONE - found for found in against]
        rows = [Row(a.cells, a.annotation * share) for a, share in zip(left, shares, strict=True)]
        return [row for row in rows if row.annotation.terms]
    rows = [
        Row(a.cells + b.cells, a.annotation * b.annotation * match)
        for a, line in zip(left, matches, strict=True)
        for b, match in zip(right, line, strict=True)
    ]
    if plan.kind in ("left", "full"):
        nulls = (None,) * width(plan.right)
        rows += [Row(a.cells + nulls, a.annotation * (ONE - found)) for a, found in zip(left, against, strict=True)]
    if plan.kind in ("right", "full"):
        nulls = (None,) * width(plan.left)
        for b, column in zip(right, list(zip(*matches, strict=True)) or [()] * len(right), strict=True):
            found = total(a.annotation * match for a, match in zip(left, column, strict=True))
            rows.append(Row(nulls + b.cells, b.annotation * (ONE - found)))
    return [row for row in rows if row.annotation.terms]


def _match(a: Row, b: Row, condition: Any, data: Data, outer: Outer) -> Poly:
    """The annotation of a pair's condition: 0, 1, or guards and subqueries."""
    row = Row(a.cells + b.cells, ONE)
    for part in conjuncts(condition):
        row = _kept(row, part, data, outer)
    return row.annotation


def _union(plan: Union, data: Data, outer: Outer) -> list[Row]:
    return evaluate(plan.left, data, outer) + evaluate(plan.right, data, outer)


Grouped = dict[tuple[Any, ...], list[tuple[Poly, Row]]]


def grouped(rows: Iterable[Row], keys: Sequence[int]) -> Grouped:
    """Rows by the values of their keys, NULL being one; a computed key guards its row."""
    groups: Grouped = {}
    for row in rows:
        annotation = row.annotation
        for key in keys:
            if isinstance(row.cells[key], Value):
                annotation = annotation * atom(
                    Guard(Fn("<=>", FUNCTIONS["<=>"], (row.cells[key], plain(row.cells[key]))))
                )
        groups.setdefault(tuple(_hashable(row.values[key]) for key in keys), []).append((annotation, row))
    return groups


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _values(rows: list[tuple[Poly, Row]]) -> Poly:
    return total(annotation for annotation, _ in rows)


def _distinct(plan: Distinct, data: Data, outer: Outer) -> list[Row]:
    groups = grouped(evaluate(plan.child, data, outer), range(width(plan.child)))
    return [Row(rows[0][1].values, delta(_values(rows))) for rows in groups.values()]


def _set_operation(plan: SetOp, data: Data, outer: Outer) -> list[Row]:
    columns = range(width(plan.left))
    left = grouped(evaluate(plan.left, data, outer), columns)
    right = grouped(evaluate(plan.right, data, outer), columns)
    rows = []
    for key, members in left.items():
        a, b = _values(members), _values(right.get(key, []))
        rows.append(Row(members[0][1].values, _SET[plan.kind, plan.every](a, b)))
    return [row for row in rows if row.annotation.terms]


_SET: dict[tuple[str, bool], Callable[[Poly, Poly], Poly]] = {
    ("intersect", False): lambda a, b: delta(a) * delta(b),
    ("intersect", True): lambda a, b: a - (a - b) if b.terms else ZERO,
    ("except", False): lambda a, b: delta(a) - delta(b),
    ("except", True): lambda a, b: a - b,
}


def _aggregate(plan: Aggregate, data: Data, outer: Outer) -> list[Row]:
    rows = evaluate(plan.child, data, outer)
    if plan.keys is None:
        members = [(row.annotation, row) for row in rows]
        return [Row(tuple(_call(call, members, data, outer) for call in plan.calls), ONE)]
    found = []
    for kept in plan.sets or (plan.keys,):
        for members in grouped(rows, kept).values():
            values = members[0][1].values
            keys = tuple(values[key] if key in kept else None for key in plan.keys)
            cells = tuple(_call(call, members, data, outer) for call in plan.calls)
            found.append(Row(keys + cells, delta(_values(members))))
    return found


def _call(call: Call, members: list[tuple[Poly, Row]], data: Data, outer: Outer) -> Cell:
    terms = []
    for annotation, row in members:
        if call.condition is not None:
            annotation = _guarded(annotation, _truth(evaluated(call.condition, row, data, outer)))
        cell = 1 if call.argument is None else evaluated(call.argument, row, data, outer)
        if annotation.terms and cell is not None:
            terms.append((annotation, cell))
    return Agg(call.op, tuple(_by_value(terms) if call.distinct else terms))


def _by_value(terms: list[tuple[Poly, Cell]]) -> list[tuple[Poly, Cell]]:
    """One term a value, annotated δ(Σ)."""
    values: dict[Any, list[Poly]] = {}
    for annotation, cell in terms:
        value = plain(cell)
        guarded = annotation
        if isinstance(cell, Value):
            guarded = annotation * atom(Guard(Fn("<=>", FUNCTIONS["<=>"], (cell, value))))
        values.setdefault(_hashable(value), []).append(guarded)
    return [(delta(total(polys)), value) for value, polys in values.items() if value is not None]


def _window(plan: Window, data: Data, outer: Outer) -> list[Row]:
    """Windows see the rows that are there: how candidates would shift frames and ranks, only a replay says."""
    rows = [row for row in evaluate(plan.child, data, outer) if row.annotation.count()]
    assert all(row.annotation.count() == 1 for row in rows), "a window over rows that stand for several"
    cells: list[list[Cell]] = [[] for _ in rows]
    for over in plan.calls:
        for part in _partitions(rows, over):
            for position, number in enumerate(part):
                cells[number].append(_windowed(over, [rows[n] for n in part], position, data, outer))
    return [Row(row.cells + tuple(more), row.annotation) for row, more in zip(rows, cells, strict=True)]


def _partitions(rows: list[Row], over: Over) -> list[list[int]]:
    numbers = sorted(
        range(len(rows)), key=lambda n: (_sortable(rows[n], over.partition), _sortable(rows[n], over.order))
    )
    return [list(part) for _, part in groupby(numbers, key=lambda n: _sortable(rows[n], over.partition))]


def _sortable(row: Row, columns: Sequence[int]) -> tuple[Any, ...]:
    values = row.values
    return tuple((values[c] is not None, 0 if values[c] is None else values[c]) for c in columns)


def _windowed(over: Over, part: list[Row], at: int, data: Data, outer: Outer) -> Cell:
    if over.op in _RANKS:
        read = [row.cells[column] for row in part for column in (*over.partition, *over.order)]
        if over.argument is not None:
            read += [evaluated(over.argument, row, data, outer) for row in part]
        over_all = tuple(row.annotation for row in part)
        return Box(over.op, _RANKS[over.op](over, part, at, data, outer), over_all, tuple(read))
    members = [(row.annotation, row) for row in _frame(over, part, at)]
    return _call(Call(over.op, over.argument), members, data, outer)


def _frame(over: Over, part: list[Row], at: int) -> list[Row]:
    kind, start, end = over.frame or ("RANGE", None, 0 if over.order else None)
    if kind == "ROWS":
        low = 0 if start is None else max(0, at + start)
        return part[low : len(part) if end is None else max(0, at + end + 1)]
    here = _sortable(part[at], over.order)
    low_ok = (lambda key: True) if start is None else (lambda key: key >= here)
    high_ok = (lambda key: True) if end is None else (lambda key: key <= here)
    assert {start, end} <= {None, 0}, "RANGE with offsets"
    return [row for row in part if low_ok(key := _sortable(row, over.order)) and high_ok(key)]


def _rank(over: Over, part: list[Row], at: int, data: Data, outer: Outer) -> int:
    here = _sortable(part[at], over.order)
    return 1 + sum(_sortable(row, over.order) < here for row in part)


def _lag(over: Over, part: list[Row], at: int, data: Data, outer: Outer) -> Any:
    return plain(evaluated(over.argument, part[at - 1], data, outer)) if at else None


_RANKS: dict[str, Callable[[Over, list[Row], int, Data, Outer], Any]] = {
    "ROW_NUMBER": lambda over, part, at, data, outer: at + 1,
    "RANK": _rank,
    "LAG": _lag,
}


def _explode(plan: Explode, data: Data, outer: Outer) -> list[Row]:
    found = []
    for row in evaluate(plan.child, data, outer):
        elements = plain(row.cells[plan.at])
        if not elements and plan.outer:
            elements = [None]
        found += [Row((*row.cells, element), row.annotation) for element in elements or ()]
    return found


def _limit(plan: Limit, data: Data, outer: Outer) -> list[Row]:
    rows = [row for row in evaluate(plan.child, data, outer) if row.annotation.count()]
    rows.sort(key=lambda row: _sortable(row, plan.order))
    steered = atom(Steered(f"LIMIT {plan.count}", tuple(row.annotation for row in rows)))
    return [Row(row.cells, row.annotation * steered) for row in rows[: plan.count]]


RULES.update(
    {
        Scan: _scan,
        Given: lambda plan, data, outer: list(data[plan.name]),
        Filter: _filter,
        Project: _project,
        Join: _join,
        Union: _union,
        Distinct: _distinct,
        SetOp: _set_operation,
        Aggregate: _aggregate,
        Window: _window,
        Explode: _explode,
        Limit: _limit,
    }
)


def width(plan: Any) -> int:
    """How many columns a plan has."""
    match plan:
        case Scan(_, columns) | Given(_, columns):
            return len(columns)
        case Project(_, expressions):
            return len(expressions)
        case Join(kind, left, right, _):
            return width(left) + (0 if kind in ("semi", "anti") else width(right))
        case Aggregate(_, keys, calls, _):
            return len(keys or ()) + len(calls)
        case Window(child, calls):
            return width(child) + len(calls)
        case Explode(child, _, _):
            return width(child) + 1
        case Union(left, _) | SetOp(_, _, left, _):
            return width(left)
    return width(plan.child)
