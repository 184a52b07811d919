"""The rule of each operator."""

from __future__ import annotations

from govtool.records.plan.nodes import (
    Aggregate,
    Deduplicate,
    Distinct,
    Expand,
    Filter,
    Generate,
    Join,
    LateralJoin,
    Limit,
    LocalRows,
    Project,
    Range,
    Relation,
    Repartition,
    SetOperation,
    Sort,
    Union,
    Window,
    outputs,
)
from govtool.records.plan.tree import Node
from govtool.records.trace import boundaries, rows, windows
from govtool.records.trace.carrier import Carrier, Rule
from govtool.records.trace.loosen import loosened
from govtool.records.trace.looseness import LoosenedPlan
from govtool.records.trace.normal import Ids, normalized, spare_ids
from govtool.records.trace.opaque import blanked
from govtool.records.trace.segment import Segment

RULES: dict[type, Rule] = {
    Relation: rows.relation,
    LocalRows: rows.local_rows,
    Range: rows.number_range,
    Project: rows.project,
    Filter: rows.filtered,
    Join: rows.join,
    LateralJoin: rows.lateral_join,
    Union: rows.union,
    Generate: rows.generate,
    Expand: rows.expand,
    Sort: rows.in_order,
    Repartition: rows.marked,
    Aggregate: boundaries.aggregate,
    Distinct: boundaries.distinct,
    Deduplicate: boundaries.deduplicate,
    SetOperation: boundaries.set_operation,
    Window: windows.window,
    Limit: windows.limit,
}
"""All others are black boxes: their inputs are traced whole."""


def traceable(node: Node) -> tuple[Segment, Ids, frozenset[int]]:
    """The outermost segment of a plan, every cell of its rows counting, and ids for what a trace adds to it.

    The last are the ids of columns that are NULL as they cannot be evaluated again.

    Raises:
        UsageError: The plan has more operators than can be traced.
    """
    ids = spare_ids(node)
    plan, blank = blanked(normalized(node, ids))
    carrier = Carrier(ids, RULES)
    return carrier.segment(plan, frozenset(column.id for column in outputs(plan))), ids, blank


def traceable_in_part(node: Node) -> tuple[Segment, Ids, LoosenedPlan]:
    """The same of a plan with parts that cannot be evaluated again, and how it was loosened.

    Raises:
        UsageError: The plan has more operators than can be traced.
    """
    ids = spare_ids(node)
    plan = loosened(normalized(node, ids), ids)
    carrier = Carrier(ids, RULES, why=plan.looseness.why if plan.looseness else plan.why)
    return carrier.segment(plan.node, frozenset(column.id for column in outputs(plan.node))), ids, plan
