"""A batch of scripts: which statement defines which relation, and in which order they can be understood.

Statements come in any order. A statement is walked when its turn comes, or earlier when another one needs the columns
of what it defines (the stack of the LineageX paper, section 3, as recursion). What a name means depends on where it
stands: see ``tables``.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.memos.looks import depends_by_looks, looks_hold
from govtool.capture.sql.resolve.live_variables import live
from govtool.capture.sql.resolve.relations import USUAL_SCHEMAS, column_name
from govtool.capture.sql.resolve.states import StatementState, WalkOutcome
from govtool.capture.sql.resolve.surroundings import Surroundings
from govtool.capture.sql.resolve.table_keys import table_keys
from govtool.capture.sql.resolve.tables import Tables
from govtool.capture.sql.resolve.temporary_tables import mark_target
from govtool.capture.sql.scripts.trees import release, stub, tree_of
from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import OPAQUE, Deps
from govtool.capture.sql.walk.places.edge_places import PlaceWriter
from govtool.capture.sql.walk.places.spans import StatementText
from govtool.capture.sql.walk.relation import TableInfo, starred
from govtool.capture.sql.walk.statements import writes_of
from govtool.capture.sql.walk.usage import Tape
from govtool.capture.sql.walk.writes import Write
from govtool.capture.sql.walk.writing.assignments import VariableAssignment
from govtool.capture.sql.walk.writing.conditions import touches_rows
from govtool.capture.sql.walk.writing.constraints import needs_of_trigger
from govtool.capture.sql.walk.writing.views import through_views, view_of
from govtool.model import ROWS, Diagnostic
from govtool.names import split_name

_NONE: Final[frozenset[str]] = frozenset()

MAX_ROUNDS: Final = 40
"""Number of rounds of a loop, for the sake of values that come round; chains of functions are cut before."""


class Batch(Tables):
    """All scripts of one extraction: walks their statements."""

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
        if statement.state in ("done", "final"):
            return True
        if statement.state == "walking":
            return False
        statement.state = "walking"
        if self.replay is not None and statement.replayable and self.replay(statement):
            statement.state = "done"
            self.reconsider(statement)
            return True
        outer = self.recorder.tape
        if self.taping:
            self._begin_tape()
        try:
            if statement.parsed.packed is not None:
                self._walk_packed(statement)
            else:
                self._walk(statement, statement.tree)
        except RecursionError:
            self.recorder.spoil()
            statement.writes = []
            statement.diagnostics.append(Diagnostic("nesting", "error", "nested too deeply to be understood"))
        except Exception as error:  # a tree of a shape that was not foreseen must not cost the rest of the batch
            statement.writes = []
            what = f"this statement could not be analysed ({type(error).__name__}: {str(error)[:120]})"
            statement.diagnostics.append(Diagnostic("opaque", "error", what))
        finally:
            statement.state = "done"
            self.reconsider(statement)
            if self.taping:
                self._end_tape(statement, outer)
        if self.tree_cache.holds_many and not statement.unsettled and not statement.script.assignments:
            self.let_go(statement)
        return True

    def let_go(self, statement: StatementState) -> None:
        """Free the tree of a statement that is never walked again, but for what others ask of it.

        Statements are walked again while they are unsettled, and those of scripts whose variables get values.
        """
        tree = statement.tree
        if tree is None or statement.state != "done":
            return
        is_held = statement.parsed.packed is None
        kept = stub(tree) if is_held else tree
        if kept is None:
            return
        table_keys(statement)
        statement.state = "final"
        statement.tree = kept
        statement.parsed = statement.parsed._replace(tree=kept, packed=None)
        if is_held:
            _free(statement, tree)
            self.tree_cache.released(len(statement.parsed.text))

    def _begin_tape(self) -> None:
        """Record what the walk that begins looks at."""
        interner = self.interner
        self.recorder.tape = Tape(interner.depth)
        self._depths.append(interner.deepest)
        interner.deepest = interner.depth

    def _end_tape(self, statement: StatementState, outer: Tape | None) -> None:
        """Keep the tape of a walk with what others see of its outcome."""
        interner, tape = self.interner, self.recorder.tape
        if tape is not None:
            tape.end()
            tape.deepest = interner.deepest - tape.start
            outcome = WalkOutcome(tape, dict(statement.infos), statement.writes, statement.unsettled)
            statement.outcomes = [*(statement.outcomes or ()), outcome]
        interner.deepest = max(self._depths.pop(), interner.deepest)
        self.recorder.tape = outer

    def walk_again(self, statement: StatementState) -> None:
        """Walk a statement once more, with what usage has shown since."""
        assert statement.state != "final", "its tree was let go"
        before = list(statement.diagnostics)
        kept = {*statement.parsed.diagnostics, *(d for d in before if d.code == "template")}
        statement.diagnostics = [d for d in before if d in kept]
        statement.state = "waiting"
        if self._walks_alike(statement):
            statement.diagnostics = before
            return
        statement.diagnostics = [d for d in before if d in kept]
        self.settle(statement)

    def _walks_alike(self, statement: StatementState) -> bool:
        """Return whether the last walk of a statement would be the same now; it then counts as made once more."""
        outcomes = statement.outcomes
        if not outcomes or statement.replayable or outcomes[-1].tape.spoiled or not depends_by_looks(statement):
            return False
        tape = outcomes[-1].tape
        statement.state = "walking"
        try:
            alike = looks_hold(self, statement, tape.looks, tape.deepest)
        except Exception:  # a walk makes a note of it
            alike = False
        statement.state = "done" if alike else "waiting"
        if alike:
            outcomes.append(outcomes[-1])
        return alike

    def _walk_packed(self, statement: StatementState) -> None:
        tree, size = tree_of(statement.parsed), len(statement.parsed.text)
        try:
            self._walk(statement, tree)
        finally:
            if tree is not None and statement.unsettled and self.tree_cache.takes_again(size):
                statement.tree = tree
                statement.parsed = statement.parsed._replace(tree=tree, packed=None)
            elif tree is not None:
                _free(statement, tree)

    def _walk(self, statement: StatementState, tree: exp.Expr | None) -> None:
        if tree is None:
            return
        if statement.later:
            mark_target(tree)
        walk = Walk(statement.script.dialect, self.interner, Surroundings(self, statement))
        self._give_variables(walk, statement)
        if isinstance(tree, nodes.Declare):
            self._declared(tree, statement)
        if self.triggers and statement.parsed.routine is not None:
            walk.conditions = self.conditions(statement.parsed.routine)
            if walk.conditions:
                self.recorder.spoil()
        walk.tests = statement.parsed.tests
        walk.redefined = self.unread
        statement.writes = writes_of(walk, tree)
        self._complete_writes(walk, statement, tree)
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
                info = statement.infos[write.target] = self._defined(write, statement)
                info.view = view_of(walk, tree, write)

    def _give_variables(self, walk: Walk, statement: StatementState) -> None:
        """Give a walk the names of variables and parameters at its statement."""
        script = statement.script
        if script.variables:
            own = script.variables.get(statement.parsed.routine, ())
            walk.parameters = frozenset(script.variables.get(None, ())) | frozenset(own)
        if script.assignments:
            known = live(statement)
            walk.variables = True
            walk.parameters |= frozenset(known) if walk.dialect != "snowflake" else _NONE

    def _complete_writes(self, walk: Walk, statement: StatementState, tree: exp.Expr) -> None:
        """Add to writes what the statement alone does not show: its name, triggers, partitions."""
        for write in statement.writes:
            if not write.target and write.kind == "select" and statement.relation:
                write.target, write.kind, write.target_kind = statement.relation, "select", "table"
        if statement.script.dialect in USUAL_SCHEMAS:
            for write in statement.writes:
                self._note_other_names(walk, write)
        if statement.script.qualifiers:
            self.recorder.spoil()
            for write in tuple(statement.writes):
                self._note_qualified(walk, write, statement)
        for write in tuple(statement.writes):
            statement.writes += through_views(walk, write)
        for write in statement.writes if self.watched else ():
            if write.mode == "update" and write.target in self.watched:
                self.recorder.spoil()
                touches_rows(walk, write)
        if self.triggers:
            self._fail_with_triggers(walk, statement)
        if self.partitions or self.heirs:
            statement.writes += self._into_partitions(statement.writes, tree)
        if self.locations:
            statement.writes += self._into_files(statement.writes)

    def _fail_with_triggers(self, walk: Walk, statement: StatementState) -> None:
        """Let tables need what a statement of a routine needs that their triggers run."""
        routine = statement.parsed.routine
        touched = self.failing_with(routine) if routine is not None else []
        if touched and statement.writes:
            self.recorder.spoil()
            statement.writes += needs_of_trigger(walk, statement.writes, touched)

    def _note_other_names(self, walk: Walk, write: Write) -> None:
        """Let all of a table under its other name be unknown sources of what a write reads and changes."""
        names = [*write.reads] if write.defines or not write.target else [*write.reads, write.target]
        for name in names:
            other = walk.lookup.other_name(name)
            if other:
                write.rows[self.interner.ref(other, ROWS) | OPAQUE] = None
                usual = USUAL_SCHEMAS[walk.dialect]
                walk.diagnose("unresolved", f"{name} may be {other}: give --default-schema {usual} if it is")

    def _note_qualified(self, walk: Walk, write: Write, statement: StatementState) -> None:
        """Let a table whose schema a template leaves open be each known one of its name, as far as anybody knows."""
        for name in dict.fromkeys([*write.reads, write.target]):
            schema = next((part for part in split_name(name)[:-1] if part in statement.script.qualifiers), None)
            others = [] if schema is None else self.of_any_schema(name, statement.script.qualifiers)
            for other in others:
                if name == write.target:
                    target = Write(other, "insert", "append", defines=False)
                    target.rows[self.interner.ref(name, ROWS) | OPAQUE] = None
                    statement.writes.append(target)
                else:
                    write.rows[self.interner.ref(other, ROWS) | OPAQUE] = None
            if others:
                some = ", ".join(others[:3])
                walk.diagnose("unresolved", f"{schema} has no value: {name} may be {some}: give --var {schema}=NAME")

    def _place(self, statement: StatementState, walk: Walk, tree: exp.Expr) -> None:
        """Keep the places of the expressions that make the edges of a statement."""
        parsed = statement.parsed
        if parsed.offset < 0:
            return
        template = statement.script.template
        line_of = None if template is None else statement.line_of_text
        text = StatementText(parsed.text, parsed.offset, parsed.column, template, line_of)
        writer = PlaceWriter(text, parsed.line, self.column_texts, walk, tree)
        for write in statement.writes:
            if write.output.deps or write.rows or write.steering:
                try:
                    write.places = writer.places(write)
                    write.tree = None
                except Exception as error:  # a tree of a shape that was not foreseen: its edges stay
                    what = f"the places of its expressions are not known ({type(error).__name__}: {str(error)[:120]})"
                    statement.diagnostics.append(Diagnostic("place", "info", what))
                    break

    def _into_partitions(self, writes: list[Write], tree: exp.Expr) -> list[Write]:
        """The same writes once more, of each table that has rows of the one that is written.

        Rows that go into a table are found in its partitions, and theirs; those that are changed or deleted, in tables
        that inherit from it, too.
        """
        target = tree.this if isinstance(tree, (nodes.Update, nodes.Delete, nodes.Merge)) else None
        alone = isinstance(target, nodes.Table) and bool(target.args.get("only"))
        found: list[Write] = []
        for write in writes:
            if write.kind == "partition" or write.mode not in ("append", "update", "delete"):
                continue
            for name in self._parts(write.target, heirs=write.mode != "append" and not alone):
                self.recorder.spoil()
                found.append(write.of(name))
        return found

    def _parts(self, table: str, *, heirs: bool) -> list[str]:
        """The partitions of a table, and on demand what inherits from it, and theirs."""
        found: list[str] = []
        todo = [table]
        while todo:
            name = todo.pop()
            for part in (*self.partitions.get(name, ()), *(self.heirs.get(name, ()) if heirs else ())):
                if part not in found and part != table:
                    found.append(part)
                    todo.append(part)
        return found

    def _into_files(self, writes: list[Write]) -> list[Write]:
        """The same writes once more, of the files that a table lies in."""
        found: list[Write] = []
        for write in writes:
            file = self.locations.get(write.target)
            fills = write.mode in ("append", "replace") and write.kind not in ("create_table", "partition")
            if file is not None and fills:
                self.recorder.spoil()
                written = write.of(file)
                written.kind, written.target_kind, written.defines = "insert", "file", False
                found.append(written)
        return found

    def _demanded(self, write: Write) -> None:
        """Columns that other statements name of a relation whose ``*`` is not resolved: they can only pass through
        it.
        """
        stars = [star for star in write.output.open if not star.table.virtual]
        if len(stars) != 1 or stars[0].candidate:
            return
        for name in self.used(write.target).listed():
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
            info = Surroundings(self, statement).table(old)  # so that it is on the tape
            moved = self._info(new, dict(info.columns), complete=info.complete)
            moved.view = Surroundings(self, statement).view(old)
            moved.used = info.used  # what is named under the new name was there under the old one
            statement.infos[new] = moved


def _assigned_values(statement: StatementState) -> list[tuple[str, list[Deps], list[int]]]:
    return [
        (w.value.name, w.output.deps, sorted(w.rows)) for w in statement.writes if isinstance(w, VariableAssignment)
    ]


def _free(statement: StatementState, tree: exp.Expr) -> None:
    """Free the tree of a walk that is over, with the nodes that writes hold of it for the sake of places."""
    for write in statement.writes:
        write.rows, write.steering = dict.fromkeys(write.rows), dict.fromkeys(write.steering)
    release(tree)
