"""Script variables: what a name stands for that an earlier statement has given a value.

A variable is read as the scalar subquery would be that it was assigned: its columns contribute, and what decided about
them is referenced. Where several assignments may be in force, all of them count.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.syntax.marks import EXITED, ROW_COUNT
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import STAR, Deps, bounded
from govtool.capture.sql.walk.expressions.functions import function_name
from govtool.capture.sql.walk.expressions.rows import passing
from govtool.capture.sql.walk.relation import QueryOutput, Source
from govtool.capture.sql.walk.state import VariableValue

_ROW_COUNTS: Final = frozenset({"rowcount", "row_count"})
"""System variables that hold how many rows a statement changed."""


def variable_name(walk: Walk, node: exp.Expr) -> str:
    """Return the name under which a written variable is known; empty if it is none."""
    if isinstance(node, nodes.Parameter):
        if isinstance(node.this, nodes.Parameter):
            name = node.this.name.lower()
            if name in _ROW_COUNTS or name.startswith(EXITED):
                return ROW_COUNT if name in _ROW_COUNTS else f"@@{name}"
        if not isinstance(node.this, nodes.Var):
            return ""
        return ("$" if walk.dialect == "snowflake" else "@") + node.this.name.lower()
    if isinstance(node, nodes.Anonymous):
        return function_name(node, walk.dialect)
    return walk.name(node.name)


def variable_deps(walk: Walk, name: str, node: exp.Expr) -> Deps | None:
    """Return the dependencies of a variable, all of its columns if it is a record; None if there is none."""
    values = _values(walk, name, node)
    if values is None:
        return None
    return bounded(dep for value in values for dep in passing(walk, value.output, node))


def variable_field(walk: Walk, name: str, path: tuple[str, ...], node: exp.Expr) -> Deps | None:
    """Return the dependencies of a field of a variable; None if there is no such variable."""
    values = _values(walk, name, node)
    if values is None:
        return None
    found: list[int] = []
    for value in values:
        output = value.output
        column = path[0].split("[")[0]
        deps = Source("", output=output).get(column, walk.interner)
        if deps is None:
            deps = Source("", output=output).assume(column, walk.interner)
        if deps is None:  # a record of a type, or an assignment of another field
            deps = passing(walk, output, node) if len(output.names) < 2 and column not in output.hidden else ()
        found.extend(dep & ~STAR for dep in deps)
    return bounded(found)


def variable_rows(walk: Walk, name: str, node: exp.Expr) -> QueryOutput | None:
    """Return the columns of a record, cursor or result set; None if there is no such variable."""
    values = _values(walk, name, node)
    if values is None:
        return None
    result = QueryOutput()
    for number, value in enumerate(values):
        output = value.output
        if not number:
            result = output.copy()
            continue
        for position, deps in enumerate(output.deps):
            if position < len(result.deps):
                result.deps[position] = bounded((*result.deps[position], *deps))
            else:
                result.add(output.names[position], deps)
        result.open.extend(output.open)
    return result


def _values(walk: Walk, name: str, node: exp.Expr) -> list[VariableValue] | None:
    if not walk.variables or walk.inlining or not name:
        return None
    values = walk.lookup.variable(name)
    for value in values or ():
        walk.rows.update(value.rows)
        walk.read(value.reads)
        for candidates, place in value.ambiguous.items():
            walk.ambiguous.setdefault(candidates, place)
        if value.reason:
            walk.diagnose("opaque", f"the value of {name} is not known: it comes from {value.reason}", node)
    return values
