"""Columns known from usage, and the tape on which a walk records what it looked at outside of its statement.

A tape holds looks, each a sequence of JSON values, in order:

    ("t", table, depth, signature, notes)   the known shape of a table; how many notes looking it up added
    ("v", table, depth, mark)               whether it is a view that hands on what is written to it, and how
    ("n", table, other)                     the other name that the table may have; empty where there is none
    ("f", mark, functions)                  SQL functions of one mark, which is empty where there are none of the names
    ("c", table, lacks, has, shown)         columns that usage does not show, those that it does, and those that the
                                            walk itself showed then: these are an effect, not a question
    ("s", table, digest)                    all columns that usage shows

Other statements may be walked where a "t" or "v" is looked up, and nowhere else. So between two of them questions about
functions and columns are one look for a mark or a table, whatever their order was.

A walk whose questions have the same answers, in the same order, has the same outcome
(``govtool.capture.sql.memos.reuse``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

Look = tuple[str | int | list[str], ...]

_SHOWN: Final = -1


class Tape:
    """What one walk looked at.

    Attributes:
        looks: In order.
        looked: How many lookups there were: between two of them usage changes by the walk's own effects only.
        answered: Columns of tables whose usage was looked at: ``_SHOWN``, or the lookups before the look.
        spoiled: True if the walk looked at something that no tape can hold.
        deepest: How deep the walk, with all that it settled on the way, went into queries.
    """

    __slots__ = ("_columns", "_functions", "answered", "deepest", "looked", "looks", "spoiled", "start")

    def __init__(self, start: int) -> None:
        self.looks: list[Look] = []
        self.looked = 0
        self.answered: dict[tuple[str, str], int] = {}
        self.spoiled = False
        self.start = start
        self.deepest = 0
        self._functions: dict[str, dict[str, None]] = {}
        """Functions since the last lookup, by mark."""
        self._columns: dict[str, tuple[list[str], list[str], list[str]]] = {}
        """Columns since the last lookup, by table: as a look has them."""

    def add_lookup(self, look: Look) -> None:
        """Record a lookup, in which other statements may have been walked."""
        self.end()
        self.looks.append(look)
        self.looked += 1

    def add_listed(self, look: Look) -> None:
        """Record a look at all columns that usage shows of a table."""
        self.end()
        self.looks.append(look)

    def add_function(self, name: str, mark: str) -> None:
        """Record a question for a SQL function."""
        self._functions.setdefault(mark, {})[name] = None

    def add_answer(self, table: str, column: str, *, has: bool) -> None:
        """Record the answer whether usage shows a column."""
        self._of_table(table)[1 if has else 0].append(column)

    def add_shown(self, table: str, column: str) -> None:
        """Record that the walk showed a column."""
        self._of_table(table)[2].append(column)

    def _of_table(self, table: str) -> tuple[list[str], list[str], list[str]]:
        found = self._columns.get(table)
        if found is None:
            found = self._columns[table] = ([], [], [])
        return found

    def end(self) -> None:
        """Put what was asked since the last lookup into looks."""
        for mark, names in self._functions.items():
            self.looks.append(("f", mark, list(names)))
        for table, columns in self._columns.items():
            self.looks.append(("c", table, *columns))
        self._functions, self._columns = {}, {}


class TapeRecorder:
    """Holds the tape of the walk that is under way; None where nothing is recorded."""

    __slots__ = ("tape",)

    def __init__(self) -> None:
        self.tape: Tape | None = None

    def spoil(self) -> None:
        """Note that the walk under way looks at something that no tape can hold."""
        if self.tape is not None:
            self.tape.spoiled = True


class UsedColumns:
    """The columns of a table that statements have named; they only become more.

    Attributes:
        name: The table; empty where only one walk knows it.
        provisional: Those of them that only a tape shows whose looks are still being taken.
    """

    __slots__ = ("_digest", "columns", "name", "provisional", "recorder")

    def __init__(self, name: str = "", recorder: TapeRecorder | None = None, columns: Iterable[str] = ()) -> None:
        self.name = name
        self.columns = set(columns)
        self.provisional: set[str] = set()
        self.recorder = recorder
        self._digest = ""
        """That of the columns; empty if it is not known."""

    def add(self, column: str) -> None:
        """Note that a statement names a column."""
        if column not in self.columns:
            self.columns.add(column)
            self._digest = ""
        if self.provisional:
            self.provisional.discard(column)
        tape = self.recorder.tape if self.recorder is not None else None
        if tape is not None:
            key = (self.name, column)
            if tape.answered.get(key) != _SHOWN:
                tape.answered[key] = _SHOWN
                tape.add_shown(self.name, column)

    def has(self, column: str) -> bool:
        """Return whether a statement names the column."""
        found = column in self.columns
        tape = self.recorder.tape if self.recorder is not None else None
        if tape is not None:
            key = (self.name, column)
            known = tape.answered.get(key)
            if known != _SHOWN and known != tape.looked:
                tape.answered[key] = _SHOWN if found else tape.looked
                tape.add_answer(self.name, column, has=found)
        return found

    def listed(self) -> list[str]:
        """Return all columns, sorted."""
        found = sorted(self.columns)
        tape = self.recorder.tape if self.recorder is not None else None
        if tape is not None:
            tape.add_listed(("s", self.name, self.digest()))
        return found

    def digest(self) -> str:
        """Return a digest of all columns."""
        if not self._digest:
            names = "\0".join(sorted(self.columns))
            self._digest = blake2b(names.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        return self._digest

    def add_provisional(self, column: str) -> None:
        """Show a column for the time being."""
        self.columns.add(column)
        self.provisional.add(column)
        self._digest = ""

    def take_back(self, column: str) -> None:
        """Show a column no more, unless a statement has named it meanwhile."""
        if column in self.provisional:
            self.provisional.discard(column)
            self.columns.discard(column)
            self._digest = ""


class ShownByTape:
    """The columns that a tape shows, until it is known whether its looks hold."""

    def __init__(self) -> None:
        self._shown: list[tuple[UsedColumns, str]] = []

    def add(self, used: UsedColumns, columns: Sequence[str]) -> None:
        """Show columns, as the walk would have at this point."""
        if not used.provisional and used.columns.issuperset(columns):
            return
        for column in columns:
            if column not in used.columns:
                used.add_provisional(column)
            self._shown.append((used, column))

    def keep(self) -> None:
        """Let them be shown for good."""
        for used, column in self._shown:
            used.provisional.discard(column)

    def take_back(self) -> None:
        """Show none of them that no other statement has named meanwhile: the walk that follows begins without them."""
        for used, column in self._shown:
            used.take_back(column)
