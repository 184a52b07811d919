"""Names that the expressions of a query may use, and the aggregates and window functions that they hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from govtool.records.plan.expressions import Attribute, Expression, Named
from govtool.records.plan.nodes import Definition


@dataclass
class Scope:
    """Names that a query's expressions may use."""

    parent: Scope | None
    tables: list[tuple[str, tuple[Attribute, ...]]] = field(default_factory=list)
    merged: dict[str, Attribute] = field(default_factory=dict)
    """Columns that USING and NATURAL merged, by name."""
    views: dict[str, Definition] = field(default_factory=dict)
    """Its own common table expressions, by name."""
    outer: dict[int, Attribute] = field(default_factory=dict)
    """Columns of queries around this one that it reads."""

    def columns(self) -> tuple[Attribute, ...]:
        """The columns that ``*`` stands for."""
        merged = tuple(self.merged.values())
        rest = tuple(c for _, columns in self.tables for c in columns if c.name.lower() not in self.merged)
        return merged + rest

    def found(self, name: str, qualifier: str) -> list[Attribute]:
        """The columns of a name here, without the queries around."""
        if not qualifier and name in self.merged:
            return [self.merged[name]]
        return [
            column
            for alias, columns in self.tables
            if qualifier in ("", alias)
            for column in columns
            if column.name.lower() == name
        ]

    def seen(self) -> dict[str, Definition]:
        """The common table expressions that are seen from here, inner ones first."""
        found: dict[str, Definition] = {}
        at: Scope | None = self
        while at is not None:
            found = {**at.views, **found}
            at = at.parent
        return found


@dataclass
class Calls:
    """Aggregates or window functions that were found in expressions, each once."""

    next_id: Callable[[], int]
    named: dict[Expression, Named] = field(default_factory=dict)

    def column(self, call: Expression, name: str) -> Attribute:
        """The column that holds a call's value."""
        if call not in self.named:
            self.named[call] = Named(call, self.next_id(), name)
        return self.named[call].attribute
