"""Columns known from usage, and the tape on which a walk records what it looked at outside of its statement.

A tape holds looks, in order, each a tuple of JSON values:

    ("t", table, depth, signature, notes)   the known shape of a table; how many notes looking it up added
    ("v", table, depth, mark)               whether it is a view that hands on what is written to it, and how
    ("f", function, mark)                   a SQL function; the mark is empty where there is none of the name
    ("n", table, other)                     the other name that the table may have; empty where there is none
    ("h", table, column, yes)               whether usage shows a column
    ("s", table, digest)                    all columns that usage shows
    ("u", table, column)                    the walk itself showed one: an effect, not a question

A walk whose questions have the same answers, in the same order, has the same outcome
(``govtool.capture.sql.memos.reuse``).
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

Look = tuple[str | int, ...]

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

    __slots__ = ("answered", "deepest", "looked", "looks", "spoiled", "start")

    def __init__(self, start: int) -> None:
        self.looks: list[Look] = []
        self.looked = 0
        self.answered: dict[tuple[str, str], int] = {}
        self.spoiled = False
        self.start = start
        self.deepest = 0

    def add_lookup(self, look: Look) -> None:
        """Record a lookup, in which other statements may have been walked."""
        self.looks.append(look)
        self.looked += 1


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

    __slots__ = ("columns", "name", "provisional", "recorder")

    def __init__(self, name: str = "", recorder: TapeRecorder | None = None, columns: Iterable[str] = ()) -> None:
        self.name = name
        self.columns = set(columns)
        self.provisional: set[str] = set()
        self.recorder = recorder

    def add(self, column: str) -> None:
        """Note that a statement names a column."""
        self.columns.add(column)
        if self.provisional:
            self.provisional.discard(column)
        tape = self.recorder.tape if self.recorder is not None else None
        if tape is not None:
            key = (self.name, column)
            if tape.answered.get(key) != _SHOWN:
                tape.answered[key] = _SHOWN
                tape.looks.append(("u", self.name, column))

    def has(self, column: str) -> bool:
        """Return whether a statement names the column."""
        found = column in self.columns
        tape = self.recorder.tape if self.recorder is not None else None
        if tape is not None:
            key = (self.name, column)
            known = tape.answered.get(key)
            if known != _SHOWN and known != tape.looked:
                tape.answered[key] = _SHOWN if found else tape.looked
                tape.looks.append(("h", self.name, column, int(found)))
        return found

    def listed(self) -> list[str]:
        """Return all columns, sorted."""
        found = sorted(self.columns)
        tape = self.recorder.tape if self.recorder is not None else None
        if tape is not None:
            tape.looks.append(("s", self.name, usage_digest(found)))
        return found


class ShownByTape:
    """The columns that a tape shows, until it is known whether its looks hold."""

    def __init__(self) -> None:
        self._shown: list[tuple[UsedColumns, str]] = []

    def add(self, used: UsedColumns, column: str) -> None:
        """Show a column, as the walk would have at this point."""
        if column not in used.columns:
            used.columns.add(column)
            used.provisional.add(column)
        self._shown.append((used, column))

    def keep(self) -> None:
        """Let them be shown for good."""
        for used, column in self._shown:
            used.provisional.discard(column)

    def take_back(self) -> None:
        """Show none of them that no other statement has named meanwhile: the walk that follows begins without them."""
        for used, column in self._shown:
            if column in used.provisional:
                used.provisional.discard(column)
                used.columns.discard(column)


def usage_digest(columns: list[str]) -> str:
    """A digest of sorted names."""
    return blake2b("\0".join(columns).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
