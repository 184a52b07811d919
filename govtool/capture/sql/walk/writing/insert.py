"""INSERT in all its forms: by position, column list or name, into partitions, several at once, with ON CONFLICT."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import CONDITIONAL, FILTER, Deps, arm_of, with_arm
from govtool.capture.sql.walk.expressions.expression import collect, dependencies, refer_to
from govtool.capture.sql.walk.expressions.naming import output_name
from govtool.capture.sql.walk.queries.common_tables import common_output, environment
from govtool.capture.sql.walk.queries.sources import add_sources
from govtool.capture.sql.walk.query import output_of
from govtool.capture.sql.walk.relation import FunctionRows, OpenStar, QueryOutput, Source
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.writes import BY_NAME, BY_POSITION, Write
from govtool.capture.sql.walk.writing.recording import (
    Statement,
    add_to,
    column_list,
    kind_of,
    target_name,
    target_source,
    write_to,
)
from govtool.capture.sql.walk.writing.set_clause import assignments
from govtool.capture.sql.walk.writing.targets import base_table, no_base, renamed_to_base, target_cte


def _insert(walk: Walk, tree: exp.Insert) -> None:
    insert(walk, tree, environment(walk, tree, None, None))


def insert(walk: Walk, tree: exp.Insert, env: Environment | None, source: exp.Expr | None = None) -> Write | None:
    """Walk one INSERT; ``source`` is the FROM of Hive's multi-insert."""
    query = tree.args.get("expression")
    target = tree.this
    if not isinstance(target, (nodes.Table, nodes.Schema, nodes.Directory)):
        walk.diagnose("opaque", "the target of an INSERT is not a table", tree)
        return None
    if source is not None and isinstance(query, nodes.Select) and query.args.get("from_") is None:
        query.set("from_", nodes.From(this=source.copy()))
    output = QueryOutput()
    if isinstance(query, (nodes.Query, nodes.Table, nodes.Values, nodes.Pivot)):
        output = output_of(walk, query, None, env)
    if isinstance(target, nodes.Directory):
        return write_to(walk, target, output, "insert", "replace", "file", query)
    columns, _ = column_list(walk, target)
    table = target.this if isinstance(target, nodes.Schema) else target
    partition = table.args.get("partition") or tree.args.get("partition")
    static, dynamic = _partition(walk, partition)
    cte = target_cte(walk, table, env)
    name = target_name(walk, table) if cte is None else base_table(walk, table, env) or no_base(walk, table)
    by_name = bool(tree.args.get("by_name"))
    output = by_target(walk, output, name, columns, static, dynamic, by_name, tree, query)
    for column, deps in static.items():
        output.add(column, deps)
    # Where the dialect allows a CTE as a target, rows go into the table behind it, under the names that this has.
    if cte is not None:
        rows = Source(name, output=walk.without_effects(lambda: common_output(walk, cte)))
        output = renamed_to_base(walk, output, rows, name, table)
    replaces = tree.args.get("overwrite") and not partition and tree.args.get("where") is None
    mode = "replace" if replaces else "append"
    write = write_to(walk, table, output, "insert", mode, kind_of(walk, table), query, defines=False)
    write.target = name
    write.fills = BY_NAME if columns or by_name else BY_POSITION
    conflict = tree.args.get("conflict")
    if conflict is not None:
        _on_conflict(walk, conflict, table, write, env, query)
    return write


def _partition(walk: Walk, node: object) -> tuple[dict[str, Deps], list[str]]:
    """Split PARTITION (a = 'x', b) into static columns and dynamic ones."""
    static: dict[str, Deps] = {}
    dynamic: list[str] = []
    for item in node.expressions if isinstance(node, nodes.Expr) else ():
        if isinstance(item, nodes.EQ):
            left = item.this
            static[walk.name(left.this if isinstance(left, nodes.Column) else left)] = ()
        else:
            dynamic.append(walk.name(item.this if isinstance(item, nodes.Column) else item))
    return static, dynamic


def by_target(
    walk: Walk,
    output: QueryOutput,
    target: str,
    columns: list[str],
    static: dict[str, Deps],
    dynamic: list[str],
    by_name: bool,
    tree: exp.Expr,
    query: exp.Expr | None,
) -> QueryOutput:
    """Give the columns of an inserted query the names of the target's columns.

    Args:
        walk: The walk.
        output: Of the query.
        target: The table.
        columns: Those that the statement lists.
        static: The columns of the partition with constant values.
        dynamic: The columns of the partition that come last in the query.
        by_name: Whether columns go by their names in the query.
        tree: The statement.
        query: What puts out the rows.
    """
    if by_name:
        return output
    names = columns or _columns_filled(walk, output, target, static, dynamic)
    if not names:
        return _of_unknown_columns(walk, output, target, tree, query)
    if output.open:
        return _unmatched(walk, output, names, tree)
    if len(output.names) > len(names):
        walk.diagnose("arity", f"{len(output.names)} values for {len(names)} columns of {target}", tree)
        return output.renamed(names).first(len(names))
    if columns and len(output.names) < len(names) and output.names:
        walk.diagnose("arity", f"{len(output.names)} values for {len(names)} columns of {target}", tree)
    return output.renamed(names[: len(output.names)])


def _columns_filled(
    walk: Walk, output: QueryOutput, target: str, static: dict[str, Deps], dynamic: list[str]
) -> list[str]:
    """Return the columns that an INSERT without a list fills, in order; none where they are not known."""
    names: list[str] = []
    table = walk.lookup.table(target) if target else None
    if table is not None and table.complete:
        names = [name for name in table.columns if name not in static]
        if dynamic:  # dynamic partition columns come last in the query
            names = [name for name in names if name not in dynamic] + dynamic
    if not names and dynamic and not output.open:
        names = [*output.names[: max(0, len(output.names) - len(dynamic))], *dynamic]
    return names


def _of_unknown_columns(
    walk: Walk, output: QueryOutput, target: str, tree: exp.Expr, query: exp.Expr | None
) -> QueryOutput:
    """What goes into columns that are not known: they are taken to be called as in the query, if that has names."""
    if not output.names:
        return output
    if target and not isinstance(query, nodes.Values):
        text = f"the columns of {target} are not known: taken from the names of the query"
        walk.diagnose("assumed", text, tree, severity="info")
        return output
    text = f"the columns of {target} are not known, and VALUES has no names"
    walk.diagnose("unresolved", text, tree, severity="info")
    return _unnamed_values(output, target)


def _unmatched(walk: Walk, output: QueryOutput, names: list[str], tree: exp.Expr) -> QueryOutput:
    """A ``*`` hides the positions: any column may be that of any name."""
    walk.diagnose(
        "star-unresolved", "the positions behind a * are not known: the inserted columns cannot be matched", tree
    )
    return walk.any_of(output, names)


def _on_conflict(
    walk: Walk, node: exp.OnConflict, table: exp.Expr, write: Write, env: Environment | None, query: exp.Expr | None
) -> None:
    """ON CONFLICT: keys decide which rows come in; SET values are of ``excluded`` (the inserted row) or the target."""
    scope = Scope(None)
    inserted = Source("excluded", output=write.output)
    scope.add(target_source(walk, table))
    scope.add(inserted)
    inserted.hidden = True
    for alias in ("values", "new"):
        scope.by_alias.setdefault(alias, inserted)
    if node.args.get("duplicate") and query is not None:
        _inserted(walk, query, inserted, scope, env)
    known = write.output.index()
    for key in node.args.get("conflict_keys") or ():
        names = {walk.name(column.this) for column in key.find_all(nodes.Column)}
        incoming = [dep for name in names & known.keys() for dep in write.output.deps[known[name]]]
        walk.refer((*collect(walk, key, scope, env, FILTER, 0), *incoming), FILTER, key)
    write.rows.update(walk.rows)
    walk.rows = {}
    sets = [item for item in node.expressions if isinstance(item, nodes.EQ)]
    if not sets:
        return
    group = walk.number()
    arm = arm_of(group, 1)
    write.output.deps = [with_arm(deps, arm_of(group, 0)) for deps in write.output.deps]
    where = node.args.get("where")
    steering = collect(walk, where.this, scope, env, CONDITIONAL, 0) if where is not None else []
    for name, deps in assignments(walk, sets, scope, env):
        add_to(write.output, name, with_arm((*deps, *steering), arm))
    walk.rows = {}
    walk.reads = {}


def _inserted(walk: Walk, query: exp.Expr, inserted: Source, scope: Scope, env: Environment | None) -> None:
    """MySQL: what else ON DUPLICATE KEY UPDATE may name, but only by its alias: the row, what was selected from."""
    alias, columns = walk.alias(query)
    if alias:
        written = inserted.output or QueryOutput()
        row = Source(alias, output=written.renamed(columns) if columns else written)
        row.hidden = True
        scope.add(row)
    elif isinstance(query, nodes.Select):
        start = len(scope.sources)
        walk.without_effects(lambda: add_sources(walk, query, scope, env))
        for source in scope.sources[start:]:
            source.hidden = True


def _multi_insert(walk: Walk, tree: exp.MultitableInserts) -> None:
    """Hive's FROM … INSERT … INSERT …, and Oracle's and Snowflake's INSERT ALL / FIRST."""
    source = tree.args["source"]
    env = environment(walk, tree, None, None)
    hive = [item for item in tree.expressions if isinstance(item, nodes.Insert)]
    if hive:
        for item in hive:
            insert(walk, item, env, source)
        return
    output, rows = walk.separately(lambda: output_of(walk, source, None, env))
    reads, walk.reads = walk.reads, {}
    conditions: list[exp.Expr] = []
    for item in tree.expressions:
        branch = item.this
        if not isinstance(branch, nodes.Insert):
            continue
        scope = Scope(None)
        scope.add(Source("", output=output))
        values = branch.args.get("expression")
        row = values.expressions[0] if isinstance(values, nodes.Values) and values.expressions else None
        written = QueryOutput()
        if row is None:
            for name, deps in zip(output.names, output.deps, strict=True):
                written.add(name, deps)
        else:
            for value in row.expressions if isinstance(row, nodes.Tuple) else [row]:
                written.add(output_name(walk, value), dependencies(walk, value, scope, env))
        columns, _ = column_list(walk, branch.this)
        table = branch.this.this if isinstance(branch.this, nodes.Schema) else branch.this
        written = by_target(walk, written, target_name(walk, table), columns, {}, [], False, branch, None)
        own = item.args.get("expression")
        # ELSE, and with FIRST every later branch, is reached by what the earlier conditions let through.
        deciding = conditions if item.args.get("else_") or str(tree.args.get("kind")).upper() == "FIRST" else []
        for condition in [*deciding, own]:
            refer_to(walk, condition, scope, env, FILTER)
        if own is not None:
            conditions.append(own)
        write = write_to(walk, table, written, "insert", "append", kind_of(walk, table), source, defines=False)
        write.fills = BY_NAME if columns else BY_POSITION
        write.rows.update(rows)
        write.reads.update(reads)


def _unnamed_values(output: QueryOutput, target: str) -> QueryOutput:
    """Values that go into columns which are not known: what they are made of reaches some of them."""
    found = QueryOutput()
    made = tuple(dict.fromkeys(dep for deps in output.deps for dep in deps))
    if made:
        found.open.append(OpenStar(FunctionRows(target, made)))
    return found


STATEMENTS: Final[dict[type, Statement]] = {nodes.Insert: _insert, nodes.MultitableInserts: _multi_insert}
