"""The state of one walk over one statement, and what every part of the walk shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeVar

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.counts import Bound
from govtool.capture.sql.walk.dependencies import CHAIN_MASK, KIND_MASK, OPAQUE, STAR, Deps, Interner
from govtool.capture.sql.walk.relation import QueryOutput, TableInfo
from govtool.capture.sql.walk.scope import CommonTable, Environment, Scope
from govtool.model import Diagnostic
from govtool.names import fold

T = TypeVar("T")

ROW_OF: Final = ~(KIND_MASK | CHAIN_MASK | STAR)
"""The parts of a dependency that remain when it is referenced by a row set: the column and the arm."""

EVERYWHERE: Final = (0,)
"""The arms of a table that is read outside of any alternative."""

ROW_OF_OPAQUE: Final = ~(CHAIN_MASK | STAR)

LATERAL_ALIAS_DIALECTS: Final = frozenset(
    [
        "redshift",
        "snowflake",
        "databricks",
        "spark",
        "spark2",
        "hive",
        "duckdb",
        "teradata",
        "clickhouse",
        "singlestore",
        "dremio",
    ]
)
"""Dialects in which a projection may name an earlier projection's alias."""


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

    node: exp.Expr
    table: str
    """The table whose rows they are."""
    records: tuple[str, ...]
    """The names of a row in the condition: ``new``, ``old``."""


class Lookup(Protocol):
    """A walk's interface to its surroundings: the meaning of names outside the statement."""

    def table(self, name: str) -> TableInfo:
        """Return what is known of a table at this place of the script."""

    def table_name(self, node: exp.Table) -> str:
        """Return the canonical id of a written table name; empty if it is not a plain name."""

    def written_name(self, node: exp.Table) -> str:
        """Return the same, even where the name is a synonym."""

    def function(self, name: str) -> Inline | None:
        """Return the SQL function of that name, if its body is known."""

    def is_unread(self, name: str) -> bool:
        """Return whether a masking function of that name is defined here, by a routine that could not be read."""

    def returned(self, name: str) -> Returned | None:
        """Return the rows of a table function of that name, if its body is a block that was read."""

    def triggering(self, routine: str) -> list[str]:
        """Return the tables whose rows a routine sees, as a trigger runs it."""

    def routine(self) -> str | None:
        """Return the routine in whose body the statement stands."""

    def variable(self, name: str) -> list[VariableValue] | None:
        """Return what a script variable may be at this place of the script; None if the name stands for none."""


_plain_names: Final[dict[str, dict[str, str]]] = {}
"""Folded unquoted identifiers by dialect, shared by all walks of the process."""


class StatementWalkState:
    """State of one walk: what was referenced, read, and not understood.

    Attributes:
        rows: Referenced columns: dependencies whose kind is one of the row-set kinds.
        reads: Ids of the tables that were read, in order, with the arms in which they were (see ``arm_of``).
        ambiguous: For each ambiguous name: its candidate refs, the name, line and column.
        named: Dependencies of every column name that was resolved, whether or not anything comes of it.
    """

    def __init__(self, dialect: str, interner: Interner, lookup: Lookup) -> None:
        self.dialect = dialect
        self.interner = interner
        self.lookup = lookup
        self.rows: dict[int, exp.Expr | None] = {}
        self.reads: dict[str, tuple[int, ...]] = {}
        self.named: set[int] = set()
        self.bounds: dict[int, list[Bound]] = {}
        self.diagnostics: dict[Diagnostic, None] = {}
        self.ambiguous: dict[frozenset[int], tuple[str, int, int]] = {}
        self.presumed = False
        """True if documentation decided what a name means: usage that is shown later may decide otherwise."""
        self.groups = 0
        self.lateral_aliases = dialect in LATERAL_ALIAS_DIALECTS
        self.inlining: list[str] = []
        self.has_shapes = False
        self.expanding: str | None = None
        """The column that COLUMNS(…) inside an expression stands for while a projection is repeated for each."""
        self.common_tables: list[tuple[str, CommonTable]] = []
        self.parameters: frozenset[str] = frozenset()
        self.conditions: Sequence[TriggerCondition] = ()
        self.tests: Sequence[exp.Expr] = ()
        self.variables = False
        """True if the script has variables."""
        self._plain = _plain_names.setdefault(dialect, {})

    # ---- names ----------------------------------------------------------------------------------

    def name(self, identifier: exp.Expr | str | None) -> str:
        """Return the canonical text of a column or alias identifier."""
        if type(identifier) is nodes.Identifier:
            args = identifier.args
            text = args["this"]
            if not args.get("quoted"):
                folded = self._plain.get(text)
                if folded is None:
                    folded = self._plain[text] = fold(text, dialect=self.dialect)
                return folded
            return fold(text, quoted=True, dialect=self.dialect)
        if identifier is None:
            return ""
        if isinstance(identifier, str):
            return fold(identifier, dialect=self.dialect)
        this = identifier.args.get("this")
        if isinstance(this, nodes.Expr):
            return self.name(this)
        return (
            fold(this, quoted=bool(identifier.args.get("quoted")), dialect=self.dialect)
            if isinstance(this, str)
            else ""
        )

    def qualifier(self, parts: Iterable[exp.Expr]) -> tuple[str, ...]:
        """Return a written qualifier as canonical parts."""
        return tuple(self.name(part) for part in parts)

    def number(self) -> int:
        """Return the number of a new group of alternatives."""
        self.groups += 1
        return self.groups - 1

    # ---- what was found --------------------------------------------------------------------------

    def refer(self, deps: Iterable[int], kind: int, node: exp.Expr | None = None) -> None:
        """Record dependencies as referenced by the row set, under one of the row-set kinds, and the node that does."""
        rows = self.rows
        for dep in deps:
            if dep & KIND_MASK == OPAQUE:
                rows[dep & ROW_OF_OPAQUE] = node
            else:
                rows[dep & ROW_OF | kind] = node

    def refer_unnamed(self, deps: Deps, kind: int) -> None:
        """Record dependencies as referenced by a clause that names none of them: those behind a ``*`` stay so."""
        rows = self.rows
        for dep in deps:
            if dep & KIND_MASK == OPAQUE:
                rows[dep & ROW_OF_OPAQUE] = None
            else:
                rows[dep & ROW_OF | dep & STAR | kind] = None

    def read(self, reads: Mapping[str, tuple[int, ...]], arm: int = 0) -> None:
        """Record tables that were read apart, as part of alternative ``arm``; the outermost alternative wins."""
        for name, arms in reads.items():
            if arm:
                arms = (arm,)
            known = self.reads.get(name)
            if known is None or 0 in arms:
                self.reads[name] = arms
            elif 0 not in known:
                self.reads[name] = tuple(dict.fromkeys((*known, *arms)))

    def diagnose(
        self,
        code: str,
        message: str,
        node: exp.Expr | None = None,
        *,
        severity: str = "warning",
        target: str | None = None,
        candidates: Sequence[str] = (),
    ) -> None:
        """Record what was not understood, at the position of ``node``."""
        line, column = position(node)
        found = Diagnostic(code, severity, message, None, line, column, target, tuple(sorted(candidates)))
        self.diagnostics.setdefault(found)

    def separately(self, walk: Callable[[], QueryOutput]) -> tuple[QueryOutput, dict[int, exp.Expr | None]]:
        """Run ``walk`` and return its result with the rows it referenced, which are not recorded."""
        saved, self.rows = self.rows, {}
        try:
            return walk(), self.rows
        finally:
            self.rows = saved

    def without_effects(self, walk: Callable[[], T]) -> T:
        """Run ``walk`` without recording what it references or fails to understand: it walks what is walked
        elsewhere.
        """
        rows, self.rows = self.rows, {}
        reads, self.reads = self.reads, {}
        diagnostics, self.diagnostics = self.diagnostics, {}
        ambiguous = dict(self.ambiguous)
        try:
            return walk()
        finally:
            self.rows, self.reads, self.diagnostics, self.ambiguous = rows, reads, diagnostics, ambiguous

    # ---- the other parts -------------------------------------------------------------------------

    def query(self, node: exp.Expr, scope: Scope | None, env: Environment | None) -> QueryOutput:
        """Return the output of a query expression. Implemented by ``QueryWalk``."""
        raise NotImplementedError


def position(node: exp.Expr | None) -> tuple[int | None, int | None]:
    """Return the 1-based line and column of the first positioned token of ``node``, relative to the parsed text."""
    if not isinstance(node, nodes.Expr):
        return None, None
    seen = 0
    stack = [node]
    while stack and seen < 50:
        seen += 1
        item = stack.pop()
        meta = item.meta
        if meta and "line" in meta:
            end = meta.get("col") or 1
            length = (meta.get("end") or 0) - (meta.get("start") or 0)
            return int(meta["line"]), max(1, int(end) - int(length))
        for value in list(item.args.values())[::-1]:
            if isinstance(value, nodes.Expr):
                stack.append(value)
            elif isinstance(value, list):
                stack.extend([v for v in value[::-1] if isinstance(v, nodes.Expr)])
    return None, None
