"""A batch of scripts: which statement defines which relation, and in which order they can be understood.

Statements come in any order. A statement is walked when its turn comes, or earlier when another one needs the columns
of what it defines (the stack of the LineageX paper, section 3, as recursion). What a name means depends on where it
stands: in its own script the latest definition before it counts, else the next one after it; other scripts have no
order, and there the supplied schema counts first and then any definition.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.definitions import Definitions
from govtool.capture.sql.knowledge import Knowledge, KnownTable, Usage
from govtool.capture.sql.relations import column_name
from govtool.capture.sql.routine_calls import defined_routines
from govtool.capture.sql.scripts.branches import exclusive
from govtool.capture.sql.scripts.statement import ParsedStatement
from govtool.capture.sql.scripts.trees import TreeCache, parse_again, release
from govtool.capture.sql.states import ScriptState, StatementState
from govtool.capture.sql.variables import assigning, live
from govtool.capture.sql.walk.assignments import VariableAssignment
from govtool.capture.sql.walk.dependencies import Deps, Interner
from govtool.capture.sql.walk.edge_places import PlaceWriter
from govtool.capture.sql.walk.functions import type_text
from govtool.capture.sql.walk.origins import OriginFinder
from govtool.capture.sql.walk.relation import ShardedTable, TableInfo, starred
from govtool.capture.sql.walk.spans import StatementText
from govtool.capture.sql.walk.state import Inline, Returned, VariableValue
from govtool.capture.sql.walk.statements import StatementWalk
from govtool.capture.sql.walk.writes import Write
from govtool.model import Diagnostic
from govtool.names import split_name

_NONE: Final[frozenset[str]] = frozenset()

MAX_ROUNDS: Final = 40
"""Number of rounds of a loop, for the sake of values that come round; chains of functions are cut before."""

_NOTHING: Final = ParsedStatement(None, "", 1, 1, "ignored", "")


class Batch(Definitions):
    """All scripts of one extraction, and what is known of every table."""

    def __init__(
        self, schema: Mapping[str, Mapping[str, str | None]] | None, knowledge: Knowledge | None = None
    ) -> None:
        super().__init__(schema or {})
        self.interner = Interner()
        self.tree_cache = TreeCache()
        self.keeps_places = False
        """True if the places of expressions are wanted."""
        self.scripts: list[ScriptState] = []
        self._known: dict[str, TableInfo] = {}
        self._used: dict[str, set[str]] = {}
        self._described: Usage = {}
        self.usage_seen = 0
        self.circular: dict[int, ScriptState] = {}
        """Scripts in whose loops a variable comes from itself."""
        self._settled: dict[int, int] = {}
        """By script, how many of its assignments were walked in their order."""
        self.later: dict[str, list[Callable[[], None]]] = {}
        """By relation: adds the script that defines it, which is not rendered yet."""
        if knowledge is not None:
            self._add_knowledge(knowledge)

    def _add_knowledge(self, knowledge: Knowledge) -> None:
        """Begin with what another batch says."""
        self._known_names = knowledge.defined
        self.functions = dict(knowledge.functions)
        self._used = {name: set(columns) for name, columns in knowledge.used.items()}
        self._described = knowledge.described
        self.routines = knowledge.routines
        for name, known in knowledge.tables.items():
            self._known[name] = self._info(name, dict(known.columns), complete=known.complete)

    def knowledge(self) -> Knowledge:
        """Return the knowledge that this batch, all of it walked, gives to statements of other scripts."""
        outsider = StatementState(_NOTHING, ScriptState("", "", ""), 0, None, None, ())
        names = {*self._definers, *self._fillers, *self._alters, *self._known} - set(self.schema)
        tables = {}
        for name in sorted(names):
            info = self.table(name, outsider)
            if info.columns or info.complete:
                tables[name] = KnownTable(dict(info.columns), info.complete)
        defined = self._known_names | frozenset(self._definers)
        routines = self.routines | defined_routines(self.scripts)
        return Knowledge(tables, defined, dict(self.functions), self.usage(), self._described, routines)

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

    # ---- tables ---------------------------------------------------------------------------------------

    def table(self, name: str, statement: StatementState) -> TableInfo:
        """Return what is known of a table where ``statement`` stands."""
        if self.later:
            for add in self.later.pop(name, ()):
                add()
        definers = self._definers.get(name)
        if definers is None and name in self._alters and name in self.schema:
            return self._altered_schema(name, statement)
        if definers is None:
            info = self._known.get(name)
            if info is None or (not info.complete and name in self._fillers and not info.columns):
                info = self._known[name] = self._from_elsewhere(name, statement)
            return info
        if name in self.schema:
            return self._supplied(name)
        before: list[StatementState] = []
        if len(definers) == 1 and definers[0].script is not statement.script:
            chosen: StatementState | None = definers[0]
        elif definers[0].script is statement.script is definers[-1].script and not statement.parsed.branch:
            place = bisect_left(definers, statement.index, key=_index)
            chosen = definers[place - 1] if place else next((d for d in definers if d is not statement), None)
            if place and definers[place - 1].parsed.branch:
                before = definers[:place]
        else:
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
                else _nearest([d for d in definers if d.script is not statement.script], statement.script.file)
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

    def _altered_schema(self, name: str, statement: StatementState) -> TableInfo:
        """A supplied table as ALTERs have changed it where a statement stands."""
        columns = dict(self.schema[name])
        for alter in self._alters[name]:
            same = alter.script is statement.script
            if alter is not statement and (not same or alter.index < statement.index):
                self._apply(alter, columns, drops=same)
        return self._info(name, columns, complete=True)

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
        info.described = self._described.get(name, _NONE)
        return info

    def _unknown(self, name: str) -> TableInfo:
        return self._info(name, None, complete=False)

    def _from_elsewhere(self, name: str, statement: StatementState) -> TableInfo:
        """Return what is known of a table that no statement defines: the schema, else what is inserted into it."""
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
        alters = self._alters.get(name)
        if alters is None:
            return info
        changes = [
            a
            for a in alters
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
                        columns[column_name(column.this, dialect)] = type_text(kind, dialect)
            elif isinstance(action, nodes.RenameColumn):
                old, new = column_name(action.this, dialect), column_name(action.args["to"], dialect)
                if drops and old in columns:
                    items = [(new if name == old else name, type_) for name, type_ in columns.items()]
                    columns.clear()
                    columns.update(items)
                else:
                    columns[new] = columns.get(old)
            elif isinstance(action, nodes.Drop) and drops:
                for column in action.args.get("tables") or ([action.this] if action.args.get("this") else []):
                    if isinstance(column, nodes.Expr):
                        columns.pop(column_name(column, dialect), None)

    def columns(self, name: str) -> Mapping[str, str | None] | None:
        """Return the columns of a table in their order, with types; None if not all are known."""
        info = self.table(name, StatementState(_NOTHING, ScriptState("", "", ""), 0, None, None, ()))
        return dict(info.columns) if info.complete and info.columns else None

    def names(self) -> set[str]:
        """Return the names of all tables that are supplied, defined or filled."""
        return {*self.schema, *self._definers, *self._fillers}

    def usage_size(self) -> int:
        """Return how many columns usage has shown so far; it only grows."""
        return sum(map(len, self._used.values()))

    # ---- script variables --------------------------------------------------------------------------------

    def variable(self, name: str, statement: StatementState) -> list[VariableValue] | None:
        """Return what a script variable may be where a statement stands; None if the name stands for none."""
        found = assigning(name, statement)
        if found is None:
            return None
        self._settle_before(statement)
        values: list[VariableValue] = []
        for other in found:
            if not self.settle(other):
                self.circular[id(statement.script)] = statement.script
            values += [w.value for w in other.writes if isinstance(w, VariableAssignment) and w.value.name == name]
        return values

    def _settle_before(self, statement: StatementState) -> None:
        """Walk the assignments before a statement in their order, so that none waits for a long row of others."""
        script = statement.script
        key = id(script)
        at = self._settled.get(key, 0)
        while at < len(script.assignments) and script.assignments[at].index < statement.index:
            self._settled[key] = at + 1
            self.settle(script.assignments[at])
            at = self._settled[key]

    def returned(self, name: str) -> Returned | None:
        """Return the rows of a table function whose body is a block."""
        last = name.rsplit(".", 1)[-1]
        statements = self.returning.get(name) or self.returning.get(last) or self.returning.get(self.named(last))
        if not statements:
            return None
        found = Returned([])
        for statement in statements:
            args = statement.tree.args if statement.tree is not None else {}
            if args.get("signature"):
                found = found._replace(columns=args.get("columns") or (), row=args.get("row") or "")
            elif self.settle(statement):
                found.values.extend([w.value for w in statement.writes if isinstance(w, VariableAssignment)])
        return found if found.values else None

    def settle_loops(self) -> None:
        """Walk scripts again in which values come round in loops, until no variable becomes more."""
        for script in list(self.circular.values()):
            for _ in range(MAX_ROUNDS):
                before = [_assigned_values(statement) for statement in script.assignments]
                for statement in script.assignments:
                    self.walk_again(statement)
                if [_assigned_values(statement) for statement in script.assignments] == before:
                    break
            for statement in script.statements:
                if statement.tree is not None and type(statement.tree) is not nodes.Set:
                    self.walk_again(statement)

    # ---- the walk --------------------------------------------------------------------------------------

    def settle(self, statement: StatementState) -> bool:
        """Walk a statement unless that was done. Returns False where it is being walked: a cycle."""
        if statement.state == "done":
            return True
        if statement.state == "walking":
            return False
        statement.state = "walking"
        try:
            if statement.parsed.evicted:
                self._walk_evicted(statement)
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

    def _walk_evicted(self, statement: StatementState) -> None:
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
        if statement.script.assignments:
            known = live(statement)
            walk.variables = True
            walk.parameters |= frozenset(known) if walk.dialect != "snowflake" else _NONE
        if isinstance(tree, nodes.Declare):
            self._declared(tree, statement)
        if self.triggers and statement.parsed.routine is not None:
            walk.conditions = self.conditions(statement.parsed.routine)
        walk.tests = statement.parsed.tests
        statement.writes = walk.statement(tree)
        for write in statement.writes:
            if not write.target and write.kind == "select" and statement.relation:
                write.target, write.kind, write.target_kind = statement.relation, "select", "table"
        for write in statement.writes if self.watched else ():
            if write.mode == "update" and write.target in self.watched:
                walk.touches_rows(write)
        if self.partitions:
            statement.writes += self._into_partitions(statement.writes)
        if self.keeps_places and not statement.script.logged:
            self._place(statement, walk, tree)
        statement.diagnostics.extend(walk.diagnostics)
        statement.ambiguous = walk.ambiguous
        statement.unsettled = bool(walk.ambiguous) or walk.presumed or any(w.output.open for w in statement.writes)
        for write in statement.writes:
            if write.output.open and write.defines:
                self._demanded(write)
            if write.mode == "rename":
                self._move(write, statement)
            elif write.defines and write.target:
                statement.infos[write.target] = self._defined(write, statement)

    def _place(self, statement: StatementState, walk: StatementWalk, tree: exp.Expr) -> None:
        """Keep the places of the expressions that make the edges of a statement."""
        parsed = statement.parsed
        if parsed.offset < 0:
            return
        template = statement.script.template
        line_of = None if template is None else statement.line_of_text
        text = StatementText(parsed.text, parsed.offset, parsed.column, template, line_of)
        writer = PlaceWriter(text, parsed.line, self.interner, OriginFinder(walk.name, walk.output_name), tree)
        for write in statement.writes:
            if write.output.deps or write.rows or write.steering:
                try:
                    write.places = writer.places(write)
                except Exception as error:  # a tree of a shape that was not foreseen: its edges stay
                    what = f"the places of its expressions are not known ({type(error).__name__}: {str(error)[:120]})"
                    statement.diagnostics.append(Diagnostic("place", "info", what))
                    break

    def _into_partitions(self, writes: list[Write]) -> list[Write]:
        """The same writes once more, of each partition of a table that is filled: its rows are found in them."""
        found: list[Write] = []
        for write in writes:
            if write.mode == "append" and write.kind != "partition":
                for name in self.partitions.get(write.target, ()):
                    found.append(write.of(name))
        return found

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

    def _defined(self, write: Write, statement: StatementState) -> TableInfo:
        columns = {name: write.output.types.get(i) for i, name in enumerate(write.output.names)}
        is_whole = all(note.code != "template" for note in statement.diagnostics)  # else columns may be missing, too
        complete = not write.output.open and bool(columns) and is_whole
        return self._info(write.target, columns, complete=complete)

    def _declared(self, tree: exp.Declare, statement: StatementState) -> None:
        for name, listed in self.declared_tables(tree, statement):
            columns: dict[str, str | None] = {
                column_name(column.this, statement.script.dialect): None
                for column in (listed.expressions if listed is not None else ())
                if isinstance(column, nodes.ColumnDef)
            }
            statement.infos[name] = self._info(name, columns, complete=bool(columns))

    def _move(self, write: Write, statement: StatementState) -> None:
        """RENAME: the new name has the columns that the old one had here."""
        if write.renamed_to is None:
            return
        pairs = [(write.target, write.renamed_to)]
        if write.kind == "swap":
            pairs.append((write.renamed_to, write.target))
        for old, new in pairs:
            info = self.table(old, statement)
            moved = self._info(new, dict(info.columns), complete=info.complete)
            moved.used = info.used  # what is named under the new name was there under the old one
            statement.infos[new] = moved


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
            found = shards(self.batch, name, self.statement) if name[-2:] == '*"' else None
            if found is None:
                found = self.batch.table(name, self.statement)
            self._tables[name] = found
        return found

    def table_name(self, node: exp.Table) -> str:
        batch, statement = self.batch, self.statement
        if batch.row_sets and not node.args.get("db"):
            routine = statement.parsed.routine
            if node.name.lower() in batch.row_sets.get(routine or "", ()):
                touched = batch.triggering(routine)
                if touched:
                    return touched[0]
        name = batch.table_name(node, statement)
        return batch.resolved_name(name, node) if batch.synonyms and name else name

    def written_name(self, node: exp.Table) -> str:
        return self.batch.table_name(node, self.statement)

    def triggering(self, routine: str) -> list[str]:
        return self.batch.triggering(routine)

    def routine(self) -> str | None:
        return self.statement.parsed.routine

    def returned(self, name: str) -> Returned | None:
        return self.batch.returned(name) if self.batch.returning else None

    def variable(self, name: str) -> list[VariableValue] | None:
        return self.batch.variable(name, self.statement)

    def is_unread(self, name: str) -> bool:
        return bool(self.batch.unread) and name.rsplit(".", 1)[-1] in self.batch.unread

    def function(self, name: str) -> Inline | None:
        functions = self.batch.functions
        if not functions:
            return None
        found = functions.get(name)
        if found is None and "." in name:
            found = functions.get(name.rsplit(".", 1)[-1])
        return found


def shards(batch: Batch, name: str, statement: StatementState) -> ShardedTable | None:
    """The tables that BigQuery's wildcard stands for (``ds.events_*``), as far as they are known; None if none is."""
    if statement.script.dialect != "bigquery":
        return None
    parts = split_name(name)
    prefix = parts[-1].strip('"').rstrip("*")
    names = batch.names()
    found = [one for one in names if (own := split_name(one))[:-1] == parts[:-1] and own[-1].strip('"') != parts[-1]]
    found = [one for one in found if split_name(one)[-1].strip('"').startswith(prefix) and not one.endswith('*"')]
    return ShardedTable(name, [batch.table(one, statement) for one in sorted(found)]) if found else None


def _assigned_values(statement: StatementState) -> list[tuple[str, list[Deps], list[int]]]:
    return [
        (w.value.name, w.output.deps, sorted(w.rows)) for w in statement.writes if isinstance(w, VariableAssignment)
    ]


def _index(statement: StatementState) -> int:
    return statement.index


def _nearest(definers: list[StatementState], file: str) -> StatementState | None:
    """The first of the definitions whose file shares most folders with ``file``; none if there are none.

    Folders of unlike projects define tables of the same name.
    """
    folders = file.split("/")[:-1]
    best: StatementState | None = None
    most = -1
    for definer in definers:
        shared = 0
        for ours, theirs in zip(folders, definer.script.file.split("/")[:-1], strict=False):
            if ours != theirs:
                break
            shared += 1
        if shared > most:
            best, most = definer, shared
    return best


def _listed(filler: StatementState) -> list[str]:
    """Return the columns that an INSERT lists for its target."""
    target = filler.tree.this if isinstance(filler.tree, nodes.Insert) else None
    items = target.expressions if isinstance(target, nodes.Schema) else []
    return [column_name(item, filler.script.dialect) for item in items]
