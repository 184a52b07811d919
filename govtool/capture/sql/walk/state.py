"""What a walk gets from its surroundings: bodies of functions, values of variables, conditions, meanings of names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from sqlglot import exp

from govtool.capture.sql.walk.relation import QueryOutput, TableInfo, ViewBase

EVERYWHERE: Final = (0,)
OPTIONAL: Final = 1
"""Beside an arm in which a table is read: there are rows without any of this table."""
MAX_OVERLOADS: Final = 64
"""Functions of one name that are kept."""
Reads = dict[str, tuple[int, ...]]
"""Tables that are read, in order, with the arms in which they are."""
"""The arms of a table that is read outside of any alternative."""


@dataclass(frozen=True, slots=True)
class Inline:
    """The body of a SQL function: its parameters, and an expression or a query over them."""

    name: str
    parameters: tuple[str, ...]
    body: exp.Expr
    is_table: bool = False
    columns: tuple[str, ...] = ()
    """The names of its columns, where it says them."""
    row: str = ""
    """The table whose rows its own are like, as written."""
    types: tuple[str, ...] = ()
    """The types of its parameters, as written."""
    others: tuple[Inline, ...] = ()
    """Functions of the same name with parameters of other types, or that a call further up may have meant."""

    def beside(self, earlier: Inline, *, again: bool = False) -> Inline:
        """The same, with an earlier function of its name that it does not replace.

        Args:
            earlier: The function and its ``others``.
            again: Calls may mean what is replaced here: those further up in a script, or in scripts that run before.
        """
        every = (replace(earlier, others=()), *earlier.others)
        kept = [one for one in every if one.types != self.types or (again and one.body != self.body)]
        return replace(self, others=tuple(kept[:MAX_OVERLOADS]))

    def called(self, arguments: int, *, is_table: bool) -> list[Inline]:
        """Those of the functions of this name that a call with so many arguments may mean: types are not compared."""
        found = [one for one in (self, *self.others) if one.is_table == is_table]
        return [one for one in found if len(one.parameters) == arguments] or found


class VariableValue:
    """The value that one assignment gives a script variable.

    Attributes:
        name: Of the variable.
        output: Its columns: one, or those of the row that a record or a cursor holds.
        rows: What decides about it, as of a row set.
        reads: The tables that it was read from.
        ambiguous: As of a walk.
        reason: Where it comes from if it is not known; else empty.
        is_row: Whether it is the row that fired a trigger.
    """

    __slots__ = ("ambiguous", "is_row", "name", "output", "reads", "reason", "rows")

    def __init__(self, name: str, output: QueryOutput, rows: dict[int, exp.Expr | None], reads: Iterable[str]) -> None:
        self.name = name
        self.output = output
        self.rows = rows
        self.reads: dict[str, tuple[int, ...]] = dict.fromkeys(reads, EVERYWHERE)
        self.ambiguous: dict[frozenset[int], tuple[str, int, int]] = {}
        self.reason = ""
        self.is_row = False


class Returned(NamedTuple):
    """The rows of a table function whose body is a block of statements."""

    values: list[VariableValue]
    """Of each statement that returns rows."""
    columns: tuple[str, ...] = ()
    row: str = ""
    """As of ``Inline``."""


class TriggerCondition(NamedTuple):
    """A condition on the rows for which a trigger runs the statements of its body."""

    node: exp.Expr | None
    """None where it runs for each of them."""
    table: str
    """The table whose rows they are."""
    records: tuple[str, ...]
    """The names of a row in the condition: ``new``, ``old``."""


class Lookup(Protocol):
    """A walk's interface to its surroundings: the meaning of names outside the statement."""

    def table(self, name: str) -> TableInfo:
        """Return what is known of a table at this place of the script."""

    def view(self, name: str) -> ViewBase | None:
        """Return what a view of that name is to what is written to it; None for a table."""

    def replaces(self, name: str, kind: str) -> bool:
        """Return whether a trigger or rule takes the place of a statement of this kind that writes to a view."""

    def table_name(self, node: exp.Table) -> str:
        """Return the canonical id of a written table name; empty if it is not a plain name."""

    def other_name(self, name: str) -> str:
        """Return the other name that a table may have in this batch; empty if there is none."""

    def written_name(self, node: exp.Table) -> str:
        """Return the same, even where the name is a synonym."""

    def function(self, name: str) -> Inline | None:
        """Return the SQL function of that name, if its body is known."""

    def targets_of(self, routine: str) -> list[str]:
        """Return the datasets that a routine writes, whatever its schema; none if it is not known."""

    def is_unread(self, name: str) -> bool:
        """Return whether a masking function of that name is defined here, by a routine that could not be read."""

    def returned(self, name: str) -> Returned | None:
        """Return the rows of a table function of that name, if its body is a block that was read."""

    def triggering(self, routine: str) -> list[str]:
        """Return the tables whose rows a routine sees, as a trigger runs it."""

    def primary_key(self, name: str) -> Sequence[str]:
        """Return the columns of a table's primary key, as far as a definition shows it."""

    def partition_key(self, name: str) -> Sequence[str]:
        """Return the columns of a table's partition key, as far as a definition shows it."""

    def routine(self) -> str | None:
        """Return the routine in whose body the statement stands."""

    def variable(self, name: str) -> list[VariableValue] | None:
        """Return what a script variable may be at this place of the script; None if the name stands for none."""
