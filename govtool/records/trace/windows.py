"""Rules of window functions and of limits.

An aggregate over a frame has the frame's rows as its terms: rows are numbered in the window's order, and a link matches
the numbers from the frame's first to its last. Where rows tie in a frame that counts rows, the order does not decide
which are in it: then the whole partition is given, as a superset. Ranks, LAG and their like are black boxes over it.
"""

from __future__ import annotations

from dataclasses import replace

from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Cast,
    Expression,
    Frame,
    Literal,
    SortKey,
    WindowCall,
)
from govtool.records.plan.nodes import Filter, Limit, Project, Sort, Window, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, INTEGER, LONG
from govtool.records.trace.carrier import TRUE, Carrier, Linked, Needed
from govtool.records.trace.measure_terms import term_conditions
from govtool.records.trace.segment import (
    Grade,
    Link,
    Segment,
    Source,
    alike,
    both,
    doubted,
    everything,
    free_columns,
    reads,
)

_COUNT = AggregateCall("count", (Literal(1, INTEGER),), LONG)
_PEERS = Frame("range", "current row", "current row")
_ALL = Frame("range", "unbounded preceding", "unbounded following")
_TIES = "rows tie in the order of a window that counts rows"


def over(
    function: AggregateCall | Call, partition: tuple[Expression, ...], order: tuple[SortKey, ...], frame: Frame | None
) -> WindowCall:
    """A function over a window."""
    return WindowCall(function, partition, order, frame, function.type)


def window(carrier: Carrier, node: Window, needed: Needed) -> Segment:
    """That of the row; a cell that counts brings the rows of its frame or of its partition."""
    carrier = carrier.present()
    calls = [named.value for named in node.columns if named.id in needed]
    child = carrier.segment(node.child, needed)
    segment = Segment(Window(child.node, node.columns), outputs(node), child.sources)
    for call in dict.fromkeys(calls):
        assert isinstance(call, WindowCall)
        if isinstance(call.function, AggregateCall):
            segment = _framed(carrier, node.child, call, segment)
        else:
            segment = carrier.linked(segment, [_partition_link(carrier, node.child, call)])
    return segment


def _partition_link(carrier: Carrier, child: Node, call: WindowCall) -> Linked:
    """Every row of the partition."""
    parameters = [carrier.ids.attribute("partition", value.type) for value in call.partition]
    same = both(alike(value, parameter) for value, parameter in zip(call.partition, parameters, strict=True))
    make = carrier.below(child, reads([call]))
    return Linked(
        Link("window", make, same, carrier.grade_of(child), free_columns(child), child),
        tuple(zip(parameters, call.partition, strict=True)),
    )


def _framed(carrier: Carrier, child: Node, call: WindowCall, segment: Segment) -> Segment:
    """The rows of the frame, by their numbers in the window's order."""
    frame = call.frame or _ALL
    if (frame.lower, frame.upper) == ("unbounded preceding", "unbounded following"):
        whole = _partition_link(carrier, child, call)
        whole.link.condition = both([whole.link.condition, *term_conditions(call.function)])
        return carrier.linked(segment, [whole])
    row_number = Call("row_number", (), INTEGER)
    number = carrier.ids.named("number", over(row_number, call.partition, call.order, None))
    peers = carrier.ids.named("peers", over(_COUNT, call.partition, call.order, _PEERS))
    numbered = Window(segment.node, (number, peers))
    bounds = [
        carrier.ids.named(name, over(AggregateCall(name, (value,), value.type), call.partition, order, of))
        for name, value, order, of in (
            ("min", number.attribute, call.order, frame),
            ("max", number.attribute, call.order, frame),
            ("max", peers.attribute, (), _ALL),
        )
    ]
    low, high, most = (named.attribute for named in bounds)
    tied = Call(">", (most, Literal(1, LONG)), BOOLEAN) if frame.kind == "rows" else Literal(False, BOOLEAN)
    segment = replace(segment, node=Window(numbered, tuple(bounds)))
    segment, (doubt,) = carrier.extended(segment, [tied], "tied")
    link = _numbered_link(carrier, child, call)
    values: list[Expression] = [*call.partition, low, high, doubt]
    pairs = tuple((parameter, value) for (parameter, _), value in zip(link.pairs, values, strict=True))
    segment = carrier.linked(segment, [Linked(link.link, pairs)])
    *others, last = segment.sources
    return replace(segment, sources=(*others, doubted(last, doubt, _TIES)))


def _numbered_link(carrier: Carrier, child: Node, call: WindowCall) -> Linked:
    """The rows of a partition whose numbers are within bounds, or all of them where rows tie."""
    number = carrier.ids.named("number", over(Call("row_number", (), INTEGER), call.partition, call.order, None))
    partition = [carrier.ids.attribute("partition", value.type) for value in call.partition]
    low, high = (carrier.ids.attribute(name, INTEGER) for name in ("low", "high"))
    tied = carrier.ids.attribute("tied", BOOLEAN)
    within = Call(
        "and",
        (Call(">=", (number.attribute, low), BOOLEAN), Call("<=", (number.attribute, high), BOOLEAN)),
        BOOLEAN,
    )
    same = [alike(value, parameter) for value, parameter in zip(call.partition, partition, strict=True)]
    condition = both([*same, Call("or", (tied, within), BOOLEAN), *term_conditions(call.function)])

    def make() -> Segment:
        below = carrier.lower().segment(child, reads([call]))
        return replace(below, node=Window(below.node, (number,)))

    parameters = (*partition, low, high, tied)
    link = Link("window", make, condition, carrier.grade_of(child), free_columns(child), child)
    return Linked(link, tuple((p, p) for p in parameters))


def limit(carrier: Carrier, node: Limit, needed: Needed) -> Segment:
    """That of the row. Where rows tie across the limit, the order does not decide which are in: a superset."""
    carrier = carrier.present()
    order = node.child.order if isinstance(node.child, Sort) and node.child.total else ()
    child = carrier.segment(node.child, needed)
    position = carrier.ids.named("position", over(Call("row_number", (), INTEGER), (), order, None))
    rank = carrier.ids.named("rank", over(Call("rank", (), INTEGER), (), order, None)) if order else None
    peers = carrier.ids.named("peers", over(_COUNT, (), order, _PEERS if order else _ALL))
    columns = (position, peers) if rank is None else (position, peers, rank)
    bounds = [node.offset] if node.count is None else [node.offset, node.offset + node.count]
    first: Expression = Literal(1, INTEGER) if rank is None else rank.attribute
    cuts = [_cut(first, peers.attribute, bound) for bound in bounds]
    doubt = carrier.ids.named("tied", cuts[0] if len(cuts) == 1 else Call("or", tuple(cuts), BOOLEAN))
    inside = [Call(">", (position.attribute, Literal(bounds[0], INTEGER)), BOOLEAN)]
    inside += [Call("<=", (position.attribute, Literal(bound, INTEGER)), BOOLEAN) for bound in bounds[1:]]
    kept = Filter(Window(child.node, columns), both(inside) or TRUE)
    why = "rows tie across a limit" if order else "a limit without an order keeps any rows"
    sources: tuple[Source, ...] = tuple(doubted(each, doubt.attribute, why) for each in child.sources)
    segment = Segment(Project(kept, (*everything(child.node), doubt)), outputs(node), sources)
    return carrier.linked(segment, [_peers(carrier, node.child, order, doubt.attribute, why)])


def _peers(carrier: Carrier, child: Node, order: tuple[SortKey, ...], where: Attribute, why: str) -> Linked:
    """The rows that tie with a row across a limit: any of them may have been in its place."""
    source = child.child if isinstance(child, Sort) else child
    values = [key.value for key in order]
    parameters = [carrier.ids.attribute("order", value.type) for value in values]
    same = both(alike(value, parameter) for value, parameter in zip(values, parameters, strict=True))
    link = Link("limit", carrier.below(source), same, Grade("superset", why), free_columns(source), source)
    return Linked(link, tuple(zip(parameters, values, strict=True)), where=where)


def _cut(rank: Expression, peers: Attribute, bound: int) -> Expression:
    """Return the condition that a bound falls between a row and one of its peers."""
    number = Literal(1, LONG) if isinstance(rank, Literal) else Cast(rank, LONG)
    before = Call("-", (number, Literal(1, LONG)), LONG, "ansi")
    reach = Call("+", (before, peers), LONG, "ansi")
    return Call(
        "and",
        (Call("<", (before, Literal(bound, LONG)), BOOLEAN), Call(">", (reach, Literal(bound, LONG)), BOOLEAN)),
        BOOLEAN,
    )
