"""A thin evaluator of plans in DuckDB for tests: leaves are tables, ``leaf_types`` of theirs the test's business.

Types are DuckDB's own; what Spark does otherwise is the product's renderer's to know.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import duckdb

from govtool.records.plan import expressions as e
from govtool.records.plan import nodes as n
from govtool.records.plan import types as t
from govtool.records.plan.nodes import outputs
from govtool.records.plan.tree import Node

TYPES = {
    "integer": "INTEGER",
    "long": "BIGINT",
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "double": "DOUBLE",
    "date": "DATE",
    "short": "SMALLINT",
    "byte": "TINYINT",
    "void": "INTEGER",
}
INFIX = {
    "=": "=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "<=>": "IS NOT DISTINCT FROM",
    "+": "+",
    "-": "-",
    "*": "*",
    "and": "AND",
    "or": "OR",
    "div": "//",
    "%": "%",
    "/": "/",
    "like": "LIKE",
}
FUNCTIONS = {"collect_list": "list", "size": "len", "array": "list_value", "count": "count", "every": "bool_and"}


def type_of(kind: t.Type) -> str:
    if isinstance(kind, t.Array):
        return type_of(kind.element) + "[]"
    if isinstance(kind, t.Decimal):
        return f"DECIMAL({kind.precision},{kind.scale})"
    assert isinstance(kind, t.Scalar), kind
    return TYPES[kind.name]


class Duck:
    """Tables by name, plans over them."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self._numbers = count(1)

    def load(self, name: str, columns: list[tuple[str, str]], rows: list[tuple[Any, ...]]) -> None:
        body = ", ".join(f'"{column}" {kind}' for column, kind in columns)
        self.connection.execute(f'CREATE OR REPLACE TABLE "{name}" ({body})')
        if rows:
            self.connection.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(columns))})', rows)

    def keep(self, node: Node) -> n.Relation:
        """Evaluate a plan into a table of its own; return the leaf that reads it."""
        name = f"kept{next(self._numbers)}"
        self.connection.execute(f"CREATE TEMP TABLE {name} AS {self.sql(node)}")
        columns = unique(outputs(node))
        named = tuple(e.Attribute(a.id, f"c{a.id}", a.type, a.nullable) for a in columns)
        return n.Relation(0, name, "table", (), named, t.Struct(()))

    def fetch(self, node: Node) -> list[tuple[Any, ...]]:
        """The rows of a plan, by position."""
        text = ", ".join(f"c{a.id}" for a in outputs(node))
        return self.connection.execute(f"SELECT {text} FROM ({self.sql(node)})").fetchall()

    def arrow(self, node: Node) -> Any:
        return self.connection.execute(self.sql(node)).to_arrow_table()

    # Operators

    def sql(self, node: Node) -> str:
        return getattr(self, "_" + type(node).__name__.lower())(node)

    def source(self, node: Node) -> str:
        return f"({self.sql(node)}) AS q{next(self._numbers)}"

    def _relation(self, node: n.Relation) -> str:
        record = dict(node.metadata)
        columns = [f"rowid AS c{a.id}" if a.id in record else f'"{a.name}" AS c{a.id}' for a in unique(node.columns)]
        return f'SELECT {", ".join(columns)} FROM "{node.dataset}"'

    def _localrows(self, node: n.LocalRows) -> str:
        if not node.columns:
            return f"SELECT 1 AS one FROM range({len(node.rows)})"
        rows = [
            "SELECT "
            + ", ".join(f"{self.literal(v, a.type)} AS c{a.id}" for v, a in zip(row, node.columns, strict=True))
            for row in node.rows
        ]
        nothing = ", ".join(f"CAST(NULL AS {type_of(a.type)}) AS c{a.id}" for a in node.columns)
        return " UNION ALL ".join(rows) or f"SELECT {nothing} WHERE false"

    def _project(self, node: n.Project) -> str:
        columns = {c.id: f"{self.term(c.value)} AS c{c.id}" for c in node.columns}
        return f"SELECT {', '.join(columns.values())} FROM {self.source(node.child)}"

    def _filter(self, node: n.Filter) -> str:
        return f"SELECT * FROM {self.source(node.child)} WHERE {self.term(node.condition)}"

    def _join(self, node: n.Join) -> str:
        on = "true" if node.condition is None else self.term(node.condition)
        left, right = self.source(node.left), self.source(node.right)
        if node.kind in ("left_semi", "left_anti"):
            word = "" if node.kind == "left_semi" else "NOT "
            return f"SELECT * FROM {left} WHERE {word}EXISTS (SELECT 1 FROM {right} WHERE {on})"
        if node.kind == "existence":
            assert node.exists is not None
            return f"SELECT *, EXISTS (SELECT 1 FROM {right} WHERE {on}) AS c{node.exists.id} FROM {left}"
        word = "inner" if node.kind == "cross" else node.kind
        return f"SELECT * FROM {left} {word} JOIN {right} ON {on}"

    def _lateraljoin(self, node: n.LateralJoin) -> str:
        word = "LEFT" if node.kind == "left" else "INNER"
        on = "true" if node.condition is None else self.term(node.condition)
        return f"SELECT * FROM {self.source(node.left)} {word} JOIN LATERAL {self.source(node.right)} ON {on}"

    def _aggregate(self, node: n.Aggregate) -> str:
        columns = ", ".join(f"{self.term(c.value)} AS c{c.id}" for c in node.keys + node.measures)
        keys = ", ".join(self.term(c.value) for c in node.keys)
        return f"SELECT {columns} FROM {self.source(node.child)}" + (f" GROUP BY {keys}" if keys else "")

    def _distinct(self, node: n.Distinct) -> str:
        return f"SELECT DISTINCT * FROM {self.source(node.child)}"

    def _union(self, node: n.Union) -> str:
        return " UNION ALL ".join(self._positional(child, node.columns) for child in node.children)

    def _setoperation(self, node: n.SetOperation) -> str:
        word = node.kind.upper() + (" ALL" if node.all else "")
        return f"{self._positional(node.left, node.columns)} {word} {self._positional(node.right, node.columns)}"

    def _positional(self, node: Node, columns: tuple[e.Attribute, ...]) -> str:
        names = zip(outputs(node), columns, strict=True)
        text = ", ".join(f"CAST(c{a.id} AS {type_of(b.type)}) AS c{b.id}" for a, b in names)
        return f"SELECT {text} FROM {self.source(node)}"

    def _window(self, node: n.Window) -> str:
        columns = ", ".join(f"{self.term(c.value)} AS c{c.id}" for c in node.columns)
        return f"SELECT *, {columns} FROM {self.source(node.child)}"

    def _sort(self, node: n.Sort) -> str:
        return f"SELECT * FROM {self.source(node.child)} ORDER BY {self._order(node.order)}"

    def _limit(self, node: n.Limit) -> str:
        if isinstance(node.child, n.Sort):
            inner = self._sort(node.child)
        else:
            inner = f"SELECT * FROM {self.source(node.child)}"
        return f"SELECT * FROM ({inner} LIMIT {node.count if node.count is not None else 'ALL'} OFFSET {node.offset})"

    def _generate(self, node: n.Generate) -> str:
        assert isinstance(node.generator, e.Call)
        assert node.generator.name == "explode"
        value, (column,) = self.term(node.generator.arguments[0]), node.columns
        if node.outer:
            value = f"CASE WHEN len({value}) > 0 THEN {value} ELSE [NULL] END"
        return f"SELECT *, unnest({value}) AS c{column.id} FROM {self.source(node.child)}"

    def _expand(self, node: n.Expand) -> str:
        name = self.source(node.child)
        lines = [
            "SELECT " + ", ".join(f"CAST({self.term(v)} AS {type_of(c.type)}) AS c{c.id}" for v, c in zip(line, node.columns, strict=True)) + f" FROM {name}"
            for line in node.projections
        ]  # fmt: skip
        return " UNION ALL ".join(lines)

    def _repartition(self, node: n.Repartition) -> str:
        return self.sql(node.child)

    # Expressions

    def literal(self, value: Any, kind: t.Type) -> str:
        if isinstance(kind, t.Scalar) and kind.name == "date" and value is not None:
            return f"(DATE '1970-01-01' + {value})"
        if isinstance(value, str):
            text = "'" + value.replace("'", "''") + "'"
        elif isinstance(value, tuple) and isinstance(kind, t.Array):
            text = "[" + ", ".join(self.literal(item, kind.element) for item in value) + "]"
        else:
            text = "NULL" if value is None else str(value)
        return f"CAST({text} AS {type_of(kind)})"

    def term(self, term: Any) -> str:
        return getattr(self, "_t_" + type(term).__name__.lower())(term)

    def _t_literal(self, term: e.Literal) -> str:
        return self.literal(term.value, term.type)

    def _t_attribute(self, term: e.Attribute) -> str:
        return f"c{term.id}"

    def _t_outer(self, term: e.Outer) -> str:
        return f"c{term.attribute.id}"

    def _t_call(self, term: e.Call) -> str:
        args = [self.term(arg) for arg in term.arguments]
        if term.name in INFIX and len(args) >= 2:
            return "(" + f" {INFIX[term.name]} ".join(args) + ")"
        if term.name in ("is null", "is not null"):
            return f"({args[0]} {term.name.upper()})"
        if term.name in ("not", "negative"):
            return f"({'NOT' if term.name == 'not' else '-'} {args[0]})"
        if term.name == "in":
            return f"({args[0]} IN ({', '.join(args[1:])}))"
        return f"{FUNCTIONS.get(term.name, term.name)}({', '.join(args)})"

    def _t_cast(self, term: e.Cast) -> str:
        return f"CAST({self.term(term.value)} AS {type_of(term.type)})"

    def _t_case(self, term: e.Case) -> str:
        branches = " ".join(f"WHEN {self.term(a)} THEN {self.term(b)}" for a, b in term.branches)
        other = "" if term.otherwise is None else f" ELSE {self.term(term.otherwise)}"
        return f"CASE {branches}{other} END"

    def _order(self, keys: tuple[e.SortKey, ...]) -> str:
        return ", ".join(
            f"{self.term(k.value)} {'DESC' if k.descending else 'ASC'} NULLS {'FIRST' if k.nulls_first else 'LAST'}"
            for k in keys
        )

    def _t_aggregatecall(self, term: e.AggregateCall) -> str:
        if term.name == "count" and isinstance(term.arguments[0], e.Literal) and not term.distinct:
            text = "count(*)"
        else:
            word = "DISTINCT " if term.distinct else ""
            text = f"{FUNCTIONS.get(term.name, term.name)}({word}{', '.join(map(self.term, term.arguments))})"
        conditions = [] if term.filter is None else [self.term(term.filter)]
        if term.name == "collect_list":
            conditions.append(f"{self.term(term.arguments[0])} IS NOT NULL")
        return text + (f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else "")

    def _t_windowcall(self, term: e.WindowCall) -> str:
        parts = []
        if term.partition:
            parts.append("PARTITION BY " + ", ".join(map(self.term, term.partition)))
        if term.order:
            parts.append("ORDER BY " + self._order(term.order))
        if term.frame is not None:
            lower, upper = self._bound(term.frame.lower), self._bound(term.frame.upper)
            parts.append(f"{term.frame.kind.upper()} BETWEEN {lower} AND {upper}")
        return f"{self.term(term.function)} OVER ({' '.join(parts)})"

    def _bound(self, bound: Any) -> str:
        if isinstance(bound, str):
            return bound.upper()
        assert isinstance(bound, e.Literal)
        return f"{abs(bound.value)} {'PRECEDING' if bound.value < 0 else 'FOLLOWING'}"

    def _t_scalarsubquery(self, term: e.ScalarSubquery) -> str:
        return f"(SELECT c{outputs(term.plan)[0].id} FROM {self.source(term.plan)})"

    def _t_exists(self, term: e.Exists) -> str:
        return f"EXISTS (SELECT 1 FROM {self.source(term.plan)})"

    def _t_insubquery(self, term: e.InSubquery) -> str:
        names = ", ".join(f"c{a.id}" for a in outputs(term.plan))
        return f"(({', '.join(map(self.term, term.values))}) IN (SELECT {names} FROM {self.source(term.plan)}))"


def unique(columns: tuple[e.Attribute, ...]) -> tuple[e.Attribute, ...]:
    return tuple({a.id: a for a in columns}.values())
