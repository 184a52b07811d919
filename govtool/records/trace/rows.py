"""Rules of the operators that work row by row: within a segment.

Source: the specification of fine-grained provenance, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from govtool.records.plan.expressions import (
    Attribute,
    Call,
    Exists,
    Expression,
    InSubquery,
    Literal,
    Named,
    ScalarSubquery,
    passed,
)
from govtool.records.plan.nodes import (
    Expand,
    Filter,
    Generate,
    Join,
    LateralJoin,
    LocalRows,
    Project,
    Range,
    Relation,
    Repartition,
    Sort,
    Union,
    outputs,
)
from govtool.records.plan.tree import Node, walk
from govtool.records.plan.types import BOOLEAN, LONG
from govtool.records.trace.candidates import kept_condition, outer_parts, relaxed
from govtool.records.trace.carrier import RECORD, TRUE, Carrier, Linked, Needed, coarse, relocated
from govtool.records.trace.computed import computed, has_candidates
from govtool.records.trace.segment import (
    LeafSource,
    Segment,
    Source,
    conjuncts,
    doubted,
    everything,
    reads,
    subqueries,
)
from govtool.records.trace.subqueries import (
    GUARDED,
    cell_link,
    condition_links,
    guards_pairs,
    negated,
    partners,
    semijoin_links,
)


def relation(carrier: Carrier, node: Relation, needed: Needed) -> Segment:
    """A row of an input is itself."""
    record = carrier.ids.attribute("record", LONG)
    read = replace(node, columns=(*node.columns, record), metadata=(*node.metadata, (record.id, RECORD)))
    return Segment(read, node.columns, (LeafSource(node, record),))


def local_rows(carrier: Carrier, node: LocalRows, needed: Needed) -> Segment:
    """A row of the driver's is its position; a row without columns is no input."""
    if not node.columns:
        return Segment(node, (), ())
    record = carrier.ids.attribute("record", LONG)
    rows = tuple((*row, number) for number, row in enumerate(node.rows))
    made = replace(node, columns=(*node.columns, record), rows=rows)
    return Segment(made, node.columns, (LeafSource(node, record),))


def number_range(carrier: Carrier, node: Range, needed: Needed) -> Segment:
    """A number is its position."""
    offset = Call("-", (node.column, Literal(node.start, LONG)), LONG, "ansi")
    record = carrier.ids.named("record", Call("div", (offset, Literal(node.step, LONG)), LONG, "ansi"))
    made = Project(node, (passed(node.column), record))
    return Segment(made, (node.column,), (LeafSource(node, record.attribute),))


def project(carrier: Carrier, node: Project, needed: Needed) -> Segment:
    """Unchanged; a cell that counts brings what it is computed from."""
    wanted = [named.value for named in node.columns if named.id in needed]
    child = carrier.segment(node.child, reads(wanted))
    child = carrier.linked(child, [cell_link(carrier, each) for each in subqueries(wanted)])
    if _decides_rows(subqueries(wanted), node.child):
        child = _doubted(carrier, child, TRUE)
    columns = {named.id: named for named in node.columns}
    columns.update((column.id, passed(column)) for column in child.carried() if column.id not in columns)
    return Segment(Project(child.node, tuple(columns.values())), outputs(node), child.sources)


def filtered(carrier: Carrier, node: Filter, needed: Needed) -> Segment:
    """Unchanged; a condition on computed values is a guard, a subquery a semijoin or an antijoin."""
    if not all(getattr(term, "deterministic", True) for term in walk(node.condition)):
        return coarse(carrier, node, needed, "a condition that is not deterministic")
    parts = list(conjuncts(node.condition))
    standing = reads(part for part in parts if negated(part) is None)
    child = carrier.segment(node.child, needed | standing)
    child = carrier.linked(child, [link for part in parts for link in condition_links(carrier, part)])
    loose = [part for part in parts if not isinstance(part, (Exists, InSubquery))]
    if not carrier.candidates and (
        reads(parts) & computed(node.child) - standing or _decides_rows(subqueries(loose), node.child)
    ):
        child = _doubted(carrier, child, TRUE)
    condition = kept_condition(node, carrier.ids) if carrier.candidates else node.condition
    made = child.node if condition is None else Filter(child.node, condition)
    return Segment(made, outputs(node), child.sources)


def _decides_rows(found: Sequence[ScalarSubquery | Exists | InSubquery], child: Node) -> bool:
    """Return True if subqueries read computed columns of the row: then the choice of their rows is computed, too."""
    return bool({column.id for each in found for column in each.outer} & computed(child))


def join(carrier: Carrier, node: Join, needed: Needed) -> Segment:
    """a·b; a padded row is its own side's; semijoins and antijoins are subqueries."""
    if node.condition is not None and subqueries([node.condition]):
        if node.kind not in ("inner", "cross"):
            return coarse(carrier, node, needed, "the condition of a join holds a subquery")
        return filtered(carrier, Filter(Join(node.left, node.right, "cross", None), node.condition), needed)
    needed = needed | reads([] if node.condition is None else [node.condition])
    if node.kind in ("left_semi", "left_anti", "existence"):
        return _semijoined(carrier, node, needed)
    if carrier.candidates and node.kind in ("left", "right", "full"):
        return _with_padded(carrier, node, needed)
    left, right = carrier.segment(node.left, needed), carrier.segment(node.right, needed)
    if carrier.candidates:
        made = replace(node, left=left.node, right=right.node, condition=kept_condition(node, carrier.ids))
        return Segment(made, outputs(node), left.sources + right.sources)
    return _joined(carrier, node, left, right)


def _joined(carrier: Carrier, node: Join, left: Segment, right: Segment) -> Segment:
    """The pairs and the padded rows; what would have matched a padded row, were it there, stands against it."""
    links: list[Linked] = []
    guarded = guards_pairs(node)
    for kind, other in (("left", node.right), ("right", node.left)):
        if node.kind in (kind, "full") and (guarded or has_candidates(other)):
            mark = carrier.ids.named("there", TRUE)
            padded = Call("is null", (mark.attribute,), BOOLEAN)
            if kind == "left":
                right = replace(right, node=Project(right.node, (*everything(right.node), mark)))
            else:
                left = replace(left, node=Project(left.node, (*everything(left.node), mark)))
            sides = (node.left, node.right) if kind == "left" else (node.right, node.left)
            found = partners(carrier.whole(), f"{node.kind} join", *sides, node.condition)
            links.append(replace(found, against=True, where=padded))
    made = replace(node, left=left.node, right=right.node)
    segment = Segment(made, outputs(node), left.sources + right.sources)
    for each in links if guarded else []:
        segment = _doubted(carrier, segment, each.where)
    return carrier.linked(segment, links)


def _doubted(carrier: Carrier, segment: Segment, where: Expression) -> Segment:
    """A segment whose rows are a superset where a condition holds: computed values steer which rows count."""
    segment, (doubt,) = carrier.extended(segment, [where], "doubt")
    return replace(segment, sources=tuple(doubted(each, doubt, GUARDED.why) for each in segment.sources))


def _semijoined(carrier: Carrier, node: Join, needed: Needed) -> Segment:
    left = carrier.segment(node.left, needed)
    if node.kind == "left_anti" and guards_pairs(node):
        left = _doubted(carrier, left, TRUE)
    counts = node.kind == "left_semi" or (node.exists is not None and node.exists.id in needed)
    made: Node = replace(node, left=left.node)
    if carrier.candidates:
        other = relaxed(node.right, carrier.ids)
        among = replace(node, left=left.node, right=other, condition=kept_condition(node, carrier.ids))
        made = left.node if node.kind == "left_anti" else among
    segment = Segment(made, outputs(node), left.sources)
    return carrier.linked(segment, semijoin_links(carrier, node, counts))


def _with_padded(carrier: Carrier, node: Join, needed: Needed) -> Segment:
    """An outer join among candidates: every pair, and every row padded, its partners against it."""
    pairs, *padded = outer_parts(node, carrier.ids)
    segments = [carrier.segment(pairs, needed)]
    for part in padded:
        rows = carrier.segment(part.rows, frozenset())
        found = partners(carrier, f"{node.kind} join", part.rows, part.other, part.condition)
        rows = carrier.linked(rows, [replace(found, against=True)])
        node_of = Project(rows.node, (*part.columns, *(passed(c) for c in rows.carried())))
        segments.append(Segment(node_of, tuple(c.attribute for c in part.columns), rows.sources))
    return side_by_side(carrier, segments, outputs(node))


def lateral_join(carrier: Carrier, node: LateralJoin, needed: Needed) -> Segment:
    """a·b, the right side evaluated for each row of the left."""
    needed = needed | reads([] if node.condition is None else [node.condition])
    left, right = carrier.segment(node.left, needed), carrier.segment(node.right, needed)
    bound = {column.id: column for column in left.visible}
    sources = left.sources + tuple(_with_outer(source, bound) for source in right.sources)
    return Segment(replace(node, left=left.node, right=right.node), outputs(node), sources)


def _with_outer(source: Source, bound: dict[int, Attribute]) -> Source:
    if isinstance(source, LeafSource):
        return source
    more = [(each, bound[each.id]) for each in source.link.free if each.id in bound]
    return replace(source, pairs=(*source.pairs, *more))


def union(carrier: Carrier, node: Union, needed: Needed) -> Segment:
    """Rows side by side."""
    segments = []
    for child in node.children:
        columns = zip(outputs(child), node.columns, strict=True)
        segments.append(carrier.segment(child, frozenset(old.id for old, new in columns if new.id in needed)))
    return side_by_side(carrier, segments, node.columns)


def side_by_side(carrier: Carrier, segments: Sequence[Segment], columns: tuple[Attribute, ...]) -> Segment:
    """The rows of several segments, by position; the sources of the others are NULL."""
    renames: list[dict[int, Attribute]] = []
    for segment in segments:
        renames.append({c.id: carrier.ids.attribute(c.name, c.type) for c in segment.carried()})
    extra = [new for names in renames for new in names.values()]
    nodes = []
    for segment, names in zip(segments, renames, strict=True):
        own = {names[column.id].id: column for column in segment.carried()}
        values = [*segment.visible, *(own.get(slot.id, Literal(None, slot.type)) for slot in extra)]
        nodes.append(Project(segment.node, tuple(carrier.ids.named("column", value) for value in values)))
    sources = [relocated(s, names) for segment, names in zip(segments, renames, strict=True) for s in segment.sources]
    return Segment(Union(tuple(nodes), (*columns, *extra)), columns, tuple(sources))


def generate(carrier: Carrier, node: Generate, needed: Needed) -> Segment:
    """That of the row, once an element."""
    collected = reads([node.generator]) & computed(node.child)
    if needed & {column.id for column in node.columns}:
        needed = needed | collected
    child = carrier.segment(node.child, needed)
    if collected & needed:  # the elements of a collected list are one value: each brings the rows of all
        child = _doubted(carrier, child, TRUE)
    return Segment(replace(node, child=child.node), outputs(node), child.sources)


def expand(carrier: Carrier, node: Expand, needed: Needed) -> Segment:
    """That of the row, once a projection."""
    wanted = [
        [value for value, column in zip(line, node.columns, strict=True) if column.id in needed]
        for line in node.projections
    ]
    steering = [reads(values) & computed(node.child) for values in wanted]
    child = carrier.segment(node.child, frozenset().union(*steering))
    own = {column.id for column in node.columns}
    child = _copied(carrier, child, [column for column in child.carried() if column.id in own])
    doubt = carrier.ids.attribute("doubt", BOOLEAN)
    every = frozenset().union(*steering)
    # A projection without the cell that counts in others has its sources all the same.
    doubts = [Literal(each != every, BOOLEAN) for each in steering]
    extra = child.carried()
    lines = tuple((*line, *extra, mark) for line, mark in zip(node.projections, doubts, strict=True))
    sources = child.sources
    if any(mark.value for mark in doubts):
        sources = tuple(doubted(each, doubt, GUARDED.why) for each in sources)
    return Segment(Expand(child.node, lines, (*node.columns, *extra, doubt)), node.columns, sources)


def _copied(carrier: Carrier, segment: Segment, columns: Sequence[Attribute]) -> Segment:
    """A segment that carries copies of some columns, as the projections above may set them to NULL."""
    if not columns:
        return segment
    made: dict[int, Named] = {column.id: carrier.ids.named(column.name, column) for column in columns}
    names = {number: named.attribute for number, named in made.items()}
    node = Project(segment.node, (*everything(segment.node), *made.values()))
    return Segment(node, segment.visible, tuple(relocated(source, names) for source in segment.sources))


def marked(carrier: Carrier, node: Repartition, needed: Needed) -> Segment:
    """Rows of which some may not have been the run's (see ``loosen``): those of the output are compared with its."""
    child = carrier.segment(node.child, needed)
    segment = replace(child, node=Repartition(child.node))
    if carrier.top:
        return segment
    segment, (doubt,) = carrier.extended(segment, [TRUE], "doubt")
    return replace(segment, sources=tuple(doubted(each, doubt, carrier.why) for each in segment.sources))


def in_order(carrier: Carrier, node: Sort, needed: Needed) -> Segment:
    """Order is not provenance."""
    return carrier.segment(node.child, needed)
