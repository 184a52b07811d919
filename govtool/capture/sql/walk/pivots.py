"""PIVOT, UNPIVOT and MATCH_RECOGNIZE: FROM items that turn rows into columns, columns into rows, and patterns into
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.columns import ROW_KINDS
from govtool.capture.sql.walk.dependencies import CONDITIONAL, IDENTITY, Deps, bounded
from govtool.capture.sql.walk.relation import FunctionRows, OpenStar, QueryOutput, Source
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.sources import SourceWalk
from govtool.names import fold, quote, unquote


class PivotWalk(SourceWalk):
    """Walks pivots."""

    def pivot(self, source: Source, node: exp.Pivot, scope: Scope, env: Environment | None) -> Source:
        """PIVOT and UNPIVOT over one FROM item."""
        inner = Scope(scope)
        inner.add(source)
        alias, columns = self._alias(node)
        output = self._unpivot(node, inner, env) if node.args.get("unpivot") else self._pivot(node, inner, env)
        if columns:
            output = output.renamed(columns)
        return Source(alias or source.alias, output=output)

    def _pivot(self, node: exp.Pivot, inner: Scope, env: Environment | None) -> QueryOutput:
        source = inner.sources[0]
        consumed: set[str] = set()
        field_deps: list[int] = []
        aggregates = [item for item in node.expressions if isinstance(item, nodes.Expr)]
        fields = node.args.get("fields") or ()
        if node.args.get("using"):  # DuckDB's PIVOT t ON m USING sum(x): the columns depend on the data
            fields, aggregates = aggregates, node.args["using"]
        for field in fields:
            named = field.this if isinstance(field, nodes.In) else field
            consumed.update(self.name(column.this) for column in named.find_all(nodes.Column))
            field_deps.extend(self.collect(named, inner, env, CONDITIONAL, 0))
        values: list[Deps] = []
        for item in aggregates:
            consumed.update(self.name(column.this) for column in item.find_all(nodes.Column))
            values.append(bounded([*self.collect(item, inner, env, IDENTITY, 0), *field_deps]))
        output = QueryOutput()
        group = node.args.get("group")
        star = self.star(inner)
        kept = [self.name(c.this) for c in group.find_all(nodes.Column)] if group is not None else star.names
        for name in kept:
            if name not in consumed or group is not None:
                deps = source.get(name, self.interner) or source.assume(name, self.interner) or ()
                output.add(name, deps)
                self.refer(deps, ROW_KINDS["group"])
        written = [self.name(c) for c in node.args.get("columns") or ()] or self._pivot_names(node, fields, aggregates)
        for i, name in enumerate(written):
            output.add(name, values[i % len(values)] if values else bounded(field_deps))
        output.open = (
            [OpenStar(star_.table, star_.except_ | consumed | set(written), star_.rename) for star_ in star.open]
            if group is None
            else []
        )
        if not written:
            self.diagnose("opaque", "the output columns of this PIVOT depend on the data", node)
            everything = bounded(dep for deps in values for dep in deps)
            output.open.append(OpenStar(FunctionRows("pivot", everything)))
        output.hidden = consumed
        return output

    def _pivot_names(self, node: exp.Pivot, fields: Sequence[exp.Expr], aggregates: Sequence[exp.Expr]) -> list[str]:
        """The columns of DuckDB's PIVOT statement where IN lists the values; none where the data decide."""
        if not node.args.get("using") or not fields or not all(isinstance(field, nodes.In) for field in fields):
            return []
        values = [
            [fold(v.alias_or_name, quoted=True, dialect=self.dialect) for v in field.expressions] for field in fields
        ]
        combined = ["_".join(unquote(part) for part in parts) for parts in product(*values)]
        if len(aggregates) == 1:
            return [quote(name) for name in combined]
        labels = [item.alias or item.sql(dialect=self.dialect).lower() for item in aggregates]
        return [quote(f"{name}_{label}") for name in combined for label in labels]

    def _unpivot(self, node: exp.Pivot, inner: Scope, env: Environment | None) -> QueryOutput:
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
                value_names.extend(
                    self.name(i) for i in (item.expressions if isinstance(item, nodes.Tuple) else [item])
                )
            for field in node.args.get("fields") or ():
                names.append(self.name(field.this))
                entries.extend(field.expressions)
        for entry in entries:
            plain = entry.this if isinstance(entry, (nodes.PivotAlias, nodes.Alias)) else entry
            columns = list(plain.expressions) if isinstance(plain, nodes.Tuple) else [plain]
            for i, column in enumerate(columns):
                consumed.update(self.name(c.this) for c in column.find_all(nodes.Column))
                target = value_names[i] if i < len(value_names) else value_names[-1] if value_names else "value"
                values.setdefault(target, []).extend(self.collect(column, inner, env, IDENTITY, 0))
        if not node.args.get("include_nulls"):  # a row whose values are all NULL is left out
            for deps in values.values():
                self.refer(bounded(deps), ROW_KINDS["filter"])
        output = QueryOutput()
        star = self.star(inner)
        for name in star.names:
            if name not in consumed:
                output.add(name, source.get(name, self.interner) or ())
        made = [(name, bounded(deps)) for name, deps in values.items()]
        # BigQuery, "UNPIVOT operator": the values stand before the names, as its examples show; elsewhere behind them.
        labels: list[tuple[str, Deps]] = [(name, ()) for name in names]
        for name, deps_ in (*made, *labels) if self.dialect == "bigquery" else (*labels, *made):
            output.add(name, deps_)
        output.open = [OpenStar(star_.table, star_.except_ | consumed, star_.rename) for star_ in star.open]
        output.hidden = consumed
        return output

    def match_recognize(
        self, source: Source, node: exp.MatchRecognize, scope: Scope, env: Environment | None
    ) -> Source:
        """MATCH_RECOGNIZE: partition columns and measures; DEFINE, PARTITION BY and ORDER BY decide the rows."""
        inner = Scope(scope)
        inner.add(source)
        for definition in node.args.get("define") or ():
            alias = self.name(definition.args.get("alias"))
            inner.by_alias.setdefault(alias, source)
        for symbol in str(node.args.get("pattern") or "").replace("*", " ").replace("+", " ").replace("?", " ").split():
            inner.by_alias.setdefault(self.name(symbol.strip("()'")), source)
        output = QueryOutput()
        for item in node.args.get("partition_by") or ():
            deps = self.dependencies(item, inner, env)
            output.add(self.name(item.this) if isinstance(item, nodes.Column) else "", deps)
            self.refer(deps, ROW_KINDS["group"])
        order = node.args.get("order")
        self.refer_to(order, inner, env, ROW_KINDS["sort"])
        if "ALL ROWS" in str(node.args.get("rows") or "").upper():
            output = self.star(inner)
        for measure in node.args.get("measures") or ():
            item = measure.this if isinstance(measure, nodes.MatchRecognizeMeasure) else measure
            output.add(self.name(item.args.get("alias")), self.dependencies(item, inner, env))
        for definition in node.args.get("define") or ():
            self.refer_to(definition.this, inner, env, ROW_KINDS["filter"])
        alias, columns = self._alias(node)
        return Source(alias or source.alias, output=output.renamed(columns) if columns else output)
