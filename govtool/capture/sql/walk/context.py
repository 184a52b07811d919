"""The context of one walk over one statement: what every function of the walk is given first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeVar

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.dependencies import (
    CHAIN_MASK,
    CONDITIONAL,
    KIND_MASK,
    LISTED,
    OPAQUE,
    REF_SHIFT,
    STAR,
    TRANSFORMATION,
    Deps,
    Interner,
    compose,
    possibly,
)
from govtool.capture.sql.walk.queries.counts import Bound
from govtool.capture.sql.walk.relation import OpenStar, QueryOutput, Source
from govtool.capture.sql.walk.scope import CommonTable
from govtool.capture.sql.walk.state import OPTIONAL, Lookup, TriggerCondition
from govtool.capture.sql.walk.writes import Write
from govtool.model import ROWS, Diagnostic
from govtool.names import fold

ROW_OF: Final = ~(KIND_MASK | CHAIN_MASK | STAR)
"""The parts of a dependency that remain when it is referenced by a row set: the column and the arm."""

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

UNMATCHED_LIST: Final = "the positions behind a * are not known: a column list cannot be matched to it"

T = TypeVar("T")

_plain_names: Final[dict[str, dict[str, str]]] = {}
"""Folded unquoted identifiers by dialect, shared by all walks of the process."""


class Walk:
    """The context of one walk over one statement: what was referenced, read, written, and not understood.

    Attributes:
        rows: Referenced columns: dependencies whose kind is one of the row-set kinds, with the node that names them.
        reads: Ids of the tables that were read, in order, with the arms in which they were (see ``arm_of``).
        writes: What the statement does, as far as it was walked.
        handed: By dataset, the dependencies of values that are handed to routines that write it.
        calling: The tables whose rows decide how often a query calls routines that nobody sees the rows of.
        ambiguous: For each ambiguous name: its candidate refs, the name, line and column.
        named: Dependencies of every column name that was resolved, whether or not anything comes of it.
        bounds: By the id of a SELECT's node: how many of what there are in each of its groups.
        presumed: Whether documentation decided what a name means: usage that is shown later may decide otherwise.
        groups: Number of groups of alternatives so far.
        lateral_aliases: Whether a projection may name an earlier projection's alias.
        inlining: The SQL functions whose bodies are being walked, outermost first.
        inlined: Whether there was any of them.
        has_shapes: Whether any column so far has a shape (see ``shapes``).
        expanding: The column that COLUMNS(…) inside an expression stands for while a projection is repeated for each.
        common_tables: The CTEs of the statement with their names.
        parameters: Names of parameters and variables of the routine in whose body the statement stands.
        conditions: Conditions of the triggers that run the statement.
        tests: Conditions of the IFs around the statement.
        redefined: Names of masking functions that routines of the batch have: what such a call does is theirs to say.
        variables: Whether the script has variables.
        targets: Names under which an assignment may qualify the columns that it sets.
    """

    def __init__(self, dialect: str, interner: Interner, lookup: Lookup) -> None:
        self.dialect = dialect
        self.interner = interner
        self.lookup = lookup
        self.rows: dict[int, exp.Expr | None] = {}
        self.reads: dict[str, tuple[int, ...]] = {}
        self.writes: list[Write] = []
        self.named: set[int] = set()
        self.bounds: dict[int, list[Bound]] = {}
        self.diagnostics: dict[Diagnostic, None] = {}
        self.handed: dict[str, set[int]] = {}
        self.calling: dict[str, tuple[int, ...]] = {}
        self.ambiguous: dict[frozenset[int], tuple[str, int, int]] = {}
        self.presumed = False
        self.groups = 0
        self.lateral_aliases = dialect in LATERAL_ALIAS_DIALECTS
        self.inlining: list[str] = []
        self.inlined = False
        self.has_shapes = False
        self.expanding: str | None = None
        self.common_tables: list[tuple[str, CommonTable]] = []
        self.parameters: frozenset[str] = frozenset()
        self.conditions: Sequence[TriggerCondition] = ()
        self.tests: Sequence[exp.Expr] = ()
        self.redefined: AbstractSet[str] = frozenset()
        self.variables = False
        self.targets: frozenset[str] = frozenset()
        self.plain_names = _plain_names.setdefault(dialect, {})
        """Canonical text of unquoted identifiers of the dialect."""

    def name(self, identifier: exp.Expr | str | None) -> str:
        """Return the canonical text of a column or alias identifier."""
        if type(identifier) is nodes.Identifier:
            args = identifier.args
            text = args["this"]
            if not args.get("quoted"):
                folded = self.plain_names.get(text)
                if folded is None:
                    folded = self.plain_names[text] = fold(text, dialect=self.dialect)
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

    def alias(self, node: exp.Expr) -> tuple[str, list[str]]:
        """Return the alias of a FROM item, and the names that it gives to columns; empty without them."""
        alias = node.args.get("alias")
        if isinstance(alias, nodes.TableAlias):
            columns = [
                self.name(c.this if isinstance(c, nodes.ColumnDef) else c) for c in alias.args.get("columns") or ()
            ]
            return self.name(alias.args.get("this")), columns
        return self.name(alias) if isinstance(alias, nodes.Identifier) else "", []

    def number(self) -> int:
        """Return the number of a new group of alternatives."""
        self.groups += 1
        return self.groups - 1

    def through(self, name: str, kind: int, chain: int) -> tuple[int, int]:
        """Return kind and chain below a function that transforms its argument."""
        if kind >= CONDITIONAL:
            return kind, chain
        return max(kind, TRANSFORMATION), self.interner.prepend(name, chain)

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

    def hand_over(self, routine: str, targets: Iterable[str], deps: Sequence[int], node: exp.Expr) -> None:
        """Record that a routine that writes some datasets is called, and what values it is handed, if any."""
        for target in targets:
            self.handed.setdefault(target, set()).update(deps)
        if deps:
            message = f"what {routine}(…) does with its arguments is not followed: they may be in all that it writes"
            self.diagnose("opaque", message, node, severity="info")

    def read(self, reads: Mapping[str, tuple[int, ...]], arm: int = 0) -> None:
        """Record tables that were read apart, as part of alternative ``arm``; the outermost alternative wins."""
        for name, arms in reads.items():
            if arm:
                arms = (arm | OPTIONAL if all([one & OPTIONAL for one in arms]) else arm,)  # noqa: C419
            known = self.reads.get(name)
            if known is None or 0 in arms:
                self.reads[name] = arms
            elif 0 not in known:
                self.reads[name] = tuple(dict.fromkeys((*known, *arms)))

    def taken(self, write: Write) -> Write:
        """Move what the walk has recorded so far into ``write``."""
        write.rows, self.rows = self.rows, {}
        write.reads, self.reads = self.reads, {}
        return write

    def noted(self, deps: Deps) -> Deps:
        """Return the dependencies of a name, having recorded that the statement has it.

        A statement fails without the column even where nothing of it is handed on, so that no edge shows it. What is
        resolved by name passes through here: columns in ``resolve_column``, and the few lists of bare names (USING,
        EXCEPT …).
        """
        self.named.update(deps)
        return deps

    def note_name(self, source: Source, name: str) -> None:
        """Record that a list of bare names has a column of a FROM item."""
        self.named.update(source.get(name, self.interner) or source.assume(name, self.interner) or ())

    def relabelled(self, output: QueryOutput, columns: list[str]) -> QueryOutput:
        """Return an output under a list of column names, which needs the columns that it had.

        What a ``*`` brings is reached by its position from here on, if the list is of all of it. Else all is recorded
        as named: without a column the names behind it would mean others. Of a table whose columns are not known, any
        may be meant.
        """
        if not columns:
            return output
        if any([not star.table.virtual for star in output.open]):  # noqa: C419
            self.diagnose("star-unresolved", UNMATCHED_LIST)
            return self.any_of(output, columns)
        result = output.renamed(columns)
        every = len(columns) >= len(output.names)
        for position, deps in enumerate(output.deps[: len(columns)]):
            if every:
                deps = result.deps[position] = tuple([self._listed(dep) for dep in deps])
            self.named.update(deps)
        return result

    def _listed(self, dep: int) -> int:
        """A dependency behind a list of names: by position if a ``*`` brought a column of a table."""
        path = self.interner.refs[dep >> REF_SHIFT].path
        if not dep & STAR or dep & KIND_MASK == OPAQUE or "." in path or "[" in path:  # a field is not at a position
            return dep
        return dep & ~STAR | LISTED

    def any_of(self, output: QueryOutput, columns: list[str]) -> QueryOutput:
        """Return columns that cannot be matched to what a ``*`` hides: each may be any of it."""
        tables = [star.table for star in output.open]
        hidden = [self.interner.ref(table.id, ROWS) for table in tables if not table.virtual]
        made = [dep for table in tables if table.virtual for dep in table.hidden(self.interner)]
        found = possibly([*hidden, *made, *[dep for deps in output.deps for dep in deps]])
        result = QueryOutput()
        for name in columns:
            result.add(name, found)
        result.open = [OpenStar(s.table, s.except_, s.rename, s.arm, candidate=True) for s in output.open]
        return result

    def ambiguous_deps(self, name: str, candidates: list[int], node: exp.Expr) -> Deps:
        """Return what an ambiguous name may stand for, having recorded it; not ambiguous if all of it is the same."""
        deps = tuple(dict.fromkeys((dep >> REF_SHIFT << REF_SHIFT) | OPAQUE for dep in candidates))
        if len(deps) < 2:  # whichever source owns the name, it comes from the same base column
            return tuple(dict.fromkeys(compose(dep, TRANSFORMATION, 0, self.interner) for dep in candidates))
        line, column = _position(node)
        self.ambiguous.setdefault(frozenset(dep >> REF_SHIFT for dep in deps), (name, line or 1, column or 1))
        return deps

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
        line, column = _position(node)
        found = Diagnostic(code, severity, message, None, line, column, target, tuple(sorted(candidates)))
        self.diagnostics.setdefault(found)

    def enter_body(self, name: str) -> None:
        """Begin with the body of an SQL function; whoever calls this takes the name from ``inlining`` at its end."""
        self.inlining.append(name)
        self.inlined = True

    def separately(self, run: Callable[[], QueryOutput]) -> tuple[QueryOutput, dict[int, exp.Expr | None]]:
        """Run ``run`` and return its result with the rows it referenced, which are not recorded."""
        saved, self.rows = self.rows, {}
        try:
            return run(), self.rows
        finally:
            self.rows = saved

    def without_effects(self, run: Callable[[], T]) -> T:
        """Run ``run`` without recording what it references or fails to understand: it walks what is walked
        elsewhere.
        """
        rows, self.rows = self.rows, {}
        reads, self.reads = self.reads, {}
        diagnostics, self.diagnostics = self.diagnostics, {}
        ambiguous = dict(self.ambiguous)
        try:
            return run()
        finally:
            self.rows, self.reads, self.diagnostics, self.ambiguous = rows, reads, diagnostics, ambiguous


def _position(node: exp.Expr | None) -> tuple[int | None, int | None]:
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
