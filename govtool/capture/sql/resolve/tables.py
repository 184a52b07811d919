"""What is known of tables where a statement of a batch stands, from the statements that define, fill and alter them.

What a name means depends on where it stands: in its own script the latest definition before it counts, else the next
one after it; other scripts have no order, and there the supplied schema counts first and then any definition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from govtool.capture.sql.resolve.definers import definer_of
from govtool.capture.sql.resolve.definitions import OF_SESSION, Definitions, function_keys
from govtool.capture.sql.resolve.fillers import Fillers
from govtool.capture.sql.resolve.knowledge import Knowledge, KnownTable, Usage
from govtool.capture.sql.resolve.live_variables import assigning
from govtool.capture.sql.resolve.relations import column_name
from govtool.capture.sql.resolve.routine_calls import defined_routines
from govtool.capture.sql.resolve.states import ScriptState, StatementState
from govtool.capture.sql.resolve.temporary_tables import note_later
from govtool.capture.sql.scripts.control.branches import exclusive
from govtool.capture.sql.scripts.statement import ParsedStatement
from govtool.capture.sql.scripts.trees import TreeCache
from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.dependencies import Interner
from govtool.capture.sql.walk.expressions.functions import type_text
from govtool.capture.sql.walk.places.edge_places import ColumnTexts
from govtool.capture.sql.walk.relation import TableInfo, ViewBase
from govtool.capture.sql.walk.state import Inline, Returned, VariableValue
from govtool.capture.sql.walk.usage import TapeRecorder, UsedColumns
from govtool.capture.sql.walk.writing.assignments import VariableAssignment
from govtool.capture.sql.walk.writing.views import any_of
from govtool.model import Diagnostic
from govtool.names import split_name

_NONE: Final[frozenset[str]] = frozenset()

_NOTHING: Final = ParsedStatement(None, "", 1, 1, "ignored", "")


class Tables(Definitions):
    """The scripts of one extraction, and what is known of every table."""

    def __init__(
        self, schema: Mapping[str, Mapping[str, str | None]] | None, knowledge: Knowledge | None = None
    ) -> None:
        super().__init__(schema or {})
        self.interner = Interner()
        self.tree_cache = TreeCache()
        self.keeps_places = False
        """True if the places of expressions are wanted."""
        self.column_texts = ColumnTexts(self.interner)
        self.scripts: list[ScriptState] = []
        self._known: dict[str, TableInfo] = {}
        self._used: dict[str, UsedColumns] = {}
        self.recorder = TapeRecorder()
        self.taping = False
        """True if walks are recorded."""
        self.replay: Callable[[StatementState], bool] | None = None
        """Takes the outcome of an earlier walk, if there is one that is still right."""
        self._described: Usage = {}
        self.usage_seen = 0
        self.circular: dict[int, ScriptState] = {}
        """Scripts in whose loops a variable comes from itself."""
        self._depths: list[int] = []
        """How deep walks went before those that are under way began."""
        self._places: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        self._placed = -1
        """How many names ``_places`` was made of."""
        self._settled: dict[int, int] = {}
        """By script, how many of its assignments were walked in their order."""
        self._silent: dict[str, Fillers] = {}
        """By relation that statements fill, which of them say nothing about its columns."""
        self._with_alters: dict[tuple[str, int], _Changed] = {}
        """By relation and script, a definition with the ALTERs that were applied to it last."""
        self._staying: dict[tuple[str, str | None, int], bool] = {}
        """By relation, column and number of ALTERs, whether anything is left of it."""
        self.later: dict[str, list[Callable[[], None]]] = {}
        """By relation: adds the script that defines it, which is not rendered yet."""
        if knowledge is not None:
            self._add_knowledge(knowledge)

    def _add_knowledge(self, knowledge: Knowledge) -> None:
        """Begin with the knowledge of another batch."""
        self._known_names = knowledge.defined
        self.functions = dict(knowledge.functions)
        self._used = {name: UsedColumns(name, self.recorder, columns) for name, columns in knowledge.used.items()}
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
        return {name: frozenset(used.columns) for name, used in sorted(self._used.items()) if used.columns}

    # ---- before the walk ---------------------------------------------------------------------------

    def add(self, script: ScriptState) -> None:
        """Add a script whose statements are parsed; find out what each of them defines."""
        self.scripts.append(script)
        special = self.special
        known = set(script.temporary)
        for statement in script.statements:
            self._find_temporary(statement)
        if script.temporary:
            note_later(script, known)
        for statement in script.statements:
            self._find_definitions(statement)
        script.special = self.special > special

    def add_earlier(self, script: ScriptState, functions: Callable[[StatementState, str], Inline | None]) -> None:
        """Add a script that is known from an earlier extraction.

        Args:
            script: Its statements have what they define and fill.
            functions: Returns a function that a statement of it makes.
        """
        self.scripts.append(script)
        self.routines |= script.routines
        for statement in script.statements:
            for key in function_keys(statement):
                made, earlier = self.functions.pop(key, None), self.unparsed_functions.get(key)
                self._mark_function(key, statement.function_mark)
                name = key.rpartition(OF_SESSION)[2]
                self.unparsed_functions[key] = _maker(
                    functions, statement, name, made, earlier, again=self.remade(key, script)
                )
            self._register(statement)

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
            return self._undefined(name, statement)
        if name in self.schema:
            return self._supplied(name)
        chosen, before = _left_by(definers, statement)
        if chosen is None:
            return self._from_elsewhere(name, statement)
        if not self.settle(chosen):
            note = Diagnostic("cycle", "warning", f"{name} is defined through itself", target=name)
            if note not in statement.diagnostics:
                statement.diagnostics.append(note)
            return self._unknown(name)
        info = chosen.infos.get(name)
        if info is None:
            return self._unknown(name)
        # One arm of the branch has run, and nobody knows which.
        if before and chosen.parsed.branch:
            info = self._of_any_arm(name, info, [d for d in before if exclusive(chosen.parsed.branch, d.parsed.branch)])
        return self._altered(name, info, chosen, statement)

    def view(self, name: str, statement: StatementState) -> ViewBase | None:
        """Return what a view is to what a statement writes to it; None for a table.

        Its definition counts even where the columns are those of a supplied schema.
        """
        if self.later:
            for add in self.later.pop(name, ()):
                add()
        chosen, before = _left_by(self._definers.get(name, []), statement)
        if chosen is None:
            return None
        if not self.settle(chosen):
            return ViewBase("", (), False, (), False)
        arms = [chosen]
        branch = chosen.parsed.branch
        if branch and statement.parsed.branch[: len(branch)] != branch:  # another arm may have run, or none
            arms += [other for other in before if other is not chosen and self.settle(other)]
        found = [info.view for arm in arms if (info := arm.infos.get(name)) is not None and info.view is not None]
        if not found:
            return None
        view = any_of(found)
        return view._replace(columns=(), is_open=False) if self._renames_columns(name) else view

    def _renames_columns(self, name: str) -> bool:
        """Return whether ALTERs of a view give its columns other names than its definition does."""
        trees = [alter.tree for alter in self._alters.get(name, ()) if alter.tree is not None]
        return any(
            isinstance(action, nodes.RenameColumn) for tree in trees for action in tree.args.get("actions") or ()
        )

    def _undefined(self, name: str, statement: StatementState) -> TableInfo:
        """Return what is known of a table that no statement defines."""
        info = self._known.get(name)
        if info is None or (not info.complete and name in self._fillers and not info.columns):
            info = self._known[name] = self._from_elsewhere(name, statement)
        return info

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
        info.used = self.used(name)
        info.described = self._described.get(name, _NONE)
        return info

    def shape(self, name: str, columns: dict[str, str | None], *, complete: bool) -> TableInfo:
        """Return a table of a known shape."""
        return self._info(name, columns, complete=complete)

    def used(self, name: str) -> UsedColumns:
        """Return the columns of a table that usage shows, as they become known."""
        found = self._used.get(name)
        if found is None:
            found = self._used[name] = UsedColumns(name, self.recorder)
        return found

    def _unknown(self, name: str) -> TableInfo:
        return self._info(name, None, complete=False)

    def _from_elsewhere(self, name: str, statement: StatementState) -> TableInfo:
        """Return what is known of a table that no statement defines: the schema, else what is inserted into it."""
        if name in self.schema:
            return self._info(name, dict(self.schema[name]), complete=True)
        columns: dict[str, str | None] = {}
        complete = False
        if not self._is_filled_with_columns(name, statement):
            return self._info(name, columns, complete=False)
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

    def _is_filled_with_columns(self, name: str, statement: StatementState) -> bool:
        """Return whether statements that fill or alter a table name a column of it that is there in the end."""
        fillers, alters = self._fillers.get(name, ()), self._alters.get(name, ())
        known = self._silent.get(name)
        if known is None or known.alters != len(alters):
            known = self._silent[name] = Fillers(len(alters))
        known.update(fillers, lambda filler: any(self._stays(name, column) for column in _listed(filler)))
        if (alters and self._stays(name, None)) or known.listed_behind(statement):
            return True
        return any(
            filler is not statement and self.settle(filler) and not self._is_silent(name, filler)
            for filler in known.candidates(statement, lambda filler: self._is_silent(name, filler))
        )

    def _is_silent(self, name: str, filler: StatementState) -> bool:
        """Return whether a statement that was walked names no column of a table that is there in the end."""
        return not any(
            self._stays(name, column)
            for write in filler.writes
            if write.target == name
            for column in write.output.names
        )

    def _stays(self, name: str, column: str | None) -> bool:
        """Return whether a table that has one column, or none, has a column behind all of its ALTERs."""
        alters = self._alters.get(name)
        if not alters:
            return column is not None
        key = (name, column, len(alters))
        found = self._staying.get(key)
        if found is None:
            columns: dict[str, str | None] = {} if column is None else {column: None}
            for alter in alters:
                self._apply(alter, columns)
            found = self._staying[key] = bool(columns)
        return found

    def reconsider(self, statement: StatementState) -> None:
        """Look again at tables that a statement fills, as it was walked and may name columns of them now."""
        for name in statement.fills:
            if name in self._silent and not self._is_silent(name, statement):
                del self._silent[name]

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
        key = (name, id(statement.script))
        known = self._with_alters.get(key)
        if known is None or known.info is not info or changes[: len(known.changes)] != known.changes:
            known = self._with_alters[key] = _Changed(info, [], dict(info.columns))
        for change in changes[len(known.changes) :]:
            self._apply(change, known.columns, drops=change.script is statement.script)
        known.changes = changes
        return self._info(name, dict(known.columns), complete=info.complete)

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
                _rename(columns, old, new, drops=drops)
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

    def places(self) -> dict[tuple[str, ...], list[tuple[str, str]]]:
        """Return these names by all but their last part, with that part, without quotes."""
        size = len(self._definers) + len(self._fillers)
        if size != self._placed:
            self._places, self._placed = {}, size
            for name in self.names():
                *place, last = split_name(name)
                self._places.setdefault(tuple(place), []).append((last.strip('"'), name))
        return self._places

    def usage_size(self) -> int:
        """Return how many columns usage has shown so far; it only grows."""
        return sum([len(used.columns) for used in self._used.values()])

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
        """Return what a function returns whose body is a block; for one of a package, what any of the package does."""
        package, _, last = name.rpartition(".")
        own = package.rpartition(".")[2]
        names = [name, last, self.named(last), package, own, self.named(own)]
        statements = next((kept for one in names if (kept := self.returning.get(one))), None)
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

    def settle(self, statement: StatementState) -> bool:
        """Walk a statement unless that was done; see ``Batch``, which implements it."""
        raise NotImplementedError


def _left_by(
    definers: list[StatementState], statement: StatementState
) -> tuple[StatementState | None, list[StatementState]]:
    """Return ``definer_of``; another script has run as a whole: what it left is its last definition."""
    if not definers:
        return None, []
    chosen, before = definer_of(definers, statement)
    if chosen is not None and chosen.script is not statement.script:
        chosen = [d for d in definers if d.script is chosen.script][-1]
    return chosen, before


def _rename(columns: dict[str, str | None], old: str, new: str, *, drops: bool) -> None:
    """Rename a column in its place; where columns of other scripts do not go, both names are there."""
    if not drops or old not in columns:
        columns[new] = columns.get(old)
    elif new not in columns and next(reversed(columns)) == old:
        columns[new] = columns.pop(old)
    else:
        items = [(new if name == old else name, type_) for name, type_ in columns.items()]
        columns.clear()
        columns.update(items)


class _Changed:
    """A definition of a table with ALTERs applied: the next statement adds one to them, rather than begin anew."""

    __slots__ = ("changes", "columns", "info")

    def __init__(self, info: TableInfo, changes: list[StatementState], columns: dict[str, str | None]) -> None:
        self.info = info
        self.changes = changes
        self.columns = columns


def _maker(
    functions: Callable[[StatementState, str], Inline | None],
    statement: StatementState,
    name: str,
    made: Inline | None,
    earlier: Callable[[], Inline | None] | None,
    *,
    again: bool,
) -> Callable[[], Inline | None]:
    """What makes a function, beside an earlier one of its name: made, or to be made."""

    def make() -> Inline | None:
        function = functions(statement, name)
        before = earlier() if earlier is not None else made
        return before if function is None else function if before is None else function.beside(before, again=again)

    return make


def _listed(filler: StatementState) -> list[str]:
    """Return the columns that an INSERT lists for its target."""
    target = filler.tree.this if isinstance(filler.tree, nodes.Insert) else None
    items = target.expressions if isinstance(target, nodes.Schema) else []
    return [column_name(item, filler.script.dialect) for item in items]
