"""Statements: what each kind writes, from which columns.

``writes_of`` turns one tree into writes: drafts of derivations, still with packed dependencies.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import KIND_MASK, LISTED, OPAQUE, REF_SHIFT
from govtool.capture.sql.walk.dispatch import by_class
from govtool.capture.sql.walk.expressions import calls, choices, fields, row_makers, stars
from govtool.capture.sql.walk.expressions.columns import UNNAMED
from govtool.capture.sql.walk.expressions.expression import HANDLERS
from govtool.capture.sql.walk.queries import from_items, selects, set_operations
from govtool.capture.sql.walk.queries.common_tables import CTES_WHEN_READ, common_output
from govtool.capture.sql.walk.queries.sources import ITEMS
from govtool.capture.sql.walk.query import QUERIES, output_of
from govtool.capture.sql.walk.relation import into_of
from govtool.capture.sql.walk.scope import CommonTable
from govtool.capture.sql.walk.writes import Write
from govtool.capture.sql.walk.writing import (
    alter,
    assignments,
    create,
    insert,
    merge,
    modify,
    returning,
    transfer,
    unread,
)
from govtool.capture.sql.walk.writing.conditions import decide, restrict
from govtool.capture.sql.walk.writing.handed import handed_writes
from govtool.capture.sql.walk.writing.output_into import output_into
from govtool.capture.sql.walk.writing.recording import Statement, bounds_of, write_to


def writes_of(walk: Walk, tree: exp.Expr) -> list[Write]:
    """Return the writes of a statement; none if it carries no lineage."""
    walk_statement = by_class(STATEMENTS, type(tree))
    if walk_statement is None:
        return walk.writes
    walk_statement(walk, tree)
    if isinstance(tree, (nodes.Insert, nodes.Update, nodes.Delete, nodes.Merge)):
        output_into(walk, tree)
    for name, common in walk.common_tables:
        if not common.used:
            _unread_common_table(walk, name, common)
    walk.writes += handed_writes(walk)
    if walk.writes:
        for condition in walk.conditions:
            restrict(walk, condition)
        for test in walk.tests:
            decide(walk, test, fetches=bool(tree.args.get("fetches")))
        _name_all(walk, tree)
    return walk.writes


def _unread_common_table(walk: Walk, name: str, common: CommonTable) -> None:
    """Walk a CTE that nothing reads: it may write, and it names columns."""
    if isinstance(common.node, nodes.DML):
        walk.separately(lambda: common_output(walk, common))
        return
    if walk.dialect not in CTES_WHEN_READ:
        _name_columns(walk, common)
    walk.diagnose("unused-cte", f"the CTE {name} is not read by anything", common.node, severity="info")


def _name_all(walk: Walk, tree: exp.Expr) -> None:
    """Give the writes of a statement the columns that it names."""
    known = [dep for dep in walk.named if dep & KIND_MASK != OPAQUE]
    named = frozenset([dep >> REF_SHIFT for dep in known if not dep & LISTED])
    listed = frozenset([dep >> REF_SHIFT for dep in known if dep & LISTED])
    mentioned = _mentioned(walk, tree) if "mentions" in tree.args else ()
    for write in walk.writes:
        if not write.named:  # what a condition on rows names is its own
            write.named, write.listed = named, listed
        write.mentioned = tuple([name for name in mentioned if name != write.target])


def _mentioned(walk: Walk, tree: exp.Expr) -> tuple[str, ...]:
    """Return the tables, as far as they are known, that a part of a statement names which is not understood."""
    names = [walk.lookup.table_name(table) for table in tree.args["mentions"]]
    tables = [walk.lookup.table(name) for name in dict.fromkeys(names) if name]
    return tuple([table.id for table in tables if table.columns or table.complete])


def _name_columns(walk: Walk, common: CommonTable) -> None:
    """Record what a CTE names that nothing reads: the statement fails without these columns all the same."""
    walk.without_effects(lambda: common_output(walk, common))


def _query_statement(walk: Walk, tree: exp.Expr) -> None:
    output = output_of(walk, tree, None, None)
    if walk.dialect in ("tsql", "fabric") and _assigns_variables(tree):
        return
    into = into_of(tree)
    if into is not None and isinstance(into.this, nodes.Table):
        temporary = bool(into.args.get("temporary"))
        write_to(walk, into.this, output, "create_table_as", "replace", "temporary" if temporary else "table", tree)
        return
    walk.writes.append(walk.taken(Write("", "select", "replace", "query", output, bounds=bounds_of(walk, tree))))


def _assigns_variables(tree: exp.Expr) -> bool:
    """Return whether a SELECT only sets variables: ``SELECT @n = count(*) FROM t``."""
    listed = tree.expressions if isinstance(tree, nodes.Select) else []
    return bool(listed) and all(isinstance(i, nodes.EQ) and isinstance(i.this, nodes.Parameter) for i in listed)


STATEMENTS: Final[dict[type, Statement]] = {
    **create.STATEMENTS,
    **insert.STATEMENTS,
    **modify.STATEMENTS,
    **merge.STATEMENTS,
    **transfer.STATEMENTS,
    **alter.STATEMENTS,
    **assignments.STATEMENTS,
    **unread.STATEMENTS,
    **dict.fromkeys((nodes.Query, nodes.Pivot, nodes.Values), _query_statement),
}
"""How a statement of a class is walked; others carry no lineage."""

# What stands inside of statements. A query holds expressions, which hold queries: each is found by its class.
QUERIES.update({**selects.QUERIES, **set_operations.QUERIES, **returning.QUERIES})
ITEMS.update(from_items.ITEMS)
HANDLERS.update({**choices.HANDLERS, **calls.HANDLERS, **row_makers.HANDLERS, **fields.HANDLERS, **stars.HANDLERS})
UNNAMED.update(stars.UNNAMED)
