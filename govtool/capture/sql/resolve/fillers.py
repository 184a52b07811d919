"""How many of the statements that fill a table are known to say nothing about its columns.

Thousands of statements may fill one table that nothing defines (``INSERT INTO t SELECT * FROM …``). Each of them asks
for its columns, and to look at all others each time would take the square of their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from govtool.capture.sql.resolve.states import StatementState

Silent = Callable[[StatementState], bool]
"""Says of a statement that was walked that it names no column of the table."""


class Fillers:
    """The statements that fill one table; those at the head of each script that are known to be silent are passed.

    Args:
        alters: How many ALTERs the table had when this was made.
    """

    __slots__ = ("_added", "_scripts", "alters")

    def __init__(self, alters: int) -> None:
        self.alters = alters
        self._scripts: dict[int, _OfScript] = {}
        self._added = 0

    def update(self, statements: Sequence[StatementState], lists: Silent) -> None:
        """Add statements that were registered since.

        Args:
            statements: All that fill the table, as they were registered.
            lists: Whether a statement lists columns that count already before it is run.
        """
        for statement in statements[self._added :]:
            found = self._scripts.get(id(statement.script))
            if found is None:
                found = self._scripts[id(statement.script)] = _OfScript()
            found.statements.append(statement)
            if lists(statement):
                found.last_listing = max(found.last_listing, statement.index)
        self._added = len(statements)

    def candidates(self, statement: StatementState, silent: Silent) -> Iterable[StatementState]:
        """Yield what may say something where a statement stands, and is to be walked for it.

        Args:
            statement: It reads or fills the table.
            silent: Says it of what was walked.
        """
        for key, found in list(self._scripts.items()):
            found.skip(silent)
            if found.first == len(found.statements) and found.last_listing < 0:
                self._scripts.pop(key, None)
            yield from found.before(statement.index if key == id(statement.script) else None)

    def listed_behind(self, statement: StatementState) -> bool:
        """Return whether a statement behind this one in its script lists columns."""
        found = self._scripts.get(id(statement.script))
        return found is not None and found.last_listing > statement.index


class _OfScript:
    """Those of one script, in its order."""

    __slots__ = ("first", "last_listing", "statements")

    def __init__(self) -> None:
        self.statements: list[StatementState] = []
        self.first = 0
        """How many at the head are silent."""
        self.last_listing = -1
        """The index in the script of the last one that lists columns."""

    def skip(self, silent: Silent) -> None:
        """Pass those at the head that are silent."""
        statements = self.statements
        while self.first < len(statements):
            statement = statements[self.first]
            if statement.state not in ("done", "final") or not silent(statement):
                return
            self.first += 1

    def before(self, index: int | None) -> Iterable[StatementState]:
        """Yield the others; with an index, those up to it."""
        for place in range(self.first, len(self.statements)):
            statement = self.statements[place]
            if index is not None and statement.index > index:
                return
            yield statement
