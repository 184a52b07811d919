"""Statements that define, fill or alter relations: found in all trees before the first is walked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from sqlglot import exp

from govtool.capture.sql.resolve.inline import inline_function
from govtool.capture.sql.resolve.parameters import routine_of
from govtool.capture.sql.resolve.relations import Relations, column_name, name_part
from govtool.capture.sql.resolve.routine_calls import called_name, is_call
from govtool.capture.sql.resolve.states import ScriptState, StatementState
from govtool.capture.sql.resolve.table_keys import added_key, table_keys
from govtool.capture.sql.resolve.temporary_tables import temporary_target
from govtool.capture.sql.scripts.trees import release, tree_of
from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.relation import into_of, named_table
from govtool.capture.sql.walk.state import Inline, TriggerCondition
from govtool.capture.sql.walk.writing.create import location_of, parent_tables
from govtool.capture.sql.walk.writing.transfer import written_files
from govtool.functions.facts import MASKING
from govtool.names import split_name

_SYSTEM_TYPES: Final = frozenset({"sysname", "hierarchyid", "sql_variant", "cursor"})
"""Types of T-SQL that the parser takes for a user's."""

_ENDS_TRIGGER: Final = re.compile(r"(drop\s+(trigger|rule|view)|disable\s+trigger)\b", re.IGNORECASE)

MAX_SYNONYMS: Final = 8
"""Synonyms of synonyms that are followed."""


class InsteadOf(NamedTuple):
    """An INSTEAD OF trigger of a view, or a rule."""

    made: StatementState
    routine: str
    """What runs instead."""
    kinds: tuple[str, ...]
    """The kinds of statements whose place it takes."""


OF_SESSION: Final = "\0"
"""Before the name of a function that other sessions do not see, and between a session and a name."""


class Definitions(Relations):
    """The statements of a batch by what they define, fill and alter."""

    def __init__(self, schema: Mapping[str, Mapping[str, str | None]]) -> None:
        super().__init__(schema)
        self.functions: dict[str, Inline] = {}
        self._made_in: dict[str, str] = {}
        self.function_marks: dict[str, str] = {}
        """By function a digest of the script that defines it, where walks are recorded."""
        self._no_functions: set[str] = set()
        """Names that were looked up and have no function."""
        self._marked = (0, "")
        """How many functions there were then, and the session."""
        self.unparsed_functions: dict[str, Callable[[], Inline | None]] = {}
        """Functions of scripts that are not parsed: how to have one."""
        self.special = 0
        """How many statements hold something that applies to statements of all scripts, but for functions."""
        self.unread: set[str] = set()
        """The last parts of the names of functions that hide values by their name, and whose body is not read."""
        self.routines: frozenset[str] = frozenset()
        """Names of routines that other batches define, or scripts that are not parsed."""
        self.returning: dict[str, list[StatementState]] = {}
        """The statements that return the rows of a table function, and the one with their names."""
        self.written_by: dict[str, dict[str, None]] = {}
        """What the statements of a routine write, by the last part of its name in lower case."""
        self.called_by: dict[str, set[str]] = {}
        """The routines to which the statements of a routine hand values, by such names."""
        self._runs: dict[str, set[str]] = {}
        """Those that they run and hand nothing."""
        self._by_last_part: dict[str, str] = {}
        """Names of these functions by their last part."""
        self.table_types: dict[str, exp.Expr] = {}
        """The columns of T-SQL's table types."""
        self.triggers: dict[str, list[tuple[StatementState, exp.Table]]] = {}
        """By routine that triggers run, the tables whose rows it sees."""
        self._run_by: dict[str, list[str]] | None = None
        """By the last part of a routine's name, the routines of triggers that call it, once all are known."""
        self.watched: set[str] = set()
        """The tables of which an UPDATE runs triggers."""
        self.row_sets: dict[str, set[str]] = {}
        """By routine what it calls sets of these rows: ``inserted``, ``deleted``."""
        self.instead: dict[str, list[InsteadOf]] = {}
        """By view, the triggers and rules that take the place of statements."""
        self.drops: list[StatementState] = []
        """Statements that may end such a trigger or rule."""
        self.synonyms: dict[str, tuple[exp.Table, StatementState]] = {}
        """Other names of tables, public ones without a schema, with what they stand for."""
        self.partitions: dict[str, list[str]] = {}
        """The partitions of tables: rows that go into the table are found in them."""
        self.heirs: dict[str, list[str]] = {}
        """The tables that inherit from others: what changes rows of the table changes theirs, too."""
        self.locations: dict[str, str] = {}
        """The files that tables lie in: rows that go into the table are found in them."""
        self._fillers: dict[str, list[StatementState]] = {}
        self._alters: dict[str, list[StatementState]] = {}

    def _find_temporary(self, statement: StatementState) -> None:
        tree = statement.tree
        if tree is None:
            return
        if isinstance(tree, nodes.Set):
            self._find_returned(tree, statement)
        elif isinstance(tree, nodes.Declare):
            self._find_declared(tree, statement)
        else:
            table = temporary_target(tree)
            if table is not None:
                statement.script.temporary.add(name_part(table.this, statement.script.dialect))

    def _find_returned(self, tree: exp.Set, statement: StatementState) -> None:
        """An assignment, perhaps to the rows that a table function returns."""
        statement.script.assignments.append(statement)
        if tree.args.get("returns"):
            returns = tree.args["returns"].lower()
            self.special += 1
            self.returning.setdefault(returns, []).append(statement)
            self._by_last_part.setdefault(returns.rsplit(".", 1)[-1], returns)

    def _find_declared(self, tree: exp.Declare, statement: StatementState) -> None:
        """Variables: of tables, or of single values."""
        script = statement.script
        script.assignments.append(statement)
        for item in tree.expressions:
            names = [
                n for n in (item.this if isinstance(item.this, list) else [item.this]) if isinstance(n, nodes.Expr)
            ]
            if isinstance(item.args.get("kind"), nodes.Schema) or self._typed(item):
                script.temporary.update(f"@{n.name.lower()}" for n in names)
            else:
                known = script.variables.setdefault(statement.parsed.routine, set())
                # @id is no column: it hides none of the name
                plain = [n for n in names if not isinstance(n, nodes.Parameter)]
                known.update(column_name(n, script.dialect) for n in plain)

    def _find_definitions(self, statement: StatementState) -> None:
        tree = statement.tree
        self._note_head(statement)
        if tree is None:
            return
        # What the parser has no tree for: triggers, and other names of tables (synonyms, partitions).
        if type(tree) is nodes.Command:
            self._note_calls(tree, statement)
            self._find_trigger(tree, statement)
            self._find_link(tree, statement)
            return
        defines: list[str] = []
        fills: list[str] = []
        if isinstance(tree, nodes.Create):
            defines = self._created(tree, statement)
        elif isinstance(tree, nodes.Query):
            defines = self._queried(tree, statement)
        elif isinstance(tree, nodes.Cache):
            defines = [self._target(tree.this, statement)]
        elif isinstance(tree, nodes.Declare):
            defines = self._variables(tree, statement)
        elif isinstance(tree, nodes.Alter):
            defines = self._changed(tree, statement)
        elif _fills_table(tree):
            fills = [self._target(tree.this, statement)]
        elif _writes_files(tree):
            defines = list(written_files(tree))
        elif isinstance(tree, nodes.MultitableInserts):
            for item in tree.expressions:
                insert = item.this if isinstance(item, nodes.ConditionalInsert) else item
                fills.append(self._target(insert.this, statement))
        statement.defines = tuple([name for name in defines if name])
        statement.fills = tuple([name for name in fills if name])
        if statement.parsed.routine is not None:
            whole = tree_of(statement.parsed) or tree  # a stub has neither calls nor what an UPDATE changes
            self._note_written(whole, statement)
            self._note_calls(whole, statement)
            if whole is not tree:
                release(whole)
        self._register(statement)

    def _note_written(self, tree: exp.Expr, statement: StatementState) -> None:
        """Note what a statement of a routine writes."""
        names = [*statement.fills, *statement.defines]
        if isinstance(tree, (nodes.Insert, nodes.Update, nodes.Delete, nodes.Merge)):
            table = tree.this.find(nodes.Table) if isinstance(tree.this, nodes.Expr) else None
            names += [] if table is None else [self.table_name(table, statement)]
        for name in names:
            self.written_by.setdefault(_last_part(statement.parsed.routine or ""), {})[name] = None

    def _note_calls(self, tree: exp.Expr, statement: StatementState) -> None:
        """Note the routines to which a statement of a routine hands values."""
        names = {tree.args["routine"]} if tree.args.get("routine") else set()
        if statement.script.dialect in _CALLING:
            names |= {_last_part(call.name) for call in tree.find_all(nodes.Anonymous)}
        routine = statement.parsed.routine
        if routine is None:
            return
        if names:
            self.called_by.setdefault(_last_part(routine), set()).update(names)
        for test in statement.parsed.tests if statement.script.dialect in _CALLING else ():
            called = [_last_part(call.name) for call in test.find_all(nodes.Anonymous)]
            self._runs.setdefault(_last_part(routine), set()).update(called)

    def targets_of(self, routine: str) -> list[str]:
        """Return what a routine writes, and what the routines write to which it hands values; sorted."""
        names = self._called_from(routine, self.called_by)
        return sorted({target for name in names for target in self.written_by.get(name, {}) if target})

    def _called_from(self, routine: str, *calls: Mapping[str, set[str]]) -> set[str]:
        """Return the last parts of the names of a routine and of those that it calls, at any distance."""
        open_, seen = [_last_part(routine)], set[str]()
        while open_:
            name = open_.pop()
            if name not in seen:
                seen.add(name)
                open_ += [called for known in calls for called in known.get(name, ())]
        return seen

    def _note_head(self, statement: StatementState) -> None:
        """Note the end of a trigger, a routine of several statements, and what a statement of one runs."""
        parsed = statement.parsed
        if parsed.head in ("drop", "disable") and _ENDS_TRIGGER.match(parsed.text):
            self.drops.append(statement)
        if parsed.routine is not None and is_call(statement):
            name = called_name(statement)
            self._runs.setdefault(_last_part(parsed.routine), set()).update([_last_part(name)] if name else [])
        if parsed.head == "create function" and not isinstance(statement.tree, nodes.Create):
            routine = routine_of(parsed.text, statement.script.dialect)
            self._foreign(routine[0].rsplit(".", 1)[-1] if routine is not None else "")

    def _created(self, tree: exp.Create, statement: StatementState) -> list[str]:
        """Note a function or a type; return the tables that a CREATE defines."""
        function = inline_function(tree, statement.script.dialect)
        if function is not None:
            self._note_function(function, tree, statement)
            return []
        if _is_foreign(statement):
            written = tree.find(nodes.Table)
            self._foreign(written.name if written is not None else "")
            return []
        kind = str(tree.args.get("kind") or "").upper()
        if kind == "TYPE" and isinstance(tree.this, nodes.Schema):
            self.special += 1
            self.table_types.setdefault(self._target(tree.this, statement), tree.this)
        if kind not in ("TABLE", "VIEW"):
            return []
        name = self._target(tree.this, statement)
        properties = tree.args["properties"].expressions if tree.args.get("properties") else ()
        location = location_of(properties)
        if location and tree.args.get("expression") is None:
            self.special += 1
            self.locations[name] = location
        self._note_parents(name, properties, statement)
        return [name]

    def _note_function(self, function: Inline, tree: exp.Create, statement: StatementState) -> None:
        properties = tree.args["properties"].expressions if tree.args.get("properties") else ()
        is_temporary = any([isinstance(item, nodes.TemporaryProperty) for item in properties])  # noqa: C419
        statement.functions = (f"{OF_SESSION}{function.name}" if is_temporary else function.name,)
        statement.function_mark = _function_mark(tree, statement)
        for key in function_keys(statement):
            known = self._function(key)
            again = self.remade(key, statement.script)
            self.functions[key] = function if known is None else function.beside(known, again=again)
            self._mark_function(key, statement.function_mark)
        self._foreign(function.name.rsplit(".", 1)[-1])  # where the parser takes a call for its own function

    def _note_parents(self, name: str, properties: Sequence[exp.Expr], statement: StatementState) -> None:
        """Note the tables whose rows hold those of a table that is made as a part of them."""
        for item in properties:
            parts = self.partitions if isinstance(item, nodes.PartitionedOfProperty) else self.heirs
            for parent in parent_tables(item):
                self.special += 1
                parts.setdefault(self.table_name(parent, statement), []).append(name)

    def _queried(self, tree: exp.Query, statement: StatementState) -> list[str]:
        """Return the table that a query defines: by INTO, or by the name of its file."""
        into = into_of(tree)
        if into is not None:
            return [self._target(into.this, statement)]
        return [statement.relation] if statement.relation is not None else []

    def _changed(self, tree: exp.Alter, statement: StatementState) -> list[str]:
        """Note an ALTER of columns; return the tables that an ALTER defines: renamed, swapped, as another query."""
        name = self._target(tree.this, statement)
        defines: list[str] = []
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
        return defines

    def _knows(self, name: str) -> bool:
        return name in self._fillers or super()._knows(name)

    def _register(self, statement: StatementState) -> None:
        """Note what a statement defines and fills."""
        for name in statement.defines:
            self._definers.setdefault(name, []).append(statement)
        for name in statement.fills:
            self._fillers.setdefault(name, []).append(statement)

    def _find_trigger(self, tree: exp.Expr, statement: StatementState) -> None:
        """The head of a trigger: which table's rows a routine sees, and what it calls sets of them."""
        routine = tree.args.get("trigger")
        if routine:
            self.special += 1
            self.triggers.setdefault(routine, []).append((statement, tree.args["table"]))
            if tree.args.get("instead"):
                view = self.table_name(tree.args["table"], statement)
                self.instead.setdefault(view, []).append(InsteadOf(statement, routine, tree.args["instead"]))
            if tree.args.get("updates"):
                self.watched.add(self.table_name(tree.args["table"], statement))
            for name in tree.args.get("rows") or ():
                self.row_sets.setdefault(routine, set()).add(name)

    def _find_link(self, tree: exp.Expr, statement: StatementState) -> None:
        """Another name of a table, or a partition of it."""
        name = tree.args.get("synonym")
        if name is not None:
            self.special += 1
            self.synonyms[self.table_name(name, statement)] = (tree.args["table"], statement)
            if tree.args.get("public"):
                self.synonyms[name_part(name.this, statement.script.dialect)] = (tree.args["table"], statement)
        elif tree.args.get("parent") is not None:
            self.special += 1
            parent = self.table_name(tree.args["parent"], statement)
            parts = self.partitions if tree.args.get("partition") else self.heirs
            parts.setdefault(parent, []).append(self.table_name(tree.args["table"], statement))

    def resolved_name(self, name: str, node: exp.Table) -> str:
        """Return the table that a name stands for: the name itself, or that of which it is a synonym."""
        for _ in range(MAX_SYNONYMS):
            found = self.synonyms.get(name)
            if found is None and not node.args.get("db"):
                found = self.synonyms.get(split_name(name)[-1])
            if found is None:
                break
            node, statement = found
            name = self.table_name(node, statement)
        return name

    def function(self, name: str, statement: StatementState) -> Inline | None:
        """Return the SQL function of that name, if its body is known; it may be named without its schema.

        A temporary one of the statement's own script comes first.
        """
        if not self.functions and not self.unparsed_functions:
            return None
        for key in _keys_of_name(name, statement):
            found = self._function(key)
            if found is not None:
                return found
        return None

    def remade(self, key: str, script: ScriptState) -> bool:
        """Note that a script makes a function; return whether calls may mean the one before it of this name, too.

        In which order scripts run is not known, but for those of a log.
        """
        again = not script.logged or self._made_in.get(key) == script.file
        self._made_in[key] = script.file
        return again

    def _function(self, name: str) -> Inline | None:
        make = self.unparsed_functions.pop(name, None)
        if make is not None:
            made = make()
            if made is not None:
                self.functions[name] = made
        return self.functions.get(name)

    def function_mark(self, name: str, statement: StatementState) -> str:
        """Return a digest of what decides about the function of that name; empty if there is none."""
        marks = self.function_marks
        if not marks:
            return ""
        return next((marks[key] for key in _keys_of_name(name, statement) if key in marks), "")

    def _mark_function(self, name: str, mark: str) -> None:
        """Note a function of a name; with an earlier one, both decide about the name."""
        before = self.function_marks.get(name, mark)
        both = blake2b(f"{before} {mark}".encode(), digest_size=12).hexdigest()
        self.function_marks[name] = mark if before == mark else both

    def have_mark(self, names: Sequence[str], mark: str, statement: StatementState) -> bool:
        """Return whether the functions of all these names have a mark, which is empty where there are none."""
        if mark:
            return all(self.function_mark(name, statement) == mark for name in names)
        session = statement.script.session
        if self._marked != (len(self.function_marks), session):
            self._marked = (len(self.function_marks), session)
            self._no_functions.clear()
        if not self._no_functions.issuperset(names):
            if not all(not self.function_mark(name, statement) for name in names):
                return False
            self._no_functions.update(names)
        return True

    def _foreign(self, name: str) -> None:
        """Note a routine in another language, or of several statements: its name is no proof of what it does."""
        if name.lower() in MASKING:
            self.special += 1
            self.unread.add(name.lower())

    def named(self, last: str) -> str:
        """Return the name of the function with a body of statements whose last part this is; empty if there is none."""
        return self._by_last_part.get(last, "")

    def triggering(self, routine: str | None) -> list[str]:
        """Return the tables whose rows a routine sees, as a trigger runs it."""
        found = self._heads(routine)
        return list(dict.fromkeys([self.table_name(table, statement) for statement, table in found]))

    def failing_with(self, routine: str) -> list[str]:
        """Return the tables that cannot be written where a routine fails: a trigger runs it, or what calls it."""
        if self._run_by is None:
            self._run_by = {}
            for head in self.triggers:
                for name in self._called_from(head, self.called_by, self._runs):
                    self._run_by.setdefault(name, []).append(head)
        heads = self._run_by.get(_last_part(routine), ())
        return list(dict.fromkeys([*self.triggering(routine), *[t for head in heads for t in self.triggering(head)]]))

    def primary_key(self, name: str) -> list[str]:
        """Return the columns of a table's primary key, as far as a definition or an ALTER shows it."""
        for statement in self._definers.get(name, ()):
            if table_keys(statement).primary:
                return list(table_keys(statement).primary)
        return list(added_key(self._alters.get(name, ())))

    def partition_key(self, name: str) -> list[str]:
        """Return the columns by which rows of a table go into its partitions, as far as a definition shows it."""
        for statement in self._definers.get(name, ()):
            if table_keys(statement).partition:
                return list(table_keys(statement).partition)
        return []

    def conditions(self, routine: str | None) -> list[TriggerCondition]:
        """Return the conditions on rows under which triggers run a routine."""
        found: list[TriggerCondition] = []
        for statement, table in self._heads(routine):
            args = statement.tree.args if statement.tree is not None else {}
            if args.get("when") is not None or args.get("per_row"):
                found.append(TriggerCondition(args["when"], self.table_name(table, statement), args["records"]))
        return found

    def _heads(self, routine: str | None) -> list[tuple[StatementState, exp.Table]]:
        found = self.triggers.get(routine or "")
        if found is None and routine:
            found = self.triggers.get(routine.rsplit(".", 1)[-1])
        return found or []

    def _variables(self, tree: exp.Declare, statement: StatementState) -> list[str]:
        return [name for name, _ in self.declared_tables(tree, statement)]

    def declared_tables(self, tree: exp.Declare, statement: StatementState) -> list[tuple[str, exp.Expr | None]]:
        """Return the table variables of a DECLARE, with their columns where they are known.

        A variable of a type that nothing shows is taken for one, too: only where it is read or filled as a table does
        that mean anything.
        """
        found: list[tuple[str, exp.Expr | None]] = []
        for item in tree.expressions:
            columns = item.args.get("kind")
            if not isinstance(columns, nodes.Schema):
                written = self._typed(item)
                if not written:
                    continue
                named = named_table(written, statement.script.dialect)
                columns = self._type_columns(self.table_name(named, statement)) if named is not None else None
            for name in item.this if isinstance(item.this, list) else [item.this]:
                found.append((self._temporary(f"@{name.name.lower()}", statement.script), columns))
        return found

    def _type_columns(self, name: str) -> exp.Expr | None:
        """Return the columns of a table type; one that is named without a schema is looked for in the usual one."""
        found = self.table_types.get(name)
        if found is None:
            found = self.table_types.get(name.removeprefix("dbo.") if name.startswith("dbo.") else f"dbo.{name}")
        return found

    @staticmethod
    def _typed(item: exp.Expr) -> str:
        """Return the name of the user's type that T-SQL declares a variable of; empty for another type."""
        kind = item.args.get("kind")
        written = kind.args.get("kind") if isinstance(kind, nodes.DataType) else None
        parameters = item.this if isinstance(item.this, list) else [item.this]
        if not isinstance(written, str) or not all([isinstance(name, nodes.Parameter) for name in parameters]):  # noqa: C419
            return ""
        return "" if written.lower() in _SYSTEM_TYPES else written


_CALLING: Final = frozenset({"", "postgres", "redshift", "oracle", "materialize", "risingwave"})
"""Dialects whose queries may call functions that write."""


def _last_part(name: str) -> str:
    return name.rsplit(".", 1)[-1].strip('"`[]').lower()


def function_keys(statement: StatementState) -> list[str]:
    """Return the keys of the functions that a statement makes: their names; of temporary ones, in its session."""
    if statement.script.logged:  # its queries are read apart from it
        return [name.removeprefix(OF_SESSION) for name in statement.functions]
    session = statement.script.session
    return [f"{session}{name}" if name.startswith(OF_SESSION) else name for name in statement.functions]


def _keys_of_name(name: str, statement: StatementState) -> list[str]:
    """The keys of functions that a name may mean, the best first."""
    session = f"{statement.script.session}{OF_SESSION}"
    keys = [session + name, name]
    if "." in name:
        last = name.rsplit(".", 1)[-1]
        keys += [session + last, last]
    return keys


def _function_mark(tree: exp.Create, statement: StatementState) -> str:
    """A digest of all that decides what a function written in SQL hands on: its tree, and where its text stands."""
    parsed = statement.parsed
    names = (statement.script.dialect, statement.catalog, statement.schema, statement.path)
    shape = repr((names, parsed.line, parsed.raw_line, parsed.column, parsed.text, repr(tree)))
    return blake2b(shape.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _is_foreign(statement: StatementState) -> bool:
    """Return whether a statement defines a function whose body is in another language than SQL."""
    parsed = statement.parsed
    return parsed.head == "create function" and any(note.code == "opaque" for note in parsed.diagnostics)


def _fills_table(tree: exp.Expr) -> bool:
    """Return whether a statement puts rows into a table."""
    if not isinstance(tree, (nodes.Insert, nodes.Merge, nodes.Copy)):
        return False
    if not isinstance(tree.this, (nodes.Table, nodes.Schema)):
        return False
    return not isinstance(tree, nodes.Copy) or bool(tree.args.get("kind"))


def _writes_files(tree: exp.Expr) -> bool:
    """Return whether a statement writes rows into files."""
    if isinstance(tree, (nodes.Copy, nodes.Export)):
        return True
    return isinstance(tree, nodes.Insert) and isinstance(tree.this, nodes.Directory)
