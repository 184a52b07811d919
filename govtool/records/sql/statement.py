"""A plan as one statement: a flat WITH list, one entry an operator, every column named by its id (``c17``).

An operator that reads columns of a query around it cannot stand in the list: it is written where it is used, and so is
all that is above it. Every reference is qualified by the operator it is of, which makes correlation right whatever the
names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from govtool.records.plan.expressions import (
    Attribute,
    Expression,
    Literal,
    Named,
    Udf,
)
from govtool.records.plan.nodes import (
    Aggregate,
    Break,
    Deduplicate,
    Definition,
    Distinct,
    Expand,
    Filter,
    Generate,
    Join,
    LateralJoin,
    Limit,
    LocalRows,
    Plan,
    Project,
    Range,
    Reference,
    Relation,
    Repartition,
    Sample,
    SetOperation,
    Sort,
    Tail,
    Union,
    Window,
    With,
    Write,
)
from govtool.records.plan.tree import Node, fold_nodes
from govtool.records.sql.dialect import Dialect, NotExact
from govtool.records.sql.expressions import ExpressionWriter, steering_of
from govtool.records.sql.operands import Operand, Visible
from govtool.records.sql.with_list import NOTHING, WithList, unique

_JOINS = {"inner": "JOIN", "cross": "CROSS JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN"}
KEPT = "kept"
"""The format of a relation that is a table of the executor's own."""


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """A plan in SQL.

    The leaves are tables, whose columns are named by their ids; the executor makes them.
    """

    text: str
    columns: tuple[Attribute, ...]
    """The result's columns, by position: columns ``o0``, ``o1`` …"""
    relations: tuple[tuple[str, Relation], ...]
    """The tables that the text reads, under their names there (``leaf_0`` …); what an executor kept has its own."""
    udfs: tuple[Udf, ...]
    undetermined: tuple[str, ...]
    """The reason why another run may give other rows without being wrong."""


def write(plan: Plan, dialect: Dialect) -> SqlStatement:
    """Write a plan.

    Raises:
        NotExact: The dialect's executor cannot evaluate it exactly.
    """
    writer = _Writer(dialect)
    root = writer.plan(plan.root, None)
    return writer.statement(root)


class _Writer(WithList):
    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        self.relations: dict[str, Relation] = {}
        self.expressions = ExpressionWriter(dialect, self.plan)
        self.expression = self.expressions.write
        self._known: dict[int, Operand] = {}
        self._keep: list[Node] = []
        self._definitions: dict[int, Operand] = {}
        self._operators: dict[type[Node], Callable[..., Operand]] = {
            Relation: self._relation, LocalRows: self._local, Range: self._range, Project: self._project,
            Filter: self._filter, Join: self._join, LateralJoin: self._lateral, Aggregate: self._aggregate,
            Distinct: self._distinct,
            Deduplicate: self._deduplicate, Union: self._union, SetOperation: self._set, Window: self._window,
            Sort: self._sort, Limit: self._limit, Tail: self._tail, Generate: self._generate, Expand: self._expand,
            Definition: self._definition, With: self._with, Reference: self._reference,
            Repartition: self._same, Write: self._same,
        }  # fmt: skip

    def statement(self, root: Operand) -> SqlStatement:
        """The whole statement."""
        columns = ", ".join(f"{root.alias}.{self.column(each)} AS o{i}" for i, each in enumerate(root.columns))
        entries = ",\n".join(f"{name} AS (\n  {text}\n)" for name, text in self.entries)
        body = f"SELECT {columns or '1 AS nothing'} FROM {root.table}"
        text = f"WITH {entries}\n{body}" if entries else body
        return SqlStatement(
            text,
            root.columns,
            tuple(self.relations.items()),
            tuple(self.expressions.udfs.values()),
            tuple(self.expressions.undetermined),
        )

    # ---- plans ----------------------------------------------------------------------------------------------------

    def plan(self, root: Node, around: Visible | None) -> Operand:
        """Write a plan, and return its root as a source."""
        return fold_nodes(root, lambda node, inputs: self._node(node, inputs, around), _entered)

    def _node(self, node: Node, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        known = self._known.get(id(node))
        if known is not None:
            return known
        if isinstance(node, Break):
            raise NotExact(node.reason)
        if isinstance(node, Sample):
            raise NotExact("a random sample")
        write = self._operators.get(type(node))
        if write is None:
            raise NotExact(f"the operator {type(node).__name__}")
        made = write(node, inputs, around)
        if not made.inline:
            self._known[id(node)] = made
            self._keep.append(node)
        return made

    # ---- leaves ---------------------------------------------------------------------------------------------------

    def _relation(self, node: Relation, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        if node.format == KEPT:
            if not re.fullmatch(r"kept_[0-9a-z_]+", node.dataset):
                raise NotExact("a kept relation under a name that no executor gives")
            return Operand(node.dataset, node.columns)
        name = f"leaf_{node.leaf}" if f"leaf_{node.leaf}" not in self.relations else f"leaf_{node.leaf}_{self.count}"
        self.count += 1
        self.relations[name] = node
        return Operand(name, node.columns)

    def _local(self, node: LocalRows, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        if not node.rows:
            items = [
                (self.dialect.literal(Literal(None, each.type)), self.column(each)) for each in unique(node.columns)
            ]
            return self.add(f"{self.select(items)} WHERE 1 = 0", node.columns, ())
        if not node.columns:
            rows = [["1"] for _ in node.rows]
            return self.add(f"SELECT * FROM {self.dialect.local_table(rows, [NOTHING])}", (), ())
        rows = [
            [self.dialect.literal(Literal(value, each.type)) for value, each in zip(row, node.columns, strict=True)]
            for row in node.rows
        ]
        names = [self.column(each) for each in node.columns]
        return self.add(f"SELECT * FROM {self.dialect.local_table(rows, names)}", node.columns, ())

    def _range(self, node: Range, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        table = f"range({node.start}, {node.end}, {node.step})"
        text = f"SELECT * FROM {table} AS r ({self.column(node.column)})"
        return self.add(text, (node.column,), ())

    # ---- rows one by one ------------------------------------------------------------------------------------------

    def _project(self, node: Project, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        source = inputs[0]
        scope = self.scope(around, source)
        seen: dict[int, tuple[str, str]] = {}
        for each in node.columns:
            if each.id not in seen:
                seen[each.id] = (self.expression(each.value, scope), self.column(each.attribute))
        text = f"{self.select(list(seen.values()), source, True)} FROM {source.table}"
        return self.add(text, tuple(each.attribute for each in node.columns), inputs, scope, source.position)

    def _filter(self, node: Filter, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        source = inputs[0]
        scope = self.scope(around, source)
        self.expressions.steering = steering_of(node.condition)
        text = f"SELECT {source.alias}.* FROM {source.table} WHERE {self.expression(node.condition, scope)}"
        return self.add(text, source.columns, inputs, scope, source.position)

    def _same(self, node: Node, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        return Operand(inputs[0].alias, inputs[0].columns, inputs[0].inline)

    def _generate(self, node: Generate, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        source = inputs[0]
        scope = self.scope(around, source)
        generator = self.expression(node.generator, scope)
        alias = f"g{self.count}"
        columns = [(f"{source.alias}.{self.column(each)}", self.column(each)) for each in unique(source.columns)]
        columns += [(f"{alias}.{self.column(each)}", self.column(each)) for each in node.columns]
        text = f"{self.select(columns)} FROM {self.dialect.generate(node, generator, source.table, alias)}"
        return self.add(text, source.columns + node.columns, inputs, scope)

    def _expand(self, node: Expand, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        source = inputs[0]
        scope = self.scope(around, source)
        branches = []
        for row in node.projections:
            values = [self._typed(value, each, scope) for value, each in zip(row, node.columns, strict=True)]
            columns = [(value, self.column(each)) for value, each in zip(values, node.columns, strict=True)]
            branches.append(f"{self.select(columns)} FROM {source.table}")
        return self.add("\n  UNION ALL ".join(branches), node.columns, inputs, scope)

    def _typed(self, value: Expression, column: Attribute, scope: Visible) -> str:
        return self.expression(value, scope)

    # ---- joins ----------------------------------------------------------------------------------------------------

    def _join(self, node: Join, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        left, right = inputs
        if node.kind in ("left_semi", "left_anti", "existence"):
            return self._half_join(node, inputs, around)
        if node.kind not in _JOINS:
            raise NotExact(f"a join of kind {node.kind}")
        scope = self.scope(around, left, right)
        condition = "TRUE" if node.condition is None else self.expression(node.condition, scope)
        columns = [(scope.names[each.id], self.column(each)) for each in unique(left.columns + right.columns)]
        keyword = "JOIN" if node.kind == "cross" and node.condition is not None else _JOINS[node.kind]
        on = "" if keyword == "CROSS JOIN" else f" ON {condition}"
        text = f"{self.select(columns)} FROM {left.table} {keyword} {right.table}{on}"
        return self.add(text, left.columns + right.columns, inputs, scope)

    def _half_join(self, node: Join, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        left, right = inputs
        scope = self.scope(around, left, right)
        condition = "TRUE" if node.condition is None else self.expression(node.condition, scope)
        exists = f"EXISTS (SELECT 1 FROM {right.table} WHERE {condition})"
        if node.kind == "existence" and node.exists is not None:
            columns = [(scope.names[each.id], self.column(each)) for each in unique(left.columns)]
            columns.append((exists, self.column(node.exists)))
            text = f"{self.select(columns)} FROM {left.table}"
            return self.add(text, (*left.columns, node.exists), inputs, scope)
        negated = "NOT " if node.kind == "left_anti" else ""
        text = f"SELECT {left.alias}.* FROM {left.table} WHERE {negated}{exists}"
        return self.add(text, left.columns, inputs, scope)

    def _lateral(self, node: LateralJoin, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        left = inputs[0]
        if node.kind not in ("inner", "cross", "left"):
            raise NotExact(f"a lateral join of kind {node.kind}")
        right = self.plan(node.right, self.scope(around, left))
        alias = f"l{self.count}"
        table = f"LATERAL (SELECT {right.alias}.* FROM {right.table}) AS {alias}"
        scope = self.scope(around, left, Operand(alias, right.columns))
        condition = "TRUE" if node.condition is None else self.expression(node.condition, scope)
        columns = [(scope.names[each.id], self.column(each)) for each in unique(left.columns + right.columns)]
        keyword = "LEFT JOIN" if node.kind == "left" else "JOIN"
        text = f"{self.select(columns)} FROM {left.table} {keyword} {table} ON {condition}"
        return self.add(text, left.columns + right.columns, (left,), scope)

    # ---- groups ---------------------------------------------------------------------------------------------------

    def _aggregate(self, node: Aggregate, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        source = inputs[0]
        for each in node.keys:
            self.dialect.keys_comparable(each.type)
        if any(not isinstance(each.value, Attribute) for each in node.keys):
            source = self._keyed(node.keys, source, around)
        scope = self.scope(around, source)
        names = [f"{source.alias}.{self.column(each.attribute)}" for each in node.keys]
        columns = [(name, self.column(each.attribute)) for name, each in zip(names, node.keys, strict=True)]
        columns += [(self.expression(each.value, scope), self.column(each.attribute)) for each in node.measures]
        if not columns:
            columns = [("count(*)", NOTHING)]
        group = f" GROUP BY {', '.join(names)}" if names else ""
        text = f"{self.select(columns)} FROM {source.table}{group}"
        return self.add(text, tuple(each.attribute for each in node.keys + node.measures), (source,), scope)

    def _keyed(self, keys: tuple[Named, ...], source: Operand, around: Visible | None) -> Operand:
        """A source with the keys computed: a constant in GROUP BY is a position, not a key."""
        scope = self.scope(around, source)
        computed = [each for each in keys if not isinstance(each.value, Attribute)]
        own = {each.id for each in source.columns}
        if any(each.id in own for each in computed):
            raise NotExact("a key that hides a column of its input")
        columns = [(scope.names[each.id], self.column(each)) for each in unique(source.columns)]
        columns += [(self.expression(each.value, scope), self.column(each.attribute)) for each in computed]
        text = f"{self.select(columns)} FROM {source.table}"
        made = tuple(each.attribute for each in computed)
        return self.add(text, unique(source.columns) + made, (source,), scope)

    def _distinct(self, node: Distinct, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        source = inputs[0]
        for each in source.columns:
            self.dialect.keys_comparable(each.type)
        columns = [(f"{source.alias}.{self.column(each)}", self.column(each)) for each in unique(source.columns)]
        text = f"{self.select(columns).replace('SELECT', 'SELECT DISTINCT', 1)} FROM {source.table}"
        return self.add(text, source.columns, inputs)

    def _deduplicate(self, node: Deduplicate, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        if self.dialect.name != "spark":
            raise NotExact("dropDuplicates by some columns")
        self.expressions.undetermined["dropDuplicates by some columns keeps a row that is not determined"] = None
        source, keys = inputs[0], {each.id for each in node.keys}
        columns = []
        for each in unique(source.columns):
            name = f"{source.alias}.{self.column(each)}"
            columns.append((name if each.id in keys else f"first({name})", self.column(each)))
        group = ", ".join(f"{source.alias}.{self.column(each)}" for each in node.keys)
        return self.add(f"{self.select(columns)} FROM {source.table} GROUP BY {group}", source.columns, inputs)

    def _window(self, node: Window, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        source = inputs[0]
        scope = self.scope(around, source)
        columns = [(scope.names[each.id], self.column(each)) for each in unique(source.columns)]
        columns += [(self.expression(each.value, scope), self.column(each.attribute)) for each in node.columns]
        text = f"{self.select(columns)} FROM {source.table}"
        return self.add(text, source.columns + tuple(each.attribute for each in node.columns), inputs, scope)

    # ---- several inputs by position -------------------------------------------------------------------------------

    def _union(self, node: Union, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        branches = [self.positional(each, node.columns) for each in inputs]
        return self.add("\n  UNION ALL ".join(branches), node.columns, inputs)

    def _set(self, node: SetOperation, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        for each in node.columns:
            self.dialect.keys_comparable(each.type)
        left, right = (self.positional(each, node.columns) for each in inputs)
        operator = f"{node.kind.upper()}{' ALL' if node.all else ''}"
        return self.add(f"{left}\n  {operator} {right}", node.columns, inputs)

    # ---- order ----------------------------------------------------------------------------------------------------

    def _sort(self, node: Sort, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        source = inputs[0]
        if not node.total:
            return self._same(node, inputs, around)
        scope = self.scope(around, source)
        keys = ", ".join(self.expression(each, scope) for each in node.order)
        position = f"p{self.count}"
        columns = [(scope.names[each.id], self.column(each)) for each in unique(source.columns)]
        columns.append((f"row_number() OVER (ORDER BY {keys})", position))
        return self.add(f"{self.select(columns)} FROM {source.table}", source.columns, inputs, scope, position)

    def _limit(self, node: Limit, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        source = inputs[0]
        if source.position:
            self.expressions.undetermined["rows that tie at a limit"] = None
        elif node.count != 0:
            self.expressions.undetermined["a limit without an order"] = None
        limit = "" if node.count is None else f" LIMIT {node.count}"
        offset = f" OFFSET {node.offset}" if node.offset else ""
        order = f" ORDER BY {source.alias}.{source.position}" if source.position else ""
        text = f"SELECT {source.alias}.* FROM {source.table}{order}{limit}{offset}"
        return self.add(text, source.columns, inputs, None, source.position)

    def _tail(self, node: Tail, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        source = inputs[0]
        if not source.position:
            raise NotExact("the last rows of what has no order")
        self.expressions.undetermined["rows that tie at a limit"] = None
        order = f" ORDER BY {source.alias}.{source.position} DESC"
        text = f"SELECT {source.alias}.* FROM {source.table}{order} LIMIT {node.count}"
        return self.add(text, source.columns, inputs, None, source.position)

    # ---- definitions ----------------------------------------------------------------------------------------------

    def _definition(self, node: Definition, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        if inputs[0].inline:
            raise NotExact("a definition that reads the query around it")
        self._definitions[node.id] = inputs[0]
        return Operand(inputs[0].alias, inputs[0].columns)

    def _with(self, node: With, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        return inputs[-1]

    def _reference(self, node: Reference, inputs: tuple[Operand, ...], around: Visible | None) -> Operand:
        source = self._definitions.get(node.id)
        if source is None:
            raise NotExact("a reference to a definition that is not there")
        return self.add(self.positional(source, node.columns), node.columns, ())


def _entered(node: Node) -> tuple[Node, ...]:
    """The inputs that are written on their own: the right side of a lateral join reads its left side."""
    return (node.left,) if isinstance(node, LateralJoin) else node.nodes()
