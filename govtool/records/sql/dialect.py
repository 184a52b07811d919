"""Differences between the SQL of two executors, and the refusal to write what would not be exact."""

from __future__ import annotations

from abc import ABC, abstractmethod

from govtool.records.plan import types as t
from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Case,
    Cast,
    Frame,
    Lambda,
    Literal,
    SortKey,
    Udf,
    Variable,
    WindowCall,
)
from govtool.records.plan.nodes import Generate
from govtool.records.plan.tree import Term


class NotExact(Exception):
    """An operator or a cell that an executor cannot evaluate exactly; the message is the reason."""


class EvaluationFailed(NotExact):
    """A statement that failed on a value while it ran: a division by zero, a cast of what is no number."""


def quoted(text: str) -> str:
    """A string of standard SQL. Spark reads it alike where the text has no quotes and no backslashes."""
    return "'" + text.replace("'", "''") + "'"


class Dialect(ABC):
    """Writes expressions for one executor. ``parts`` are a term's direct terms, already written."""

    name: str
    """``spark`` or ``duckdb``."""
    utc = False
    """Whether times may be written for a session in UTC alone: its zone is UTC."""

    @abstractmethod
    def type(self, kind: t.Type) -> str:
        """A type's name."""

    @abstractmethod
    def literal(self, literal: Literal) -> str:
        """A constant of exactly its type."""

    @abstractmethod
    def call(self, call: Call, parts: list[str]) -> str:
        """A function or operator on the values of a row."""

    @abstractmethod
    def cast(self, cast: Cast, part: str) -> str:
        """A cast."""

    @abstractmethod
    def aggregate(self, call: AggregateCall, arguments: list[str], condition: str, order: list[str]) -> str:
        """An aggregate function."""

    @abstractmethod
    def rank(self, call: Call, parts: list[str]) -> str:
        """A function over a window that is no aggregate, before OVER."""

    @abstractmethod
    def generate(self, node: Generate, generator: str, source: str, alias: str) -> str:
        """The FROM clause of a Generate, whose new columns are named by their ids."""

    @abstractmethod
    def parameter(self, term: Lambda, parts: list[str]) -> str:
        """A lambda."""

    @abstractmethod
    def local_table(self, rows: list[list[str]], names: list[str]) -> str:
        """A FROM clause of rows."""

    @abstractmethod
    def udf(self, call: Udf, parts: list[str]) -> str:
        """A call of a user's function, registered under a name made of its digest."""

    def keys_comparable(self, kind: t.Type) -> None:
        """Refuse a type whose equality, as a key, is not Spark's.

        Raises:
            NotExact: It is not.
        """
        return

    def membership(self, steers: bool) -> None:
        """Refuse IN (subquery) outside of a filter.

        Raises:
            NotExact: Where Spark gives FALSE for the NULL of the standard.
        """
        return

    def over(self, call: WindowCall, function: str, partition: list[str], order: list[str], frame: str) -> str:
        """A window function."""
        clauses = []
        if partition:
            clauses.append("PARTITION BY " + ", ".join(partition))
        if order:
            clauses.append("ORDER BY " + ", ".join(order))
        if frame:
            clauses.append(frame)
        return f"{function} OVER ({' '.join(clauses)})"

    def sort_key(self, key: SortKey, part: str) -> str:
        """One key of an order, with the place of NULLs spelled out."""
        direction = "DESC" if key.descending else "ASC"
        return f"{part} {direction} NULLS {'FIRST' if key.nulls_first else 'LAST'}"

    def frame(self, frame: Frame, parts: list[str]) -> str:
        """A frame of a window."""
        left = iter(parts)
        bounds = []
        for bound in (frame.lower, frame.upper):
            if isinstance(bound, str):
                bounds.append(bound.upper())
            else:
                bounds.append(self.offset(bound, next(left)))
        return f"{frame.kind.upper()} BETWEEN {bounds[0]} AND {bounds[1]}"

    def offset(self, bound: Term, part: str) -> str:
        """An offset of a frame: a constant below zero precedes the row."""
        literal = _constant(bound)
        if literal is None:
            raise NotExact("a frame whose bound is no constant")
        if literal.value is None or isinstance(literal.value, (str, bytes, tuple)):
            raise NotExact("a frame whose bound is no number")
        if literal.value < 0:
            return f"{self.literal(Literal(-literal.value, literal.type))} PRECEDING"
        return f"{self.literal(literal)} FOLLOWING"

    def case(self, term: Case, parts: list[str]) -> str:
        """CASE."""
        pairs = [f"WHEN {parts[2 * i]} THEN {parts[2 * i + 1]}" for i in range(len(term.branches))]
        otherwise = f" ELSE {parts[-1]}" if term.otherwise is not None else ""
        return f"CASE {' '.join(pairs)}{otherwise} END"

    def variable(self, variable: Variable) -> str:
        """A lambda's parameter where it is used."""
        return f"v{variable.id}"

    def column(self, attribute: Attribute) -> str:
        """A column's name."""
        return f"c{attribute.id}" if attribute.id >= 0 else f"c_{-attribute.id}"


def _constant(bound: Term) -> Literal | None:
    """The constant that a bound is, casts between numbers and signs worked out."""
    if isinstance(bound, Literal):
        return bound
    if isinstance(bound, Call) and bound.name == "negative":
        inner = _constant(bound.arguments[0])
        if inner is not None and not isinstance(inner.value, (str, bytes, tuple, type(None))):
            return Literal(-inner.value, inner.type)
    if isinstance(bound, Cast):
        inner = _constant(bound.value)
        if inner is not None and isinstance(inner.value, int) and bound.type in t.INTEGRAL:
            return Literal(inner.value, bound.type)
    return None
