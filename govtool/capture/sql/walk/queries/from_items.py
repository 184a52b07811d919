"""The kinds of FROM items: tables, files, subqueries, laterals, functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sqlglot import exp
from sqlglot.expressions import Identifier

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.expressions.functions import function_name
from govtool.capture.sql.walk.expressions.rows import star_of, table_output
from govtool.capture.sql.walk.expressions.variables import variable_name, variable_rows
from govtool.capture.sql.walk.queries.clauses import refer_modifiers
from govtool.capture.sql.walk.queries.common_tables import common_output
from govtool.capture.sql.walk.queries.placing import add_output, place
from govtool.capture.sql.walk.queries.sources import FromItem, add_joins, add_source
from govtool.capture.sql.walk.queries.table_functions import function_output
from govtool.capture.sql.walk.queries.unnest import add_unnest
from govtool.capture.sql.walk.queries.values import values_output
from govtool.capture.sql.walk.query import output_of
from govtool.capture.sql.walk.relation import (
    BULK_FILE,
    OpenStar,
    QueryOutput,
    ShardedTable,
    Source,
    TableInfo,
    file_name,
    named_table,
)
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.state import EVERYWHERE

_READERS: Final = frozenset(
    {
        "read_csv",
        "read_csv_auto",
        "read_parquet",
        "parquet_scan",
        "read_json",
        "read_json_auto",
        "read_ndjson",
        "delta_scan",
        "iceberg_scan",
        BULK_FILE,
    }
)
"""Functions that read the files that their first argument names; `BULK_FILE` all of its arguments."""


def _add_table(walk: Walk, node: exp.Table, scope: Scope, env: Environment | None) -> None:
    """A table, a CTE, or what stands where a table may stand."""
    args = node.args
    this = args.get("this")
    if type(this) is Identifier and not (args.get("db") or args.get("catalog") or args.get("pivots")):
        alias = args.get("alias")
        if alias is None or not alias.args.get("columns"):
            _add_plain_table(walk, node, this, alias, scope, env)
            return
    if isinstance(this, nodes.Func) and not isinstance(this, nodes.DynamicIdentifier):
        _add_table_call(walk, node, this, scope, env)
    elif args.get("rows_from"):
        _add_rows_from(walk, node, scope, env)
    else:
        _add_named_table(walk, node, scope, env)


def _add_table_call(walk: Walk, node: exp.Table, call: exp.Expr, scope: Scope, env: Environment | None) -> None:
    """A function where a table stands: files that it reads, or the rows that it returns."""
    files = _files_read(call)
    if files:
        _add_files(walk, files, node, scope, env)
        return
    schema = ".".join(walk.qualifier(part for key in ("catalog", "db") if (part := node.args.get(key)) is not None))
    add_output(walk, node, function_output(walk, call, scope, env, schema), scope, env, scalar=True)


def _add_rows_from(walk: Walk, node: exp.Table, scope: Scope, env: Environment | None) -> None:
    """PostgreSQL's ``ROWS FROM (f(a), g(b))``: the columns of the functions side by side."""
    output = QueryOutput()
    for item in node.args["rows_from"]:
        call = item.this if isinstance(item, (nodes.Table, nodes.Alias)) else item
        inner = function_output(walk, call, scope, env)
        for name, deps in zip(inner.names, inner.deps, strict=True):
            output.add(name, deps)
    add_output(walk, node, output, scope, env)


def _add_named_table(walk: Walk, node: exp.Table, scope: Scope, env: Environment | None) -> None:
    """A table or CTE with a qualifier, a column list, or pivots; or one that an expression names."""
    this = node.args.get("this")
    alias, columns = walk.alias(node)
    plain = isinstance(this, nodes.Identifier) and not node.args.get("db") and not node.args.get("catalog")
    cte = env.find(walk.name(this)) if env is not None and plain and not is_temporary_name(this) else None
    if cte is not None:
        output = common_output(walk, cte)
        alias = alias or walk.name(this)
        place(walk, Source(alias, output=walk.relabelled(output, columns)), node, scope, env)
        return
    name = walk.lookup.table_name(node)
    if not name:
        walk.diagnose("opaque", "a table is named by an expression or parameter", node)
        place(walk, Source(alias, output=QueryOutput()), node, scope, env)
        return
    table = walk.lookup.table(name)
    _read_rows(walk, table)
    full_name, last = _written_name(walk, node)
    source = Source(alias or walk.name(last), table=table, full_name=full_name)
    if columns:
        source = Source(source.alias, output=walk.relabelled(table_output(walk, table), columns))
    place(walk, source, node, scope, env)


def _written_name(walk: Walk, node: exp.Table) -> tuple[str, exp.Expr | None]:
    """Return the full name of a table as it is written, empty without a qualifier, and the last part of it."""
    this, db = node.args.get("this"), node.args.get("db")
    if isinstance(this, nodes.DynamicIdentifier):
        named = named_table(this.this.name, walk.dialect)
        return ("", this) if named is None else (".".join(walk.qualifier(named.parts)), named.parts[-1])
    if not db:
        return "", this
    if type(this) is Identifier and type(db) is Identifier and not node.args.get("catalog"):
        return f"{walk.name(db)}.{walk.name(this)}", this
    return ".".join(walk.qualifier(node.parts)), node.parts[-1]


def _read_rows(walk: Walk, table: TableInfo) -> None:
    """Record that the rows of a table are read; of a wildcard, those of the tables that it stands for."""
    if type(table) is ShardedTable:
        walk.reads.update(dict.fromkeys([shard.id for shard in table.shards], EVERYWHERE))
    walk.reads[table.id] = EVERYWHERE


def _add_plain_table(
    walk: Walk, node: exp.Table, this: exp.Expr, alias: exp.Expr | None, scope: Scope, env: Environment | None
) -> None:
    """A table or CTE named by one identifier: nearly all of them."""
    name = walk.name(this)
    called = name if alias is None else walk.name(alias.args.get("this")) or name
    cte = env.find(name) if env is not None and not is_temporary_name(this) else None
    if cte is not None:
        scope.add(Source(called, output=common_output(walk, cte)))
    elif name == "dual":
        scope.add(Source(called, output=QueryOutput()))
    else:
        table = walk.lookup.table(walk.lookup.table_name(node))
        _read_rows(walk, table)
        scope.add(Source(called, table=table))


def _add_files(walk: Walk, files: list[str], node: exp.Table, scope: Scope, env: Environment | None) -> None:
    """read_csv('a.csv'), read_parquet([…]): each file is a dataset; several have the same columns."""
    alias, columns = walk.alias(node)
    tables = [walk.lookup.table(file_name(name)) for name in files]
    for table in tables:
        walk.reads[table.id] = EVERYWHERE
    output = table_output(walk, tables[0])
    for table in tables[1:]:
        more = table_output(walk, table)
        output.open.extend(OpenStar(star.table) for star in more.open)
    if len(tables) == 1 and not columns:
        place(walk, Source(alias, table=tables[0]), node, scope, env)
    else:
        place(walk, Source(alias, output=output.renamed(columns)), node, scope, env)


def _add_subquery(walk: Walk, node: exp.Subquery, scope: Scope, env: Environment | None) -> None:
    """A subquery, or joins in parentheses."""
    inner = node.this
    alias, _ = walk.alias(node)
    start = len(scope.sources)
    plain = isinstance(inner, (nodes.Table, nodes.TableFromRows, nodes.Subquery))
    if plain and not alias and not isinstance(inner.unnest(), nodes.Query):
        add_source(walk, inner, scope, env)  # (a JOIN b ON …): its tables stay visible
        add_joins(walk, node.args.get("joins") or [], scope, env, start)
        return
    if isinstance(inner, (nodes.Table, nodes.TableFromRows)):
        output = _joined_output(walk, inner, scope, env)
    else:
        output = (
            output_of(walk, node, scope.parent, env)
            if node.args.get("with_")
            else output_of(walk, inner, scope.parent, env)
        )
        refer_modifiers(walk, node, output, scope.parent, env)
    add_output(walk, node, output.unique() if walk.dialect == "duckdb" else output, scope, env)
    add_joins(walk, node.args.get("joins") or [], scope, env, start)


def _joined_output(walk: Walk, inner: exp.Expr, scope: Scope, env: Environment | None) -> QueryOutput:
    """The output of an aliased parenthesised join: ``(a JOIN b ON …) AS j(p, q)``."""
    joined = Scope(scope.parent)
    add_source(walk, inner, joined, env)
    return star_of(walk, joined)


def _add_lateral(walk: Walk, node: exp.Lateral, scope: Scope, env: Environment | None) -> None:
    """LATERAL and LATERAL VIEW: what it makes may name the items before it."""
    inner = node.this
    if isinstance(inner, nodes.Subquery):
        output = output_of(walk, inner, scope, env)  # a lateral subquery can read the items before it
    elif isinstance(inner, nodes.Unnest):
        add_unnest(walk, inner, scope, env, node)
        return
    else:
        output = function_output(walk, inner, scope, env)
    _, columns = walk.alias(node)
    if node.args.get("ordinality") and len(columns) > len(output.names):
        output.names.extend([""] * (len(columns) - len(output.names) - 1))
        output.deps.extend([output.deps[0] if output.deps else ()] * (len(columns) - len(output.deps) - 1))
        output.add("", ())
    add_output(walk, node, output, scope, env, scalar=True)


def is_temporary_name(name: exp.Expr | None) -> bool:
    """Return whether a name is T-SQL's ``#name`` or ``##name``, which never is a CTE."""
    return name is not None and bool(name.args.get("temporary") or name.args.get("global_"))


def _files_read(node: exp.Expr) -> list[str]:
    """Return the constant file names that a reading function is given; none for another function."""
    name = function_name(node)
    if name == "openrowset" and node.expressions and function_name(node.expressions[0]) == "bulk":
        return [item.name for item in node.expressions[0].expressions if isinstance(item, nodes.Literal)]
    if name not in _READERS:
        return []
    if name == BULK_FILE:
        return _texts(node.expressions)
    this = node.args.get("this")
    first = this if isinstance(this, nodes.Expr) else next(iter(node.expressions), None)
    return _texts(first.expressions if isinstance(first, nodes.Array) else [first])


def _texts(items: Iterable[exp.Expr | None]) -> list[str]:
    return [item.name for item in items if isinstance(item, nodes.Literal) and item.is_string]


def _add_values(walk: Walk, node: exp.Values, scope: Scope, env: Environment | None) -> None:
    add_output(walk, node, values_output(walk, node, scope, env), scope, env)


def _add_query(walk: Walk, node: exp.Query, scope: Scope, env: Environment | None) -> None:
    add_output(walk, node, output_of(walk, node, scope.parent, env), scope, env)


def _add_call(walk: Walk, node: exp.Expr, scope: Scope, env: Environment | None) -> None:
    add_output(walk, node, function_output(walk, node, scope, env), scope, env)


def _add_alias(walk: Walk, node: exp.Alias, scope: Scope, env: Environment | None) -> None:
    add_output(walk, node, function_output(walk, node.this, scope, env), scope, env)


def _add_piped(walk: Walk, node: exp.TableAlias, scope: Scope, env: Environment | None) -> None:
    """``|> AS name``, in pipe syntax: the CTE that the parser has made of it."""
    _add_table(walk, nodes.Table(this=node.this.copy()), scope, env)


def _add_rows(walk: Walk, node: exp.TableFromRows, scope: Scope, env: Environment | None) -> None:
    """``TABLE(…)``: of a name or of a RESULTSET, as Snowflake has it, or of a function."""
    inner = node.this
    if isinstance(inner, nodes.Literal):
        named = exp.to_table(inner.name, dialect=walk.dialect)
        for key in ("alias", "joins"):
            named.set(key, node.args.get(key))
        _add_table(walk, named, scope, env)
    elif isinstance(inner, nodes.Placeholder):
        rows = variable_rows(walk, variable_name(walk, inner), node)
        if rows is None:
            walk.diagnose("opaque", "the rows of a variable that is not known", node)
        add_output(walk, node, rows or QueryOutput(), scope, env)
    elif isinstance(inner, nodes.Parameter):
        walk.diagnose("opaque", "a table is named by an expression or parameter", node)
        add_output(walk, node, QueryOutput(), scope, env)
    else:
        add_output(walk, node, function_output(walk, inner, scope, env), scope, env)


def _add_braces(walk: Walk, node: exp.Expr, scope: Scope, env: Environment | None) -> None:
    """``FROM ${ref('t')}`` of a tool that is not known here, which BigQuery's parser takes for a struct."""
    walk.diagnose("opaque", "the rows come from what a tool puts for ${…}: what it returns is not known", node)
    add_output(walk, node, QueryOutput(), scope, env)


ITEMS: Final[dict[type, FromItem]] = {
    nodes.Struct: _add_braces,
    nodes.Table: _add_table,
    nodes.Subquery: _add_subquery,
    nodes.Lateral: _add_lateral,
    nodes.Unnest: add_unnest,
    nodes.Values: _add_values,
    nodes.TableAlias: _add_piped,
    nodes.TableFromRows: _add_rows,
    nodes.Alias: _add_alias,
    nodes.Query: _add_query,
    nodes.Func: _add_call,
}
