"""Projections: the columns a SELECT puts out, stars included, and the clauses that refer to them by name or
position.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk import naming
from govtool.capture.sql.walk.columns import ROW_KINDS
from govtool.capture.sql.walk.dependencies import (
    CHAIN_MASK,
    KIND_MASK,
    OPAQUE,
    REF_SHIFT,
    TRANSFORMATION,
    bounded,
    compose,
)
from govtool.capture.sql.walk.expressions import Visit
from govtool.capture.sql.walk.pivots import PivotWalk
from govtool.capture.sql.walk.relation import ArrayElements, FunctionRows, OpenStar, QueryOutput, Source, starred
from govtool.capture.sql.walk.scope import Environment, MergingJoin, Scope, is_correlated
from govtool.capture.sql.walk.shapes import SHAPED
from govtool.capture.sql.walk.types import fields_of
from govtool.linear import LinearRegex

_SHAPED: Final = frozenset(SHAPED)

SPARK: Final = frozenset({"spark", "databricks", "spark2"})

MERGED_IN_PLACE: Final = frozenset({"duckdb", "sqlite", "clickhouse"})
"""Dialects whose ``*`` leaves the columns of USING where the left side has them; elsewhere they come first."""


ALIASES_FIRST: Final = frozenset({"bigquery", "clickhouse"})
"""Dialects in which a name in GROUP BY means an alias of the SELECT before a column of FROM.

BigQuery, "Query syntax", GROUP BY: aliases of the SELECT clause override names in the FROM clause. ClickHouse,
``prefer_column_name_to_alias``: 0 by default, so that names of columns are replaced by aliases, in every clause.
"""


class ProjectionWalk(PivotWalk):
    """Walks SELECT lists, GROUP BY and ORDER BY."""

    def _projections(self, node: exp.Select, scope: Scope, env: Environment | None) -> QueryOutput:
        output = QueryOutput()
        aliases = scope.aliases
        for item in node.args["expressions"]:
            cls = item.__class__
            if cls is nodes.Alias:
                value = item.args["this"]
                name = self.name(item.args["alias"])
                if type(value) is nodes.Columns:
                    self._columns_item(value, name, scope, env, output)
                    continue
                deps = self.dependencies(value, scope, env)
                output.add(name, deps)
                if value.__class__ in _SHAPED or self.has_shapes:
                    self.remember_shape(value, output, scope, env)
                aliases.setdefault(name, deps)
                if scope.parent is not None and self.dialect == "duckdb" and is_correlated(value, scope, self.name):
                    scope.correlated |= {name}
            elif cls is nodes.Column:
                if type(item.args["this"]) is nodes.Star:
                    self._qualified_star(item, scope, env, output)
                else:
                    output.add(self.name(item.args["this"]), self.dependencies(item, scope, env))
                    if self.has_shapes:
                        self.remember_shape(item, output, scope, env)
            elif cls is nodes.Star:
                _extend(output, self.starred_columns(item, scope, env))
            elif cls is nodes.Columns:
                self._columns_item(item, "", scope, env, output)
            elif cls is nodes.Aliases:
                self._several(item, scope, env, output)
            elif cls is nodes.Dot and isinstance(item.expression, nodes.Star):
                self._struct_star(item, scope, env, output)
            elif cls is nodes.Inline:
                _extend(output, self._struct_fields(item.args["this"], scope, env))
            elif cls is nodes.QueryTransform:
                self._transformed(item, scope, env, output)
            elif self.dialect == "duckdb" and cls is nodes.Explode and isinstance(item.args["this"], nodes.Struct):
                _extend(output, self._struct_fields(item.args["this"], scope, env))
            elif self.dialect == "duckdb" and (columns := item.find(nodes.Columns)) is not None:
                self._repeated(item, columns, scope, env, output)
            else:
                output.add(self.output_name(item), self.dependencies(item, scope, env))
        scope.correlated = frozenset()
        for position, name in enumerate(output.names):
            if not name:
                output.names[position] = f"_c{position}"
        exclude = node.args.get("exclude")
        if exclude:
            dropped = {self.name(column.this if isinstance(column, nodes.Column) else column) for column in exclude}
            self._note_listed(output, dropped)
            output = _without(output, dropped)
        return output

    def output_name(self, item: exp.Expr) -> str:
        """Return the name a projection gives its column without an alias; empty where it gives none."""
        if isinstance(item, nodes.Alias):
            return self.name(item.args["alias"])
        if isinstance(item, nodes.Column):
            return self.name(item.this)
        if self.dialect in naming.DIALECTS:
            return naming.column_name(item, self.name)
        if isinstance(item, nodes.Dot):
            if isinstance(item.this, nodes.Struct) and self.dialect in SPARK:  # named by its text
                return ""
            return self.name(item.expression) if isinstance(item.expression, nodes.Identifier) else ""
        if isinstance(item, nodes.Paren):
            return self.output_name(item.this)
        if isinstance(item, nodes.Subquery):
            inner = item.unnest()
            if isinstance(inner, nodes.Select) and len(inner.expressions) == 1:
                return self.output_name(inner.expressions[0])
            return ""
        if isinstance(item, nodes.Cast) and self.dialect in ("spark", "databricks", "hive", "spark2"):
            return self.output_name(item.this)
        if (
            isinstance(item, nodes.JSONExtract)
            and item.args.get("variant_extract")
            and isinstance(item.expression, nodes.JSONPath)
        ):
            last = item.expression.expressions[-1]
            return self.name(str(last.this)) if isinstance(last, nodes.JSONPathKey) else ""
        if isinstance(item, (nodes.Filter, nodes.WithinGroup)):
            return self.output_name(item.this)
        return ""

    def _numbered_column(self, node: exp.PositionalColumn, kind: int, chain: int, at: Visit) -> None:
        """DuckDB's ``#2``: the second column of what FROM brings."""
        output = self.without_effects(lambda: self.star(at.scope))
        number = int(node.name) - 1 if node.name.isdigit() else -1
        if not 0 <= number < len(output.names):
            self.diagnose("opaque", f"column #{node.name} of what FROM brings is not known", node)
            made = tuple(dep for deps in output.deps for dep in deps)
            at.out.extend(dep | OPAQUE for dep in made)
            return
        at.out.extend(compose(dep, kind, chain, self.interner) for dep in self.noted(output.deps[number]))

    def star(self, scope: Scope) -> QueryOutput:
        """Return the output of a bare ``*`` over a scope: each source in order, merged columns once."""
        outputs = [QueryOutput() if source.hidden else self.source_star(source) for source in scope.sources]
        if scope.joins:
            # A merging join's columns take the place of those of its sides; the first source stands for all of them.
            for join in scope.joins:
                left, right = _chained(outputs[join.left : join.right]), _chained(outputs[join.right : join.end])
                outputs[join.left : join.end] = [
                    self._star_of_join(join, left, right),
                    *(QueryOutput() for _ in range(join.left + 1, join.end)),
                ]
        return outputs[0] if len(outputs) == 1 else _chained(outputs)

    def _star_of_join(self, join: MergingJoin, left: QueryOutput, right: QueryOutput) -> QueryOutput:
        """Return the output of ``*`` over a merging join: its columns first, as in the standard, or in their place."""
        output = QueryOutput()
        in_place = self.dialect in MERGED_IN_PLACE
        merged = {name: starred(deps) for name, deps in join.merged.items()}
        if not in_place:
            for name, deps in merged.items():
                output.add(name, deps)
            _extend(output, left, set(merged))
        else:
            for name in merged:
                if name not in left.index():
                    output.add(name, merged[name])
            at = len(output.names)
            _extend(output, left)
            for position, name in enumerate(left.names):
                output.deps[at + position] = merged.get(name, left.deps[position])
        _extend(output, right, set(merged))
        return output

    def source_star(self, source: Source) -> QueryOutput:
        """Return the output of ``source.*``."""
        if source.table is not None:
            return self.table_output(source.table)
        return source.output or QueryOutput()

    def starred_columns(
        self, star: exp.Expr, scope: Scope, env: Environment | None, base: QueryOutput | None = None
    ) -> QueryOutput:
        """Return the output of ``*`` with EXCEPT, REPLACE, RENAME and ILIKE applied."""
        output = base if base is not None else self.star(scope)
        if base is None and not scope.sources:
            self.diagnose("unresolved", "* without a FROM clause", star)
        args = star.args
        except_ = args.get("except_") or args.get("except")
        replace = args.get("replace")
        rename = args.get("rename")
        pattern = args.get("ilike")
        if not (except_ or replace or rename or pattern):
            return output
        dropped = {self.name(c.this if isinstance(c, nodes.Column) else c) for c in except_ or ()}
        renamed = {
            self.name(a.this.this if isinstance(a.this, nodes.Column) else a.this): self.name(a.args["alias"])
            for a in rename or ()
        }
        replaced = {self.name(a.args["alias"]): self.dependencies(a.this, scope, env) for a in replace or ()}
        # DuckDB takes it when RENAME names a column that is not there.
        self._note_listed(output, (*dropped, *replaced, *(() if self.dialect == "duckdb" else renamed)))
        result = QueryOutput()
        for name, deps in zip(output.names, output.deps, strict=True):
            if name in dropped or (pattern is not None and not _like(pattern, name)):
                continue
            result.add(renamed.get(name, name), replaced.get(name, deps))
        for name, deps in replaced.items():
            if output.open and name not in output.index():
                result.add(name, deps)
        hidden = frozenset(dropped | set(replaced))
        result.open = [OpenStar(s.table, s.except_ | hidden, {**s.rename, **renamed}, s.arm) for s in output.open]
        return result

    def _note_listed(self, output: QueryOutput, names: Iterable[str]) -> None:
        """Record the columns that EXCEPT, REPLACE, RENAME or EXCLUDE name: a statement fails without them."""
        listed = Source("", output=output)
        for name in names:
            self.note_name(listed, name)

    def _qualified_star(self, item: exp.Column, scope: Scope, env: Environment | None, output: QueryOutput) -> None:
        qualifier = self.qualifier(item.parts[:-1])
        source = scope.find(qualifier)
        if source is not None:
            _extend(output, self.starred_columns(item.this, scope, env, self.source_star(source)))
            return
        rows = self.variable_rows(qualifier[0], item) if self.variables and len(qualifier) == 1 else None
        if rows is not None:
            _extend(output, self.starred_columns(item.this, scope, env, rows))
            return
        # Not a source: the fields of a struct column.
        parts = item.parts[:-1]
        column = nodes.Column(
            this=parts[-1].copy(),
            **dict(zip(("table", "db", "catalog"), (p.copy() for p in reversed(parts[:-1])), strict=False)),
        )
        _extend(output, self.starred_columns(item.this, scope, env, self._struct_fields(column, scope, env)))

    def _struct_star(self, item: exp.Dot, scope: Scope, env: Environment | None, output: QueryOutput) -> None:
        """(expression).*: the fields of a struct."""
        _extend(output, self.starred_columns(item.expression, scope, env, self._struct_fields(item.this, scope, env)))

    def _struct_fields(self, node: exp.Expr, scope: Scope, env: Environment | None) -> QueryOutput:
        deps = self.dependencies(node, scope, env)
        shape = self.without_effects(lambda: self.shape(node, scope, env))
        if shape is not None:
            return shape
        output = QueryOutput()
        if len(deps) == 1 and not deps[0] & (KIND_MASK | CHAIN_MASK):
            ref = self.interner.refs[deps[0] >> REF_SHIFT]
            inside, names = self._typed_fields(ref.dataset, ref.path)
            for name in names:
                whole = self.interner.field(deps[0], inside) if inside else deps[0]
                output.add(name, (self.interner.field(whole, name),))
            if not names:
                output.open.append(OpenStar(ArrayElements(ref.dataset, ref.path)))
        else:
            output.open.append(OpenStar(FunctionRows("a struct", deps)))
        return output

    def _typed_fields(self, dataset: str, path: str) -> tuple[str, tuple[str, ...]]:
        """The fields that a struct below a column has by its type; see ``fields_of``."""
        columns = self.lookup.table(dataset).columns
        name = max((n for n in columns if path == n or path.startswith((f"{n}.", f"{n}["))), key=len, default="")
        type_ = columns.get(name) if name else None
        return fields_of(type_, path[len(name) :], self.dialect) if type_ else ("", ())

    def _transformed(self, item: exp.Expr, scope: Scope, env: Environment | None, output: QueryOutput) -> None:
        """TRANSFORM (a, b) USING 'script' AS (x, y): what the script makes of its input is its own affair."""
        chain = self.interner.prepend("transform", 0)
        deps = bounded(
            dep for value in item.expressions for dep in self.collect(value, scope, env, TRANSFORMATION, chain)
        )
        schema = item.args.get("schema")
        given = schema.expressions if isinstance(schema, nodes.Schema) else ()
        for name in [self.name(c.this if isinstance(c, nodes.ColumnDef) else c) for c in given] or ["key", "value"]:
            output.add(name, deps)

    def _columns_item(
        self, node: exp.Columns, alias: str, scope: Scope, env: Environment | None, output: QueryOutput
    ) -> None:
        """DuckDB's COLUMNS(*), COLUMNS('pattern')."""
        inner = node.this
        every = self.starred_columns(inner, scope, env) if isinstance(inner, nodes.Star) else self.star(scope)
        if isinstance(inner, nodes.Literal):
            try:
                pattern = LinearRegex(inner.name)
            except ValueError:
                self.diagnose("opaque", "COLUMNS has a pattern that is not a regular expression", node)
                return
            every = _kept(every, lambda name: pattern.search(name))
        elif not isinstance(inner, nodes.Star):
            self.diagnose("opaque", "COLUMNS with a computed argument", node)
        _extend(output, every)

    def _repeated(
        self, item: exp.Expr, columns: exp.Columns, scope: Scope, env: Environment | None, output: QueryOutput
    ) -> None:
        """max(COLUMNS(*)): the projection once for each column that COLUMNS stands for."""
        every = QueryOutput()
        self._columns_item(columns, "", scope, env, every)
        for name in every.names:
            self.expanding = name
            output.add(name, self.dependencies(item, scope, env))
        self.expanding = None
        output.open.extend(every.open)

    def _several(self, node: exp.Aliases, scope: Scope, env: Environment | None, output: QueryOutput) -> None:
        """A generator with several columns: stack(…) AS (k, v), posexplode(…) AS (pos, col)."""
        names = [self.name(alias) for alias in node.expressions]
        inner = self._function_output(node.this, scope, env) if isinstance(node.this, nodes.Func) else QueryOutput()
        spread = len(inner.names) == len(names) and not inner.open
        everything = bounded(dep for deps in inner.deps for dep in deps)
        for position, name in enumerate(names):
            output.add(name, inner.deps[position] if spread else everything)

    def _group(
        self, group: exp.Group, node: exp.Select, output: QueryOutput, scope: Scope, env: Environment | None
    ) -> None:
        items: list[exp.Expr] = list(group.expressions)
        for key in ("grouping_sets", "cube", "rollup"):
            for part in group.args.get(key) or ():
                items.extend(part.expressions if isinstance(part, nodes.Expr) and part.expressions else [])
        if group.args.get("all"):
            for item, deps in zip(node.expressions, output.deps, strict=False):
                if not isinstance(item, nodes.Star) and not any(item.find_all(nodes.AggFunc)):
                    self.refer(deps, ROW_KINDS["group"])
        self._refer_items(items, output, scope, env, ROW_KINDS["group"])

    def _refer_items(
        self, items: list[exp.Expr], output: QueryOutput, scope: Scope, env: Environment | None, kind: int
    ) -> None:
        for item in items:
            self._refer_item(item, output, scope, env, kind)

    def _refer_item(
        self, item: exp.Expr, output: QueryOutput, scope: Scope, env: Environment | None, kind: int
    ) -> None:
        """Reference an item of GROUP BY or ORDER BY: a position, an alias of the output, or an expression."""
        if isinstance(item, (nodes.Cube, nodes.Rollup, nodes.GroupingSets, nodes.Tuple)):
            self._refer_items(list(item.expressions), output, scope, env, kind)
            return
        plain = item
        while isinstance(plain, (nodes.Ordered, nodes.Paren)):
            plain = plain.this
        if isinstance(plain, nodes.Tuple):
            self._refer_items(list(plain.expressions), output, scope, env, kind)
            return
        if isinstance(plain, nodes.Literal) and not plain.is_string and plain.name.isdigit():
            position = int(plain.name) - 1
            if 0 <= position < len(output.deps):
                self.refer(output.deps[position], kind, plain)
            return
        if not isinstance(plain, (nodes.Column, nodes.Var)):
            self.refer_to(item, scope, env, kind)
            return
        everything = isinstance(plain, nodes.Var) and plain.name.upper() == "ALL"
        if everything or (
            isinstance(plain, nodes.Column) and self.name(plain.this) == "all" and "all" not in output.index()
        ):
            for deps in output.deps:
                self.refer(deps, kind)
            return
        if isinstance(plain, nodes.Column) and not plain.args.get("table"):
            name = self.name(plain.this)
            if kind == ROW_KINDS["sort"]:  # output columns come first, whether or not they are aliases
                named = output.index().get(name)
                if named is not None:
                    self.refer(output.deps[named], kind, plain)
                    return
            owners = sum(s.get(name, self.interner) is not None for s in scope.sources)
            alias = scope.aliases.get(name)
            if alias is not None and kind == ROW_KINDS["group"] and self.dialect in ALIASES_FIRST:
                self.refer(alias, kind, plain)
                return
            if alias is not None and (not owners or (owners > 1 and name not in scope.merged)):
                self.refer(alias, kind, plain)
                return
            # x.a in the output and a here: if only x has it they are the same, else a could mean nothing but that.
            if alias is None and owners != 1 and name not in scope.merged and output.names.count(name) == 1:
                self.refer(output.deps[output.index()[name]], kind, plain)
                return
        self.refer_to(item, scope, env, kind)

    def modifiers(self, node: exp.Expr, output: QueryOutput, scope: Scope | None, env: Environment | None) -> None:
        """Record ORDER BY (and DISTRIBUTE, CLUSTER, SORT BY) over the columns of an output."""
        orders = [node.args.get(key) for key in ("order", "sort", "cluster", "distribute")]
        counts = [clause.args.get("expression") for key in ("limit", "offset") if (clause := node.args.get(key))]
        for count in counts:
            if isinstance(count, nodes.Expr) and not isinstance(count, nodes.Literal):
                self.refer_to(count, Scope(scope), env, ROW_KINDS["filter"])
        if not any(orders):
            return
        inner = Scope(scope)
        inner.add(Source("", output=output))
        for order in orders:
            for item in order.expressions if order is not None else ():
                self._refer_item(item, output, inner, env, ROW_KINDS["sort"])


def _chained(outputs: list[QueryOutput]) -> QueryOutput:
    output = QueryOutput()
    for more in outputs:
        _extend(output, more)
    return output


def _extend(output: QueryOutput, more: QueryOutput, skip: set[str] | None = None) -> None:
    offset = len(output.names)
    for position, (name, deps) in enumerate(zip(more.names, more.deps, strict=True)):
        if skip and name in skip:
            continue
        output.add(name, deps)
        if position in more.fields:
            output.fields[len(output.names) - 1] = more.fields[position]
    for position, type_ in more.types.items():
        output.types[offset + position] = type_
    for star in more.open:
        output.open.append(
            OpenStar(star.table, star.except_ | frozenset(skip or ()), star.rename, star.arm, candidate=star.candidate)
        )


def _without(output: QueryOutput, dropped: set[str]) -> QueryOutput:
    result = _kept(output, lambda name: name not in dropped)
    result.open = [OpenStar(s.table, s.except_ | frozenset(dropped), s.rename, s.arm) for s in output.open]
    return result


def _kept(output: QueryOutput, keep: Callable[[str], bool]) -> QueryOutput:
    result = QueryOutput()
    for name, deps in zip(output.names, output.deps, strict=True):
        if keep(name):
            result.add(name, deps)
    result.open = list(output.open)
    return result


def _like(pattern: exp.Expr, name: str) -> bool:
    text = pattern.name if isinstance(pattern, nodes.Expr) else str(pattern)
    return LinearRegex("(?is)" + re.escape(text).replace("%", ".*").replace("_", ".")).fullmatch(name)
