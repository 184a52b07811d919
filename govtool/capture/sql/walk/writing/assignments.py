"""Assignments of script variables: their values are kept for the statements that read them, and written nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import ARM_MASK, OPAQUE, Deps, possibly
from govtool.capture.sql.walk.expressions.expression import dependencies
from govtool.capture.sql.walk.expressions.rows import passing, table_output
from govtool.capture.sql.walk.expressions.variables import variable_deps, variable_name, variable_rows
from govtool.capture.sql.walk.query import output_of
from govtool.capture.sql.walk.relation import QueryOutput, file_name
from govtool.capture.sql.walk.scope import Scope
from govtool.capture.sql.walk.state import EVERYWHERE, VariableValue
from govtool.capture.sql.walk.writes import BY_NAME, Write
from govtool.capture.sql.walk.writing.recording import Statement, bounds_of
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


def _assign(walk: Walk, tree: exp.Expr) -> None:
    """SET, DECLARE, FETCH, RETURN: what each variable gets; for what the trees hold see ``scripts/variables``."""
    args = tree.args
    names: Sequence[str] = (RETURN,) if args.get("returns") else args.get("assigns") or ()
    if not names or args.get("gone") or args.get("signature"):
        return
    if args.get("row_of"):
        _rows_of(walk, names, args["row_of"])
        return
    if args.get("reason"):
        origin = walk.interner.ref(file_name(args["origin"]), HIDDEN) | OPAQUE
        for name in names:
            _keep(walk, name, _single("", (origin,)), str(args["reason"]))
        return
    output = _assigned_output(walk, tree)
    if args.get("quiet"):
        walk.diagnostics = {}
    fields: Sequence[str] = args.get("fields") or ()
    parts = [output] if len(names) == 1 else [_nth(walk, output, i) for i in range(len(names))]
    for position, (name, part) in enumerate(zip(names, parts, strict=True)):
        field = fields[position] if position < len(fields) else ""
        if field:
            part = part.renamed([field] if field != "[]" else [])
            _row_changed(walk, name, part)
        if name:
            _keep(walk, name, part, "")
    walk.rows, walk.reads = {}, {}


def _assigned_output(walk: Walk, tree: exp.Expr) -> QueryOutput:
    """Return the columns that are assigned: of a query, of a cursor, or the variables of RETURN NEXT."""
    args = tree.args
    query = args.get("expression")
    output = QueryOutput()
    if args.get("next"):  # RETURN NEXT: the variables that are called as the columns
        for name in args["next"]:
            output.add(name, variable_deps(walk, name, tree) or ())
    elif args.get("fetches"):
        output = variable_rows(walk, args["fetches"], tree) or output
    elif isinstance(query, nodes.Expr):
        output = output_of(walk, query, None, None)
        _forgive(walk, query)
        if args.get("shown"):
            write = Write("", "select", "replace", "query", output, bounds=bounds_of(walk, query))
            write.rows, write.reads = dict(walk.rows), dict(walk.reads)
            walk.writes.append(write)
    return output


def _rows_of(walk: Walk, names: Sequence[str], routine: str) -> None:
    """Give the records of a trigger's body the columns of its tables."""
    tables = walk.lookup.triggering(routine)
    if not tables:
        origin = walk.interner.ref(file_name("trigger"), HIDDEN) | OPAQUE
        for name in names:
            _keep(walk, name, _single("", (origin,)), "a trigger that is not known here")
    for table in tables:
        output = table_output(walk, walk.lookup.table(table))
        for name in names:
            walk.reads = {table: EVERYWHERE}
            _keep(walk, name, output, "", is_row=True)
    walk.reads = {}


def _row_changed(walk: Walk, name: str, part: QueryOutput) -> None:
    """A trigger that changes the row changes its table: ``NEW.a := …``."""
    routine = walk.lookup.routine()
    if routine is None or not part.names or part.names == [""]:
        return
    values = walk.lookup.variable(name)
    if not values or not any([value.is_row for value in values]):  # noqa: C419
        return
    for table in walk.lookup.triggering(routine):
        write = Write(table, "update", "append", "table", part.copy(), defines=False)
        write.fills = BY_NAME
        write.rows, write.reads = dict(walk.rows), dict(walk.reads)
        walk.writes.append(write)


def _nth(walk: Walk, output: QueryOutput, position: int) -> QueryOutput:
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
    return _single("", possibly(passing(walk, output, nodes.Star())))


def _declare(walk: Walk, tree: exp.Expr) -> None:
    """DECLARE x INT DEFAULT value."""
    for item in tree.expressions:
        default = item.args.get("default")
        if not isinstance(default, nodes.Expr):
            continue
        inner = default.unnest() if isinstance(default, nodes.Subquery) else default
        if isinstance(inner, nodes.Query):
            output = output_of(walk, inner, None, None)
        else:
            output = _single("", dependencies(walk, inner, Scope(None), None))
        _forgive(walk, default)
        for name in item.this if isinstance(item.this, list) else [item.this]:
            if isinstance(name, nodes.Expr):
                known = variable_name(walk, name) if isinstance(name, nodes.Parameter) else walk.name(name)
                _keep(walk, known, output, "")
        walk.rows, walk.reads = {}, {}


def _keep(walk: Walk, name: str, output: QueryOutput, reason: str, *, is_row: bool = False) -> None:
    """Keep a value, unless it is a constant, which has no sources but the conditions that it is set under."""
    if name != RETURN and not (output.open or walk.rows or walk.reads or any(output.deps) or walk.tests):
        return
    kept = output.copy()
    # Alternatives are numbered within a statement: what another reads of them is needed by all.
    kept.deps = [tuple(dict.fromkeys([dep & ~ARM_MASK for dep in deps])) for deps in output.deps]
    value = VariableValue(name, kept, dict.fromkeys([row & ~ARM_MASK for row in walk.rows]), walk.reads)
    value.ambiguous = dict(walk.ambiguous)
    value.reason = reason
    value.is_row = is_row
    walk.writes.append(VariableAssignment(value))


def _forgive(walk: Walk, value: exp.Expr) -> None:
    """Outside of queries there are no columns: a name that is not known is a constant or a thing of the system."""
    if value.find(nodes.From) is None:
        walk.diagnostics = {note: None for note in walk.diagnostics if note.code != "unresolved"}


def _single(name: str, deps: Deps) -> QueryOutput:
    output = QueryOutput()
    output.add(name, deps)
    return output


STATEMENTS: Final[dict[type, Statement]] = {nodes.Declare: _declare, nodes.Set: _assign}
