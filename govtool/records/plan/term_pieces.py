"""Pieces of expressions that live only while a captured plan is read; no operator may hold one."""

from __future__ import annotations

from dataclasses import dataclass

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call, Expression, Frame, SortKey
from govtool.records.plan.tree import Node, Term


class Unread(Exception):
    """A class or a field that the allow-list does not have."""


@dataclass(frozen=True, slots=True)
class Common(Term):
    """A use of a common expression."""

    id: int
    type: t.Type


@dataclass(frozen=True, slots=True)
class CommonDefinition(Term):
    """A common expression."""

    id: int
    value: Expression


@dataclass(frozen=True, slots=True)
class Query(Term):
    """The plan of an IN or of a lateral join."""

    plan: Node
    outer: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class Specification(Term):
    """A window's specification."""

    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    frame: Frame | None


@dataclass(frozen=True, slots=True)
class Edge(Term):
    """A bound of a frame that is no offset."""

    name: str


@dataclass(frozen=True, slots=True)
class Ordered(Term):
    """An aggregate function with the order that is among its fields."""

    call: Call
    order: tuple[SortKey, ...]


PIECES = (Common, CommonDefinition, Query, Specification, Edge, Ordered)
"""Parts that no operator may hold."""
