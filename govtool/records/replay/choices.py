"""Plans in which it is not known what the run chose: a trace then goes by the written rows."""

from __future__ import annotations

from dataclasses import replace

from govtool.records.plan.expressions import Expression, Named, Opaque, WindowCall
from govtool.records.plan.nodes import Deduplicate, Filter, Limit, Project, Repartition, Sort, Tail, Window
from govtool.records.plan.subqueries import everywhere_within
from govtool.records.plan.tree import Node, Term, rewrite, walk_nodes
from govtool.records.plan.types import BOOLEAN
from govtool.records.replay.compare import counts_rows


def chooses_rows(root: Node) -> bool:
    """Return whether an evaluation chooses among rows: across a limit, of duplicates, in the order of a window."""
    for node in walk_nodes(root):
        calls = [named.value for named in node.columns] if isinstance(node, Window) else []
        if isinstance(node, (Deduplicate, Limit, Tail)) or any(
            isinstance(call, WindowCall) and counts_rows(call) for call in calls
        ):
            return True
    return False


def without_choices(root: Node) -> Node:
    """A plan in which these choices are conditions and cells that cannot be evaluated again.

    An order decides most of what a limit keeps: such limits stay as they are.
    """
    return everywhere_within(root, _without_choice)


def _without_choice(node: Node, around: Node | None) -> Node:
    if isinstance(node, Deduplicate):
        return Filter(node.child, Opaque("dropDuplicates by some columns kept one row of each", (), BOOLEAN))
    if isinstance(node, Tail) or (isinstance(node, Limit) and not _is_ordered(node)):
        return Filter(node.child, Opaque("a limit kept some of the rows", (), BOOLEAN))
    if isinstance(node, Window):
        return replace(node, columns=tuple(map(_not_counted, node.columns)))
    return node


def _is_ordered(node: Limit) -> bool:
    below = node.child
    while isinstance(below, (Project, Repartition)):
        below = below.child
    return isinstance(below, Sort)


def _not_counted(named: Named) -> Named:
    def change(term: Term) -> Term:
        if not isinstance(term, WindowCall) or not counts_rows(term):
            return term
        return replace(term, function=Opaque("rows tie in the order of a window", (term.function,), term.type))

    value: Expression = rewrite(named.value, change)  # type: ignore[assignment]
    return named if value is named.value else replace(named, value=value)
