"""Names that the expressions of a query may use, and the aggregates and window functions that they hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from govtool.records.plan.expressions import Attribute, Expression, Named
from govtool.records.plan.nodes import Definition

if TYPE_CHECKING:
    from govtool.records.plan.from_sql import Context


@dataclass
class Scope:
    """Names that a query's expressions may use."""

    parent: Scope | None
    tables: list[tuple[str, tuple[Attribute, ...]]] = field(default_factory=list)
    merged: dict[str, Attribute] = field(default_factory=dict)
    """Columns that USING and NATURAL merged, by name."""
    views: dict[str, Definition] = field(default_factory=dict)
    """Common table expressions that are seen from here, by name."""
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


@dataclass
class Calls:
    """Aggregates or window functions that were found in expressions, each once."""

    named: dict[Expression, Named] = field(default_factory=dict)

    def column(self, context: Context, call: Expression, name: str) -> Attribute:
        """The column that holds a call's value."""
        if call not in self.named:
            self.named[call] = Named(call, context.next_id(), name)
        return self.named[call].attribute
