"""Scripts and statements on their way from text to what they write."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sqlglot import exp

from govtool.capture.sql.resolve.logged import LoggedStatement
from govtool.capture.sql.scripts.control.reaching import Live
from govtool.capture.sql.scripts.statement import ParsedStatement
from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.templates.unknown import as_written
from govtool.capture.sql.walk.relation import TableInfo
from govtool.capture.sql.walk.usage import Tape
from govtool.capture.sql.walk.writes import Write
from govtool.model import Diagnostic

# No dataclasses: a constructor that is compiled takes a tenth of the time of theirs, and there is one a statement.


Requested = tuple[list[str], str]
"""A relation whose columns a template asked for, by its parts as written, and a digest of the answer."""


class ScriptState:
    """One script: its statements in order of text, and the temporary tables of its session."""

    def __init__(self, file: str, session: str, dialect: str, *, logged: bool = False) -> None:
        self.file = file
        self.session = session
        self.dialect = dialect
        self.statements: list[StatementState] = []
        self.temporary: set[str] = set()
        self.variables: dict[str | None, set[str]] = {}
        """Names of script variables (under None) and of each routine's parameters: not columns."""
        self.assignments: list[StatementState] = []
        """Statements that declare or assign script variables."""
        self.live: dict[int, Live] | None = None
        """Assignments that may be in force, by statement; made on demand."""
        self.special = False
        """True if it holds something that applies to all scripts."""
        self.routines: frozenset[str] = frozenset()
        """Of a script that is not parsed, the names of the routines that it defines."""
        self.mark = ""
        """A digest of its text and of how it is read, where walks are recorded."""
        self.requested: list[Requested] | None = None
        """Of a template that waited for columns, what it wants, in order; where walks are recorded."""
        self.logged = logged
        """It comes from a query log."""
        self.qualifiers: frozenset[str] = frozenset()
        """Values that nobody gave, and that stand for the schema of a table."""
        self.template: list[str] | None = None
        """The lines of the template that the script is a rendering of."""


class TableKeys(NamedTuple):
    """The keys of a table, as its definition has them; empty where there are none."""

    primary: tuple[str, ...]
    partition: tuple[str, ...]


class WalkOutcome:
    """One walk over a statement: what it looked at, and what other statements see of its result."""

    def __init__(self, tape: Tape, infos: dict[str, TableInfo], writes: list[Write], unsettled: bool) -> None:
        self.tape = tape
        self.infos = infos
        self.writes = writes
        self.unsettled = unsettled


class StatementState:
    """One statement on its way from tree to writes."""

    def __init__(
        self,
        parsed: ParsedStatement,
        script: ScriptState,
        index: int,
        catalog: str | None,
        schema: str | None,
        path: tuple[str, ...],
        *,
        variant: int = 0,
        tree: exp.Expr | None = None,
        logged: LoggedStatement | None = None,
    ) -> None:
        self.parsed = parsed
        self.script = script
        self.index = index
        self.catalog = catalog
        self.schema = schema
        self.path = path
        self.relation: str | None = None
        """The relation that a bare SELECT defines, from the path of its file."""
        self.variant = variant
        self.tree = tree
        self.defines: tuple[str, ...] = ()
        self.fills: tuple[str, ...] = ()
        self.alters: str | None = None
        self.state = "waiting"
        """Then ``walking``, ``done``, and perhaps ``final``: done, without the tree that another walk would need."""
        self.writes: list[Write] = []
        self.diagnostics: list[Diagnostic] = []
        self.ambiguous: dict[frozenset[int], tuple[str, int, int]] = {}
        self.infos: dict[str, TableInfo] = {}
        self.unsettled = False
        """True if knowing more columns from usage could change the answer."""
        self.line_map: Callable[[int], int] | None = None
        self.logged = logged
        self.names: dict[object, str] | None = None
        """Resolved table names; shared by all whose ``naming`` is equal."""

        self.functions: tuple[str, ...] = ()
        """The SQL functions that it makes, whose bodies are known; temporary ones with ``OF_SESSION`` before them."""
        self.function_mark = ""
        """A digest of what decides about these."""
        self.keys: TableKeys | None = None
        """The keys of the table that it makes, once they were looked for."""
        self.later: frozenset[str] = frozenset()
        """Names of temporary tables that it makes, or the script further down: here they mean other tables."""
        self.outcomes: list[WalkOutcome] | None = None
        """Its walks, in order, where they are recorded."""
        self.replayable = False
        """True if its walks are known from an earlier extraction."""
        self.identity: tuple[str, str | None, str] | None = None
        """Its fingerprint, a digest of its literals and its text, as evidence has them, once that was needed."""

    @property
    def naming(self) -> tuple[object, ...]:
        """All that decides what a written table name means here; equal for statements that agree about it."""
        script = self.script
        session = (script.file, script.session) if script.temporary else None
        return (session, script.dialect, self.catalog, self.schema, self.path, self.later)

    @property
    def first_variant(self) -> StatementState:
        """The statement itself, or the first of the variants that a template made of one place."""
        if not self.variant:
            return self
        first = [s for s in self.script.statements if not s.variant and isinstance(s.tree, nodes.Query)]
        same = [s for s in first if s.parsed.line == self.parsed.line] or (first if len(first) == 1 else [])
        return same[0] if same else self

    @property
    def times(self) -> int:
        """Number of executions: in its script, times those of the script in a log."""
        return self.parsed.stands_for * (1 if self.logged is None else self.logged.count)

    @property
    def file(self) -> str:
        """The file that it stands in."""
        return self.script.file if self.logged is None else self.logged.file

    def line_of(self, line: int) -> int:
        """Return the line of the original file for a line as the tree's nodes count them."""
        if self.line_map is not None:
            return self.line_map(line + self.parsed.shift)
        return self.parsed.line + line - self.parsed.raw_line

    def line_of_text(self, line: int) -> int:
        """Return the line of the original file for a line of the statement's text, counted from 0."""
        return self.line_of(self.parsed.raw_line + line)

    def placed(self, note: Diagnostic) -> Diagnostic:
        """A diagnostic of the walk with its place in the file."""
        if note.file is not None:
            return note
        line = self.parsed.line if note.line is None else self.line_of(note.line)
        column = note.column or self.parsed.column
        if note.column and note.line == self.parsed.raw_line:
            column += self.parsed.column - self.parsed.raw_column
        lines = self.script.template
        message = as_written(note.message, lines[line - 1]) if lines and line <= len(lines) else note.message
        return Diagnostic(note.code, note.severity, message, self.file, line, column, note.target, note.candidates)
