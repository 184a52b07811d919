"""The surroundings of one statement in its batch (``walk.Lookup``), and the record of what its walk looks at there."""

from __future__ import annotations

from hashlib import blake2b

from sqlglot import exp

from govtool.capture.sql.resolve.definitions import InsteadOf
from govtool.capture.sql.resolve.states import StatementState
from govtool.capture.sql.resolve.tables import Tables
from govtool.capture.sql.walk.relation import ShardedTable, TableInfo, ViewBase
from govtool.capture.sql.walk.state import Inline, Returned, VariableValue
from govtool.names import split_name


class Surroundings:
    """The surroundings of one statement."""

    __slots__ = ("_tables", "batch", "statement")

    def __init__(self, batch: Tables, statement: StatementState) -> None:
        self.batch = batch
        self.statement = statement
        self._tables: dict[str, TableInfo] = {}

    def table(self, name: str) -> TableInfo:
        """Return what is known of a table at this place of the script."""
        found = self._tables.get(name)
        if found is None:
            batch, statement = self.batch, self.statement
            tape = batch.recorder.tape
            if tape is None:
                found = known_table(batch, name, statement)
            else:
                depth, noted = batch.interner.depth - tape.start, len(statement.diagnostics)
                found = known_table(batch, name, statement)
                added = len(statement.diagnostics) - noted
                tape.add_lookup(("t", name, depth, signature(found), added))
            self._tables[name] = found
        return found

    def view(self, name: str) -> ViewBase | None:
        """Return what a view of that name is to what is written to it; None for a table."""
        batch = self.batch
        tape, depth = batch.recorder.tape, batch.interner.depth
        found = batch.view(name, self.statement)
        if tape is not None:
            tape.add_lookup(("v", name, depth - tape.start, view_mark(found)))
        return found

    def replaces(self, name: str, kind: str) -> bool:
        """Return whether a trigger or rule takes the place of a statement of this kind that writes to a view."""
        found = self.batch.instead.get(name, ())
        if found:
            self.batch.recorder.spoil()
        return any((kind == "merge" or kind in item.kinds) and self._is_there(item) for item in found)

    def _is_there(self, item: InsteadOf) -> bool:
        """Return whether a trigger or rule is there where the statement stands; it does not run for its own body."""
        statement, made = self.statement, item.made
        if item.routine == statement.parsed.routine:
            return False
        if made.script is not statement.script or statement.parsed.routine is not None:
            return True
        drops = [drop.index for drop in self.batch.drops if drop.script is made.script]
        return made.index < statement.index and not any(made.index < at < statement.index for at in drops)

    def other_name(self, name: str) -> str:
        """Return the other name that a table may have in this batch; empty if there is none."""
        batch = self.batch
        found = batch.other_name(name, self.statement.script.dialect)
        if batch.recorder.tape is not None:
            batch.recorder.tape.looks.append(("n", name, found))
        return found

    def table_name(self, node: exp.Table) -> str:
        """Return the canonical id of a written table name; empty if it is not a plain name."""
        batch, statement = self.batch, self.statement
        if batch.row_sets and not node.args.get("db"):
            routine = statement.parsed.routine
            if node.name.lower() in batch.row_sets.get(routine or "", ()):
                touched = batch.triggering(routine)
                if touched:
                    batch.recorder.spoil()
                    return touched[0]
        name = batch.table_name(node, statement)
        if node.args.get("path"):
            batch.recorder.spoil()
        if not batch.synonyms or not name:
            return name
        resolved = batch.resolved_name(name, node)
        if resolved != name:
            batch.recorder.spoil()
        return resolved

    def written_name(self, node: exp.Table) -> str:
        """Return the same, even where the name is a synonym."""
        return self.batch.table_name(node, self.statement)

    def triggering(self, routine: str) -> list[str]:
        """Return the tables whose rows a routine sees, as a trigger runs it."""
        found = self.batch.triggering(routine)
        if found:
            self.batch.recorder.spoil()
        return found

    def primary_key(self, name: str) -> list[str]:
        """Return the columns of a table's primary key, as far as a definition shows it."""
        self.batch.recorder.spoil()
        return self.batch.primary_key(name)

    def partition_key(self, name: str) -> list[str]:
        """Return the columns of a table's partition key, as far as a definition shows it."""
        self.batch.recorder.spoil()
        return self.batch.partition_key(name)

    def routine(self) -> str | None:
        """Return the routine in whose body the statement stands."""
        return self.statement.parsed.routine

    def returned(self, name: str) -> Returned | None:
        """Return the rows of a table function of that name, if its body is a block that was read."""
        if not self.batch.returning:
            return None
        self.batch.recorder.spoil()
        return self.batch.returned(name)

    def variable(self, name: str) -> list[VariableValue] | None:
        """Return what a script variable may be at this place of the script; None if the name stands for none."""
        return self.batch.variable(name, self.statement)

    def targets_of(self, routine: str) -> list[str]:
        """Return what a routine writes, by the last part of its name."""
        own = self.statement.parsed.routine
        if not self.batch.written_by or (own is not None and own.rpartition(".")[2].lower() == routine.lower()):
            return []  # a routine that calls itself
        found = self.batch.targets_of(routine)
        if found:
            self.batch.recorder.spoil()
        return found

    def is_unread(self, name: str) -> bool:
        """Return whether a masking function of that name is defined here, by a routine that could not be read."""
        return bool(self.batch.unread) and name.rsplit(".", 1)[-1] in self.batch.unread

    def function(self, name: str) -> Inline | None:
        """Return the SQL function of that name, if its body is known."""
        batch = self.batch
        tape = batch.recorder.tape
        if tape is not None:
            tape.add_function(name, batch.function_mark(name, self.statement))
        return batch.function(name, self.statement)


def known_table(batch: Tables, name: str, statement: StatementState) -> TableInfo:
    """What is known of a table, or of the tables that a wildcard stands for, where a statement stands."""
    found = shards(batch, name, statement) if name[-2:] == '*"' else None
    return batch.table(name, statement) if found is None else found


def shards(batch: Tables, name: str, statement: StatementState) -> ShardedTable | None:
    """The tables that BigQuery's wildcard stands for (``ds.events_*``), as far as they are known; None if none is."""
    if statement.script.dialect != "bigquery":
        return None
    *place, last = split_name(name)
    prefix = last.strip('"').rstrip("*")
    others = [(bare, one) for bare, one in batch.places().get(tuple(place), ()) if bare != last]
    found = [one for bare, one in others if bare.startswith(prefix) and not one.endswith('*"')]
    return ShardedTable(name, [batch.table(one, statement) for one in sorted(found)]) if found else None


def view_mark(view: ViewBase | None) -> str:
    """A digest of what a view is to what is written to it; empty for a table."""
    return "" if view is None else blake2b(repr(view).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def signature(table: TableInfo) -> str:
    """A digest of all that a walk can see of a table, but for the columns that usage shows."""
    if not table.mark:
        shape: list[object] = [table.id, table.used.name, table.complete, list(table.columns.items())]
        shape.append(sorted(table.described))
        if isinstance(table, ShardedTable):
            shape.append([signature(shard) for shard in table.shards])
        table.mark = blake2b(repr(shape).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return table.mark
