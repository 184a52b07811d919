"""A batch of scripts: which statement defines which relation, and in which order they can be understood.

Statements come in any order. A statement is walked when its turn comes, or earlier when another one needs the columns
of what it defines (the stack of the LineageX paper, section 3, as recursion). What a name means depends on where it
stands: in its own script the latest definition before it counts, else the next one after it; other scripts have no
order, and there the supplied schema counts first and then any definition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.inline import inline_function
from govtool.capture.sql.knowledge import Knowledge, KnownTable, Usage
from govtool.capture.sql.logged import LoggedStatement
from govtool.capture.sql.scripts.branches import exclusive
from govtool.capture.sql.scripts.script import ParsedStatement
from govtool.capture.sql.scripts.trees import Shelf, parse_again, release
from govtool.capture.sql.walk.dependencies import Interner
from govtool.capture.sql.walk.functions import type_text
from govtool.capture.sql.walk.relation import TableInfo, file_name, starred
from govtool.capture.sql.walk.state import Inline
from govtool.capture.sql.walk.statements import StatementWalk
from govtool.capture.sql.walk.writes import Write
from govtool.model import Diagnostic
from govtool.names import fold, join_name, split_name

_NOTHING: Final = ParsedStatement(None, "", 1, 1, "ignored", "")

FILE_FORMATS: Final = frozenset({"parquet", "delta", "csv", "json", "orc", "avro", "text", "iceberg", "binaryfile"})


@dataclass(slots=True)
class ScriptState:
    """One script: its statements in order of text, and the temporary tables of its session."""

    file: str
    session: str
    dialect: str
    statements: list[StatementState] = field(default_factory=list)
    temporary: set[str] = field(default_factory=set)
    variables: dict[str | None, set[str]] = field(default_factory=dict)
    """Names of script variables (under None) and of each routine's parameters: not columns."""
    logged: bool = False
    """It comes from a query log."""


@dataclass(slots=True)
class StatementState:
    """One statement on its way from tree to writes."""

    parsed: ParsedStatement
    script: ScriptState
    index: int
    catalog: str | None
    schema: str | None
    path: tuple[str, ...]
    relation: str | None = None
    """The relation that a bare SELECT defines, from the path of its file."""
    variant: int = 0
    tree: exp.Expr | None = None
    defines: tuple[str, ...] = ()
    fills: tuple[str, ...] = ()
    alters: str | None = None
    state: str = "waiting"
    writes: list[Write] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    ambiguous: dict[frozenset[int], tuple[str, int, int]] = field(default_factory=dict)
    infos: dict[str, TableInfo] = field(default_factory=dict)
    unsettled: bool = False
    """Whether knowing more columns from usage could change the answer."""
    line_map: Callable[[int], int] | None = None
    logged: LoggedStatement | None = None
    names: dict[object, str] | None = None
    """What written table names mean here, as far as they were resolved; shared by all whose ``naming`` is equal."""

    @property
    def naming(self) -> tuple[object, ...]:
        """All that decides what a written table name means here; equal for statements that agree about it."""
        script = self.script
        session = (script.file, script.session) if script.temporary else None
        return (session, script.dialect, self.catalog, self.schema, self.path)

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
        """How often it was seen: in its script, and how often a log says that was run."""
        return self.parsed.count * (1 if self.logged is None else self.logged.count)

    @property
    def file(self) -> str:
        """The file that it stands in."""
        return self.script.file if self.logged is None else self.logged.file

    def line_of(self, line: int) -> int:
        """Return the line of the original file for a line as the tree's nodes count them."""
        if self.line_map is not None:
            return self.line_map(line + self.parsed.shift)
        return self.parsed.line + line - self.parsed.raw_line


class Batch:
    """All scripts of one extraction, and what is known of every table."""

    def __init__(
        self, schema: Mapping[str, Mapping[str, str | None]] | None, knowledge: Knowledge | None = None
    ) -> None:
        self.schema = schema or {}
        self.interner = Interner()
        self.shelf = Shelf()
        self.scripts: list[ScriptState] = []
        self.functions: dict[str, Inline] = {}
        self._definers: dict[str, list[StatementState]] = {}
        self._fillers: dict[str, list[StatementState]] = {}
        self._alters: dict[str, list[StatementState]] = {}
        self._known: dict[str, TableInfo] = {}
        self._used: dict[str, set[str]] = {}
        self._names: dict[tuple[object, ...], dict[object, str]] = {}
        """What written table names mean, by all that decides about it."""
        self._known_names: frozenset[str] = frozenset()
        self.usage_seen = 0
        self.later: dict[str, list[Callable[[], None]]] = {}
        """By relation: adds the script that defines it, which is not rendered yet."""
        if knowledge is not None:
            self._learn(knowledge)

    def _learn(self, knowledge: Knowledge) -> None:
        """Begin with what another batch says."""
        self._known_names = knowledge.defined
        self.functions = dict(knowledge.functions)
        self._used = {name: set(columns) for name, columns in knowledge.used.items()}
        for name, known in knowledge.tables.items():
            self._known[name] = self._info(name, dict(known.columns), complete=known.complete)

    def knowledge(self) -> Knowledge:
        """What this batch, all of it walked, says to statements of other scripts."""
        outsider = StatementState(_NOTHING, ScriptState("", "", ""), 0, None, None, ())
        names = {*self._definers, *self._fillers, *self._alters, *self._known} - set(self.schema)
        tables = {}
        for name in sorted(names):
            info = self.table(name, outsider)
            if info.columns or info.complete:
                tables[name] = KnownTable(dict(info.columns), info.complete)
        return Knowledge(tables, self._known_names | frozenset(self._definers), dict(self.functions), self.usage())

    def usage(self) -> Usage:
        """The columns that statements have named, by table."""
        return {name: frozenset(columns) for name, columns in sorted(self._used.items()) if columns}

    # ---- before the walk ---------------------------------------------------------------------------

    def add(self, script: ScriptState) -> None:
        """Add a script whose statements are parsed; find out what each of them defines."""
        self.scripts.append(script)
        for statement in script.statements:
            self._find_temporary(statement)
        for statement in script.statements:
            self._find_definitions(statement)

    def _find_temporary(self, statement: StatementState) -> None:
        tree = statement.tree
        table: exp.Expr | None = None
        if isinstance(tree, nodes.Create) and tree.args.get("properties"):
            if any(
                isinstance(p, (nodes.TemporaryProperty, nodes.VolatileProperty))
                for p in tree.args["properties"].expressions
            ):
                table = tree.this
        elif (
            isinstance(tree, nodes.Select)
            and tree.args.get("into") is not None
            and tree.args["into"].args.get("temporary")
        ):
            table = tree.args["into"].this
        elif isinstance(tree, nodes.Cache) and tree.args.get("expression") is not None:
            table = tree.this
        elif isinstance(tree, nodes.Declare):
            for item in tree.expressions:
                names = [
                    n for n in (item.this if isinstance(item.this, list) else [item.this]) if isinstance(n, nodes.Expr)
                ]
                if isinstance(item.args.get("kind"), nodes.Schema):
                    statement.script.temporary.update(f"@{n.name.lower()}" for n in names)
                else:
                    known = statement.script.variables.setdefault(statement.parsed.routine, set())
                    known.update(_column(n, statement.script.dialect) for n in names)
        elif isinstance(tree, nodes.Create) and str(tree.args.get("kind")).upper() == "TABLE":
            named = tree.this.this if isinstance(tree.this, nodes.Schema) else tree.this
            if isinstance(named, nodes.Table) and named.name.startswith(
                "#"
            ):  # Redshift, and T-SQL read as another dialect
                table = named
        if isinstance(table, nodes.Schema):
            table = table.this
        if isinstance(table, nodes.Table) and isinstance(table.this, nodes.Identifier):
            statement.script.temporary.add(self._part(table.this, statement.script.dialect))

    def _find_definitions(self, statement: StatementState) -> None:
        tree = statement.tree
        if tree is None:
            return
        defines: list[str] = []
        fills: list[str] = []
        if isinstance(tree, nodes.Create):
            function = inline_function(tree, statement.script.dialect)
            if function is not None:
                self.functions[function.name] = function
            elif str(tree.args.get("kind") or "").upper() in ("TABLE", "VIEW"):
                defines.append(self._target(tree.this, statement))
        elif isinstance(tree, nodes.Select) and tree.args.get("into") is not None:
            defines.append(self._target(tree.args["into"].this, statement))
        elif isinstance(tree, nodes.Query):
            if statement.relation is not None:
                defines.append(statement.relation)
        elif isinstance(tree, nodes.Cache):
            defines.append(self._target(tree.this, statement))
        elif isinstance(tree, nodes.Declare):
            defines.extend(name for name in self._variables(tree, statement))
        elif isinstance(tree, nodes.Alter):
            name = self._target(tree.this, statement)
            for action in tree.args.get("actions") or ():
                if isinstance(action, (nodes.AlterRename, nodes.SwapTable)) and isinstance(action.this, nodes.Table):
                    defines.append(self._renamed(tree.this, action.this, statement))
                    if isinstance(action, nodes.SwapTable):
                        defines.append(name)
                elif isinstance(action, nodes.Query):
                    defines.append(name)
                else:
                    statement.alters = name
                    self._alters.setdefault(name, []).append(statement)
        elif isinstance(tree, (nodes.Insert, nodes.Merge, nodes.Copy)) and isinstance(
            tree.this, (nodes.Table, nodes.Schema)
        ):
            if not isinstance(tree, nodes.Copy) or tree.args.get("kind"):
                fills.append(self._target(tree.this, statement))
        elif isinstance(tree, nodes.MultitableInserts):
            for item in tree.expressions:
                insert = item.this if isinstance(item, nodes.ConditionalInsert) else item
                fills.append(self._target(insert.this, statement))
        statement.defines = tuple(name for name in defines if name)
        statement.fills = tuple(name for name in fills if name)
        for name in statement.defines:
            self._definers.setdefault(name, []).append(statement)
        for name in statement.fills:
            self._fillers.setdefault(name, []).append(statement)

    def _variables(self, tree: exp.Declare, statement: StatementState) -> list[str]:
        found = []
        for item in tree.expressions:
            if isinstance(item.args.get("kind"), nodes.Schema):
                for name in item.this if isinstance(item.this, list) else [item.this]:
                    found.append(self._temporary(f"@{name.name.lower()}", statement.script))
        return found

    def _renamed(self, old: exp.Expr, new: exp.Table, statement: StatementState) -> str:
        if isinstance(old, nodes.Table) and old.args.get("db") and not new.args.get("db"):
            new = new.copy()
            new.set("db", old.args["db"].copy())
            if old.args.get("catalog"):
                new.set("catalog", old.args["catalog"].copy())
        return self.table_name(new, statement)

    def _target(self, node: exp.Expr, statement: StatementState) -> str:
        if isinstance(node, nodes.Schema):
            node = node.this
        return self.table_name(node, statement) if isinstance(node, nodes.Table) else ""

    # ---- names ---------------------------------------------------------------------------------------

    def _part(self, identifier: exp.Expr, dialect: str) -> str:
        return fold(identifier.name, quoted=bool(identifier.args.get("quoted")), dialect=dialect, table=True)

    def _temporary(self, name: str, script: ScriptState) -> str:
        if name.startswith('"#'):  # T-SQL and Redshift: the mark is not part of the name
            name = name.strip('"').lstrip("#")
        return join_name(["temp", _session_part(script.session), f'"{name}"' if name.startswith("@") else name])

    def table_name(self, node: exp.Table, statement: StatementState) -> str:
        """Return the canonical id of a written table name at a statement; empty if it is not a plain name."""
        args = node.args
        this = args.get("this")
        # The common case, a name of one or two parts without quotes, has a key of strings.
        key: object = None
        if this.__class__ is nodes.Identifier:
            inner = this.args
            if not inner.get("quoted") and not inner.get("temporary"):
                db = args.get("db")
                if db is None:
                    key = inner["this"]
                elif db.__class__ is nodes.Identifier and args.get("catalog") is None and not db.args.get("quoted"):
                    key = (db.args["this"], inner["this"])
        names = statement.names
        if names is None:
            names = statement.names = self._names.setdefault(statement.naming, {})
        if key is not None:
            known = names.get(key)
            if known is not None:
                return known
        script = statement.script
        if isinstance(this, nodes.Parameter):
            name = f"@{this.name.lower()}"
            return self._temporary(name, script) if name in script.temporary else ""
        if isinstance(this, nodes.Var):
            return file_name(this.name)
        parts: list[exp.Expr] = [this] if isinstance(this, nodes.Identifier) and not node.args.get("db") else node.parts
        if not parts or not all([isinstance(part, nodes.Identifier) for part in parts]):  # noqa: C419
            return ""
        written = tuple([(part.args["this"], bool(part.args.get("quoted"))) for part in parts])
        temporary = bool(this.args.get("temporary")) if isinstance(this, nodes.Identifier) else False
        if key is None:
            key = (written, temporary)
        found = names.get(key)
        if found is None:
            found = names[key] = self._resolve_name(
                [self._part(p, script.dialect) for p in parts], written, statement, temporary
            )
        return found

    def _resolve_name(
        self, names: list[str], written: tuple[tuple[str, bool], ...], statement: StatementState, temporary: bool
    ) -> str:
        script = statement.script
        if len(names) == 1 and (names[0] in script.temporary or temporary):
            return self._temporary(names[0], script)
        if len(names) == 2 and names[0] in ("pg_temp", "session", "_session") and names[1] in script.temporary:
            return self._temporary(names[1], script)
        if len(names) == 2 and written[0][0].lower() in FILE_FORMATS and ("/" in written[1][0]):
            return file_name(written[1][0])
        if len(names) == 1:
            for schema in statement.path:
                candidate = self._qualified([schema, names[0]], statement)
                if candidate in self.schema or candidate in self._definers or candidate in self._known_names:
                    return candidate
            default = statement.schema or (statement.path[0] if statement.path else None)
            if default is not None:
                names = [*split_name(default), names[0]]
        return self._qualified(names, statement)

    def _qualified(self, names: list[str], statement: StatementState) -> str:
        if len(names) == 2 and statement.catalog:
            names = [statement.catalog, *names]
        return join_name(names)

    # ---- tables ---------------------------------------------------------------------------------------

    def table(self, name: str, statement: StatementState) -> TableInfo:
        """Return what is known of a table where ``statement`` stands."""
        if self.later:
            for add in self.later.pop(name, ()):
                add()
        definers = self._definers.get(name)
        if definers is None:
            info = self._known.get(name)
            if info is None or (not info.complete and name in self._fillers and not info.columns):
                info = self._known[name] = self._from_elsewhere(name, statement)
            return info
        if name in self.schema:
            return self._supplied(name)
        own = [d for d in definers if d.script is statement.script and d is not statement]
        branch = statement.parsed.branch
        if branch:  # what another arm defines is not there
            own = [d for d in own if not exclusive(branch, d.parsed.branch)]
        before = [d for d in own if d.index < statement.index]
        chosen = (
            before[-1]
            if before
            else own[0]
            if own
            else next((d for d in definers if d.script is not statement.script), None)
        )
        if chosen is None:
            return self._from_elsewhere(name, statement)
        if chosen.script is not statement.script:
            last = [d for d in definers if d.script is chosen.script]
            chosen = last[-1]
        if not self.settle(chosen):
            note = Diagnostic("cycle", "warning", f"{name} is defined through itself", target=name)
            if note not in statement.diagnostics:
                statement.diagnostics.append(note)
            return self._unknown(name)
        info = chosen.infos.get(name)
        if info is None:
            return self._unknown(name)
        if before and chosen.parsed.branch:
            info = self._of_any_arm(name, info, [d for d in before if exclusive(chosen.parsed.branch, d.parsed.branch)])
        return self._altered(name, info, chosen, statement)

    def _of_any_arm(self, name: str, info: TableInfo, others: list[StatementState]) -> TableInfo:
        """A table that other arms of a branch define, too, has the columns of each."""
        found = [d.infos[name] for d in others if self.settle(d) and name in d.infos]
        if all(list(other.columns) == list(info.columns) and other.complete for other in found):
            return info
        columns = {column: type_ for known in (*found, info) for column, type_ in known.columns.items()}
        return self._info(name, columns, complete=info.complete and all(other.complete for other in found))

    def _supplied(self, name: str) -> TableInfo:
        info = self._known.get(name)
        if info is None:
            info = self._known[name] = self._info(name, dict(self.schema[name]), complete=True)
        return info

    def _info(self, name: str, columns: dict[str, str | None] | None, *, complete: bool) -> TableInfo:
        info = TableInfo(name, columns, complete)
        info.used = self._used.setdefault(name, set())
        return info

    def _unknown(self, name: str) -> TableInfo:
        return self._info(name, None, complete=False)

    def _from_elsewhere(self, name: str, statement: StatementState) -> TableInfo:
        """What is known of a table that no statement defines: the schema, else what is inserted into it."""
        if name in self.schema:
            return self._info(name, dict(self.schema[name]), complete=True)
        columns: dict[str, str | None] = {}
        complete = False
        for filler in self._fillers.get(name, ()):
            if filler is statement:
                continue
            if filler.script is statement.script and filler.index > statement.index:
                columns.update(dict.fromkeys(_listed(filler)))  # too late to define it, but it does name columns
                continue
            if not self.settle(filler):
                continue
            for write in filler.writes:
                if write.target == name:
                    columns.update(dict.fromkeys(write.output.names))
                    lists_columns = isinstance(filler.tree, nodes.Insert) and isinstance(filler.tree.this, nodes.Schema)
                    complete = complete or (
                        isinstance(filler.tree, nodes.Insert) and not lists_columns and not write.output.open
                    )
        for alter in self._alters.get(name, ()):
            self._apply(alter, columns)
        return self._info(name, columns, complete=complete and bool(columns))

    def _altered(self, name: str, info: TableInfo, definer: StatementState, statement: StatementState) -> TableInfo:
        """Apply the ALTERs between a definition and the place where it is read."""
        changes = [
            a
            for a in self._alters.get(name, ())
            if a is not statement
            and (a.script is not definer.script or a.index > definer.index)
            and (a.script is not statement.script or a.index < statement.index)
        ]
        if not changes:
            return info
        columns = dict(info.columns)
        for change in changes:
            self._apply(change, columns, drops=change.script is statement.script)
        return self._info(name, columns, complete=info.complete)

    def _apply(self, alter: StatementState, columns: dict[str, str | None], *, drops: bool = True) -> None:
        dialect = alter.script.dialect
        for action in alter.tree.args.get("actions") or () if alter.tree is not None else ():
            if isinstance(action, (nodes.ColumnDef, nodes.Schema)):
                for column in action.expressions if isinstance(action, nodes.Schema) else [action]:
                    if isinstance(column, nodes.ColumnDef):
                        kind = column.args.get("kind")
                        columns[_column(column.this, dialect)] = type_text(kind, dialect)
            elif isinstance(action, nodes.RenameColumn):
                old, new = _column(action.this, dialect), _column(action.args["to"], dialect)
                if drops and old in columns:
                    items = [(new if name == old else name, type_) for name, type_ in columns.items()]
                    columns.clear()
                    columns.update(items)
                else:
                    columns[new] = columns.get(old)
            elif isinstance(action, nodes.Drop) and drops:
                for column in action.args.get("tables") or ([action.this] if action.args.get("this") else []):
                    if isinstance(column, nodes.Expr):
                        columns.pop(_column(column, dialect), None)

    def columns(self, name: str) -> Mapping[str, str | None] | None:
        """Return the columns of a table in their order, with types; None if not all are known."""
        info = self.table(name, StatementState(_NOTHING, ScriptState("", "", ""), 0, None, None, ()))
        return dict(info.columns) if info.complete and info.columns else None

    def usage_size(self) -> int:
        """Return how many columns usage has shown so far; it only grows."""
        return sum(map(len, self._used.values()))

    # ---- the walk --------------------------------------------------------------------------------------

    def settle(self, statement: StatementState) -> bool:
        """Walk a statement unless that was done. Returns False where it is being walked: a cycle."""
        if statement.state == "done":
            return True
        if statement.state == "walking":
            return False
        statement.state = "walking"
        try:
            if statement.parsed.parked:
                self._walk_parked(statement)
            else:
                self._walk(statement, statement.tree)
        except RecursionError:
            statement.writes = []
            statement.diagnostics.append(Diagnostic("nesting", "error", "nested too deeply to be understood"))
        except Exception as error:  # a tree of a shape that was not foreseen must not cost the rest of the batch
            statement.writes = []
            what = f"this statement could not be analysed ({type(error).__name__}: {str(error)[:120]})"
            statement.diagnostics.append(Diagnostic("opaque", "error", what))
        finally:
            statement.state = "done"
        return True

    def walk_again(self, statement: StatementState) -> None:
        """Walk a statement once more, with what usage has shown since."""
        before = list(statement.diagnostics)
        kept = {*statement.parsed.diagnostics, *(d for d in before if d.code == "template")}
        statement.diagnostics = [d for d in before if d in kept]
        statement.state = "waiting"
        self.settle(statement)

    def _walk_parked(self, statement: StatementState) -> None:
        parsed = statement.parsed
        tree = parse_again(parsed.text, parsed.column, statement.script.dialect)
        try:
            self._walk(statement, tree)
        finally:
            if tree is not None:
                release(tree)

    def _walk(self, statement: StatementState, tree: exp.Expr | None) -> None:
        if tree is None:
            return
        lookup = _Here(self, statement)
        walk = StatementWalk(statement.script.dialect, self.interner, lookup)
        variables = statement.script.variables
        if variables:
            walk.parameters = frozenset(variables.get(None, ())) | frozenset(
                variables.get(statement.parsed.routine, ())
            )
        if isinstance(tree, nodes.Declare):
            self._declared(tree, statement)
            return
        statement.writes = walk.statement(tree)
        for write in statement.writes:
            if not write.target and write.kind == "select" and statement.relation:
                write.target, write.kind, write.target_kind = statement.relation, "select", "table"
        statement.diagnostics.extend(walk.diagnostics)
        statement.ambiguous = walk.ambiguous
        statement.unsettled = bool(walk.ambiguous) or any(w.output.open for w in statement.writes)
        for write in statement.writes:
            if write.output.open and write.defines:
                self._demanded(write)
            if write.mode == "rename":
                self._move(write, statement)
            elif write.defines and write.target:
                statement.infos[write.target] = self._defined(write)

    def _demanded(self, write: Write) -> None:
        """Columns that other statements name of a relation whose ``*`` is not resolved: they can only pass through
        it.
        """
        stars = [star for star in write.output.open if not star.table.virtual]
        if len(stars) != 1 or stars[0].candidate:
            return
        for name in sorted(self._used.get(write.target, ())):
            if name not in write.output.index():
                deps = stars[0].lookup(name, self.interner)
                if deps is not None:
                    write.output.add(name, starred(deps))
                    stars[0].table.used.add(name)

    def _defined(self, write: Write) -> TableInfo:
        columns = {name: write.output.types.get(i) for i, name in enumerate(write.output.names)}
        complete = not write.output.open and bool(columns)
        return self._info(write.target, columns, complete=complete)

    def _declared(self, tree: exp.Declare, statement: StatementState) -> None:
        for item, name in zip(tree.expressions, self._variables(tree, statement), strict=False):
            columns: dict[str, str | None] = {
                _column(column.this, statement.script.dialect): None
                for column in item.args["kind"].expressions
                if isinstance(column, nodes.ColumnDef)
            }
            statement.infos[name] = self._info(name, columns, complete=True)

    def _move(self, write: Write, statement: StatementState) -> None:
        """RENAME: the new name has the columns that the old one had here."""
        if write.renamed_to is None:
            return
        pairs = [(write.target, write.renamed_to)]
        if write.kind == "swap":
            pairs.append((write.renamed_to, write.target))
        for old, new in pairs:
            info = self.table(old, statement)
            statement.infos[new] = self._info(new, dict(info.columns), complete=info.complete)


class _Here:
    """The surroundings of one statement (``walk.Lookup``)."""

    __slots__ = ("_tables", "batch", "statement")

    def __init__(self, batch: Batch, statement: StatementState) -> None:
        self.batch = batch
        self.statement = statement
        self._tables: dict[str, TableInfo] = {}

    def table(self, name: str) -> TableInfo:
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = self.batch.table(name, self.statement)
        return found

    def table_name(self, node: exp.Table) -> str:
        return self.batch.table_name(node, self.statement)

    def function(self, name: str) -> Inline | None:
        functions = self.batch.functions
        if not functions:
            return None
        found = functions.get(name)
        if found is None and "." in name:
            found = functions.get(name.rsplit(".", 1)[-1])
        return found


def _column(node: exp.Expr, dialect: str) -> str:
    identifier = node.this if isinstance(node, (nodes.Column, nodes.ColumnDef)) else node
    return fold(identifier.name, quoted=bool(identifier.args.get("quoted")), dialect=dialect)


def _listed(filler: StatementState) -> list[str]:
    """Return the columns that an INSERT lists for its target."""
    target = filler.tree.this if isinstance(filler.tree, nodes.Insert) else None
    items = target.expressions if isinstance(target, nodes.Schema) else []
    return [_column(item, filler.script.dialect) for item in items]


def _session_part(session: str) -> str:
    return fold(session, quoted=True) if session else "session"
