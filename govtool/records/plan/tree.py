"""Traversal of terms and nodes without recursion, so that plans of thousands of levels are ordinary.

Two families share a plan: a :class:`Node` is an operator, a :class:`Term` is an expression or a piece of one (a sort
key, a frame, a named column). Their direct parts are found from the dataclass fields, in the order of the fields.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Tree:
    """Base of everything in a plan."""

    __slots__ = ("_parts",)
    _parts: tuple[tuple[Term, ...], tuple[Node, ...]]
    """Kept by ``parts``; no field of the dataclasses, so no part of a value."""

    def parts(self) -> tuple[tuple[Term, ...], tuple[Node, ...]]:
        """The terms and the nodes directly in this one, each in the order of the fields."""
        try:
            kept = self._parts
        except AttributeError:
            kept = _parts_of(self)
            object.__setattr__(self, "_parts", kept)  # a plan is walked some ten times, and never changes
        return kept

    def terms(self) -> tuple[Term, ...]:
        """The terms directly in this one, in the order of the fields."""
        return self.parts()[0]

    def nodes(self) -> tuple[Node, ...]:
        """The nodes directly in this one: an operator's inputs, or the plan of a subquery."""
        return self.parts()[1]

    def replaced(self, terms: tuple[Term, ...] | None = None, nodes: tuple[Node, ...] | None = None) -> Self:
        """Return a copy with other direct terms or nodes, given in the order of :meth:`terms` and :meth:`nodes`."""
        own_terms, own_nodes = self.parts()
        new_terms = own_terms if terms is None else terms
        new_nodes = own_nodes if nodes is None else nodes
        if _are_same(own_terms, new_terms) and _are_same(own_nodes, new_nodes):
            return self
        next_term, next_node = iter(new_terms), iter(new_nodes)

        def change(value: Any) -> Any:
            if isinstance(value, Term):
                return next(next_term)
            if isinstance(value, Node):
                return next(next_node)
            return tuple(change(item) for item in value) if isinstance(value, tuple) else value

        return type(self)(**{name: change(getattr(self, name)) for name in field_names(type(self))})


class Term(Tree):
    """An expression, or a piece of one."""

    __slots__ = ()


class Node(Tree):
    """An operator."""

    __slots__ = ("_outputs", "_plans")
    _plans: tuple[Node, ...]
    """Kept by ``nodes.outputs`` and ``subquery_plans``; no fields, so no part of the operator's value."""


_NO_PARTS: tuple[tuple[Term, ...], tuple[Node, ...]] = ((), ())
_FIELDS: dict[type, tuple[str, ...]] = {}
_TREE_FIELDS: dict[type, tuple[str, ...]] = {}
PLAIN = frozenset({
    "str", "int", "bool", "float", "Type", "Value", "Mode", "JoinKind", "SetKind", "Session", "tuple[str, ...]",
    "tuple[File, ...]", "tuple[Value, ...]", "tuple[tuple[Value, ...], ...]", "tuple[tuple[str, str], ...]",
})  # fmt: skip
"""Types of fields that hold neither terms nor nodes: most terms are columns, which have no other fields."""


def field_names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass, in order."""
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(field.name for field in dataclasses.fields(kind))
    return _FIELDS[kind]


def _tree_fields(kind: type) -> tuple[str, ...]:
    """The fields that may hold terms or nodes, in order."""
    plain = {field.name for field in dataclasses.fields(kind) if field.type in PLAIN}
    return _TREE_FIELDS.setdefault(kind, tuple(name for name in field_names(kind) if name not in plain))


def _parts_of(tree: Tree) -> tuple[tuple[Term, ...], tuple[Node, ...]]:
    kind = type(tree)
    names = _TREE_FIELDS[kind] if kind in _TREE_FIELDS else _tree_fields(kind)
    if not names:
        return _NO_PARTS
    terms: list[Term] = []
    nodes: list[Node] = []
    _gather([getattr(tree, name) for name in names], terms, nodes)
    return tuple(terms), tuple(nodes)


def _gather(values: Sequence[Any], terms: list[Term], nodes: list[Node]) -> None:
    """Add the terms and nodes among values, and in tuples and tuples of tuples among them."""
    for value in values:
        if isinstance(value, Term):
            terms.append(value)
        elif isinstance(value, Node):
            nodes.append(value)
        elif isinstance(value, tuple):
            _gather(value, terms, nodes)


def _are_same(own: tuple[Any, ...], new: tuple[Any, ...]) -> bool:
    return own is new or (len(own) == len(new) and all(map(operator.is_, own, new)))


def fold(root: Term, combine: Callable[[Term, tuple[T, ...]], T]) -> T:
    """Combine a term bottom-up: ``combine(term, results of its direct terms)``. Plans of subqueries are not entered."""
    return _fold(root, lambda term: term.terms(), combine)


def fold_nodes(
    root: Node, combine: Callable[[Node, tuple[T, ...]], T], inputs: Callable[[Node], tuple[Node, ...]] | None = None
) -> T:
    """Combine a plan bottom-up: ``combine(node, results of its inputs)``. Plans of subqueries are not entered.

    Args:
        root: The plan.
        combine: Called with each operator, after its inputs.
        inputs: Which inputs to enter, if not all.
    """
    return _fold(root, inputs or (lambda node: node.nodes()), combine)


def _fold(root: Any, parts_of: Callable[[Any], tuple[Any, ...]], combine: Callable[[Any, tuple[T, ...]], T]) -> T:
    waiting: list[tuple[Any, tuple[Any, ...] | None]] = [(root, None)]
    results: list[T] = []
    while waiting:
        tree, parts = waiting.pop()
        if parts is None:
            parts = parts_of(tree)
            waiting.append((tree, parts))
            waiting.extend((part, None) for part in reversed(parts))
        else:
            split = len(results) - len(parts)
            own = tuple(results[split:])
            del results[split:]
            results.append(combine(tree, own))
    return results[0]


def rewrite(root: Term, change: Callable[[Term], Term]) -> Term:
    """Apply a change to every term bottom-up; each sees its parts already changed."""
    return fold(root, lambda term, parts: change(term.replaced(terms=parts)))


def rewrite_nodes(root: Node, change: Callable[[Node], Node]) -> Node:
    """Apply a change to every operator bottom-up; each sees its inputs already changed."""
    return fold_nodes(root, lambda node, parts: change(node.replaced(nodes=parts)))


def walk(root: Tree) -> Iterator[Term]:
    """The terms at and under a term, or in a node's own expressions, parents first. Subquery plans are not entered."""
    waiting: list[Term] = [root] if isinstance(root, Term) else list(reversed(root.terms()))
    while waiting:
        term = waiting.pop()
        yield term
        waiting.extend(reversed(term.terms()))


def walk_nodes(root: Node, subqueries: bool = True) -> Iterator[Node]:
    """The operators of a plan, parents first; an operator's subqueries follow it, before its inputs.

    Args:
        root: Where to start.
        subqueries: Enter the plans of subqueries in expressions.
    """
    waiting: list[Node] = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.nodes()))
        if subqueries:
            waiting.extend(reversed(subquery_plans(node)))


def subquery_plans(node: Node) -> tuple[Node, ...]:
    """The plans of subqueries in an operator's own expressions, in the order of :func:`walk`."""
    try:
        kept = node._plans
    except AttributeError:
        kept = tuple(_plans_in(node.terms()))
        object.__setattr__(node, "_plans", kept)
    return kept


def _plans_in(terms: Sequence[Term]) -> list[Node]:
    found: list[Node] = []
    waiting = list(reversed(terms))
    while waiting:
        own, plans = waiting.pop().parts()
        found.extend(plans)
        waiting.extend(reversed(own))
    return found
