"""FROM items: tables, subqueries, joins, laterals, set-returning functions, pivots."""

from __future__ import annotations

from sqlglot import exp

from govtool.capture.sql.columns import ROW_KINDS
from govtool.capture.sql.dependencies import CHAIN_MASK, CONDITIONAL, IDENTITY, KIND_MASK, REF_SHIFT, TRANSFORMATION, Deps, bounded, compose
from govtool.capture.sql.functions import function_name
from govtool.capture.sql.relation import ArrayElements, FunctionRows, OpenStar, Output, Source, TableInfo, starred
from govtool.capture.sql.scope import CommonTable, Environment, Scope
from govtool.capture.sql.shapes import ShapeWalk
from govtool.capture.sql.walk import Inline, Walk

JOIN = ROW_KINDS["join"]

FLATTEN_COLUMNS = ("seq", "key", "path", "index", "value", "this")
"""Output of Snowflake's FLATTEN, in order."""


class SourceWalk(ShapeWalk):
    """Adds FROM items to scopes."""

    def add_sources(self, select: exp.Expr, scope: Scope, env: Environment | None) -> None:
        """Add FROM, LATERAL VIEWs and JOINs of a SELECT (or UPDATE, DELETE, MERGE) to its scope."""
        from_ = select.args.get("from_")
        if from_ is not None:
            self.add_source(from_.this, scope, env)
        for lateral in select.args.get("laterals") or ():
            self.add_source(lateral, scope, env)
        for join in select.args.get("joins") or ():
            self.add_join(join, scope, env)

    def add_join(self, join: exp.Join, scope: Scope, env: Environment | None) -> None:
        """Add the right side of a join, and reference the columns of its condition."""
        before = len(scope.sources)
        right = join.this
        if isinstance(right, exp.Alias) and join.kind == "ARRAY":  # ClickHouse ARRAY JOIN
            output = Output()
            output.add(self.name(right.args["alias"]), self.dependencies(right.this, scope, env))
            scope.add(Source(self.name(right.args["alias"]), output=output))
        elif join.kind == "ARRAY" and isinstance(right, exp.Column | exp.Table):
            return
        else:
            self.add_source(right, scope, env)
        added = scope.sources[before:]
        on = join.args.get("on")
        if on is not None:
            self.refer_to(on, scope, env, JOIN)
        self.refer_to(join.args.get("match_condition"), scope, env, JOIN)
        if join.args.get("using"):
            self._using([self.name(_using_name(item)) for item in join.args["using"]], join, scope, before)
        elif join.method == "NATURAL":
            self._natural(join, scope, before)
        if join.kind in ("SEMI", "ANTI") or join.side in ("SEMI", "ANTI"):
            for source in added:
                source.hidden = True
            scope.resolved.clear()

    def _using(self, names: list[str], join: exp.Join, scope: Scope, before: int) -> None:
        """Merge the columns of USING: left for inner and left joins, right for right joins, both for full joins."""
        for name in names:
            left = scope.merged.get(name)
            if left is None:
                left = self._side(name, scope.sources[:before], join)
            right = self._side(name, scope.sources[before:], join)
            self.refer(left, JOIN)
            self.refer(right, JOIN)
            if join.side == "RIGHT":
                scope.merged[name] = right
            elif join.side == "FULL":
                both = [compose(dep, TRANSFORMATION, self.interner.prepend("coalesce", 0), self.interner) for dep in (*left, *right)]
                scope.merged[name] = bounded(both)
            else:
                scope.merged[name] = left
            scope.resolved.pop(name, None)

    def _side(self, name: str, sources: list[Source], node: exp.Expr) -> Deps:
        known = [deps for source in sources if not source.hidden and (deps := source.get(name, self.interner)) is not None]
        if len(known) == 1:
            return known[0]
        if known:
            return self._ambiguous(name, [dep for deps in known for dep in deps], node)
        possible = [(source, deps) for source in sources if (deps := source.assume(name, self.interner)) is not None]
        shown = [pair for pair in possible if pair[0].knows_by_use(name)] or possible
        if len(shown) == 1:
            owners = shown[0][0].owners()
            if len(owners) == 1:
                owners[0].used.add(name)
            return shown[0][1]
        if shown:
            return self._ambiguous(name, [dep for _, deps in shown for dep in deps], node)
        self.diagnose("unresolved", f"USING ({name}): one side has no such column", node)
        return ()

    def _natural(self, join: exp.Join, scope: Scope, before: int) -> None:
        left, right = scope.sources[:before], scope.sources[before:]
        if any(source.is_open for source in (*left, *right)):
            names = "the joined columns depend on schemas that are not known"
            self.diagnose("ambiguous", f"NATURAL JOIN: {names}", join)
        left_names = [name for source in left for name in source.names()]
        right_names = {name for source in right for name in source.names()}
        self._using([name for name in dict.fromkeys(left_names) if name in right_names], join, scope, before)

    # ---- one item ----------------------------------------------------------------------------------

    def add_source(self, node: exp.Expr, scope: Scope, env: Environment | None) -> None:
        """Add one FROM item, with the joins and pivots that hang on it."""
        if isinstance(node, exp.Table):
            self._add_table(node, scope, env)
        elif isinstance(node, exp.Subquery):
            self._add_subquery(node, scope, env)
        elif isinstance(node, exp.Lateral):
            self._add_lateral(node, scope, env)
        elif isinstance(node, exp.Unnest):
            self._add_unnest(node, scope, env)
        elif isinstance(node, exp.Values):
            self._finish(node, self.values(node, scope, env), scope, env)
        elif isinstance(node, exp.TableFromRows):
            self._finish(node, self._function_output(node.this, scope, env), scope, env)
        elif isinstance(node, exp.Paren):
            self.add_source(node.this, scope, env)
            return
        elif isinstance(node, exp.Alias):
            self._finish(node, self._function_output(node.this, scope, env), scope, env)
        elif isinstance(node, exp.Query):
            self._finish(node, self.query(node, scope.parent, env), scope, env)
        elif isinstance(node, exp.Func):
            self._finish(node, self._function_output(node, scope, env), scope, env)
        else:
            self.diagnose("opaque", f"FROM item {node.key.upper()} is not understood", node)
            return
        for lateral in node.args.get("laterals") or ():
            self.add_source(lateral, scope, env)
        if node.__class__ is not exp.Subquery:
            for join in node.args.get("joins") or ():
                self.add_join(join, scope, env)

    def _add_table(self, node: exp.Table, scope: Scope, env: Environment | None) -> None:
        this = node.args.get("this")
        if isinstance(this, exp.Func) and not isinstance(this, exp.DynamicIdentifier):
            self._finish(node, self._function_output(this, scope, env), scope, env, scalar=True)
            return
        if node.args.get("rows_from"):
            output = Output()
            for item in node.args["rows_from"]:
                inner = self._function_output(item.this if isinstance(item, (exp.Table, exp.Alias)) else item, scope, env)
                for name, deps in zip(inner.names, inner.deps, strict=True):
                    output.add(name, deps)
            self._finish(node, output, scope, env)
            return
        alias, columns = self._alias(node)
        plain = isinstance(this, exp.Identifier) and not node.args.get("db")
        cte = env.find(self.name(this)) if env is not None and plain else None
        if cte is not None:
            output = self.common_table(cte)
            alias = alias or self.name(this)
            self._place(Source(alias, output=output.renamed(columns) if columns else output), node, scope, env)
            return
        name = self.lookup.table_name(node)
        if not name:
            self.diagnose("opaque", "a table is named by an expression or parameter", node)
            self._place(Source(alias, output=Output()), node, scope, env)
            return
        table = self.lookup.table(name)
        self.reads[table.id] = None
        written = ".".join(self.qualifier(node.parts)) if node.args.get("db") else ""
        source = Source(alias or self.name(this if written == "" else node.parts[-1]), table=table, full_name=written)
        if columns:
            source = Source(source.alias, output=self.table_output(table).renamed(columns))
        self._place(source, node, scope, env)

    def table_output(self, table: TableInfo) -> Output:
        """Return the output of ``SELECT * FROM table``."""
        output = Output()
        for position, (name, type_) in enumerate(table.columns.items()):
            output.add(name, starred(table.deps(name, self.interner)))
            if type_:
                output.types[position] = type_
        if not table.complete:
            for name in sorted(table.used - set(table.columns)):
                output.add(name, starred(table.deps(name, self.interner)))
            output.open.append(OpenStar(table))
        return output

    def _add_subquery(self, node: exp.Subquery, scope: Scope, env: Environment | None) -> None:
        inner = node.this
        alias, _ = self._alias(node)
        if isinstance(inner, (exp.Table, exp.Subquery)) and not alias and not isinstance(inner.unnest(), exp.Query):
            self.add_source(inner, scope, env)  # (a JOIN b ON …): its tables stay visible
            for join in node.args.get("joins") or ():
                self.add_join(join, scope, env)
            return
        if isinstance(inner, exp.Table):
            output = self._joined_output(inner, scope, env)
        else:
            output = self.query(node, scope.parent, env) if node.args.get("with_") else self.query(inner, scope.parent, env)
            self.modifiers(node, output, scope.parent, env)
        self._finish(node, output, scope, env)
        for join in node.args.get("joins") or ():
            self.add_join(join, scope, env)

    def _joined_output(self, inner: exp.Table, scope: Scope, env: Environment | None) -> Output:
        """The output of an aliased parenthesised join: ``(a JOIN b ON …) AS j(p, q)``."""
        joined = Scope(scope.parent)
        self.add_source(inner, joined, env)
        return self.star(joined)

    def _add_lateral(self, node: exp.Lateral, scope: Scope, env: Environment | None) -> None:
        inner = node.this
        if isinstance(inner, exp.Subquery):
            output = self.query(inner, scope, env)  # a lateral subquery sees the items before it
        elif isinstance(inner, exp.Unnest):
            self._add_unnest(inner, scope, env, node)
            return
        else:
            output = self._function_output(inner, scope, env)
        _, columns = self._alias(node)
        if node.args.get("ordinality") and len(columns) > len(output.names):
            output.names.extend([""] * (len(columns) - len(output.names) - 1))
            output.deps.extend([output.deps[0] if output.deps else ()] * (len(columns) - len(output.deps) - 1))
            output.add("", ())
        self._finish(node, output, scope, env, scalar=True)

    def _add_unnest(self, node: exp.Unnest, scope: Scope, env: Environment | None, outer: exp.Expr | None = None) -> None:
        """UNNEST(a, b): a column an array; the elements of a column are ``column[]``."""
        alias, columns = self._alias(outer or node)
        if outer is not None and not columns:
            columns = self._alias(node)[1]
        offset = node.args.get("offset")
        if len(node.expressions) == 1 and len(columns) <= 1:
            shape = self.aside(lambda: self.shape(node.expressions[0], scope, env))
            if shape is not None and shape.names:
                self.dependencies(node.expressions[0], scope, env)  # its subqueries reference columns
                self._place(Source(alias or (columns[0] if columns else ""), output=_with_offset(shape.copy(), offset, self)), outer or node, scope, env)
                return
        output = Output()
        elements: list[Deps] = []
        for item in node.expressions:
            deps = self._elements(item, scope, env)
            elements.append(deps)
            whole = tuple(compose(dep, TRANSFORMATION, self.interner.prepend("unnest", 0), self.interner) for dep in deps)
            output.add(columns[len(output.names)] if len(output.names) < len(columns) else "", whole)
        for name in columns[len(output.names) :]:  # an array of structs: one array, several columns
            output.add(name, bounded(dep for deps in output.deps for dep in deps))
        if len(node.expressions) == 1 and len(columns) > 1:
            base = elements[0]
            output.deps = [tuple(self.interner.field(dep, name) for dep in base) for name in columns]
            output.names = list(columns)
        output = _with_offset(output, offset, self)
        if not alias and len(columns) == 1 and len(node.expressions) == 1:
            alias = columns[0]  # BigQuery: the alias is the element
        elif alias and output.names[:1] == [""]:
            output.names[0] = alias
        source = Source(alias, output=output)
        self._place(source, outer or node, scope, env)
        if node.expressions:
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
            hidden: TableInfo = ArrayElements(ref.dataset, ref.path)
        else:
            hidden = FunctionRows("unnest", deps)
        source.output.open.append(OpenStar(hidden))
        source.refresh()

    def _function_output(self, node: exp.Expr, scope: Scope, env: Environment | None) -> Output:
        """The output of a set-returning function: every column depends on all arguments."""
        output = Output()
        name = function_name(node) if isinstance(node, exp.Func) else ""
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            name = f"{self._dotted(node.this)}.{function_name(node.expression)}"
            node = node.expression
        body = self.lookup.function(name) if name else None
        if body is not None and body.is_table and name not in self.inlining:
            return self._inline_table(name, body, node, scope, env)
        deps = bounded(self.collect(node, scope, env, IDENTITY, 0))
        if isinstance(node, (exp.JSONTable, exp.OpenJSON)):
            definitions = node.args["schema"].expressions if isinstance(node, exp.JSONTable) and node.args.get("schema") else node.expressions
            for column in definitions or ():
                if isinstance(column, (exp.JSONColumnDef, exp.OpenJSONColumnDef)) and column.this is not None:
                    output.add(self.name(column.this), () if column.args.get("ordinality") else deps)
            if not output.names:
                for fixed in ("key", "value", "type"):
                    output.add(fixed, deps)
            return output
        if isinstance(node, exp.Explode) and self.dialect == "snowflake":
            for column_name in FLATTEN_COLUMNS:
                output.add(column_name, deps if column_name in ("key", "value", "this") else ())
            return output
        if isinstance(node, (exp.Posexplode,)):
            output.add("pos", ())
            output.add("col", deps)
            return output
        if isinstance(node, exp.Stack):
            return self._stack(node, scope, env)
        output.add(_default_column(name), deps)
        output.open.append(OpenStar(FunctionRows(name, deps)))
        return output

    def _stack(self, node: exp.Stack, scope: Scope, env: Environment | None) -> Output:
        """stack(n, v1, v2, …): rows of k = ceil(len / n) columns, filled row by row."""
        output = Output()
        items = node.expressions
        rows = int(node.this.name) if node.this is not None and node.this.name.isdigit() else 1
        width = -(-len(items) // max(rows, 1))
        for i in range(width):
            cells = [dep for item in items[i::width] for dep in self.dependencies(item, scope, env)]
            output.add(f"col{i}", bounded(cells))
        return output

    def _inline_table(
        self, name: str, body: Inline, call: exp.Expr, scope: Scope, env: Environment | None
    ) -> Output:
        outer = self.bound_arguments(body, call, scope, env)
        self.inlining.append(name)
        try:
            return self.query(body.body, outer, None)
        finally:
            self.inlining.pop()

    def values(self, node: exp.Values, scope: Scope | None, env: Environment | None) -> Output:
        """The output of a VALUES list: by position over its rows."""
        output = Output()
        inner = scope if scope is not None else Scope(None)
        cells: list[list[int]] = []
        for row in node.expressions:
            items = row.expressions if isinstance(row, exp.Tuple) else [row]
            while len(cells) < len(items):
                cells.append([])
            for i, item in enumerate(items):
                if not isinstance(item, exp.Literal):
                    cells[i].extend(self.dependencies(item, inner, env))
        for i, deps in enumerate(cells):
            output.add(f"column{i + 1}" if self.dialect == "postgres" else f"col{i + 1}" if self.dialect != "duckdb" else f"col{i}", bounded(deps))
        return output

    # ---- placing ---------------------------------------------------------------------------------

    def _alias(self, node: exp.Expr) -> tuple[str, list[str]]:
        alias = node.args.get("alias")
        if isinstance(alias, exp.TableAlias):
            columns = [self.name(c.this if isinstance(c, exp.ColumnDef) else c) for c in alias.args.get("columns") or ()]
            return self.name(alias.args.get("this")), columns
        return self.name(alias) if isinstance(alias, exp.Identifier) else "", []

    def _finish(self, node: exp.Expr, output: Output, scope: Scope, env: Environment | None, *, scalar: bool = False) -> None:
        alias, columns = self._alias(node)
        if columns:
            while len(output.names) < len(columns) and output.open:
                output.add("", output.deps[0] if output.deps else ())
            output = output.renamed(columns)
        elif scalar and alias and len(output.names) == 1 and any(isinstance(star.table, FunctionRows) for star in output.open):
            output = output.renamed([alias])  # PostgreSQL: the alias of a function names its only column too
        self._place(Source(alias, output=output), node, scope, env)

    def _place(self, source: Source, node: exp.Expr, scope: Scope, env: Environment | None) -> None:
        for pivot in node.args.get("pivots") or ():
            source = self.pivot(source, pivot, scope, env)
        match = node.args.get("match")
        if match is not None:
            source = self.match_recognize(source, match, scope, env)
        scope.add(source)

    # ---- pivots -----------------------------------------------------------------------------------

    def pivot(self, source: Source, node: exp.Pivot, scope: Scope, env: Environment | None) -> Source:
        """PIVOT and UNPIVOT over one FROM item."""
        inner = Scope(scope)
        inner.add(source)
        alias, columns = self._alias(node)
        output = self._unpivot(node, inner, env) if node.args.get("unpivot") else self._pivot(node, inner, env)
        if columns:
            output = output.renamed(columns)
        return Source(alias or source.alias, output=output)

    def _pivot(self, node: exp.Pivot, inner: Scope, env: Environment | None) -> Output:
        source = inner.sources[0]
        consumed: set[str] = set()
        field_deps: list[int] = []
        aggregates = [item for item in node.expressions if isinstance(item, exp.Expr)]
        fields = node.args.get("fields") or ()
        if node.args.get("using"):  # DuckDB's PIVOT t ON m USING sum(x): the columns depend on the data
            fields, aggregates = aggregates, node.args["using"]
        for field in fields:
            named = field.this if isinstance(field, exp.In) else field
            consumed.update(self.name(column.this) for column in named.find_all(exp.Column))
            field_deps.extend(self.collect(named, inner, env, CONDITIONAL, 0))
        values: list[Deps] = []
        for item in aggregates:
            consumed.update(self.name(column.this) for column in item.find_all(exp.Column))
            values.append(bounded([*self.collect(item, inner, env, IDENTITY, 0), *field_deps]))
        output = Output()
        group = node.args.get("group")
        star = self.star(inner)
        kept = [self.name(c.this) for c in group.find_all(exp.Column)] if group is not None else star.names
        for name in kept:
            if name not in consumed or group is not None:
                deps = source.get(name, self.interner) or source.assume(name, self.interner) or ()
                output.add(name, deps)
                self.refer(deps, ROW_KINDS["group"])
        written = [self.name(c) for c in node.args.get("columns") or ()]
        for i, name in enumerate(written):
            output.add(name, values[i % len(values)] if values else bounded(field_deps))
        output.open = [OpenStar(star_.table, star_.except_ | consumed | set(written), star_.rename) for star_ in star.open] if group is None else []
        if not written:
            self.diagnose("opaque", "the output columns of this PIVOT depend on the data", node)
            everything = bounded(dep for deps in values for dep in deps)
            output.open.append(OpenStar(FunctionRows("pivot", everything)))
        output.hidden = consumed
        return output

    def _unpivot(self, node: exp.Pivot, inner: Scope, env: Environment | None) -> Output:
        source = inner.sources[0]
        consumed: set[str] = set()
        values: dict[str, list[int]] = {}
        names: list[str] = []
        into = node.args.get("into")
        if into is not None:  # DuckDB's UNPIVOT t ON a, b INTO NAME n VALUE v
            value_names = [self.name(c) for c in into.expressions] or ["value"]
            names = [self.name(into.this)]
            entries = list(node.expressions)
        else:
            entries = []
            value_names = []
            for item in node.expressions:
                value_names.extend(self.name(i) for i in (item.expressions if isinstance(item, exp.Tuple) else [item]))
            for field in node.args.get("fields") or ():
                names.append(self.name(field.this))
                entries.extend(field.expressions)
        for entry in entries:
            plain = entry.this if isinstance(entry, (exp.PivotAlias, exp.Alias)) else entry
            columns = list(plain.expressions) if isinstance(plain, exp.Tuple) else [plain]
            for i, column in enumerate(columns):
                consumed.update(self.name(c.this) for c in column.find_all(exp.Column))
                target = value_names[i] if i < len(value_names) else value_names[-1] if value_names else "value"
                values.setdefault(target, []).extend(self.collect(column, inner, env, IDENTITY, 0))
        output = Output()
        star = self.star(inner)
        for name in star.names:
            if name not in consumed:
                output.add(name, source.get(name, self.interner) or ())
        for name in names:
            output.add(name, ())
        for name, deps in values.items():
            output.add(name, bounded(deps))
        output.open = [OpenStar(star_.table, star_.except_ | consumed, star_.rename) for star_ in star.open]
        output.hidden = consumed
        return output

    def match_recognize(self, source: Source, node: exp.MatchRecognize, scope: Scope, env: Environment | None) -> Source:
        """MATCH_RECOGNIZE: partition columns and measures; DEFINE, PARTITION BY and ORDER BY decide the rows."""
        inner = Scope(scope)
        inner.add(source)
        for definition in node.args.get("define") or ():
            alias = self.name(definition.args.get("alias"))
            inner.by_alias.setdefault(alias, source)
        for symbol in str(node.args.get("pattern") or "").replace("*", " ").replace("+", " ").replace("?", " ").split():
            inner.by_alias.setdefault(self.name(symbol.strip("()'")), source)
        output = Output()
        for item in node.args.get("partition_by") or ():
            deps = self.dependencies(item, inner, env)
            output.add(self.name(item.this) if isinstance(item, exp.Column) else "", deps)
            self.refer(deps, ROW_KINDS["group"])
        order = node.args.get("order")
        self.refer_to(order, inner, env, ROW_KINDS["sort"])
        if "ALL ROWS" in str(node.args.get("rows") or "").upper():
            output = self.star(inner)
        for measure in node.args.get("measures") or ():
            item = measure.this if isinstance(measure, exp.MatchRecognizeMeasure) else measure
            output.add(self.name(item.args.get("alias")), self.dependencies(item, inner, env))
        for definition in node.args.get("define") or ():
            self.refer_to(definition.this, inner, env, ROW_KINDS["filter"])
        alias, columns = self._alias(node)
        return Source(alias or source.alias, output=output.renamed(columns) if columns else output)

    # ---- implemented by QueryWalk ------------------------------------------------------------------

    def star(self, scope: Scope) -> Output:
        """Return the output of ``*`` over a scope."""
        raise NotImplementedError

    def modifiers(self, node: exp.Expr, output: Output, scope: Scope | None, env: Environment | None) -> None:
        """Record ORDER BY on an already computed output."""
        raise NotImplementedError

    def common_table(self, cte: CommonTable) -> Output:
        """Return the output of a CTE."""
        raise NotImplementedError


def _with_offset(output: Output, offset: object, walk: Walk) -> Output:
    """Add the column of WITH OFFSET or WITH ORDINALITY: a position, which no column contributes to."""
    if isinstance(offset, exp.Identifier):
        output.add(walk.name(offset), ())
    elif offset:
        output.add("offset" if walk.dialect == "bigquery" else "ordinality", ())
    return output


def _using_name(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Column) else item


def _default_column(name: str) -> str:
    return {"explode": "col", "explode_outer": "col", "generate_series": "generate_series", "unnest": "unnest"}.get(name, name.rsplit(".", 1)[-1])
