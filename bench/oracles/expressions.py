"""Draws expressions over a scope of named columns. See ``queries``."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")

INT, TEXT = "int", "text"

TABLES: dict[str, dict[str, str]] = {
    "people": {"id": INT, "name": TEXT, "city": TEXT, "age": INT, "boss": INT},
    "orders": {"id": INT, "person": INT, "amount": INT, "qty": INT, "status": TEXT},
    "items": {"sku": TEXT, "person": INT, "price": INT, "qty": INT},
    "places": {"city": TEXT, "country": TEXT, "rank": INT},
}
"""The schema: ``id``, ``city``, ``qty`` and ``person`` are in two tables each."""

Column = tuple[str, str]
"""A name and a type; the type of a struct is written ``struct(field type, …)``."""


@dataclass
class Relation:
    """A FROM item."""

    alias: str
    columns: list[Column]


@dataclass
class Scope:
    """What may be named at one place."""

    outer: Scope | None = None
    relations: list[Relation] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    apart: set[str] = field(default_factory=set)
    """Names that are columns on both sides of a comma; how many columns they are in a ``*`` is not kept track of."""
    aliases: list[Column] = field(default_factory=list)
    """Output columns that the dialect lets later expressions name."""

    def bare(self) -> dict[str, str]:
        """Columns that need no qualifier."""
        seen: dict[str, list[str]] = {}
        for relation in self.relations:
            for name, type_ in relation.columns:
                seen.setdefault(name, []).append(type_)
        return {name: types[0] for name, types in seen.items() if len(types) == 1 or name in self.merged}

    def names(self) -> set[str]:
        """All column names, ambiguous ones included."""
        return {name for relation in self.relations for name, _ in relation.columns}

    def references(self) -> list[Column]:
        """What may be written for each column, here and outside."""
        found = [(f"{r.alias}.{name}", type_) for r in self.relations for name, type_ in r.columns]
        found.extend(self.bare().items())
        found.extend((name, type_) for name, type_ in self.aliases if name not in self.names())
        if self.outer is not None:
            hidden = {relation.alias for relation in self.relations}
            names = self.names() | hidden  # whether an alias hides an outer column is for the dialect to say
            for text, type_ in self.outer.references():
                head = text.split(".")[0]
                if head not in (hidden if "." in text else names) and head not in self.names():
                    found.append((text, type_))
        return found


@dataclass
class Query:
    """A query and its columns."""

    sql: str
    columns: list[Column]


class Chance:
    """The state of one draw."""

    def __init__(self, seed: int, dialect: str) -> None:
        self.random = random.Random(seed)
        self.duckdb = dialect == "duckdb"
        self.number = 0
        self.ctes: list[Relation] = []

    def chance(self, probability: float) -> bool:
        """True that often."""
        return self.random.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        """One of several."""
        return self.random.choice(items)

    def fresh(self, prefix: str) -> str:
        """A name that nothing else has."""
        self.number += 1
        return f"{prefix}{self.number}"

    def one(self, *makers: Callable[[], str]) -> str:
        """What one of several makes."""
        return self.pick(makers)()


class Expressions(Chance):
    """Draws expressions over a scope."""

    def _reference(self, scope: Scope, type_: str) -> str:
        found = []
        for text, of in scope.references():
            if of == type_:
                found.append(text)
            elif of.startswith("struct") and f" {type_}" in of:
                part = "f" if type_ == INT else "g"
                found.append(self.pick((f"{text}.{part}", f"({text}).{part}", f"{text}['{part}']")))
        if not found:
            return f"CAST({self.random.randrange(5)} AS BIGINT)" if type_ == INT else f"'{self.pick('abc')}'"
        return self.pick(found)

    def expression(self, scope: Scope, type_: str, depth: int, *, subqueries: bool = True) -> str:
        """A scalar expression."""
        if depth <= 0 or self.chance(0.45):
            return self._reference(scope, type_)

        def sub(wanted: str = type_) -> str:
            return self.expression(scope, wanted, depth - 1, subqueries=subqueries)

        way = self.random.random()
        if way < 0.12:
            return f"CASE WHEN {self.condition(scope, depth - 1, subqueries=subqueries)} THEN {sub()} ELSE {sub()} END"
        if way < 0.18:
            return f"CASE {sub(INT)} WHEN {self.random.randrange(4)} THEN {sub()} WHEN {sub(INT)} THEN {sub()} END"
        if way < 0.26:
            return f"coalesce({sub()}, {sub()})"
        if way < 0.30:
            return f"nullif({sub()}, {sub()})"
        if way < 0.34:
            return f"greatest({sub()}, {sub()})"
        if way < 0.44 and subqueries:
            return self._scalar(scope, type_, depth - 1)
        if type_ == INT:
            return self.one(
                lambda: f"({sub()} {self.pick('+-')} {sub()})",
                lambda: f"abs({sub()})",
                lambda: f"length({sub(TEXT)})",
                lambda: f"-({sub()})",
                lambda: f"({sub()} * {self.random.randrange(3)})",
            )
        return self.one(
            lambda: f"({sub()} || {sub()})",
            lambda: f"upper({sub()})",
            lambda: f"substr({sub()}, 1, 1)",
            lambda: f"CAST({sub(INT)} AS VARCHAR)",
            lambda: f"replace({sub()}, 'a', {sub()})",
        )

    def _scalar(self, scope: Scope, type_: str, depth: int) -> str:
        inner = Scope(scope)
        from_ = self._from(min(depth, 1), inner)
        where = f" WHERE {self.condition(inner, min(depth, 1))}" if self.chance(0.7) else ""
        return f"(SELECT {self.aggregate(inner, type_)} FROM {from_}{where})"

    def condition(self, scope: Scope, depth: int, *, subqueries: bool = True) -> str:
        """A predicate."""
        type_ = self.pick((INT, INT, TEXT))

        def sub(wanted: str = type_) -> str:
            return self.expression(scope, wanted, depth - 1, subqueries=subqueries)

        way = self.random.random()
        if depth > 0 and way < 0.15:
            first = self.condition(scope, depth - 1, subqueries=subqueries)
            second = self.condition(scope, depth - 1, subqueries=subqueries)
            return f"({first} {self.pick(('AND', 'OR'))} {second})"
        if depth > 0 and subqueries and way < 0.3:
            inner = Scope(scope)
            from_ = self._from(0, inner)
            where = f" WHERE {self.condition(inner, 0)}" if self.chance(0.7) else ""
            form = self.random.random()
            if form < 0.35:
                return f"{self.pick(('', 'NOT '))}EXISTS (SELECT 1 FROM {from_}{where})"
            value = self._reference(inner, type_)
            operator = self.pick(("IN", "NOT IN", "= ANY", "<> ALL", "> ALL"))
            if form < 0.5 and not self.duckdb and operator in ("IN", "NOT IN"):
                other = self._reference(inner, INT)
                return f"({sub()}, {sub(INT)}) {operator} (SELECT {value}, {other} FROM {from_}{where})"
            return f"{sub()} {operator} (SELECT {value} FROM {from_}{where})"
        if way < 0.4:
            return f"{sub()} IS {self.pick(('', 'NOT '))}NULL"
        if way < 0.5 and type_ == INT:
            return f"{sub()} BETWEEN {self.random.randrange(3)} AND {sub()}"
        if way < 0.6 and type_ == INT:
            return f"{sub()} IN (0, {self.random.randrange(1, 4)}, {sub()})"
        if way < 0.65 and type_ == TEXT:
            return f"{sub()} LIKE '%a%'"
        return f"{sub()} {self.pick(('=', '<>', '<', '>='))} {sub()}"

    def aggregate(self, scope: Scope, type_: str) -> str:
        """An aggregate, or an expression over aggregates. Nothing that depends on the order of rows."""
        inner = Scope(
            None, scope.relations, scope.merged
        )  # aliases are not seen inside, and outer columns seldom taken

        def value(wanted: str = type_) -> str:
            return self.expression(inner, wanted, 1, subqueries=False)

        filter_ = f" FILTER (WHERE {self.condition(inner, 0)})" if self.chance(0.15) else ""
        if type_ == INT:
            return self.one(
                lambda: f"sum({value()}){filter_}",
                lambda: f"max({value()}){filter_}",
                lambda: f"count({value(TEXT)}){filter_}",
                lambda: f"count(*){filter_}",
                lambda: f"count(DISTINCT {value(TEXT)}){filter_}",
                lambda: f"coalesce(min({value()}), {self.random.randrange(4)})",
                lambda: f"sum({value()}) - max({value()})",
                lambda: f"CASE WHEN count(*) > 2 THEN min({value()}) ELSE max({value()}) END",
            )
        return self.one(
            lambda: f"min({value()}){filter_}",
            lambda: f"max({value()}){filter_}",
            lambda: self._string_agg(value(), value(INT)),
        )

    def _string_agg(self, value: str, by: str) -> str:
        return f"string_agg({value}, ',' ORDER BY {by}, {value})"

    # ---- windows -----------------------------------------------------------------------------------

    def _window(self, scope: Scope) -> str:
        plain = Scope(scope.outer, scope.relations, scope.merged)
        parts = []
        if self.chance(0.6):
            parts.append(f"PARTITION BY {self._reference(plain, self.pick((INT, TEXT)))}")
        if self.chance(0.6):
            parts.append(f"ORDER BY {self._not_constant(plain)}{self.pick(('', ' DESC'))}")
        return " ".join(parts)

    def _not_constant(self, scope: Scope) -> str:
        return f"abs({self._reference(scope, INT)})" if self.chance(0.3) else f"({self._reference(scope, INT)})"

    def _windowed(self, scope: Scope, named: str) -> str:
        plain = Scope(scope.outer, scope.relations, scope.merged)
        over = named if named and self.chance(0.7) else f"({self._window(scope)})"
        value = self.expression(plain, INT, 1, subqueries=False)
        function = self.pick(
            (f"sum({value})", f"max({value})", "count(*)", f"count({value})", "rank()", "dense_rank()", f"min({value})")
        )
        if self.chance(0.1) and not function.endswith("rank()"):
            function += f" FILTER (WHERE {self.condition(plain, 0)})"
        return f"{function} OVER {over}"

    def _from(self, depth: int, scope: Scope) -> str:
        """A FROM clause, whose items are added to the scope. Implemented by ``Generator``."""
        raise NotImplementedError
