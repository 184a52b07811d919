"""Windows and limits: over the rows that are there; how others would shift them only a replay shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np  # noqa: TID253 - arrays of node ids; only what annotates imports this

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Expression,
    Frame,
    Literal,
    Named,
    SortKey,
    WindowCall,
    passed,
)
from govtool.records.plan.nodes import Aggregate, Limit, Project, Range, Sort, Window
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, INTEGER, LONG
from govtool.records.trace.segment import alike, both
from govtool.workflow.annotate.annotator import Annotator, Context, refused
from govtool.workflow.annotate.circuit import (
    NONE,
    ONE,
    Box,
    Delta,
    Gate,
    Guard,
    Inputs,
    LimitGuard,
    Monus,
    Sum,
    Terms,
    arrays_of,
)
from govtool.workflow.annotate.conditions import valued
from govtool.workflow.annotate.groups import UNORDERED, Measure, prepared
from govtool.workflow.annotate.rows import LONG_ONE, LONG_ZERO, Rows, extended, joined, shifted, there, truth
from govtool.workflow.annotate.tables import KeptTable
from govtool.workflow.annotate.values import multiplied, with_columns

_WHOLE = ("unbounded preceding", "unbounded following")


def window(a: Annotator, node: Window, context: Context | None) -> Rows:
    """That of the row; an aggregate is a value over its frame, a rank one over its partition."""
    rows = a.rows(node.child, context)
    visible = rows.columns
    made = []
    for each in node.columns:
        call = each.value
        if not isinstance(call, WindowCall):
            raise refused("a window of anything but a function")
        rows, call, measure = _prepared(a, rows, each, call, context)
        made.append((replace(each, value=call), measure))
    rows, gate = single(a, rows)
    wider = Window(rows.node, tuple(each for each, _ in made))
    rows, table = a.keep(replace(rows, node=wider, columns=(*rows.columns, *(each.attribute for each, _ in made))))
    cells = dict(rows.cells)
    added = []
    for named, measure in made:
        start, number, side = _block(a, rows, table, named, measure, gate)
        if side is not None:
            rows = replace(rows, node=joined(rows.node, *side), columns=(*rows.columns, number))
        cell = a.ids.named("cell", shifted(number, start))
        added.append(cell)
        cells[named.id] = cell.attribute
    rows = replace(rows, node=extended(replace(rows, columns=(*rows.columns, table.number)), added), cells=cells)
    return replace(rows, columns=(*visible, *(each.attribute for each, _ in made)))


def single(a: Annotator, rows: Rows) -> tuple[Rows, int]:
    """The rows that are there, each once, and the gate that opens if another one may come."""
    gate = rows.gate
    if rows.candidates or any(isinstance(block, (Monus, Guard)) for _, block in a.circuit):
        rows, table = a.keep(rows)
        gate = a.either(gate, a.add(Gate(table.ids(rows.annotation)[0], "grown")))
        rows = replace(rows, node=rows.present(), candidates=False, gate=gate)
    return (_spread(a, rows), gate) if rows.bag else (rows, gate)


def _spread(a: Annotator, rows: Rows) -> Rows:
    """A row that is there ``n`` times as ``n`` rows: copy ``i`` is ``δ(p ⊖ (i − 1))``."""
    most = a.tables.scalar(rows.node, AggregateCall("max", (rows.times,), LONG)) or 1
    number = a.ids.attribute("copy", LONG)
    within = Call("<=", (number, rows.times), BOOLEAN)
    copies = Sum(Inputs(np.cumsum([0, *range(most)]), np.full(most * (most - 1) // 2, ONE)))
    less = a.add(copies)
    node = joined(rows.node, Range(0, 1, most + 1, 1, number), within)
    rows, table = a.keep(replace(rows, node=node, columns=(*rows.columns, number)))
    annotation, copy = table.ids(rows.annotation, number)
    first = a.add(Monus(annotation, copy - 1 + less))
    start = a.add(Delta(Inputs(np.arange(table.count + 1), np.arange(table.count) + first)))
    columns = tuple(column for column in rows.columns if column.id != number.id)
    return replace(a.annotated(replace(rows, columns=columns), table, start), times=LONG_ONE, bag=False)


def _prepared(
    a: Annotator, rows: Rows, column: Named, call: WindowCall, context: Context | None
) -> tuple[Rows, WindowCall, Measure | None]:
    """Rows with the arguments, the partition and the order of a window as columns."""
    rows, partition = _columns(a, rows, call.partition, context)
    rows, order = _columns(a, rows, [key.value for key in call.order], context)
    keys = tuple(replace(key, value=value) for key, value in zip(call.order, order, strict=True))
    if rows.context is not None:
        partition = [*partition, rows.context]
    function, measure = call.function, None
    if isinstance(function, AggregateCall) and function.name in UNORDERED and function.name != "collect_list":
        rows, measure = prepared(a, rows, column, function, context)
        function = measure.standing(replace(rows, context=None, candidates=False))
    elif isinstance(function, Call):
        rows, arguments = _columns(a, rows, function.arguments, context)
        function = replace(function, arguments=tuple(arguments))
    elif not isinstance(function, AggregateCall):
        raise refused("a window function of the user's own")
    return rows, replace(call, function=function, partition=tuple(partition), order=keys), measure


def _columns(
    a: Annotator, rows: Rows, values: Sequence[Expression], context: Context | None
) -> tuple[Rows, list[Expression]]:
    rows, local = a.local(rows, list(values), context)
    rows, local = valued(a, rows, local, context)
    found: list[Expression] = []
    for value in local:
        if isinstance(value, Literal):
            found.append(value)
            continue
        named = Named(value, value.id, value.name) if isinstance(value, Attribute) else a.ids.named("value", value)
        rows = with_columns(a, rows, [named])
        found.append(named.attribute)
    return rows, found


def _block(
    a: Annotator, rows: Rows, table: KeptTable, named: Named, measure: Measure | None, gate: int
) -> tuple[int, Attribute, tuple[Node, Expression] | None]:
    """The first node of the values, the number that counts them, and where it is no row's what to join for it."""
    call = named.value
    assert isinstance(call, WindowCall)
    parts = _partitions(a, table, call.partition)
    (annotation,) = table.ids(rows.annotation)
    members, _ = Inputs.grouped(parts, np.arange(table.count), int(parts.max(initial=-1)) + 1)
    gate = _steering_gate(a, rows, table, call, gate)
    result = (table, named.attribute)
    if measure is None or not _framed(call.frame):
        sums = a.add(Sum(Inputs(members.offsets, annotation[members.nodes])))
        cells = _arguments(rows, table, call)
        return a.add(Box(_name(call), sums + parts, cells, result, gate)), table.number, None
    if _is_whole(call):
        return _over_partitions(a, rows, table, named, measure, parts, members, gate)
    owners, inside, around = _frame(a, table, call, parts)
    if around:
        sums = a.add(Sum(Inputs(members.offsets, annotation[members.nodes])))
    node, is_term = measure.terms(a, rows, table)
    kept = is_term[inside]
    inputs, order = Inputs.grouped(owners[kept], node[inside[kept]], table.count)
    chosen_rows = inside[kept][order]
    own = measure.cells(rows, table)
    cells_ = None if own is None else own[chosen_rows]
    argument = measure.arguments[0] if len(measure.arguments) == 1 else None
    over = sums + parts if around else None
    function = measure.call
    terms = Terms(function, inputs, chosen_rows, cells_, table, argument, result, over, gate)
    return a.add(terms), table.number, None


def _is_whole(call: WindowCall) -> bool:
    """Return whether the frame of every row is its partition."""
    frame = call.frame
    if frame is None:
        return False
    return (frame.lower, frame.upper) == _WHOLE or (frame.kind == "range" and not call.order)


def _over_partitions(
    a: Annotator, rows: Rows, table: KeptTable, named: Named, measure: Measure, parts: Array, members: Inputs, gate: int
) -> tuple[int, Attribute, tuple[Node, Expression] | None]:
    """One value a partition, which all its rows share."""
    node, is_term = measure.terms(a, rows, table)
    owners = members.owners()
    kept = is_term[members.nodes]
    inputs, order = Inputs.grouped(owners[kept], node[members.nodes[kept]], len(members))
    of = members.nodes[kept][order]
    own = measure.cells(rows, table)
    argument = measure.arguments[0] if len(measure.arguments) == 1 else None
    partition, first, row, part = (a.ids.attribute(name, LONG) for name in ("partition", "first", "row", "part"))
    firsts = members.nodes[members.offsets[:-1]]
    leading = a.tables.load({partition: np.arange(len(members)), first: firsts})
    standing = KeptTable(
        joined(leading, table.node, alike(first, table.number)), partition, len(members), a.tables
    )  # fmt: skip
    cells = None if own is None else own[of]
    result = (standing, named.attribute)
    start = a.add(Terms(measure.call, inputs, of, cells, table, argument, result, gate=gate))
    side = a.tables.load({row: np.arange(table.count), part: parts})
    return start, part, (side, alike(table.number, row))


def _name(call: WindowCall) -> str:
    return call.function.name.upper() if isinstance(call.function, (Call, AggregateCall)) else "FUNCTION"


def _arguments(rows: Rows, table: KeptTable, call: WindowCall) -> Inputs | None:
    """The v-nodes that a function of the partition reads: those of its arguments in all rows would be too many."""
    function = call.function
    read = [
        each for each in getattr(function, "arguments", ()) if isinstance(each, Attribute) and each.id in rows.cells
    ]
    if not read:
        return None
    (cells,) = table.ids(rows.cells[read[0].id])
    return Inputs(np.arange(table.count + 1), cells)


def _steering_gate(a: Annotator, rows: Rows, table: KeptTable, call: WindowCall, gate: int) -> int:
    """A gate for windows whose partition, order or arguments are computed: any change of one shifts the window."""
    values = [*call.partition, *(key.value for key in call.order)]
    if not isinstance(call.function, AggregateCall):
        values += list(getattr(call.function, "arguments", ()))
    cells = [rows.cells[v.id] for v in values if isinstance(v, Attribute) and v.id in rows.cells]
    if not cells:
        return gate
    nodes = np.concatenate(table.ids(*cells))
    watched = [nodes[nodes != NONE]]
    if gate != NONE:
        watched.append(np.array([gate]))
    return a.add(Gate(np.concatenate(watched), "same"))


def _partitions(a: Annotator, table: KeptTable, keys: Sequence[Expression]) -> Array:
    """The number of each row's partition."""
    columns = [key for key in keys if not isinstance(key, Literal)]
    if not columns:
        return np.zeros(table.count, np.int64)
    first = a.ids.named("first", AggregateCall("min", (table.number,), LONG))
    named = [a.ids.named("key", key) for key in columns]
    groups = Aggregate(
        Project(table.node, (*named, passed(table.number))), tuple(passed(n.attribute) for n in named), (first,)
    )
    side = Project(groups, (*(passed(n.attribute) for n in named), passed(first.attribute)))
    copies = [a.ids.named("key", key) for key in columns]
    left = Project(table.node, (*copies, passed(table.number)))
    same = both(alike(x.attribute, y.attribute) for x, y in zip(copies, named, strict=True))
    found = a.tables.fetch(joined(left, side, same), [table.number, first.attribute])
    rows, firsts = arrays_of(found.columns)
    made = np.empty(table.count, np.int64)
    made[rows] = np.unique(firsts, return_inverse=True)[1]
    return made


def _framed(frame: Frame | None) -> bool:
    """Return whether the rows of a frame are found here: RANGE with offsets is not."""
    if frame is None:
        return False
    return frame.kind == "rows" or (isinstance(frame.lower, str) and isinstance(frame.upper, str))


def _frame(a: Annotator, table: KeptTable, call: WindowCall, parts: Array) -> tuple[Array, Array, bool]:
    """For each row the rows of its frame, as two lists, and whether the frame goes by position."""
    frame = call.frame
    assert frame is not None
    by_position = frame.kind == "rows" and (frame.lower, frame.upper) != _WHOLE
    rank = "row_number" if frame.kind == "rows" else "dense_rank"
    places = _places(a, table, call, rank)
    order = np.lexsort((places, parts))
    key = parts[order] * (int(places.max(initial=0)) + 2) + places[order]
    base = parts * (int(places.max(initial=0)) + 2)
    last = np.searchsorted(parts[order], parts, "right")
    begin = np.searchsorted(parts[order], parts, "left")
    low, high = _offset(frame.lower), _offset(frame.upper)
    from_ = (
        begin if low is None else np.maximum(np.searchsorted(key, base + np.maximum(places + low, 0), "left"), begin)
    )
    to = last if high is None else np.minimum(np.searchsorted(key, base + np.maximum(places + high, 0), "right"), last)
    sizes = np.maximum(to - from_, 0)
    owners = np.repeat(np.arange(table.count), sizes)
    before = np.cumsum(sizes) - sizes
    inside = order[np.arange(int(sizes.sum())) - before[owners] + from_[owners]]
    return owners, inside, by_position


def _offset(bound: object) -> int | None:
    """A bound as an offset from the current row; None: unbounded."""
    if isinstance(bound, str):
        return 0 if bound == "current row" else None
    value = bound.value if isinstance(bound, Literal) else None
    if not isinstance(value, int):
        raise refused("a window frame whose bound is no constant")
    return value


def _places(a: Annotator, table: KeptTable, call: WindowCall, rank: str) -> Array:
    """The position, or the number of the peer group, of each row in its partition, from 1."""
    order = call.order or (SortKey(Literal(1, INTEGER)),)
    over = WindowCall(Call(rank, (), INTEGER), call.partition, order, None, INTEGER)
    named = a.ids.named("place", over)
    found = a.tables.fetch(Window(table.node, (named,)), [table.number, named.attribute])
    numbers, places = arrays_of(found.columns)
    made = np.empty(table.count, np.int64)
    made[numbers] = places
    return made


def limit(a: Annotator, node: Limit, context: Context | None) -> Rows:
    """That of the row · a guard over the whole input, whose inside is not known."""
    child = node.child.child if isinstance(node.child, Sort) else node.child
    rows = a.rows(child, context)
    visible = rows.columns
    keys: tuple[SortKey, ...] = ()
    if isinstance(node.child, Sort):
        rows, values = _columns(a, rows, [key.value for key in node.child.order], context)
        keys = tuple(replace(key, value=value) for key, value in zip(node.child.order, values, strict=True))
    rows, gate = single(a, rows)
    rows, table = a.keep(rows)
    if rows.context is not None:
        raise refused("a limit in a correlated subquery")
    (annotation,) = table.ids(rows.annotation)
    gate = _order_gate(a, rows, table, keys, gate)
    total = a.add(Sum(Inputs(np.array([0, table.count]), annotation)))
    first = _first_rows(a, table, node, keys)
    guard = a.add(LimitGuard(_label(node), np.array([total]), gate, first is not None))
    outside = _next_rows(a, annotation, first, guard, gate)
    position = a.ids.named(
        "position",
        WindowCall(Call("row_number", (), INTEGER), (), keys or (SortKey(Literal(1, INTEGER)),), None, INTEGER),
    )
    inside: list[Expression] = [Call(">", (position.attribute, Literal(node.offset, INTEGER)), BOOLEAN)]
    if node.count is not None:
        inside.append(Call("<=", (position.attribute, Literal(node.offset + node.count, INTEGER)), BOOLEAN))
    from govtool.records.plan.nodes import Filter

    factor = a.ids.named("factor", Literal(guard, LONG))
    kept = Filter(Window(rows.node, (position,)), both(inside) or Literal(True, BOOLEAN))
    made = Project(kept, (*map(passed, replace(rows, columns=visible).everything), factor))
    rows = replace(rows, gate=outside)
    return multiplied(a, replace(rows, node=made, columns=visible), factor.attribute, LONG_ONE)


def _first_rows(a: Annotator, table: KeptTable, node: Limit, keys: tuple[SortKey, ...]) -> Array | None:
    """The rows that a limit lets through, where they come strictly before all others; None: they do not."""
    if node.offset or node.count is None:
        return None
    if table.count <= node.count:
        return np.arange(table.count)
    if not keys:
        return None
    order = WindowCall(Call("rank", (), INTEGER), (), keys, None, INTEGER)
    found = np.flatnonzero(_places(a, table, order, "rank") <= node.count)
    return found if len(found) == node.count else None  # else rows with equal keys are on either side


def _next_rows(a: Annotator, annotation: Array, first: Array | None, guard: int, gate: int) -> int:
    """The gate that opens when rows may move into a limit, or out of it."""
    if first is None:
        return a.either(gate, a.add(Gate(np.array([guard]), "present")))
    if len(first) == len(annotation):
        return gate
    return a.either(gate, a.add(Gate(annotation[first], "moved")))


def _order_gate(a: Annotator, rows: Rows, table: KeptTable, keys: tuple[SortKey, ...], gate: int) -> int:
    cells = [rows.cells[k.value.id] for k in keys if isinstance(k.value, Attribute) and k.value.id in rows.cells]
    if not cells:
        return gate
    nodes = np.concatenate(table.ids(*cells))
    watched = [nodes[nodes != NONE], *([np.array([gate])] if gate != NONE else [])]
    return a.add(Gate(np.concatenate(watched), "same"))


def _label(node: Limit) -> str:
    parts = [] if node.count is None else [f"LIMIT {node.count}"]
    return " ".join(parts + ([f"OFFSET {node.offset}"] if node.offset else []))


__all__ = ["LONG_ZERO", "limit", "there", "truth", "window"]
