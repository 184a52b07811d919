"""MERGE: its branches are alternatives, each of which updates, inserts or deletes."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import (
    ARM_MASK,
    CONDITIONAL,
    FILTER,
    JOIN,
    Deps,
    arm_of,
    as_conditions,
    with_arm,
)
from govtool.capture.sql.walk.expressions.expression import collect, dependencies
from govtool.capture.sql.walk.expressions.naming import output_name
from govtool.capture.sql.walk.expressions.rows import source_star
from govtool.capture.sql.walk.queries.common_tables import environment
from govtool.capture.sql.walk.queries.sources import add_source
from govtool.capture.sql.walk.relation import QueryOutput, Source, starred
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.state import EVERYWHERE
from govtool.capture.sql.walk.writes import BY_NAME, NOT_NAMED, Write
from govtool.capture.sql.walk.writing.recording import Statement, add_to, kind_of, target_name, target_source, write_to
from govtool.capture.sql.walk.writing.set_clause import assigned_name, assignments
from govtool.capture.sql.walk.writing.targets import base_table, no_base, renamed_to_base, target_cte


def _merge_statement(walk: Walk, tree: exp.Merge) -> None:
    merge(walk, tree, environment(walk, tree, None, None))


def merge(walk: Walk, tree: exp.Merge, env: Environment | None) -> Write:
    """Record what the branches write as one write, and return it; ON and the conditions decide about its rows."""
    table = tree.this
    scope = Scope(None)
    derived = target_cte(walk, table, env) is not None
    if derived:
        target = base_table(walk, table, env) or no_base(walk, table)
        add_source(walk, table, scope, env)
    else:
        target = target_name(walk, table)
        scope.add(target_source(walk, table))
    before = len(scope.sources)
    add_source(walk, tree.args["using"], scope, env)
    source = scope.sources[before] if len(scope.sources) > before else None
    output = _branches(walk, tree, scope, env, source, target)
    if derived:
        output = renamed_to_base(walk, output, scope.sources[0], target, table) if target else QueryOutput()
    write = write_to(walk, table, output, "merge", "update", kind_of(walk, table), None, defines=False)
    write.target = target
    write.fills = BY_NAME if _names_columns(walk, tree) else NOT_NAMED
    write.reads.pop(target, None)
    if source is not None and source.table is not None:
        write.reads[source.table.id] = EVERYWHERE
    return write


def _branches(
    walk: Walk, tree: exp.Merge, scope: Scope, env: Environment | None, source: Source | None, target: str
) -> QueryOutput:
    """Return what the branches write into the columns of the target; what decides about its rows is referenced."""
    inner_rows, walk.rows = walk.rows, {}
    on = [dep for part in _on(tree, scope, source) for dep in collect(walk, part, scope, env, CONDITIONAL, 0)]
    on_rows, walk.rows = {**inner_rows, **walk.rows}, {}
    output = QueryOutput()
    rows: dict[int, exp.Expr | None] = {}
    group = walk.number()
    # A row that an earlier branch takes never comes to a later one of its sort: conditions add up.
    earlier: dict[tuple[bool, bool], tuple[list[int], dict[int, exp.Expr | None]]] = {}
    for number, when in enumerate(tree.args["whens"].expressions):
        arm = arm_of(group, number)
        then = when.args["then"]
        sort = bool(when.args.get("matched")), bool(when.args.get("source"))
        deciding, deciding_rows = earlier.setdefault(sort, ([], {}))
        for condition in _conditions(when):
            deciding.extend(collect(walk, condition, scope, env, CONDITIONAL, 0))
        deciding_rows.update(walk.rows)
        walk.rows = {}
        if isinstance(then, nodes.Update):
            steering = as_conditions((*on, *deciding, *on_rows, *deciding_rows), walk.interner)
            for name, deps in _branch_values(walk, then, scope, env, source, target):
                add_to(output, name, with_arm((*deps, *steering), arm))
            continue
        if isinstance(then, nodes.Insert):
            for name, deps in _branch_insert(walk, then, scope, env, source, target):
                add_to(output, name, with_arm(deps, arm))
        walk.refer(on, JOIN, tree.args.get("on"))
        walk.refer(deciding, FILTER)
        for row, node in (*walk.rows.items(), *on_rows.items(), *deciding_rows.items()):
            rows[(row & ~ARM_MASK) | arm if arm else row] = node
        walk.rows = {}
    walk.rows = rows
    return output


def _on(tree: exp.Merge, scope: Scope, source: Source | None) -> list[exp.Expr]:
    """What rows are compared by: ON, or DuckDB's USING, whose columns both sides have."""
    sides = [scope.sources[0], *([] if source is None else [source])]
    names = [(side.alias, name.this) for name in tree.args.get("using_cond") or () for side in sides]
    using: list[exp.Expr] = [exp.column(name, table=alias, quoted=True) for alias, name in names]
    return [tree.args["on"], *using] if isinstance(tree.args.get("on"), nodes.Expr) else using


def _conditions(when: exp.Expr) -> list[exp.Expr]:
    """Return the conditions of a branch; Oracle writes one behind it: UPDATE SET … WHERE …, INSERT … WHERE …."""
    then = when.args["then"]
    behind = then.args.get("where") if isinstance(then, nodes.DML) else None
    return [condition for condition in (when.args.get("condition"), behind) if isinstance(condition, nodes.Expr)]


def _branch_values(
    walk: Walk, then: exp.Update, scope: Scope, env: Environment | None, source: Source | None, target: str
) -> list[tuple[str, Deps]]:
    if _sets_all(then):
        return (_by_position if walk.dialect == "duckdb" else _same_names)(walk, source, target, then)
    saved, walk.targets = walk.targets, frozenset({scope.sources[0].alias})
    try:
        return assignments(walk, then.expressions, scope, env)
    finally:
        walk.targets = saved


def _sets_all(then: exp.Expr) -> bool:
    """Return whether an UPDATE of a branch lists no columns: ``UPDATE SET *``, and DuckDB's ``UPDATE`` alone."""
    assigned = then.args.get("expressions")
    return not assigned or isinstance(assigned, nodes.Star) or any(isinstance(item, nodes.Star) for item in assigned)


def _by_position(walk: Walk, source: Source | None, target: str, node: exp.Expr) -> list[tuple[str, Deps]]:
    """BigQuery's INSERT ROW, DuckDB's UPDATE, UPDATE SET * and INSERT *; by name where columns are not known."""
    if source is not None:
        output, known = source_star(walk, source), walk.lookup.table(target)
        if known.complete and not output.open:
            return list(zip(known.columns, output.deps, strict=False))
    return _same_names(walk, source, target, node)


def _same_names(walk: Walk, source: Source | None, target: str, node: exp.Expr) -> list[tuple[str, Deps]]:
    """UPDATE SET * and INSERT *: columns of the source into those of the same name."""
    if source is None:
        return []
    wanted = walk.lookup.table(target)
    output = source_star(walk, source)
    pairs = list(zip(output.names, output.deps, strict=True))
    if output.open:
        walk.diagnose("star-unresolved", "the columns of the source of a MERGE are not all known", node)
        for star in output.open:
            for name in wanted.columns:
                if name not in output.index():
                    pairs.append((name, starred(star.lookup(name, walk.interner) or ())))
    if wanted.complete:
        pairs = [pair for pair in pairs if pair[0] in wanted.columns]
    return pairs


def _branch_insert(
    walk: Walk, then: exp.Insert, scope: Scope, env: Environment | None, source: Source | None, target: str
) -> list[tuple[str, Deps]]:
    """Return the columns that an INSERT of a branch fills, with what flows into each."""
    columns, values = _insert_parts(walk, then)
    if isinstance(columns, (nodes.Star, nodes.Var)) and not isinstance(values, nodes.Expr):
        return (_by_position if isinstance(columns, nodes.Var) else _same_names)(walk, source, target, then)
    items: list[exp.Expr] = []
    if isinstance(values, nodes.Expr):
        items = values.expressions if isinstance(values, nodes.Tuple) else [values]
    if isinstance(columns, nodes.Tuple):
        names = [assigned_name(walk, column) for column in columns.expressions]
    elif isinstance(columns, (nodes.Column, nodes.Identifier, nodes.Paren)):
        names = [assigned_name(walk, columns.this if isinstance(columns, nodes.Paren) else columns)]
    elif isinstance(values, nodes.Var) or not items:
        return _same_names(walk, source, target, then)
    else:
        known = walk.lookup.table(target)
        if not known.complete:
            return _named_by_values(walk, then, items, scope, env, target)
        names = list(known.columns)
    items = [item.this if isinstance(item, nodes.Paren) else item for item in items]
    return [(name, dependencies(walk, item, scope, env)) for name, item in zip(names, items, strict=False)]


def _insert_parts(walk: Walk, then: exp.Insert) -> tuple[object, object]:
    """Return the column list of an INSERT and its values.

    ``INSERT VALUES (…)`` is parsed as a list of one call, ``INSERT BY NAME`` and ``BY POSITION`` as one of an alias.
    DuckDB goes by position unless it is told otherwise, with ``INSERT *``, too.
    """
    columns, values = then.this, then.args.get("expression")
    if not isinstance(values, nodes.Expr) and isinstance(columns, nodes.Tuple) and len(columns.expressions) == 1:
        only = columns.expressions[0]
        if isinstance(only, nodes.Anonymous) and only.name.upper() == "VALUES":
            return None, nodes.Tuple(expressions=only.expressions)
        if isinstance(only, nodes.Alias) and only.this.name.upper() == "BY":
            return (nodes.Var(this="ROW") if only.alias.upper() == "POSITION" else nodes.Star()), None
    if walk.dialect == "duckdb" and not isinstance(values, nodes.Expr) and (columns is None or _is_star(columns)):
        return nodes.Var(this="ROW"), None
    return columns, values


def _is_star(node: object) -> bool:
    return isinstance(node, nodes.Star) or (isinstance(node, nodes.Column) and isinstance(node.this, nodes.Star))


def _named_by_values(
    walk: Walk, then: exp.Insert, items: list[exp.Expr], scope: Scope, env: Environment | None, target: str
) -> list[tuple[str, Deps]]:
    """Values that go into columns which are not known, and are not listed: by the names that they have themselves."""
    names = [output_name(walk, item) for item in items]
    if not all(names):
        text = f"the columns of {target} are not known, and the INSERT of a MERGE lists none"
        walk.diagnose("unresolved", text, then)
        return []
    text = f"the columns of {target} are not known: taken from the names of the values"
    walk.diagnose("assumed", text, then, severity="info")
    return [(name, dependencies(walk, item, scope, env)) for name, item in zip(names, items, strict=True)]


def _names_columns(walk: Walk, tree: exp.Merge) -> bool:
    """Return whether a MERGE lists what it sets and inserts: no ``UPDATE SET *``, ``INSERT *`` or ``ROW``."""
    for when in tree.args["whens"].expressions:
        then = when.args["then"]
        if isinstance(then, nodes.Update):
            if _sets_all(then):
                return False
        elif isinstance(then, nodes.Insert) and not isinstance(
            _insert_parts(walk, then)[0], (nodes.Tuple, nodes.Column, nodes.Identifier, nodes.Paren)
        ):
            return False
    return True


STATEMENTS: Final[dict[type, Statement]] = {nodes.Merge: _merge_statement}
