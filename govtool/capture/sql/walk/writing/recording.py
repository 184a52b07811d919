"""Recording of writes: what all writing statements share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import Deps, bounded
from govtool.capture.sql.walk.expressions.functions import type_text
from govtool.capture.sql.walk.queries.counts import Bound
from govtool.capture.sql.walk.relation import QueryOutput, Source, file_name
from govtool.capture.sql.walk.writes import Write

Statement = Callable[[Walk, Any], None]
"""Walks statements of one class: what they write is in ``Walk.writes`` then."""


def write_to(
    walk: Walk,
    table: exp.Expr,
    output: QueryOutput,
    kind: str,
    mode: str,
    target_kind: str,
    query: exp.Expr | None,
    *,
    defines: bool = True,
) -> Write:
    """Record what is written to a table, with all that the walk has recorded so far, and return it."""
    name = target_name(walk, table)
    write = walk.taken(Write(name, kind, mode, target_kind, output, defines=defines))
    write.bounds = bounds_of(walk, query) if query is not None else []
    walk.writes.append(write)
    return write


def target_name(walk: Walk, node: exp.Expr) -> str:
    """Return the dataset that a statement writes; empty, with a diagnostic, where it is not named."""
    if isinstance(node, nodes.Schema):
        node = node.this
    if isinstance(node, nodes.Table):
        name = walk.lookup.table_name(node)
        if name:
            return name
    if isinstance(node, nodes.Directory):
        return file_name(node.this.name)
    walk.diagnose("opaque", "the target is named by an expression or parameter", node)
    return ""


def column_list(walk: Walk, node: exp.Expr) -> tuple[list[str], list[str | None]]:
    """Return the columns that are listed behind a target, and their types where they have one."""
    names: list[str] = []
    types: list[str | None] = []
    for item in node.expressions if isinstance(node, nodes.Schema) else ():
        if type(item) is nodes.ColumnDef:
            args = item.args
            names.append(walk.name(args.get("this")))
            types.append(type_text(args.get("kind"), walk.dialect))
        elif isinstance(item, (nodes.Identifier, nodes.Column)):
            names.append(walk.name(item.this if isinstance(item, nodes.Column) else item))
            types.append(None)
    return names, types


def kind_of(walk: Walk, table: exp.Expr) -> str:
    """Return the kind of a target that is a table, as of ``Derivation.target_kind``."""
    name = walk.lookup.table_name(table) if isinstance(table, nodes.Table) else ""
    return "temporary" if name.startswith("temp.") else "table"


def target_source(walk: Walk, table: exp.Expr) -> Source:
    """Return the target of a statement as a FROM item, whose columns the statement may name."""
    node = table.this if isinstance(table, nodes.Schema) else table
    alias, _ = walk.alias(node)
    name = walk.lookup.table_name(node) if isinstance(node, nodes.Table) else ""
    if not name or not isinstance(node, nodes.Table):
        return Source(alias, output=QueryOutput())
    info = walk.lookup.table(name)
    return Source(alias or walk.name(node.parts[-1]), table=info, full_name=".".join(walk.qualifier(node.parts)))


def add_to(output: QueryOutput, name: str, deps: Deps) -> None:
    """Add what flows into a column that an output may have already."""
    position = output.index().get(name)
    if position is None:
        output.add(name, deps)
    else:
        output.deps[position] = bounded((*output.deps[position], *deps))


def bounds_of(walk: Walk, query: exp.Expr) -> list[Bound]:
    """Return the bounds on the size of groups in the HAVING of the outermost SELECT."""
    body = query.unnest() if isinstance(query, nodes.Subquery) else query
    return walk.bounds.get(id(body), []) if body.args.get("having") is not None else []
