"""Cells of a plan that another evaluation may give another value: none of them is evaluated again.

``first``, ``max_by``, ``mode`` and their like return one of several values where rows tie, ``collect_list`` a list in
any order (see ``list_order``). Which lines of CSV or JSON cannot be parsed depends on the columns that are read, and so
does the column that holds such lines. ``rand``, ``uuid`` and their like are drawn anew, and a sample keeps rows by a
condition that nobody knows: a seed holds only for the partitions and the order that the run had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeGuard

from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Expression,
    Named,
    Opaque,
    WindowCall,
)
from govtool.records.plan.nodes import Aggregate, Filter, Join, Project, Relation, Sample, Session, Window
from govtool.records.plan.subqueries import everywhere_within
from govtool.records.plan.tree import Node, Term, rewrite, walk, walk_nodes
from govtool.records.plan.types import BOOLEAN
from govtool.records.trace.list_order import with_settled_lists
from govtool.records.trace.ties import CHOOSING, Choice, ChosenCell, Tied, always_tied

_ANY = frozenset({"first", "last", "any_value"})
_IN_ORDER = "listagg"
_OPTION, _SETTING, _NAME = "columnnameofcorruptrecord", "spark.sql.columnNameOfCorruptRecord", "_corrupt_record"
_TEXT = ("csv", "json")
_SAMPLED = "a sample chose among the rows: which these are depends on the order in which Spark read them"
_LINES = "a column of lines that cannot be parsed: which these are depends on the columns that are read"


def settled(root: Node, session: Session, tied: Tied = always_tied) -> Node:
    """A plan whose undetermined cells are opaque.

    Args:
        root: The plan.
        session: What it ran in.
        tied: Tells for which choices rows tie.
    """
    lines = {column.id for node in walk_nodes(root) for column in _unparsed(node, session)}
    return everywhere_within(with_settled_lists(root, tied), _Settling(lines, tied).changed)


def _unparsed(node: Node, session: Session) -> list[Attribute]:
    """The columns of a leaf that hold lines which cannot be parsed."""
    if not isinstance(node, Relation) or node.format not in _TEXT:
        return []
    options = {name.lower(): value for name, value in node.options}
    called = options.get(_OPTION) or dict(session.settings).get(_SETTING) or _NAME
    return [column for column in node.columns if column.name.lower() == called.lower()]


class _Settling:
    """A pass over a plan and the plans of its subqueries."""

    def __init__(self, lines: set[int], tied: Tied) -> None:
        self._lines = lines
        self._tied = tied

    def changed(self, node: Node, around: Node | None) -> Node:
        """An operator, maybe of a subquery of rows ``around`` it."""
        if isinstance(node, Sample) and not node.replacement:
            return Filter(node.child, Opaque(_SAMPLED, (), BOOLEAN))
        if any(map(_is_drawn, walk(node))):
            node = node.replaced(terms=tuple(rewrite(term, _not_drawn) for term in node.terms()))
        if self._lines and isinstance(node, (Filter, Project, Aggregate, Join)):
            node = node.replaced(terms=tuple(rewrite(term, self._line) for term in node.terms()))
        if isinstance(node, Aggregate):
            return self._groups(node, around)
        return self._window(node, around) if isinstance(node, Window) else node

    def _line(self, term: Term) -> Term:
        if isinstance(term, Attribute) and term.id in self._lines:
            return Opaque(_LINES, (term,), term.type)
        return term

    def _groups(self, node: Aggregate, around: Node | None) -> Node:
        keys = {key.id for key in node.keys} | {k.value.id for k in node.keys if isinstance(k.value, Attribute)}
        parts = tuple(key.value for key in node.keys)
        choices = {
            term: Choice(node.child, parts, term)
            for term in _terms(node.measures)
            # of columns that are the same in all rows of the group nothing is chosen
            if _is_choice(term) and not all(each.id in keys for each in _columns(term.arguments[0]))
        }
        tied = self._tied_of(choices, around)

        def swapped(term: Term) -> Term:
            return _opaque(term) if _is_choice(term) and term in tied else term

        return replace(node, measures=tuple(_changed(named, swapped) for named in node.measures))

    def _window(self, node: Window, around: Node | None) -> Node:
        choices = {
            term: Choice(node.child, term.partition, term.function, term)
            for term in _terms(node.columns)
            if isinstance(term, WindowCall) and _is_choice(term.function)
        }
        tied = self._tied_of(choices, around)

        def swapped(term: Term) -> Term:
            if term not in tied or not isinstance(term, WindowCall) or not _is_choice(term.function):
                return term
            return replace(term, function=_opaque(term.function))

        return replace(node, columns=tuple(_changed(named, swapped) for named in node.columns))

    def _tied_of(self, choices: Mapping[Any, Choice], around: Node | None) -> set[Term]:
        """The functions for which rows tie."""
        found = self._tied(tuple(choices.values()), around) if choices else []
        return {term for term, is_tied in zip(choices, found, strict=True) if is_tied}


def _terms(columns: Iterable[Named]) -> Iterator[Term]:
    return (term for named in columns for term in walk(named.value))


def _is_choice(term: Term) -> TypeGuard[AggregateCall]:
    """Return True for a function that returns one of several values: that of a pivot has one alone."""
    return isinstance(term, AggregateCall) and term.name in CHOOSING and not (term.order or term.deterministic)


def _is_drawn(term: Term) -> bool:
    return isinstance(term, Call) and not term.deterministic


def _not_drawn(term: Term) -> Term:
    """``rand``, ``uuid`` and their like are opaque; a call that has one among its arguments stays."""
    if not isinstance(term, Call) or term.deterministic or any(isinstance(each, Opaque) for each in walk(term)):
        return term
    return Opaque(f"{term.name} is drawn at random or by partition", term.arguments, term.type)


def _opaque(call: AggregateCall) -> ChosenCell:
    """A cell that the run chose."""
    why = "takes the value of any row: nothing orders them" if call.name in _ANY else "takes one of rows that tie"
    if call.name == _IN_ORDER:
        why = "takes the rows in any order: nothing orders them"
    return ChosenCell(f"{call.name} {why}", call.arguments, call.type, True, call)


def _changed(named: Named, change: Callable[[Term], Term]) -> Named:
    value: Expression = rewrite(named.value, change)  # type: ignore[assignment]
    return named if value is named.value else replace(named, value=value)


def _columns(value: Expression) -> list[Attribute]:
    return [term for term in walk(value) if isinstance(term, Attribute)]
