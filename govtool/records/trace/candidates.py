"""Plans without what takes rows off: guards, antijoins, right operands of EXCEPT.

The right operand of ⊖ stands against a row whole, its candidates included: a row that is not there only because another
one took it off is what a replay would find if that other one went.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from govtool.records.plan.expressions import Attribute, Expression, Literal, Named
from govtool.records.plan.nodes import (
    Distinct,
    Filter,
    Join,
    Limit,
    Project,
    SetOperation,
    Union,
    Window,
    outputs,
)
from govtool.records.plan.tree import Node, Term, rewrite
from govtool.records.trace.computed import computed, is_plain, is_semijoin
from govtool.records.trace.normal import Ids, refreshed
from govtool.records.trace.segment import both, conjuncts, reads


def kept_condition(node: Filter | Join, ids: Ids) -> Expression | None:
    """The part of a condition that candidates meet, too: what reads a row's own cells, and matches with candidates."""
    columns: frozenset[int] = frozenset().union(*(computed(child) for child in node.nodes()))
    kept: list[Expression] = []
    for part in conjuncts(node.condition):
        if is_plain(part, columns):
            kept.append(part)
        elif is_semijoin(part) and not reads([part]) & columns:
            kept.append(replace(part, plan=relaxed(part.plan, ids)))
    return both(kept)


def relaxed(node: Node, ids: Ids) -> Node:
    """The rows of a plan with its candidates.

    Windows and limits are left as they are: only a replay shows how candidates would shift frames and ranks.
    """
    if isinstance(node, (Window, Limit)):
        return node
    made = node.replaced(nodes=tuple(relaxed(child, ids) for child in node.nodes()))
    if isinstance(node, Filter):
        condition = kept_condition(node, ids)
        return made.nodes()[0] if condition is None else Filter(made.nodes()[0], condition)
    if isinstance(node, Join) and isinstance(made, Join):
        return _joined(replace(made, condition=kept_condition(node, ids)), ids)
    if isinstance(made, SetOperation):
        return set_candidates(made)
    return made


def _joined(node: Join, ids: Ids) -> Node:
    if node.kind == "left_anti":
        return node.left
    if node.kind not in ("left", "right", "full"):
        return node
    pairs, *padded = outer_parts(node, ids)
    parts: list[Node] = [pairs, *(Project(part.rows, part.columns) for part in padded)]
    return Union(tuple(parts), outputs(node))


def set_candidates(node: SetOperation) -> Node:
    """The values that INTERSECT or EXCEPT may have, each once."""
    if node.kind == "intersect":
        return replace(node, all=False)
    names = zip(outputs(node.left), node.columns, strict=True)
    return Distinct(Project(node.left, tuple(Named(old, new.id, new.name) for old, new in names)))


@dataclass(frozen=True, slots=True)
class Padded:
    """The rows of one side of an outer join, padded with NULLs."""

    rows: Node
    other: Node
    condition: Expression | None
    """The join's, over ``rows`` and ``other``."""
    columns: tuple[Named, ...]


def outer_parts(node: Join, ids: Ids) -> tuple[Join, *tuple[Padded, ...]]:
    """An outer join as its pairs and its padded rows; each part reads copies of its own."""
    parts = []
    for side, other, kinds in ((node.left, node.right, ("left", "full")), (node.right, node.left, ("right", "full"))):
        if node.kind in kinds:
            parts.append(_padded(node, side, other, ids))
    return (replace(node, kind="inner"), *parts)


def _padded(node: Join, side: Node, other: Node, ids: Ids) -> Padded:
    rows = refreshed(side, ids)
    copies = {old.id: new for old, new in zip(outputs(side), outputs(rows), strict=True)}

    def moved(term: Term) -> Term:
        return copies.get(term.id, term) if isinstance(term, Attribute) else term

    condition = None if node.condition is None else rewrite(node.condition, moved)
    values: list[Expression] = [copies.get(column.id, Literal(None, column.type)) for column in outputs(node)]
    columns = tuple(ids.named(column.name, value) for column, value in zip(outputs(node), values, strict=True))
    return Padded(rows, other, condition, columns)  # type: ignore[arg-type]
