"""Targets that are not tables by themselves: a CTE or subquery that is changed, several joined tables.

T-SQL changes the table behind a CTE, MySQL several tables at once. Which column of which table an assignment means is
what the name of the column means in the scope of the statement.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import CHAIN_MASK, KIND_MASK, OPAQUE, REF_SHIFT
from govtool.capture.sql.walk.expressions.columns import resolve_column
from govtool.capture.sql.walk.queries.from_items import is_temporary_name
from govtool.capture.sql.walk.relation import QueryOutput, Source
from govtool.capture.sql.walk.scope import CommonTable, Environment, Scope
from govtool.capture.sql.walk.writes import BY_NAME, NOT_NAMED, Write
from govtool.capture.sql.walk.writing.recording import add_to
from govtool.model import HIDDEN, ROWS

UPDATABLE_CTES: Final = frozenset({"tsql", "fabric"})
"""Dialects in which the target of a statement may be a CTE of it."""


class Assigned(NamedTuple):
    """A column that an assignment writes; not ``sure`` where it is one of several candidates."""

    dataset: str
    path: str
    sure: bool


def target_cte(walk: Walk, node: exp.Expr, env: Environment | None) -> CommonTable | None:
    """Return the CTE that a target names, where the dialect changes the table behind it."""
    return _common(walk, node, env) if walk.dialect in UPDATABLE_CTES else None


def _common(walk: Walk, node: exp.Expr, env: Environment | None) -> CommonTable | None:
    """Return the CTE that a FROM item names."""
    if env is None or not isinstance(node, nodes.Table) or node.args.get("db") or node.args.get("catalog"):
        return None
    name = node.this
    return env.find(walk.name(name)) if isinstance(name, nodes.Identifier) and not is_temporary_name(name) else None


def base_table(walk: Walk, node: exp.Expr | None, env: Environment | None) -> str:
    """Return the table whose rows a FROM item hands on one by one; empty where it is not just one."""
    while node is not None:
        args = node.args
        if args.get("joins") or args.get("laterals"):
            return ""
        if isinstance(node, nodes.Table):
            cte = _common(walk, node, env)
            if cte is None:
                return walk.lookup.table_name(node)
            if cte.recursive:
                return ""
            node, env = cte.node, cte.env
        elif isinstance(node, nodes.Subquery):
            node = node.this
        elif isinstance(node, nodes.Select):
            from_ = args.get("from_")
            if from_ is None or args.get("group") or args.get("distinct") or args.get("with_"):
                return ""
            node = from_.this
        else:
            return ""
    return ""


def item_named(walk: Walk, name: str, items: Iterable[exp.Expr]) -> exp.Expr | None:
    """Return the FROM item of that alias or name, among items and what they are joined with."""
    stack = list(items)
    while stack:
        item = stack.pop()
        if isinstance(item, nodes.Join):
            item = item.this
        if isinstance(item, (nodes.Table, nodes.Subquery)):
            alias, _ = walk.alias(item)
            if (alias or (walk.name(item.this) if isinstance(item, nodes.Table) else "")) == name:
                return item
            stack.extend(item.args.get("joins") or ())
    return None


def no_base(walk: Walk, node: exp.Expr) -> str:
    """Say that a target is not the rows of one table."""
    walk.diagnose("opaque", "the target is a query whose rows are not those of one table", node)
    return ""


def assigned_columns(walk: Walk, left: exp.Expr, scope: Scope) -> list[Assigned]:
    """Return which columns an assignment to ``left`` writes: several where it is ambiguous."""
    found: list[Assigned] = []
    if isinstance(left, nodes.Column):
        deps = resolve_column(walk, left, scope)
        for dep in deps:
            dataset, path = walk.interner.refs[dep >> REF_SHIFT]
            plain = not dep & (KIND_MASK | CHAIN_MASK)
            if path not in (ROWS, HIDDEN) and (plain or dep & KIND_MASK == OPAQUE):
                found.append(Assigned(dataset, path, plain and len(deps) == 1))
    if len(found) > 1:
        texts = [f"{item.dataset}.{item.path}" for item in found]
        walk.diagnose("ambiguous", f"SET may mean any of {len(texts)} columns", left, candidates=texts)
    elif not found:
        walk.diagnose("opaque", "an assignment of SET is to no column of a table", left)
    return found


def renamed_to_base(walk: Walk, output: QueryOutput, source: Source, base: str, node: exp.Expr) -> QueryOutput:
    """Return what is written to the columns of a query as what is written to those of the table behind it."""
    result = QueryOutput()
    for name, deps in zip(output.names, output.deps, strict=True):
        behind = source.get(name, walk.interner) or source.assume(name, walk.interner) or ()
        dep = behind[0] if len(behind) == 1 else OPAQUE
        ref = walk.interner.refs[dep >> REF_SHIFT] if not dep & (KIND_MASK | CHAIN_MASK) else None
        if ref is not None and ref.dataset == base:
            add_to(result, ref.path, deps)
        else:
            walk.diagnose("opaque", f"{name} of {source.alias} is no column of the table behind it", node)
    return result


def written(walk: Walk, target: str, output: QueryOutput, kind: str) -> Write:
    """Record one of several writes of a statement, which all share what was recorded so far."""
    kind_of = "temporary" if target.startswith("temp.") else "table"
    write = Write(target, kind, kind, kind_of, output, defines=False)
    write.rows = dict(walk.rows)
    write.fills = BY_NAME if kind == "update" else NOT_NAMED
    write.reads = {name: arms for name, arms in walk.reads.items() if name != target}
    walk.writes.append(write)
    return write
