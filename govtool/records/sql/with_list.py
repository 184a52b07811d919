"""The WITH list of a statement: an entry an operator; what reads a query around it is written where it is used."""

from __future__ import annotations

from govtool.records.plan.expressions import Attribute
from govtool.records.sql.dialect import Dialect, NotExact
from govtool.records.sql.operands import Operand, Visible

NOTHING = "nothing"
"""The column of an operator that has none."""


class WithList:
    """The entries of one statement.

    Args:
        dialect: The SQL of the executor.

    Attributes:
        entries: Name and text of each, in their order.
        count: Numbers that names have taken.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.entries: list[tuple[str, str]] = []
        self.count = 0

    def add(
        self,
        text: str,
        columns: tuple[Attribute, ...],
        inputs: tuple[Operand, ...],
        scope: Visible | None = None,
        position: str = "",
    ) -> Operand:
        """A new entry of the WITH list, or an inline source if it reads a query around it."""
        alias = f"n{self.count}"
        self.count += 1
        is_open = any(each.inline for each in inputs) or bool(scope is not None and scope.used_outer)
        if is_open:
            return Operand(alias, columns, text, position)
        self.entries.append((alias, text))
        return Operand(alias, columns, "", position)

    def scope(self, around: Visible | None, *sources: Operand) -> Visible:
        """Return the columns in scope of an expression over some sources."""
        names: dict[int, str] = {}
        for source in sources:
            for each in {one.id: one for one in source.columns}.values():
                if each.id in names:
                    raise NotExact(f"column {each.name} on both sides of a join under one id")
                names[each.id] = f"{source.alias}.{self.column(each)}"
        return Visible(names, around)

    def column(self, attribute: Attribute) -> str:
        """A column's name."""
        return self.dialect.column(attribute)

    def select(self, columns: list[tuple[str, str]], source: Operand | None = None, position: bool = False) -> str:
        """A SELECT list of values under names."""
        items = [f"{value} AS {name}" for value, name in columns]
        if position and source is not None and source.position:
            items.append(f"{source.alias}.{source.position} AS {source.position}")
        return "SELECT " + (", ".join(items) if items else f"1 AS {NOTHING}")

    def positional(self, source: Operand, columns: tuple[Attribute, ...]) -> str:
        """A SELECT of a source's columns under other names; an id that is there twice is the same value twice."""
        seen: dict[int, tuple[str, str]] = {}
        for own, each in zip(source.columns, columns, strict=True):
            value = f"{source.alias}.{self.column(own)}"
            if each.id in seen and seen[each.id][0] != value:
                raise NotExact(f"column {each.name} twice in a union, of two columns")
            seen[each.id] = (value, self.column(each))
        return f"{self.select(list(seen.values()))} FROM {source.table}"


def unique(columns: tuple[Attribute, ...]) -> tuple[Attribute, ...]:
    """Columns, each id once."""
    return tuple({each.id: each for each in columns}.values())
