"""CREATE TABLE and VIEW in all their forms: with columns, from a query, like or from another table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import FILTER, TRANSFORMATION, Deps, compose
from govtool.capture.sql.walk.expressions.expression import dependencies
from govtool.capture.sql.walk.expressions.naming import output_name
from govtool.capture.sql.walk.expressions.rows import star_of
from govtool.capture.sql.walk.expressions.stars import starred_columns
from govtool.capture.sql.walk.queries.common_tables import environment
from govtool.capture.sql.walk.queries.sources import add_source
from govtool.capture.sql.walk.query import output_of
from govtool.capture.sql.walk.relation import OpenStar, QueryOutput, Source, TableInfo, file_name, starred
from govtool.capture.sql.walk.scope import Scope
from govtool.capture.sql.walk.state import EVERYWHERE
from govtool.capture.sql.walk.writes import Write
from govtool.capture.sql.walk.writing import constraints
from govtool.capture.sql.walk.writing.recording import Statement, column_list, target_name, write_to

_GRAPH: Final = frozenset({"node", "edge", "filetable"})
"""Sources of T-SQL's CREATE TABLE AS beside a query: a graph, or files."""

MATCHED_BY_NAME: Final = frozenset({"mysql", "singlestore", "doris"})
"""Dialects in which CREATE TABLE (…) SELECT puts the query's columns beside those that are listed.

MySQL 8.4, "CREATE TABLE … SELECT Statement": columns of the SELECT are appended to the right, and a listed column of
the same name gives its type.
"""


class _Declared(NamedTuple):
    """What a CREATE declares of its relation, apart from where the columns come from."""

    tree: exp.Create
    is_table: bool
    kind: str
    """As of ``Derivation.target_kind``."""
    properties: list[exp.Expr]
    names: list[str]
    types: list[str | None]


def _create(walk: Walk, tree: exp.Create) -> None:
    """CREATE TABLE and VIEW, by where the columns come from."""
    kind = str(tree.args.get("kind") or "").upper()
    if kind in ("MODEL", "INDEX"):
        (_create_model if kind == "MODEL" else constraints.index)(walk, tree)
        return
    if kind not in ("TABLE", "VIEW", "FLOW") or isinstance(tree.this, nodes.UserDefinedFunction):
        return
    properties = tree.args["properties"].expressions if tree.args.get("properties") else []
    target_kind = _target_kind(kind, properties)
    named = tree.this.this if isinstance(tree.this, nodes.Schema) else tree.this
    if isinstance(named, nodes.Table) and walk.lookup.table_name(named).startswith("temp."):
        target_kind = "temporary"
    names, types = column_list(walk, tree.this)
    query = tree.args.get("expression")
    if walk.dialect in ("tsql", "fabric") and isinstance(query, nodes.Table) and walk.name(query.this) in _GRAPH:
        # AS NODE and AS EDGE are no queries; a table of edges has the ends as columns.
        if walk.name(query.this) == "edge":
            names, types = ['"$from_id"', '"$to_id"', *names], [None, None, *types]
        query = None
    declared = _Declared(tree, kind == "TABLE", target_kind, properties, names, types)
    _note_engine(walk, properties)
    clone = tree.args.get("clone")
    like = next((p for p in _likes(tree.this, properties)), None)
    if isinstance(query, (nodes.Query, nodes.Table, nodes.Pivot, nodes.Values)):
        _create_as(walk, declared, query)
    elif clone is not None and isinstance(clone.this, nodes.Table):
        _create_clone(walk, declared, clone.this)
    elif like is not None:
        _create_like(walk, declared, like)
    else:
        _create_listed(walk, declared)


UNSEEN: Final = "what it reads and writes is not known"


def _note_engine(walk: Walk, properties: list[exp.Expr]) -> None:
    """Record that a table has no rows of its own but those of others, which its engine finds by its arguments."""
    for item in properties:
        engine = item.this.name.lower() if isinstance(item, nodes.EngineProperty) and item.this is not None else ""
        if engine in _OTHERS_ROWS:
            walk.diagnose("opaque", f"the engine {engine} reads other tables: {UNSEEN}")
        elif isinstance(item, nodes.ExecuteAsProperty):
            walk.diagnose("opaque", f"the rows of a prepared statement: {UNSEEN}")
        elif isinstance(item, nodes.UsingTemplateProperty):
            walk.diagnose("opaque", f"the columns that a query returns: {UNSEEN}")


def _create_as(walk: Walk, declared: _Declared, query: exp.Expr) -> None:
    """A relation of what a query puts out."""
    tree, target_kind = declared.tree, declared.kind
    output = output_of(walk, query, None, environment(walk, tree, None, None))
    if walk.dialect == "duckdb":
        output = output.unique()
    output = _with_list(walk, output, declared)
    kind = "create_table_as" if target_kind in ("table", "temporary") and declared.is_table else "create_view"
    if target_kind == "materialized_view":
        kind = "create_materialized_view"
    write = write_to(walk, tree.this, output, kind, "replace", target_kind, query)
    location = location_of(declared.properties)
    if location and write.target:  # its files hold the same
        written = write.of(location)
        written.kind, written.target_kind = "insert", "file"
        walk.writes.append(written)
    into = next((p.this for p in declared.properties if isinstance(p, nodes.ToTableProperty)), None)
    if into is not None:  # ClickHouse: the view is a trigger that fills another table
        write.target = target_name(walk, into)
        write.mode, write.defines, write.kind = "append", False, "insert"


def _with_list(walk: Walk, output: QueryOutput, declared: _Declared) -> QueryOutput:
    """The columns of a query under the column list of the relation, if it has one."""
    names, types = declared.names, declared.types
    if not names:
        return output
    if walk.dialect in MATCHED_BY_NAME and declared.is_table:
        return _beside(output, names, types)
    is_view = str(declared.tree.args["kind"]).upper() == "VIEW"
    if is_view and not output.open and len(names) != len(output.names):
        walk.diagnose("arity", f"{len(names)} names for {len(output.names)} columns", declared.tree.this)
    output = walk.relabelled(output, names)
    output.types.update({i: t for i, t in enumerate(types) if t})
    return output


def _create_clone(walk: Walk, declared: _Declared, source: exp.Table) -> None:
    inner = Scope(None)
    add_source(walk, source, inner, None)
    write_to(walk, declared.tree.this, star_of(walk, inner), "create_table_as", "replace", declared.kind, None)


def _create_like(walk: Walk, declared: _Declared, like: exp.Table) -> None:
    """A table with the columns of another one, and with its own behind them."""
    source = walk.lookup.table(walk.lookup.table_name(like))
    names, types = [*source.columns, *declared.names], [*source.columns.values(), *declared.types]
    output = _declared_columns(names, types)
    write = write_to(walk, declared.tree.this, output, "create_table", "declare", declared.kind, None)
    _parents(walk, write, declared.properties)


def _create_listed(walk: Walk, declared: _Declared) -> None:
    """A table of the columns that are listed; those by which it is partitioned may be listed apart."""
    table, properties = declared.tree.this, declared.properties
    output = _declared_columns(declared.names, declared.types)
    for partition in (p for p in properties if isinstance(p, nodes.PartitionedByProperty)):
        for column in partition.this.expressions if isinstance(partition.this, nodes.Schema) else ():
            if isinstance(column, nodes.ColumnDef) and walk.name(column.this) not in output.index():
                output.add(walk.name(column.this), ())
    mode = "replace" if _generated(walk, table, output) else "declare"
    own = TableInfo(target_name(walk, table), dict.fromkeys(output.names), complete=True)
    items = [item for item in table.expressions if _is_constrained(item)] if isinstance(table, nodes.Schema) else []
    constraints.note_checks(walk, own, items)
    write = write_to(walk, table, output, "create_table", mode, declared.kind, None, defines=bool(output.names))
    write.reads.pop(write.target, None)
    _parents(walk, write, properties)
    location = location_of(properties)
    if location:
        _located(walk, write, location)
    if write.target and isinstance(table, nodes.Schema):
        constraints.need_constraints(walk, own, declared.kind, items)
        rules = [rule for item in items for rule in item.find_all(nodes.MaskingPolicyColumnConstraint)]
        rules += [item for item in properties if isinstance(item, nodes.RowAccessProperty)]
        constraints.need_rules(walk, own, declared.kind, rules)


def _is_constrained(item: exp.Expr) -> bool:
    """Return whether an item of a list of columns may hold a constraint: mostly it is a name and a type."""
    return type(item) is not nodes.ColumnDef or bool(item.args.get("constraints"))


def location_of(properties: Iterable[exp.Expr]) -> str:
    """The files that a table lies in by its ``LOCATION``, or its option ``path``; empty where none are named."""
    for item in properties:
        if isinstance(item, nodes.LocationProperty) and isinstance(item.this, nodes.Literal):
            return file_name(item.this.name)
        for option in item.expressions if isinstance(item, nodes.OptionsProperty) else ():
            value = option.args.get("value")
            if option.name.lower() == "path" and isinstance(value, nodes.Literal):
                return file_name(value.name)
    return ""


def _located(walk: Walk, write: Write, file: str) -> None:
    """A table over files: its columns are theirs by name, or by position where it is known that the names differ."""
    write.dataset_reads = (file,)
    known = walk.lookup.table(file)
    columns = list(known.columns) if known.complete else []
    output = write.output
    by_name = not columns or set(output.names) <= set(columns)
    for position, name in enumerate(output.names):
        column = name if by_name else columns[position] if position < len(columns) else ""
        if column and not output.deps[position]:
            output.deps[position] = known.deps(column, walk.interner)


def _parents(walk: Walk, write: Write, properties: Iterable[exp.Expr]) -> None:
    """Let the rows of a table that is made as a part of others be rows of these."""
    columns = {name: write.output.types.get(i) for i, name in enumerate(write.output.names)}
    table = TableInfo(write.target, columns, complete=bool(columns))
    for item in properties:
        for parent in parent_tables(item):
            if name := walk.lookup.table_name(parent):
                part_of(walk, table, name)


def parent_tables(item: exp.Expr) -> list[exp.Table]:
    """The tables that a table is a part of by one of its properties: ``PARTITION OF p``, ``INHERITS (a, b)``."""
    named = item.expressions if isinstance(item, nodes.InheritsProperty) else []
    if isinstance(item, nodes.PartitionedOfProperty):
        named = [item.this]
    return [parent for parent in named if isinstance(parent, nodes.Table)]


def part_of(walk: Walk, table: TableInfo, parent: str) -> None:
    """The rows of a partition, or of a table that inherits, are rows of its parent."""
    known = walk.lookup.table(parent) if parent != table.id else table
    names = [name for name in table.columns if name in known.columns or not known.complete]
    if not table.complete:
        names = list(dict.fromkeys([*names, *known.columns, *sorted({*table.used.listed(), *known.used.listed()})]))
    output = QueryOutput()
    for name in names:
        output.add(name, starred(table.deps(name, walk.interner)))
    if not table.complete and not known.complete:
        output.open.append(OpenStar(table))
    write = Write(parent, "partition", "append", "table", output, defines=False)
    write.reads = {table.id: EVERYWHERE}
    walk.writes.append(write)
    keys = [table.deps(name, walk.interner) for name in walk.lookup.partition_key(parent)]
    if keys:  # what is in them decides in which partition a row is
        rows, walk.rows = walk.rows, {}
        walk.refer([dep for deps in keys for dep in deps], FILTER)
        decided = Write(table.id, "partition_key", "declare", defines=False)
        decided.rows, walk.rows = walk.rows, rows
        walk.writes.append(decided)


def _create_model(walk: Walk, tree: exp.Create) -> None:
    """CREATE MODEL m … AS SELECT …: a model is made of the columns that it was trained on."""
    query = tree.args.get("expression")
    if not isinstance(query, nodes.Query):
        return
    env = environment(walk, tree, None, None)
    output = output_of(walk, query, None, env)
    properties = tree.args["properties"].expressions if tree.args.get("properties") else []
    transform = next((p for p in properties if isinstance(p, nodes.TransformModelProperty)), None)
    if transform is not None:
        scope = Scope(None)
        scope.add(Source("", output=output))
        made = QueryOutput()
        for item in transform.expressions:
            if isinstance(item, nodes.Star):
                star = starred_columns(walk, item, scope, env)
                for name, deps in zip(star.names, star.deps, strict=True):
                    made.add(name, deps)
                made.open.extend(star.open)
            else:
                value = item.this if isinstance(item, nodes.Alias) else item
                made.add(output_name(walk, item), dependencies(walk, value, scope, env))
        output = made
    chain = walk.interner.prepend("create_model", 0)
    trained = output.copy()
    trained.deps = [tuple([compose(dep, TRANSFORMATION, chain, walk.interner) for dep in deps]) for deps in output.deps]
    write_to(walk, tree.this, trained, "create_model", "replace", "table", query)


def _generated(walk: Walk, node: exp.Expr, output: QueryOutput) -> bool:
    """Give generated columns the dependencies of their expressions, over the table's own columns; and columns whose
    default is a call, those of the function.
    """
    found: dict[str, Deps] = {}
    for item in node.expressions if isinstance(node, nodes.Schema) else ():
        if type(item) is not nodes.ColumnDef or not _is_constrained(item):
            continue
        value = computed_value(item)
        if value is not None:
            table = TableInfo(target_name(walk, node), dict.fromkeys(output.names), complete=True)
            found[walk.name(item.this)] = over_columns(walk, table, value)
        else:
            deps = default_of(walk, item) or _default_over_columns(walk, node, item, output)
            if deps:
                found[walk.name(item.this)] = deps
    for name, deps in found.items():
        output.deps[output.index()[name]] = deps
    return bool(found)


def over_columns(walk: Walk, table: TableInfo, value: exp.Expr) -> Deps:
    """The dependencies of the expression of a generated column, over the columns of its table."""
    scope = Scope(None)
    scope.add(Source("", table=table))
    return dependencies(walk, value, scope, None)


def default_of(walk: Walk, column: exp.ColumnDef) -> Deps:
    """The dependencies of a column's default, which may be a call of a function that reads tables."""
    for constraint in column.args.get("constraints") or ():
        kind = constraint.args.get("kind")
        if isinstance(kind, nodes.DefaultColumnConstraint):
            return call_deps(walk, kind.this)
    return ()


def _default_over_columns(walk: Walk, node: exp.Expr, column: exp.ColumnDef, output: QueryOutput) -> Deps:
    """The dependencies of a default on other columns of the row, which MySQL and ClickHouse allow."""
    for constraint in column.args.get("constraints") or ():
        kind = constraint.args.get("kind")
        if isinstance(kind, nodes.DefaultColumnConstraint) and isinstance(kind.this, nodes.Expr):
            named = {walk.name(one.this) for one in kind.this.find_all(nodes.Column)}
            if named and named.issubset(output.names):
                table = TableInfo(target_name(walk, node), dict.fromkeys(output.names), complete=True)
                return over_columns(walk, table, kind.this)
    return ()


def call_deps(walk: Walk, value: object) -> Deps:
    """The dependencies of a default that holds a call; of any other it has none."""
    if isinstance(value, nodes.Expr) and value.find(nodes.Anonymous) is not None:
        return dependencies(walk, value, Scope(None), None)
    return ()


def computed_value(column: exp.ColumnDef) -> exp.Expr | None:
    """Return the expression of a generated column; None of any other."""
    for constraint in column.args.get("constraints") or ():
        kind = constraint.args.get("kind")  # .kind raises where the parser put what it does not expect
        if isinstance(kind, nodes.ComputedColumnConstraint):
            value: exp.Expr = kind.this
            return value
        if isinstance(kind, nodes.GeneratedAsIdentityColumnConstraint):  # GENERATED ALWAYS AS (a + 1), without STORED
            computed: exp.Expr | None = kind.args.get("expression")
            if computed is not None:
                return computed
    return None


def _likes(node: exp.Expr, properties: Iterable[exp.Expr]) -> Iterable[exp.Table]:
    inside = node.expressions if isinstance(node, nodes.Schema) else []
    for item in (*inside, *properties):
        if type(item) is nodes.ColumnDef:
            continue
        if isinstance(item, (nodes.LikeProperty, nodes.PartitionedOfProperty)) and isinstance(item.this, nodes.Table):
            yield item.this
        elif isinstance(item, nodes.InheritsProperty):
            yield from (t for t in item.expressions if isinstance(t, nodes.Table))


def _cache(walk: Walk, tree: exp.Cache) -> None:
    query = tree.args.get("expression")
    if isinstance(query, nodes.Query):
        write_to(walk, tree.this, output_of(walk, query, None, None), "create_view", "replace", "temporary", query)


def _target_kind(kind: str, properties: list[exp.Expr]) -> str:
    if any(isinstance(p, (nodes.TemporaryProperty, nodes.VolatileProperty)) for p in properties):
        return "temporary"
    if kind == "VIEW":
        return "materialized_view" if any(isinstance(p, nodes.MaterializedProperty) for p in properties) else "view"
    return "table"


def _beside(output: QueryOutput, names: list[str], types: list[str | None]) -> QueryOutput:
    """Columns that are listed, and behind them those of a query; the same name means the same column."""
    known = output.index()
    result = QueryOutput()
    for name, type_ in zip(names, types, strict=True):
        if name not in known:
            result.add(name, ())
            if type_:
                result.types[len(result.names) - 1] = type_
    listed = dict(zip(names, types, strict=True))
    for position, (name, deps) in enumerate(zip(output.names, output.deps, strict=True)):
        result.add(name, deps)
        found = listed.get(name) or output.types.get(position)
        if found:
            result.types[len(result.names) - 1] = found
        if position in output.fields:
            result.fields[len(result.names) - 1] = output.fields[position]
    result.open = list(output.open)
    return result


def _declared_columns(names: Iterable[str], types: Iterable[str | None]) -> QueryOutput:
    """Return an output of columns that nothing flows into."""
    output = QueryOutput()
    for position, (name, type_) in enumerate(zip(names, types, strict=True)):
        output.add(name, ())
        if type_:
            output.types[position] = type_
    return output


_OTHERS_ROWS: Final = frozenset(
    {"merge", "distributed", "federated", "mysql", "postgresql", "materializedmysql", "materializedpostgresql"}
)
"""Engines of ClickHouse and MySQL whose tables show the rows of others."""

STATEMENTS: Final[dict[type, Statement]] = {nodes.Create: _create, nodes.Cache: _cache}
