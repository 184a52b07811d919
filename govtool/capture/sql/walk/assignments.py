"""Assignments of script variables: their values are kept for the statements that read them, and written nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.dependencies import ARM_MASK, OPAQUE, Deps, possibly
from govtool.capture.sql.walk.relation import QueryOutput, file_name
from govtool.capture.sql.walk.scope import Scope
from govtool.capture.sql.walk.state import EVERYWHERE, VariableValue
from govtool.capture.sql.walk.transfer import TransferWalk
from govtool.capture.sql.walk.writes import Write, bounds_of
from govtool.model import HIDDEN

RETURN: Final = "return"
"""The variable that the rows of a table function are."""


class VariableAssignment(Write):
    """The value that a statement gives a variable: a write that no dataset has.

    Attributes:
        value: What is given.
    """

    __slots__ = ("value",)

    def __init__(self, value: VariableValue) -> None:
        super().__init__("", "assignment", "assign", "variable", value.output, defines=False)
        self.value = value
        self.rows = value.rows
        self.reads = value.reads


class AssignmentWalk(TransferWalk):
    """Walks assignments; ``scripts/variables`` says what their trees hold."""

    def _assign(self, tree: exp.Expr) -> None:
        args = tree.args
        names: Sequence[str] = args.get("assigns") or ()
        if args.get("returns"):
            names = (RETURN,)
        if not names or args.get("gone") or args.get("signature"):
            return
        if args.get("row_of"):
            self._rows_of(names, args["row_of"])
            return
        if args.get("reason"):
            origin = self.interner.ref(file_name(args["origin"]), HIDDEN) | OPAQUE
            for name in names:
                self._keep(name, _single("", (origin,)), str(args["reason"]))
            return
        query = args.get("expression")
        output = QueryOutput()
        if args.get("next"):  # RETURN NEXT: the variables that are called as the columns
            for name in args["next"]:
                output.add(name, self.variable(name, tree) or ())
        elif args.get("fetches"):
            output = self.variable_rows(args["fetches"], tree) or output
        elif isinstance(query, nodes.Expr):
            output = self.query(query, None, None)
            self._forgive(query)
            if args.get("shown"):
                write = Write("", "select", "replace", "query", output, bounds=bounds_of(query, self))
                write.rows, write.reads = dict(self.rows), dict(self.reads)
                self.writes.append(write)
        if args.get("quiet"):
            self.diagnostics = {}
        fields: Sequence[str] = args.get("fields") or ()
        parts = [output] if len(names) == 1 else [self._nth(output, i) for i in range(len(names))]
        for position, (name, part) in enumerate(zip(names, parts, strict=True)):
            field = fields[position] if position < len(fields) else ""
            if field:
                part = part.renamed([field] if field != "[]" else [])
                self._row_changed(name, part)
            if name:
                self._keep(name, part, "")
        self.rows, self.reads = {}, {}

    def _rows_of(self, names: Sequence[str], routine: str) -> None:
        """Give the records of a trigger's body the columns of its tables."""
        for table in self.lookup.triggering(routine):
            output = self.table_output(self.lookup.table(table))
            for name in names:
                self.reads = {table: EVERYWHERE}
                self._keep(name, output, "", is_row=True)
        self.reads = {}

    def _row_changed(self, name: str, part: QueryOutput) -> None:
        """A trigger that changes the row changes its table: ``NEW.a := …``."""
        routine = self.lookup.routine()
        if routine is None or not part.names or part.names == [""]:
            return
        values = self.lookup.variable(name)
        if not values or not any([value.is_row for value in values]):  # noqa: C419
            return
        for table in self.lookup.triggering(routine):
            write = Write(table, "update", "append", "table", part.copy(), defines=False)
            write.rows, write.reads = dict(self.rows), dict(self.reads)
            self.writes.append(write)

    def _nth(self, output: QueryOutput, position: int) -> QueryOutput:
        """Return one column of a row that is spread over several variables."""
        if not output.open and position < len(output.names):
            part = _single(output.names[position], output.deps[position])
            if position in output.fields:
                part.fields[0] = output.fields[position]
            return part
        if len(output.names) == 1:
            shape = output.fields.get(0)  # a struct
            if shape is not None and position < len(shape.names):
                return _single(shape.names[position], shape.deps[position])
            return output
        return _single("", possibly(self.passing(output, nodes.Star())))

    def _declare(self, tree: exp.Expr) -> None:
        """DECLARE x INT DEFAULT value."""
        for item in tree.expressions:
            default = item.args.get("default")
            if not isinstance(default, nodes.Expr):
                continue
            inner = default.unnest() if isinstance(default, nodes.Subquery) else default
            if isinstance(inner, nodes.Query):
                output = self.query(inner, None, None)
            else:
                output = _single("", self.dependencies(inner, Scope(None), None))
            self._forgive(default)
            for name in item.this if isinstance(item.this, list) else [item.this]:
                if isinstance(name, nodes.Expr):
                    known = self.variable_name(name) if isinstance(name, nodes.Parameter) else self.name(name)
                    self._keep(known, output, "")
            self.rows, self.reads = {}, {}

    def _keep(self, name: str, output: QueryOutput, reason: str, *, is_row: bool = False) -> None:
        """Keep a value, unless it is a constant: then there is nothing to know of it."""
        if name != RETURN and not (output.open or self.rows or self.reads or any(output.deps)):
            return
        kept = output.copy()
        # Alternatives are numbered within a statement: what another reads of them is needed by all.
        kept.deps = [tuple(dict.fromkeys([dep & ~ARM_MASK for dep in deps])) for deps in output.deps]
        value = VariableValue(name, kept, dict.fromkeys([row & ~ARM_MASK for row in self.rows]), self.reads)
        value.ambiguous = dict(self.ambiguous)
        value.reason = reason
        value.is_row = is_row
        self.writes.append(VariableAssignment(value))

    def _forgive(self, value: exp.Expr) -> None:
        """Outside of queries there are no columns: a name that is not known is a constant or a thing of the system."""
        if value.find(nodes.From) is None:
            self.diagnostics = {note: None for note in self.diagnostics if note.code != "unresolved"}


def _single(name: str, deps: Deps) -> QueryOutput:
    output = QueryOutput()
    output.add(name, deps)
    return output
