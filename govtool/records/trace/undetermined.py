"""Cells of a plan that another evaluation may give another value: none of them is evaluated again.

``first``, ``last`` and ``any_value`` return the value of whichever row comes first. Which lines of CSV or JSON cannot
be parsed depends on the columns that are read, and so does the column that holds such lines.
"""

from __future__ import annotations

from dataclasses import replace

from govtool.records.plan.expressions import AggregateCall, Attribute, Expression, Named, Opaque
from govtool.records.plan.nodes import Aggregate, Filter, Join, Project, Relation, Session
from govtool.records.plan.tree import Node, Term, rewrite, rewrite_nodes, walk, walk_nodes

_CHOSEN = frozenset({"first", "last", "any_value"})
_OPTION, _SETTING, _NAME = "columnnameofcorruptrecord", "spark.sql.columnNameOfCorruptRecord", "_corrupt_record"
_TEXT = ("csv", "json")
_LINES = "a column of lines that cannot be parsed: which these are depends on the columns that are read"


def settled(root: Node, session: Session) -> Node:
    """A plan whose undetermined cells are opaque."""
    lines = {column.id for node in walk_nodes(root) for column in _unparsed(node, session)}

    def swapped(term: Term) -> Term:
        if isinstance(term, Attribute) and term.id in lines:
            return Opaque(_LINES, (term,), term.type)
        return term

    def change(node: Node) -> Node:
        if lines and isinstance(node, (Filter, Project, Aggregate, Join)):
            node = node.replaced(terms=tuple(rewrite(term, swapped) for term in node.terms()))
        return _without_choices(node) if isinstance(node, Aggregate) else node

    return rewrite_nodes(root, change)


def _unparsed(node: Node, session: Session) -> list[Attribute]:
    """The columns of a leaf that hold lines which cannot be parsed."""
    if not isinstance(node, Relation) or node.format not in _TEXT:
        return []
    options = {name.lower(): value for name, value in node.options}
    called = options.get(_OPTION) or dict(session.settings).get(_SETTING) or _NAME
    return [column for column in node.columns if column.name.lower() == called.lower()]


def _without_choices(node: Aggregate) -> Aggregate:
    keys = {key.id for key in node.keys} | {k.value.id for k in node.keys if isinstance(k.value, Attribute)}

    def swapped(term: Term) -> Term:
        if not isinstance(term, AggregateCall) or term.name not in _CHOSEN or term.order:
            return term
        if term.deterministic:
            return term  # a pivot's: there is one row of each value
        if all(each.id in keys for argument in term.arguments for each in _columns(argument)):
            return term  # the same in all rows of the group
        return Opaque(f"{term.name} takes the value of any row: nothing orders them", term.arguments, term.type, True)

    def without(named: Named) -> Named:
        value: Expression = rewrite(named.value, swapped)  # type: ignore[assignment]
        return replace(named, value=value)

    return replace(node, measures=tuple(map(without, node.measures)))


def _columns(value: Expression) -> list[Attribute]:
    return [term for term in walk(value) if isinstance(term, Attribute)]
