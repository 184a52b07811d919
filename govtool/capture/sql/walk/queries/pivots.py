"""PIVOT, UNPIVOT and MATCH_RECOGNIZE: FROM items that turn rows into columns, columns into rows, and patterns into
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import CONDITIONAL, FILTER, GROUP_BY, IDENTITY, SORT, Deps, bounded
from govtool.capture.sql.walk.expressions.expression import collect, dependencies, refer_to
from govtool.capture.sql.walk.expressions.rows import star_of
from govtool.capture.sql.walk.relation import FunctionRows, OpenStar, QueryOutput, Source
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.names import fold, quote, unquote


def pivoted(walk: Walk, source: Source, node: exp.Pivot, scope: Scope, env: Environment | None) -> Source:
    """PIVOT and UNPIVOT over one FROM item."""
    inner = Scope(scope)
    inner.add(source)
    alias, columns = walk.alias(node)
    output = _unpivot(walk, node, inner, env) if node.args.get("unpivot") else _pivot(walk, node, inner, env)
    if columns:
        output = output.renamed(columns)
    return Source(alias or source.alias, output=output)


def _pivot(walk: Walk, node: exp.Pivot, inner: Scope, env: Environment | None) -> QueryOutput:
    """Rows into columns: those of the aggregates, steered by FOR, beside the ones by which rows are grouped."""
    aggregates = [item for item in node.expressions if isinstance(item, nodes.Expr)]
    fields = node.args.get("fields") or ()
    if node.args.get("using"):  # DuckDB's PIVOT t ON m USING sum(x): the columns depend on the data
        fields, aggregates = aggregates, node.args["using"]
    consumed: set[str] = set()
    steering: list[int] = []
    for field in fields:
        named = field.this if isinstance(field, nodes.In) else field
        consumed.update(_columns_in(walk, named))
        steering.extend(collect(walk, named, inner, env, CONDITIONAL, 0))
    values: list[Deps] = []
    for item in aggregates:
        consumed.update(_columns_in(walk, item))
        values.append(bounded([*collect(walk, item, inner, env, IDENTITY, 0), *steering]))
    star = star_of(walk, inner)
    output = _grouped(walk, node, star, inner.sources[0], consumed)
    written = [walk.name(c) for c in node.args.get("columns") or ()] or _pivot_names(walk, node, fields, aggregates)
    for i, name in enumerate(written):
        output.add(name, values[i % len(values)] if values else bounded(steering))
    if node.args.get("group") is None:
        gone = consumed | set(written)
        output.open = [OpenStar(open_.table, open_.except_ | gone, open_.rename) for open_ in star.open]
    if not written:
        walk.diagnose("opaque", "the output columns of this PIVOT depend on the data", node)
        everything = bounded(dep for deps in values for dep in deps)
        output.open.append(OpenStar(FunctionRows("pivot", everything)))
    output.hidden = consumed
    return output


def _grouped(walk: Walk, node: exp.Pivot, star: QueryOutput, source: Source, consumed: set[str]) -> QueryOutput:
    """The columns by which a PIVOT groups rows: those of GROUP BY, else all that it does not consume."""
    group = node.args.get("group")
    output = QueryOutput()
    if group is None:  # nobody names these: they come with the rows
        for name, deps in zip(star.names, star.deps, strict=True):
            if name not in consumed:
                output.add(name, deps)
                walk.refer_unnamed(deps, GROUP_BY)
        return output
    for name in _columns_in(walk, group):
        deps = source.get(name, walk.interner) or source.assume(name, walk.interner) or ()
        output.add(name, deps)
        walk.refer(deps, GROUP_BY)
    return output


def _columns_in(walk: Walk, node: exp.Expr) -> list[str]:
    """Return the names of the columns in an expression, without qualifiers."""
    return [walk.name(column.this) for column in node.find_all(nodes.Column)]


def _pivot_names(walk: Walk, node: exp.Pivot, fields: Sequence[exp.Expr], aggregates: Sequence[exp.Expr]) -> list[str]:
    """The columns of DuckDB's PIVOT statement where IN lists the values; none where the data decide."""
    if not node.args.get("using") or not fields or not all(isinstance(field, nodes.In) for field in fields):
        return []
    values = [[fold(v.alias_or_name, quoted=True, dialect=walk.dialect) for v in field.expressions] for field in fields]
    combined = ["_".join(unquote(part) for part in parts) for parts in product(*values)]
    if len(aggregates) == 1:
        return [quote(name) for name in combined]
    labels = [item.alias or item.sql(dialect=walk.dialect).lower() for item in aggregates]
    return [quote(f"{name}_{label}") for name in combined for label in labels]


def _unpivot(walk: Walk, node: exp.Pivot, inner: Scope, env: Environment | None) -> QueryOutput:
    """Columns into rows: a column with the names of the columns, and one or more with their values."""
    names, value_names, entries = _unpivot_parts(walk, node)
    consumed: set[str] = set()
    values: dict[str, list[int]] = {}
    for entry in entries:
        plain = entry.this if isinstance(entry, (nodes.PivotAlias, nodes.Alias)) else entry
        columns = list(plain.expressions) if isinstance(plain, nodes.Tuple) else [plain]
        for i, column in enumerate(columns):
            consumed.update(_columns_in(walk, column))
            target = value_names[i] if i < len(value_names) else value_names[-1] if value_names else "value"
            values.setdefault(target, []).extend(collect(walk, column, inner, env, IDENTITY, 0))
    if not node.args.get("include_nulls"):  # a row whose values are all NULL is left out
        for deps in values.values():
            walk.refer(bounded(deps), FILTER)
    output = QueryOutput()
    star = star_of(walk, inner)
    for name, handed_on in zip(star.names, star.deps, strict=True):  # nobody names these: they come with the rows
        if name not in consumed:
            output.add(name, handed_on)
    made = [(name, bounded(deps)) for name, deps in values.items()]
    # BigQuery, "UNPIVOT operator": the values stand before the names, as its examples show; elsewhere behind them.
    labels: list[tuple[str, Deps]] = [(name, ()) for name in names]
    for name, deps_ in (*made, *labels) if walk.dialect == "bigquery" else (*labels, *made):
        output.add(name, deps_)
    output.open = [OpenStar(open_.table, open_.except_ | consumed, open_.rename) for open_ in star.open]
    output.hidden = consumed
    return output


def _unpivot_parts(walk: Walk, node: exp.Pivot) -> tuple[list[str], list[str], list[exp.Expr]]:
    """Return the columns that hold names, those that hold values, and what is unpivoted."""
    into = node.args.get("into")
    if into is not None:  # DuckDB's UNPIVOT t ON a, b INTO NAME n VALUE v
        value_names = [walk.name(column) for column in into.expressions] or ["value"]
        return [walk.name(into.this)], value_names, list(node.expressions)
    lists = [item.expressions if isinstance(item, nodes.Tuple) else [item] for item in node.expressions]
    fields = node.args.get("fields") or ()
    return (
        [walk.name(field.this) for field in fields],
        [walk.name(column) for listed in lists for column in listed],
        [entry for field in fields for entry in field.expressions],
    )


def match_recognize(
    walk: Walk, source: Source, node: exp.MatchRecognize, scope: Scope, env: Environment | None
) -> Source:
    """MATCH_RECOGNIZE: partition columns and measures; DEFINE, PARTITION BY and ORDER BY decide the rows."""
    inner = Scope(scope)
    inner.add(source)
    for definition in node.args.get("define") or ():
        alias = walk.name(definition.args.get("alias"))
        inner.by_alias.setdefault(alias, source)
    # A symbol without a definition matches any row, and measures may name it.
    for symbol in str(node.args.get("pattern") or "").replace("*", " ").replace("+", " ").replace("?", " ").split():
        inner.by_alias.setdefault(walk.name(symbol.strip("()'")), source)
    output = QueryOutput()
    for item in node.args.get("partition_by") or ():
        deps = dependencies(walk, item, inner, env)
        output.add(walk.name(item.this) if isinstance(item, nodes.Column) else "", deps)
        walk.refer(deps, GROUP_BY)
    order = node.args.get("order")
    refer_to(walk, order, inner, env, SORT)
    if "ALL ROWS" in str(node.args.get("rows") or "").upper():
        output = star_of(walk, inner)
    for measure in node.args.get("measures") or ():
        item = measure.this if isinstance(measure, nodes.MatchRecognizeMeasure) else measure
        output.add(walk.name(item.args.get("alias")), dependencies(walk, item, inner, env))
    for definition in node.args.get("define") or ():
        refer_to(walk, definition.this, inner, env, FILTER)
    alias, columns = walk.alias(node)
    return Source(alias or source.alias, output=output.renamed(columns) if columns else output)
