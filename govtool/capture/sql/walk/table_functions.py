"""Rows that are made in place: UNNEST, set-returning functions, VALUES."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.columns import ROW_KINDS
from govtool.capture.sql.walk.dependencies import (
    CHAIN_MASK,
    IDENTITY,
    KIND_MASK,
    OPAQUE,
    REF_SHIFT,
    TRANSFORMATION,
    Deps,
    bounded,
    compose,
    possibly,
)
from govtool.capture.sql.walk.functions import function_name, is_built_in
from govtool.capture.sql.walk.relation import (
    CALLER,
    ArrayElements,
    FunctionRows,
    OpenStar,
    QueryOutput,
    Source,
    TableInfo,
    file_name,
    named_table,
)
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.shapes import ShapeWalk
from govtool.capture.sql.walk.state import EVERYWHERE, Inline, Returned, StatementWalkState
from govtool.model import HIDDEN

REMOTE: Final = frozenset({"openquery", "openrowset", "opendatasource", "exec", CALLER})
"""Remote sources of rows; ``exec`` is INSERT … EXEC, ``CALLER`` what fills a parameter."""

DEFAULT_SCHEMAS: Final = {"tsql": "dbo", "fabric": "dbo", "postgres": "public", "redshift": "public"}
"""The schema of a function that is called without one."""

FULL_TEXT: Final = frozenset({"containstable", "freetexttable"})
"""T-SQL's full-text searches of a table."""

FLATTEN_COLUMNS: Final = ("seq", "key", "path", "index", "value", "this")
"""Output of Snowflake's FLATTEN, in order."""


class TableFunctionWalk(ShapeWalk):
    """Walks FROM items that are made in place."""

    def _add_unnest(
        self, node: exp.Unnest, scope: Scope, env: Environment | None, outer: exp.Expr | None = None
    ) -> None:
        """UNNEST(a, b): a column an array; the elements of a column are ``column[]``."""
        alias, columns = self._alias(outer or node)
        if outer is not None and not columns:
            columns = self._alias(node)[1]
        offset = node.args.get("offset")
        if len(node.expressions) == 1 and len(columns) <= 1:
            shape = self.without_effects(lambda: self.shape(node.expressions[0], scope, env))
            if shape is not None and shape.names:
                self.dependencies(node.expressions[0], scope, env)  # its subqueries reference columns
                self._place(
                    Source(alias or (columns[0] if columns else ""), output=_with_offset(shape.copy(), offset, self)),
                    outer or node,
                    scope,
                    env,
                )
                return
        output = QueryOutput()
        elements: list[Deps] = []
        for item in node.expressions:
            deps = self._elements(item, scope, env)
            elements.append(deps)
            whole = tuple(
                compose(dep, TRANSFORMATION, self.interner.prepend("unnest", 0), self.interner) for dep in deps
            )
            output.add(columns[len(output.names)] if len(output.names) < len(columns) else "", whole)
        for name in columns[len(output.names) :]:  # an array of structs: one array, several columns
            output.add(name, bounded(dep for deps in output.deps for dep in deps))
        output = _with_offset(output, offset, self)
        if not alias and len(columns) == 1 and len(node.expressions) == 1:
            alias = columns[0]  # BigQuery: the alias is the element
        elif alias and output.names[:1] == [""]:
            output.names[0] = alias
        source = Source(alias, output=output)
        self._place(source, outer or node, scope, env)
        if node.expressions and not _holds_scalars(node.expressions[0]):
            self._open_elements(source, elements[0])

    def _elements(self, item: exp.Expr, scope: Scope, env: Environment | None) -> Deps:
        deps = self.dependencies(item, scope, env)
        return bounded(self.interner.field(dep, "[]") if dep & KIND_MASK == IDENTITY else dep for dep in deps)

    def _open_elements(self, source: Source, deps: Deps) -> None:
        """Let ``alias.field`` of an unnested array of structs mean the field below the elements."""
        if source.output is None:
            return
        if len(deps) == 1 and not deps[0] & (KIND_MASK | CHAIN_MASK):
            ref = self.interner.refs[deps[0] >> REF_SHIFT]
            type_ = self.lookup.table(ref.dataset).columns.get(ref.path.removesuffix("[]"))
            if type_ and _SCALAR_ARRAY.fullmatch(type_):
                return
            hidden: TableInfo = ArrayElements(ref.dataset, ref.path)
        else:
            hidden = FunctionRows("unnest", deps)
        source.output.open.append(OpenStar(hidden))
        source.refresh()

    def _function_output(self, node: exp.Expr, scope: Scope, env: Environment | None, schema: str = "") -> QueryOutput:
        """The output of a set-returning function: every column depends on all arguments."""
        output = QueryOutput()
        whole = node
        name = self._series_name(node) if isinstance(node, nodes.Func) else ""
        if isinstance(node, nodes.Dot) and isinstance(node.expression, nodes.Func):
            name = f"{self._dotted(node.this)}.{function_name(node.expression)}"
            node = node.expression
        if name in REMOTE:
            return self._remote_rows(name, node)
        called = f"{schema}.{name}" if schema else name
        body = self.lookup.function(called) if name else None
        if body is None and name and "." not in called and self.dialect in DEFAULT_SCHEMAS:
            body = self.lookup.function(f"{DEFAULT_SCHEMAS[self.dialect]}.{called}")
        if body is not None and body.is_table and name not in self.inlining:
            return self._inline_table(name, body, node, scope, env)
        if isinstance(node, nodes.Predict):
            return self._predicted(node, scope, env)
        if name in FULL_TEXT and self.dialect in ("tsql", "fabric"):
            return self._searched(node)
        returned = self.lookup.returned(called) if name and body is None else None
        if returned is None and body is None and name and "." not in called and self.dialect in DEFAULT_SCHEMAS:
            returned = self.lookup.returned(f"{DEFAULT_SCHEMAS[self.dialect]}.{called}")
        if returned is not None:
            return self._returned_rows(name, returned, node, scope, env)
        deps = bounded(self.collect(whole, scope, env, IDENTITY, 0))
        if isinstance(node, (nodes.JSONTable, nodes.OpenJSON)):
            definitions = (
                node.args["schema"].expressions
                if isinstance(node, nodes.JSONTable) and node.args.get("schema")
                else node.expressions
            )
            for column in _with_nested(definitions or ()):
                if isinstance(column, (nodes.JSONColumnDef, nodes.OpenJSONColumnDef)) and column.this is not None:
                    output.add(self.name(column.this), () if column.args.get("ordinality") else deps)
            if not output.names:
                for fixed in ("key", "value", "type"):
                    output.add(fixed, deps)
            return output
        if isinstance(node, nodes.XMLTable) and node.args.get("columns"):
            for column in node.args["columns"]:
                output.add(self.name(column.this), deps)
            return output
        if isinstance(node, nodes.Explode) and self.dialect == "snowflake":
            for column_name in FLATTEN_COLUMNS:
                output.add(column_name, deps if column_name in ("key", "value", "this") else ())
            return output
        if isinstance(node, (nodes.Posexplode,)):
            output.add("pos", ())
            output.add("col", deps)
            return output
        if isinstance(node, nodes.Stack):
            return self._stack(node, scope, env)
        spark_range = name == "range" and self.dialect in ("spark", "databricks")
        if body is None and isinstance(node, nodes.Anonymous) and not is_built_in(name, schema, self.dialect):
            self.diagnose("opaque", f"the rows come from {called}(…): what it returns is not known", whole)
            deps = (*deps, self.interner.ref(file_name(f"{called}(…)"), HIDDEN) | OPAQUE)
        output.add("id" if spark_range else _default_column(name), deps)
        output.open.append(OpenStar(FunctionRows(name, deps)))
        return output

    def _returned_rows(
        self, name: str, returned: Returned, node: exp.Expr, scope: Scope, env: Environment | None
    ) -> QueryOutput:
        """The rows that a block returns; what its arguments become is not followed: they may be in every column."""
        output = QueryOutput()
        for number, value in enumerate(returned.values):
            self.rows.update(value.rows)
            self.read(value.reads)
            if not number:
                output = value.output.copy()
                continue
            for position, deps in enumerate(value.output.deps):
                if position < len(output.deps):
                    output.deps[position] = bounded((*output.deps[position], *deps))
                else:
                    output.add(value.output.names[position], deps)
            output.open.extend(value.output.open)
        chain = self.interner.prepend(name, 0)
        arguments: list[int] = []
        for item in node.args.get("expressions") or ():
            arguments.extend(self.collect(item, scope, env, TRANSFORMATION, chain))
        for value in returned.values:
            if value.reason:
                self.diagnose("opaque", f"what {name} returns is not known: it comes from {value.reason}", node)
        self.refer(arguments, ROW_KINDS["filter"])
        output.deps = [bounded((*deps, *arguments)) for deps in output.deps]
        return self._like_row(output, returned.columns, returned.row)

    def _like_row(self, output: QueryOutput, columns: tuple[str, ...], row: str) -> QueryOutput:
        """Name the rows of a function as it says: ``RETURNS TABLE (a int)``, ``RETURNS SETOF t``."""
        if row and not columns:
            named = named_table(row, self.dialect)
            name = self.lookup.table_name(named) if named is not None else ""
            table = self.lookup.table(name) if name else None
            columns = tuple(table.columns) if table is not None and table.complete else ()
        if not columns:
            return output
        if not output.open:
            return output.renamed(columns).first(len(columns))
        result = QueryOutput()  # the positions behind a * are not known
        every = possibly(self.passing(output, exp.Star()))
        for column in columns:
            result.add(column, every)
        return result

    def _searched(self, node: exp.Expr) -> QueryOutput:
        """CONTAINSTABLE(t, columns, 'words'): how well rows of t match, and the key of each, whichever that is."""
        output = QueryOutput()
        items = node.args.get("expressions") or []
        if len(items) < 2 or not isinstance(items[0], nodes.Column):
            self.diagnose("opaque", "a full-text search of what is no table", node)
            return output
        names = ("this", "table", "db")
        parts = {key: items[0].args.get(name) for key, name in zip(("this", "db", "catalog"), names, strict=True)}
        inner = Scope(None)
        self.add_source(nodes.Table(**parts), inner, None)
        chain = self.interner.prepend("rank", 0)
        searched = self.collect(items[1], inner, None, TRANSFORMATION, chain)
        for source in inner.sources:
            if source.table is not None:
                output.add("key", (self.interner.ref(source.table.id, HIDDEN) | OPAQUE,))
        output.add("rank", bounded(searched))
        return output

    def _predicted(self, node: exp.Predict, scope: Scope, env: Environment | None) -> QueryOutput:
        """ML.PREDICT(MODEL m, rows): the rows as they are, and columns that the model makes of them."""
        output = self.query(node.expression, scope.parent, env).copy()
        made: list[int] = [dep for deps in output.deps for dep in deps]
        for star in output.open:
            made.extend(star.table.hidden(self.interner))
        name = self.lookup.table_name(node.this) if isinstance(node.this, nodes.Table) else ""
        if name:
            model = self.lookup.table(name)
            self.reads[model.id] = EVERYWHERE
            made.extend([dep for column in model.columns for dep in model.deps(column, self.interner)])
            if not model.complete:
                made.extend(model.hidden(self.interner))
        chain = self.interner.prepend("predict", 0)
        output.open.append(
            OpenStar(
                FunctionRows("ml.predict", bounded(compose(dep, TRANSFORMATION, chain, self.interner) for dep in made))
            )
        )
        return output

    def _remote_rows(self, name: str, node: exp.Expr) -> QueryOutput:
        """Rows that another server or a procedure puts together: opaque, but from somewhere."""
        where = node.expressions[0] if name in ("openquery", "exec", CALLER) and node.expressions else None
        text = f"{name}({where.name})" if where is not None and where.name else name
        found = (self.interner.ref(file_name(text), HIDDEN) | OPAQUE,)
        self.diagnose("opaque", f"the rows come from {text}: what it returns is not known", node, severity="info")
        output = QueryOutput()
        output.open.append(OpenStar(FunctionRows(text, found)))
        return output

    def _series_name(self, node: exp.Expr) -> str:
        if self.dialect == "duckdb" and isinstance(node, nodes.GenerateSeries) and node.args.get("is_end_exclusive"):
            return "range"
        return function_name(node)

    def _stack(self, node: exp.Stack, scope: Scope, env: Environment | None) -> QueryOutput:
        """stack(n, v1, v2, …): rows of k = ceil(len / n) columns, filled row by row."""
        output = QueryOutput()
        items = node.expressions
        rows = int(node.this.name) if node.this is not None and node.this.name.isdigit() else 1
        width = -(-len(items) // max(rows, 1))
        chain = self.interner.prepend("stack", 0)
        for i in range(width):
            cells = [dep for item in items[i::width] for dep in self.collect(item, scope, env, TRANSFORMATION, chain)]
            output.add(f"col{i}", bounded(cells))
        return output

    def _inline_table(
        self, name: str, body: Inline, call: exp.Expr, scope: Scope, env: Environment | None
    ) -> QueryOutput:
        outer = self.bound_arguments(body, call, scope, env)
        self.inlining.append(name)
        try:
            return self._like_row(self.query(body.body, outer, None), body.columns, body.row)
        finally:
            self.inlining.pop()

    def values(self, node: exp.Values, scope: Scope | None, env: Environment | None) -> QueryOutput:
        """The output of a VALUES list: by position over its rows."""
        record = self._record_row(node) if self.variables and len(node.expressions) == 1 else None
        if record is not None:
            return record
        output = QueryOutput()
        inner = scope if scope is not None else Scope(None)
        cells: list[list[int]] = []
        for row in node.expressions:
            items = row.expressions if isinstance(row, nodes.Tuple) else [row]
            while len(cells) < len(items):
                cells.append([])
            for i, item in enumerate(items):
                if not isinstance(item, nodes.Literal):
                    cells[i].extend(self.dependencies(item, inner, env))
        for i, deps in enumerate(cells):
            output.add(
                f"column{i + 1}"
                if self.dialect == "postgres"
                else f"col{i + 1}"
                if self.dialect != "duckdb"
                else f"col{i}",
                bounded(deps),
            )
        return output

    def _record_row(self, node: exp.Values) -> QueryOutput | None:
        """Oracle's ``VALUES r``, PostgreSQL's ``VALUES (r.*)``: all that a record holds."""
        row = node.expressions[0]
        items = row.expressions if isinstance(row, nodes.Tuple) else [row]
        item = items[0] if len(items) == 1 else None
        if not isinstance(item, nodes.Column):
            return None
        if isinstance(item.this, nodes.Star):
            return self.variable_rows(self.name(item.args["table"]), item) if item.args.get("table") else None
        if self.dialect != "oracle" or item.args.get("table"):
            return None
        rows = self.variable_rows(self.name(item.this), item)
        return rows if rows is not None and (rows.open or len(rows.names) > 1) else None

    # ---- implemented by SourceWalk -----------------------------------------------------------------

    def _alias(self, node: exp.Expr) -> tuple[str, list[str]]:
        raise NotImplementedError

    def add_source(self, node: exp.Expr, scope: Scope, env: Environment | None) -> None:
        """Add one FROM item, with the joins and pivots that hang on it."""
        raise NotImplementedError

    def _place(self, source: Source, node: exp.Expr, scope: Scope, env: Environment | None) -> None:
        raise NotImplementedError


_SCALAR: Final = (
    r"(?:(?:big|small|tiny)?int(?:eger)?\d*|int64|text|string|(?:var|n|nvar|bp)?char|numeric|decimal|float\d*|double"
    r"(?: precision)?|real|bool(?:ean)?|date|time\w*|datetime|uuid|bytes|bytea)(?:\([\d, ]*\))?"
)
_SCALAR_ARRAY: Final = re.compile(rf"(?:{_SCALAR}\[\d*\]|array\s*[<(]\s*{_SCALAR}\s*[>)])", re.IGNORECASE)
"""The type of an array whose elements have no fields."""

_SCALAR_ARRAYS: Final = (
    nodes.GenerateSeries,
    nodes.GenerateDateArray,
    nodes.GenerateTimestampArray,
    nodes.Split,
    nodes.StringToArray,
)


def _with_nested(columns: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The columns of a JSON_TABLE, those of its NESTED PATHs included."""
    found: list[exp.Expr] = []
    for column in columns:
        found.append(column)
        nested = column.args.get("nested_schema")
        if nested is not None:
            found.extend(_with_nested(nested.expressions))
    return found


def _holds_scalars(item: exp.Expr) -> bool:
    """Return whether the elements of an array that is made in place are certain to have no fields."""
    if isinstance(item, nodes.Array):
        return bool(item.expressions) and all(
            isinstance(value, (nodes.Literal, nodes.Neg)) for value in item.expressions
        )
    return isinstance(item, _SCALAR_ARRAYS)


def _with_offset(output: QueryOutput, offset: object, walk: StatementWalkState) -> QueryOutput:
    """Add the column of WITH OFFSET or WITH ORDINALITY: a position, which no column contributes to."""
    if isinstance(offset, nodes.Identifier):
        output.add(walk.name(offset), ())
    elif offset:
        output.add("offset" if walk.dialect == "bigquery" else "ordinality", ())
    return output


def _default_column(name: str) -> str:
    return {"explode": "col", "explode_outer": "col", "generate_series": "generate_series", "unnest": "unnest"}.get(
        name, name.rsplit(".", 1)[-1]
    )
