"""Operators and columns as a statement names them."""

from __future__ import annotations

from dataclasses import dataclass, field

from govtool.records.plan.expressions import Attribute


@dataclass(frozen=True, slots=True)
class Operand:
    """An operator as a FROM clause names it."""

    alias: str
    columns: tuple[Attribute, ...]
    inline: str = ""
    """Its text, where it cannot stand in the WITH list."""
    position: str = ""
    """The column that holds the order of its rows, where they have one."""

    @property
    def table(self) -> str:
        """The text behind FROM."""
        return f"({self.inline}) AS {self.alias}" if self.inline else self.alias


@dataclass(frozen=True, slots=True)
class Visible:
    """The columns that an expression sees, and those of the query around it."""

    names: dict[int, str]
    around: Visible | None = None
    used_outer: list[int] = field(default_factory=list)
