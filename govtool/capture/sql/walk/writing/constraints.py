"""Expressions that rows are not made of, but that every write or read evaluates: what a table needs beside its columns.

Constraints, keys of indexes, foreign keys, policies and publications are writes without columns, that only name what
they need: the table and its readers mind if that is gone. What an expression over one column names needs no mention: a
constraint or an index goes when its column does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import FILTER, KIND_MASK, OPAQUE, REF_SHIFT
from govtool.capture.sql.walk.expressions.expression import dependencies, refer_to
from govtool.capture.sql.walk.expressions.functions import function_name
from govtool.capture.sql.walk.relation import Source, TableInfo
from govtool.capture.sql.walk.scope import Scope
from govtool.capture.sql.walk.state import EVERYWHERE
from govtool.capture.sql.walk.writes import Write
from govtool.capture.sql.walk.writing.recording import kind_of, target_name, target_source
from govtool.model import HIDDEN

_ACTION: Final = re.compile(r"\bON (DELETE|UPDATE) (CASCADE|SET)\b")
"""Actions of foreign keys that change the table when the other one changes."""


def note_calls(walk: Walk, table: TableInfo, node: exp.Expr) -> bool:
    """Record the columns of others that the functions called in an expression name; return whether there are any."""
    called = node.find_all(nodes.Anonymous)
    calls = [call for call in called if walk.lookup.function(function_name(call, walk.dialect)) is not None]
    if not calls:
        return False
    added = {dep for dep in _named(walk, table, calls) if walk.interner.refs[dep >> REF_SHIFT].dataset != table.id}
    walk.named |= added
    return bool(added)


def note_checks(walk: Walk, table: TableInfo, items: list[exp.Expr]) -> bool:
    """Record what the functions in the CHECK constraints of columns and tables name."""
    checks = [check for item in items for check in item.find_all(nodes.CheckColumnConstraint)]
    return any([note_calls(walk, table, check) for check in checks])  # noqa: C419


def need_constraints(walk: Walk, table: TableInfo, target_kind: str, items: Iterable[exp.Expr]) -> None:
    """Record what the foreign keys, checks and exclusions among constraints of columns and tables name."""
    for item in items:
        for node in item.find_all(nodes.Reference, nodes.CheckColumnConstraint, nodes.ExcludeColumnConstraint):
            if isinstance(node, nodes.Reference):
                _refer(walk, table.id, target_kind, node)
            else:
                kind = "check" if isinstance(node, nodes.CheckColumnConstraint) else "exclude"
                _need(walk, table.id, kind, target_kind, _several(walk, table, node))


def need_rules(walk: Walk, table: TableInfo, target_kind: str, rules: Iterable[exp.Expr]) -> None:
    """Record the columns by which access policies of a table, and of its columns, decide."""
    for rule in rules:
        deps = {dep for column in rule.expressions for dep in table.deps(walk.name(column), walk.interner)}
        _need(walk, table.id, "policy", target_kind, deps)


def index(walk: Walk, tree: exp.Create) -> None:
    """CREATE INDEX: every write to the table evaluates its expressions and its condition."""
    node = tree.this
    table = node.args.get("table") if isinstance(node, nodes.Index) else None
    params = node.args.get("params") if table is not None else None
    if not isinstance(table, nodes.Table) or not isinstance(params, nodes.Expr):
        return
    name = target_name(walk, table)
    own = walk.lookup.table(name) if name else None
    if own is None:
        return
    if note_calls(walk, own, params):
        walk.writes.append(Write(name, "create_index", "declare", kind_of(walk, table), defines=False))
    keys = [key.this if isinstance(key, nodes.Ordered) else key for key in params.args.get("columns") or ()]
    if params.args.get("where") is not None or any([not isinstance(key, nodes.Column) for key in keys]):  # noqa: C419
        _need(walk, name, "create_index", kind_of(walk, table), _several(walk, own, params))


def need_expressions(walk: Walk, tree: exp.Expr) -> None:
    """Record what a policy or a publication names: a policy decides which rows of its tables there are to be seen."""
    role = str(tree.args["role"])
    by_table: dict[str, list[exp.Expr]] = {}
    for part in tree.args["parts"]:
        by_table.setdefault(target_name(walk, part.args["table"]), []).append(part)
    for name, parts in by_table.items():
        table, needs = parts[0].args["table"], [need for part in parts for need in part.args["needs"]]
        source = target_source(walk, table)
        if name and role in ("policy", "rule"):
            records = parts[0].args.get("records") or ()
            _decide_rows(
                walk, Write(name, role, "declare", kind_of(walk, table), defines=False), source, records, needs
            )
        elif name and source.table is not None:
            _need(walk, name, role, kind_of(walk, table), _named(walk, source.table, needs))


def _decide_rows(
    walk: Walk, write: Write, source: Source, records: Iterable[str], conditions: Iterable[exp.Expr]
) -> None:
    """Record that conditions, and the tables that they read, decide about the rows of a table.

    Args:
        walk: The walk.
        write: Names the table.
        source: The table, as conditions name it.
        records: What they call its rows instead: NEW and OLD.
        conditions: Over its rows.
    """
    scope = Scope(None)
    for item in [Source(name, table=source.table) for name in records] or [source]:
        scope.add(item)
    for condition in conditions:
        refer_to(walk, condition, scope, None, FILTER)
    write = walk.taken(write)
    write.reads.pop(write.target, None)
    walk.writes.append(write)


def need_fields(walk: Walk, fields: Iterable[str], *, decide: bool = False) -> None:
    """Record the fields of NEW and OLD that conditions in the body of a trigger name.

    Args:
        walk: The walk.
        fields: Of the rows of its tables.
        decide: Whether they decide about these rows: some are left out.
    """
    for name in walk.lookup.triggering(walk.lookup.routine() or ""):
        table = walk.lookup.table(name)
        known = [table.deps(field, walk.interner) for field in fields if field in table.columns or not table.complete]
        deps = {dep for deps in known for dep in deps}
        if decide:
            walk.refer(deps, FILTER)
            walk.writes.append(walk.taken(Write(name, "trigger", "declare", defines=False)))
        else:
            _need(walk, name, "trigger", "table", deps)


def needs_of_trigger(walk: Walk, writes: Iterable[Write], tables: Iterable[str]) -> list[Write]:
    """Return what the tables of a trigger need: the trigger fails, and with it each write, as its statements do.

    Its queries count as well, and what changes the table itself: their own columns say nothing of the table's rows.
    """
    found: list[Write] = []
    for write in writes:
        needed = set(write.named)
        if write.target and write.mode != "assign":
            target = walk.lookup.table(write.target)
            needed |= {dep >> REF_SHIFT for name in write.output.names for dep in target.deps(name, walk.interner)}
        for name in tables if needed else ():
            needs = Write(name, "trigger", "declare", defines=False)
            needs.named = frozenset(needed)
            found.append(needs)
    return found


def _need(walk: Walk, name: str, kind: str, target_kind: str, deps: set[int]) -> None:
    """Record that every write to a table evaluates some columns."""
    known = frozenset([dep >> REF_SHIFT for dep in deps if dep & KIND_MASK != OPAQUE])
    if known:
        write = Write(name, kind, "declare", target_kind, defines=False)
        write.named = known
        walk.writes.append(write)


def _named(walk: Walk, table: TableInfo, expressions: Iterable[exp.Expr]) -> set[int]:
    """Return the dependencies on columns that expressions over the rows of a table name."""
    scope = Scope(None)
    scope.add(Source("", table=table))
    before, walk.named = walk.named, set()
    for node in expressions:
        walk.without_effects(lambda node=node: dependencies(walk, node, scope, None))  # type: ignore[misc]
    found, walk.named = walk.named, before
    return found


def _several(walk: Walk, table: TableInfo, node: exp.Expr) -> set[int]:
    """Return the dependencies on the table's own columns in an expression; none if that is one column alone."""
    refs = walk.interner.refs
    own = {dep for dep in _named(walk, table, [node]) if refs[dep >> REF_SHIFT].dataset == table.id}
    return own if len({dep >> REF_SHIFT for dep in own}) > 1 else set()


def _refer(walk: Walk, child: str, target_kind: str, node: exp.Expr) -> None:
    """Record that a table needs the columns that its foreign key refers to.

    With ON DELETE or ON UPDATE CASCADE or SET, the rows of the other table decide about those of this one, too.
    """
    target = node.this
    table = target.this if isinstance(target, nodes.Schema) else target
    parent = walk.lookup.table_name(table) if isinstance(table, nodes.Table) else ""
    if not parent:
        return
    keys = _referenced(walk, parent, target)
    options = " ".join([str(option) for option in node.args.get("options") or ()]).upper()
    if parent == child or (keys and _ACTION.search(options) is None):
        _need(walk, child, "foreign_key", target_kind, keys)
        return
    if not keys:
        walk.diagnose("unresolved", f"which columns are the primary key of {parent} is not known", node)
        keys = _any_column(walk, walk.lookup.table(parent))
    rows, walk.rows = walk.rows, {}
    reads, walk.reads = walk.reads, {parent: EVERYWHERE}
    walk.refer(keys, FILTER, table.this)
    walk.writes.append(walk.taken(Write(child, "foreign_key", "declare", target_kind, defines=False)))
    walk.rows, walk.reads = rows, reads


def _any_column(walk: Walk, table: TableInfo) -> set[int]:
    """Return opaque dependencies on all columns that a table is known to have."""
    known = [dep for column in table.columns for dep in table.deps(column, walk.interner)]
    return {dep >> REF_SHIFT << REF_SHIFT | OPAQUE for dep in known} or {walk.interner.ref(table.id, HIDDEN) | OPAQUE}


def _referenced(walk: Walk, name: str, target: exp.Expr) -> set[int]:
    """Return the dependencies on the columns that a foreign key refers to: those listed, else the primary key."""
    info = walk.lookup.table(name)
    listed = [walk.name(column) for column in target.expressions] if isinstance(target, nodes.Schema) else []
    columns = listed or walk.lookup.primary_key(name)
    return {dep for column in columns for dep in info.deps(column, walk.interner)}
