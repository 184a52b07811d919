"""Functions that return rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import (
    FILTER,
    IDENTITY,
    OPAQUE,
    TRANSFORMATION,
    Deps,
    bounded,
    compose,
    possibly,
)
from govtool.capture.sql.walk.expressions.expression import collect
from govtool.capture.sql.walk.expressions.functions import function_name, is_built_in
from govtool.capture.sql.walk.expressions.row_makers import makes_rows, refer_values
from govtool.capture.sql.walk.expressions.rows import passing
from govtool.capture.sql.walk.expressions.shapes import bound_arguments
from govtool.capture.sql.walk.expressions.written_paths import dotted
from govtool.capture.sql.walk.queries.sources import add_source
from govtool.capture.sql.walk.query import output_of
from govtool.capture.sql.walk.relation import CALLER, FunctionRows, OpenStar, QueryOutput, file_name, named_table
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.state import EVERYWHERE, Inline, Returned
from govtool.model import HIDDEN

T = TypeVar("T")

REMOTE: Final = frozenset({"openquery", "openrowset", "opendatasource", "exec", CALLER})
"""Remote sources of rows; ``exec`` is INSERT … EXEC, ``CALLER`` what fills a parameter."""

_OTHERS_ROWS: Final = frozenset(
    {"remote", "remotesecure", "cluster", "clusterallreplicas", "merge", "dictionary", "executable", "loop"}
)
"""ClickHouse's table functions over other tables, by name or by a pattern of names."""

_TRINO: Final = frozenset({"trino", "presto", "athena"})
"""Dialects that write ``TABLE(f(…))`` for the rows of a function."""

DEFAULT_SCHEMAS: Final = {"tsql": "dbo", "fabric": "dbo", "postgres": "public", "redshift": "public"}
"""The schema of a function that is called without one."""

FULL_TEXT: Final = frozenset({"containstable", "freetexttable"})
"""T-SQL's full-text searches of a table."""

FLATTEN_COLUMNS: Final = ("seq", "key", "path", "index", "value", "this")
"""Output of Snowflake's FLATTEN, in order."""


def function_output(walk: Walk, node: exp.Expr, scope: Scope, env: Environment | None, schema: str = "") -> QueryOutput:
    """Return the output of a set-returning function; where nothing else is known, each column depends on all
    arguments.

    Args:
        walk: The walk.
        node: The call, or ``schema.call``.
        scope: What the arguments may name.
        env: The CTEs in sight.
        schema: The qualifier of the function, where it is not part of ``node``.
    """
    call, name = _call_of(walk, node)
    inner = call
    if name == "table" and walk.dialect in _TRINO and len(call.expressions) == 1:
        inner, name = _call_of(walk, call.expressions[0])
    if _is_remote(walk, name, inner is not call):
        return _remote_rows(walk, name, inner)
    called = f"{schema}.{name}" if schema else name
    names = _definable_names(walk, called) if name else []
    body = _first_of(walk.lookup.function, names)
    bodies = [] if body is None else body.called(len(call.expressions), is_table=True)
    if len(bodies) == 1 and name not in walk.inlining:
        return _inline_table(walk, name, bodies[0], call, scope, env)
    if len(bodies) > 1:
        body = None
    found = _of_its_class(walk, call, name, scope, env)
    if found is not None:
        return found
    returned = _first_of(walk.lookup.returned, names) if body is None else None
    if returned is not None:
        return _returned_rows(walk, name, returned, call, scope, env)
    deps = bounded(collect(walk, node, scope, env, IDENTITY, 0))
    if makes_rows(name):
        refer_values(walk, list(call.iter_expressions()), deps, node)
    output = _listed_columns(walk, call, deps)
    if output is not None:
        return output
    if isinstance(call, nodes.Stack):
        return _stack(walk, call, scope, env)
    if body is None and _is_foreign(walk, call, name, schema):
        walk.diagnose("opaque", f"the rows come from {called}(…): what it returns is not known", node)
        deps = (*deps, walk.interner.ref(file_name(f"{called}(…)"), HIDDEN) | OPAQUE)
    output = QueryOutput()
    output.add(_default_column(walk, name), deps)
    output.open.append(OpenStar(FunctionRows(name, deps)))
    return output


def _of_its_class(walk: Walk, call: exp.Expr, name: str, scope: Scope, env: Environment | None) -> QueryOutput | None:
    """Return the rows of a call whose class or name says where they come from, in any schema; else None."""
    if isinstance(call, nodes.Predict):
        return _predicted(walk, call, scope, env)
    if name in FULL_TEXT and walk.dialect in ("tsql", "fabric"):
        return _searched(walk, call)
    return None


def _is_foreign(walk: Walk, call: exp.Expr, name: str, schema: str) -> bool:
    """Return whether nothing tells what a call returns: a function of somebody's, or one that is given a table."""
    if isinstance(call, nodes.Anonymous) and not is_built_in(name, schema, walk.dialect):
        return True
    return any([isinstance(value, nodes.Table) for value in call.args.values()])  # noqa: C419


def _is_remote(walk: Walk, name: str, in_table: bool) -> bool:
    """Return whether another system makes the rows of a function, which may stand in Trino's ``TABLE(…)``."""
    if in_table and name.rpartition(".")[2] in ("query", "raw_query"):
        return True
    return name in REMOTE or (name in _OTHERS_ROWS and walk.dialect == "clickhouse")


def _call_of(walk: Walk, node: exp.Expr) -> tuple[exp.Expr, str]:
    """Return the call itself and the name of the function, its package or schema included."""
    if isinstance(node, nodes.Dot) and isinstance(node.expression, nodes.Func):
        return node.expression, f"{dotted(walk, node.this)}.{function_name(node.expression)}"
    return node, _series_name(walk, node) if isinstance(node, nodes.Func) else ""


def _definable_names(walk: Walk, called: str) -> list[str]:
    """Return the names under which a function may be defined that is called by a name."""
    if "." not in called and walk.dialect in DEFAULT_SCHEMAS:
        return [called, f"{DEFAULT_SCHEMAS[walk.dialect]}.{called}"]
    return [called]


def _first_of(lookup: Callable[[str], T | None], names: list[str]) -> T | None:
    for name in names:
        found = lookup(name)
        if found is not None:
            return found
    return None


def _listed_columns(walk: Walk, call: exp.Expr, deps: Deps) -> QueryOutput | None:
    """Return the columns of a function that lists them, or whose columns are always the same; else None."""
    if isinstance(call, (nodes.JSONTable, nodes.OpenJSON)):
        return _json_columns(walk, call, deps)
    output = QueryOutput()
    if isinstance(call, nodes.XMLTable) and call.args.get("columns"):
        for column in call.args["columns"]:
            output.add(walk.name(column.this), deps)
    elif isinstance(call, nodes.Explode) and walk.dialect == "snowflake":
        for name in FLATTEN_COLUMNS:
            output.add(name, deps if name in ("key", "value", "this") else ())
    elif isinstance(call, nodes.Posexplode):
        output.add("pos", ())
        output.add("col", deps)
    else:
        return None
    return output


def _json_columns(walk: Walk, call: exp.JSONTable | exp.OpenJSON, deps: Deps) -> QueryOutput:
    """The columns that JSON_TABLE or OPENJSON lists; without a list those of OPENJSON, "Return value"."""
    schema = call.args.get("schema") if isinstance(call, nodes.JSONTable) else None
    output = QueryOutput()
    for column in _with_nested((schema.expressions if schema else call.expressions) or ()):
        if isinstance(column, (nodes.JSONColumnDef, nodes.OpenJSONColumnDef)) and column.this is not None:
            output.add(walk.name(column.this), () if column.args.get("ordinality") else deps)
    if not output.names:
        for name in ("key", "value", "type"):
            output.add(name, deps)
    return output


def _returned_rows(
    walk: Walk, name: str, returned: Returned, node: exp.Expr, scope: Scope, env: Environment | None
) -> QueryOutput:
    """The rows that a block returns; what its arguments become is not followed: they may be in every column."""
    output = QueryOutput()
    for number, value in enumerate(returned.values):
        walk.rows.update(value.rows)
        walk.read(value.reads)
        if not number:
            output = value.output.copy()
            continue
        for position, deps in enumerate(value.output.deps):
            if position < len(output.deps):
                output.deps[position] = bounded((*output.deps[position], *deps))
            else:
                output.add(value.output.names[position], deps)
        output.open.extend(value.output.open)
    chain = walk.interner.prepend(name, 0)
    arguments: list[int] = []
    for item in node.args.get("expressions") or ():
        arguments.extend(collect(walk, item, scope, env, TRANSFORMATION, chain))
    for value in returned.values:
        if value.reason:
            walk.diagnose("opaque", f"what {name} returns is not known: it comes from {value.reason}", node)
    walk.refer(arguments, FILTER)
    output.deps = [bounded((*deps, *arguments)) for deps in output.deps]
    return _like_row(walk, output, returned.columns, returned.row)


def _like_row(walk: Walk, output: QueryOutput, columns: tuple[str, ...], row: str) -> QueryOutput:
    """Name the rows of a function as it declares them: ``RETURNS TABLE (a int)``, ``RETURNS SETOF t``."""
    if row and not columns:
        named = named_table(row, walk.dialect)
        name = walk.lookup.table_name(named) if named is not None else ""
        table = walk.lookup.table(name) if name else None
        columns = tuple(table.columns) if table is not None and table.complete else ()
    if not columns:
        return output
    if not output.open:
        return output.renamed(columns).first(len(columns))
    result = QueryOutput()  # the positions behind a * are not known
    every = possibly(passing(walk, output, exp.Star()))
    for column in columns:
        result.add(column, every)
    return result


def _searched(walk: Walk, node: exp.Expr) -> QueryOutput:
    """CONTAINSTABLE(t, columns, 'words'): how well rows of t match, and the key of each, whichever that is."""
    output = QueryOutput()
    items = node.args.get("expressions") or []
    if len(items) < 2 or not isinstance(items[0], nodes.Column):
        walk.diagnose("opaque", "a full-text search of what is no table", node)
        return output
    names = ("this", "table", "db")
    parts = {key: items[0].args.get(name) for key, name in zip(("this", "db", "catalog"), names, strict=True)}
    inner = Scope(None)
    add_source(walk, nodes.Table(**parts), inner, None)
    chain = walk.interner.prepend("rank", 0)
    searched = collect(walk, items[1], inner, None, TRANSFORMATION, chain)
    for source in inner.sources:
        if source.table is not None:
            output.add("key", (walk.interner.ref(source.table.id, HIDDEN) | OPAQUE,))
    output.add("rank", bounded(searched))
    return output


def _predicted(walk: Walk, node: exp.Predict, scope: Scope, env: Environment | None) -> QueryOutput:
    """ML.PREDICT(MODEL m, rows): the rows as they are, and columns that the model makes of them."""
    output = output_of(walk, node.expression, scope.parent, env).copy()
    made: list[int] = [dep for deps in output.deps for dep in deps]
    for star in output.open:
        made.extend(star.table.hidden(walk.interner))
    name = walk.lookup.table_name(node.this) if isinstance(node.this, nodes.Table) else ""
    if name:
        model = walk.lookup.table(name)
        walk.reads[model.id] = EVERYWHERE
        made.extend([dep for column in model.columns for dep in model.deps(column, walk.interner)])
        if not model.complete:
            made.extend(model.hidden(walk.interner))
    chain = walk.interner.prepend("predict", 0)
    output.open.append(
        OpenStar(
            FunctionRows("ml.predict", bounded(compose(dep, TRANSFORMATION, chain, walk.interner) for dep in made))
        )
    )
    return output


def _remote_rows(walk: Walk, name: str, node: exp.Expr) -> QueryOutput:
    """Rows that another server or a procedure puts together: opaque, but from somewhere."""
    where = node.expressions[0] if name in ("openquery", "exec", CALLER) and node.expressions else None
    text = f"{name}({where.name})" if where is not None and where.name else name
    found = (walk.interner.ref(file_name(text), HIDDEN) | OPAQUE,)
    walk.diagnose("opaque", f"the rows come from {text}: what it returns is not known", node, severity="info")
    output = QueryOutput()
    output.open.append(OpenStar(FunctionRows(text, found)))
    return output


def _series_name(walk: Walk, node: exp.Expr) -> str:
    if walk.dialect == "duckdb" and isinstance(node, nodes.GenerateSeries) and node.args.get("is_end_exclusive"):
        return "range"
    return function_name(node)


def _stack(walk: Walk, node: exp.Stack, scope: Scope, env: Environment | None) -> QueryOutput:
    """stack(n, v1, v2, …): rows of k = ceil(len / n) columns, filled row by row."""
    output = QueryOutput()
    items = node.expressions
    rows = int(node.this.name) if node.this is not None and node.this.name.isdigit() else 1
    width = -(-len(items) // max(rows, 1))
    chain = walk.interner.prepend("stack", 0)
    for i in range(width):
        cells = [dep for item in items[i::width] for dep in collect(walk, item, scope, env, TRANSFORMATION, chain)]
        output.add(f"col{i}", bounded(cells))
    return output


def _inline_table(
    walk: Walk, name: str, body: Inline, call: exp.Expr, scope: Scope, env: Environment | None
) -> QueryOutput:
    outer = bound_arguments(walk, body, call, scope, env)
    walk.enter_body(name)
    try:
        return _like_row(walk, output_of(walk, body.body, outer, None), body.columns, body.row)
    finally:
        walk.inlining.pop()


def _with_nested(columns: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The columns of a JSON_TABLE, those of its NESTED PATHs included."""
    found: list[exp.Expr] = []
    for column in columns:
        found.append(column)
        nested = column.args.get("nested_schema")
        if nested is not None:
            found.extend(_with_nested(nested.expressions))
    return found


def _default_column(walk: Walk, name: str) -> str:
    if name == "range" and walk.dialect in ("spark", "databricks"):
        return "id"
    return {"explode": "col", "explode_outer": "col", "generate_series": "generate_series", "unnest": "unnest"}.get(
        name, name.rsplit(".", 1)[-1]
    )
