"""Catalyst's operators as nodes: reads the JSON of ``PlanWalker`` into a plan.

For each class: the fields that are encoded, those that cannot change a row (hints, names of views, counts of
partitions), and nothing else. An operator of another class, or with another value in a field, becomes a Break with the
reason, and what is below it is still described.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, NamedTuple, cast

from govtool.records.plan import leaves, writes
from govtool.records.plan.checkpoints import Checkpoint, with_definitions
from govtool.records.plan.clock import Clock
from govtool.records.plan.expressions import (
    Attribute,
    Cast,
    Expression,
    Literal,
    Named,
    Opaque,
    Outer,
    SortKey,
    Udf,
    UdfReference,
    WindowCall,
    passed,
)
from govtool.records.plan.grouping import aggregate
from govtool.records.plan.nodes import (
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
    Repartition,
    Sample,
    Session,
    SetOperation,
    Sort,
    Tail,
    Union,
    Window,
    With,
    outputs,
)
from govtool.records.plan.term_pieces import PIECES, Query, Unread
from govtool.records.plan.terms import TermReader
from govtool.records.plan.tree import Node, Term, walk, walk_nodes

Json = Any
_JOINS = {
    "Inner$": "inner", "Cross$": "cross", "LeftOuter$": "left", "RightOuter$": "right", "FullOuter$": "full",
    "LeftSemi$": "left_semi", "LeftAnti$": "left_anti", "LeftSingle$": "left_single",
}  # fmt: skip


class DriverRows(NamedTuple):
    """Rows of the driver that a leaf of a plan stands for.

    Attributes:
        ids: The columns.
        rows: The rows.
        why_not: The reason why they are not kept; empty: they are.
        rdd: The RDD that has them; None: the plan has them itself. Another RDD whose columns have these ids holds what
            was made of them.
    """

    ids: list[int]
    rows: Json
    why_not: str = ""
    rdd: int | None = None


def read(
    captured: Json,
    session: Session,
    udfs: dict[str, UdfReference] | None = None,
    local: dict[int, DriverRows] | None = None,
    clock: Clock | None = None,
    checkpoints: Mapping[int, Checkpoint] | None = None,
) -> Plan:
    """Read a captured plan.

    Args:
        captured: The JSON of ``PlanWalker``: ``types``, ``nodes``, ``root``.
        session: What the plan ran in.
        udfs: Python functions by the digest of their command.
        local: Rows of driver data by the id of the first column of its leaf.
        clock: When Spark read the clock for the plan, if it did.
        checkpoints: Rows that the job kept before, by the number of their RDD.

    Raises:
        ValueError: The JSON is none of a plan.
    """
    reader = _Reader(captured, session, udfs or {}, local or {}, checkpoints or {})
    reader.terms.clock = clock or Clock()
    return Plan(reader.plan(captured), session)


def _rows_by_rdd(nodes: list[Json], local: dict[int, DriverRows]) -> dict[int | None, DriverRows]:
    """Rows of the driver by the number of their RDD: one side of a self-join has columns that nobody has heard of."""
    found: dict[int | None, DriverRows] = {}
    for raw in nodes:
        fields = raw["f"]
        if "$rdd" in fields and fields["output"]:
            known = local.get(nodes[fields["output"][0]["$"]]["f"].get("id"))
            if known is not None and known.rdd in (None, fields["$rdd"]):
                found[fields["$rdd"]] = known
    return found


class _Reader:
    def __init__(
        self,
        captured: Json,
        session: Session,
        udfs: dict[str, UdfReference],
        local: dict[int, DriverRows],
        checkpoints: Mapping[int, Checkpoint],
    ) -> None:
        self.made: list[Any] = []
        self.terms = TermReader(captured["types"], self.made, session.zone, udfs)
        self.session = session
        self.local = local
        self.checkpoints = checkpoints
        self._definitions: dict[int, Definition] = {}
        self._by_rdd = _rows_by_rdd(captured["nodes"], local)
        self._next = 0
        self._leaves = 0
        self.raw = captured["nodes"]
        for raw in captured["nodes"]:
            for name in ("id", "exprId"):
                value = raw["f"].get(name)
                number = value.get("$id", 0) if isinstance(value, dict) else value
                if isinstance(number, int):
                    self._next = max(self._next, number)
        self._operators: dict[str, Callable[[Json], Node]] = {
            "Project": self._project, "Filter": self._filter, "Join": self._join, "LateralJoin": self._lateral,
            "Aggregate": self._aggregate, "Distinct": lambda f: Distinct(self.node(f["child"])),
            "Deduplicate": self._deduplicate, "Union": self._union, "Intersect": self._intersect,
            "Except": self._except, "Window": self._window, "Sort": self._sort, "GlobalLimit": self._limit,
            "LocalLimit": self._limit, "Offset": self._offset, "Tail": self._tail, "Sample": self._sample,
            "Generate": self._generate, "Expand": self._expand, "WithCTE": self._with,
            "CTERelationDef": self._definition, "CTERelationRef": self._reference,
            "Repartition": self._repartition, "RepartitionByExpression": self._repartition,
            "RebalancePartitions": self._repartition, "CoalescePartitions": self._repartition,
            "SubqueryAlias": lambda f: self.node(f["child"]), "View": lambda f: self.node(f["child"]),
            "ResolvedHint": lambda f: self.node(f["child"]), "CollectMetrics": lambda f: self.node(f["child"]),
            "AttachDistributedSequence": self._numbered,
            "InsertIntoHadoopFsRelationCommand": self._insert,
            "SaveIntoDataSourceCommand": lambda f: writes.save(f, self.node(f["query"])),
            "CreateDataSourceTableAsSelectCommand": lambda f: writes.create_table(f, self.node(f["query"])),
            "AppendData": self._append, "OverwriteByExpression": self._append,
            "OverwritePartitionsDynamic": self._append,
            "PipeOperator": lambda f: self.node(f["child"]), "SQLFunctionNode": lambda f: self.node(f["child"]),
            "OneRowRelation": lambda f: LocalRows(self.leaf(), (), ((),)), "LocalRelation": self._local,
            "Range": self._range, "LogicalRelation": self._relation, "LogicalRDD": self._driver,
            "DataSourceV2Relation": self._connector, "DataSourceV2ScanRelation": self._connector,
        }  # fmt: skip

    def plan(self, captured: Json) -> Node:
        """Read all nodes in order; the last is the root."""
        for raw in captured["nodes"]:
            self.made.append(self._operator(raw) if raw.get("p") else self.terms.read(raw))
        root = cast(Node, self.made[captured["root"]])
        return with_definitions(root, self._definitions, count(self._leaves))

    # ---- helpers --------------------------------------------------------------------------------------------------

    def leaf(self) -> int:
        """The number of the next leaf."""
        self._leaves += 1
        return self._leaves - 1

    def fresh(self) -> int:
        """An id that no column of the plan has."""
        self._next += 1
        return self._next

    def node(self, value: Json) -> Node:
        """The operator that a field refers to."""
        found = self.made[value["$"]]
        if not isinstance(found, Node):
            raise Unread("an input that is no operator")
        return found

    def attributes(self, value: Json) -> tuple[Attribute, ...]:
        """The columns that a field names."""
        found = tuple(self.terms.term(each) for each in value)
        for each in found:
            if not isinstance(each, Attribute):
                raise Unread(each.reason if isinstance(each, Opaque) else "a column that is no attribute")
        return cast(tuple[Attribute, ...], found)

    def named(self, value: Json) -> tuple[Named, ...]:
        """The output columns that a field holds."""
        found = []
        for each in value:
            term = self.terms.term(each)
            if isinstance(term, Named):
                found.append(term)
            elif isinstance(term, Attribute):
                found.append(passed(term))
            elif isinstance(term, Outer):  # a column of the query around, as it is
                found.append(Named(term, term.attribute.id, term.attribute.name))
            else:
                raise Unread(
                    f"a column of the output is {term.reason}" if isinstance(term, Opaque) else "a column has no name"
                )
        return tuple(found)

    def _operator(self, raw: Json) -> Node:
        kind = raw["c"].rsplit(".", 1)[-1]
        read = self._operators.get(kind)
        try:
            if read is None:
                raise Unread("not on the list of operators")
            return _settled(read(raw["f"]))
        except (Unread, ValueError) as why:
            return self._broken(kind, raw, str(why))

    def _broken(self, kind: str, raw: Json, why: str) -> Break:
        children = [each for each in self._inputs(raw["f"]) if isinstance(each, Node)]
        terms = [each for each in self._inputs(raw["f"]) if isinstance(each, Term)]
        within = [plan for each in terms for term in walk(each) for plan in term.nodes()]
        columns = self._columns(raw, children)
        functions = [each for each in self._inputs(raw["f"]) if isinstance(each, Udf)]
        reference = functions[0].reference if functions else None
        is_source = kind in self._operators and not children and not within
        return Break(why if is_source else f"{kind}: {why}", (*children, *within), columns, reference)

    def _inputs(self, fields: Json) -> list[Any]:
        found = []
        for value in fields.values():
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, dict) and "$" in each:
                    found.append(self.made[each["$"]])
        return found

    def _columns(self, raw: Json, children: list[Node]) -> tuple[Attribute, ...]:
        for value in (raw.get("o"), raw["f"].get("output")):
            if value is not None:
                found = [self.made[each["$"]] for each in value]
                return tuple(each for each in found if isinstance(each, Attribute))
        for name in ("projectList", "aggregateExpressions"):
            if name in raw["f"]:
                return tuple(each.attribute for each in self.named(raw["f"][name]))
        return outputs(children[0]) if children else ()

    # ---- leaves ---------------------------------------------------------------------------------------------------

    def _local(self, fields: Json) -> Node:
        columns = self.attributes(fields["output"])
        if fields["$rows"] is None:
            raise Unread("more rows of the driver than are kept")
        return LocalRows(self.leaf(), columns, leaves.rows(fields["$rows"], columns))

    def _driver(self, fields: Json) -> Node:
        rdd = fields.get("$rdd")
        known = self._by_rdd.get(rdd)
        if known is not None and known.why_not and rdd not in self.checkpoints:
            raise Unread(known.why_not)
        columns = self.attributes(fields["output"])
        if rdd in self.checkpoints:
            reference = self.checkpoints[rdd].reference(columns, self.session)
            self._definitions.update(self.checkpoints[rdd].definitions())
            return reference
        if known is None or len(known.ids) != len(columns):
            raise Unread("rows of an RDD, or of the driver, that were not kept")
        return LocalRows(self.leaf(), columns, leaves.rows(known.rows, columns))

    def _range(self, fields: Json) -> Node:
        (column,) = self.attributes(fields["output"])
        return Range(self.leaf(), int(fields["start"]), int(fields["end"]), int(fields["step"]), column)

    def _relation(self, fields: Json) -> Node:
        columns = self.attributes(fields["output"])
        if fields.get("isStreaming"):
            raise Unread("a stream")
        return leaves.relation(fields, columns, self.leaf(), self.terms)

    def _connector(self, fields: Json) -> Node:
        if "$lake" in fields:
            return leaves.relation(fields, self.attributes(fields["output"]), self.leaf(), self.terms)
        raise Unread(leaves.no_table(fields))

    # ---- operators ------------------------------------------------------------------------------------------------

    def _project(self, fields: Json) -> Node:
        return Project(self.node(fields["child"]), self.named(fields["projectList"]))

    def _filter(self, fields: Json) -> Node:
        return Filter(self.node(fields["child"]), self.terms.value(fields["condition"]))

    def _join(self, fields: Json) -> Node:
        kind, exists = self._kind(fields["joinType"])
        condition = None if fields["condition"] is None else self.terms.value(fields["condition"])
        return Join(self.node(fields["left"]), self.node(fields["right"]), kind, condition, exists)

    def _kind(self, value: Json) -> tuple[Any, Attribute | None]:
        name = value["$product"].rsplit(".", 1)[-1]
        if name == "ExistenceJoin":
            (exists,) = self.attributes([value["f"]["exists"]])
            return "existence", exists
        if name not in _JOINS:
            raise Unread(f"a join of type {name}")
        return _JOINS[name], None

    def _lateral(self, fields: Json) -> Node:
        query = self.terms.term(fields["right"])
        kind, _ = self._kind(fields["joinType"])
        if not isinstance(query, Query):
            raise Unread("a lateral join without a query")
        condition = None if fields["condition"] is None else self.terms.value(fields["condition"])
        return LateralJoin(self.node(fields["left"]), query.plan, kind, condition, query.outer)

    def _aggregate(self, fields: Json) -> Node:
        grouping = self.terms.values(fields["groupingExpressions"])
        results = self.named(fields["aggregateExpressions"])
        return aggregate(self.node(fields["child"]), grouping, results, self.fresh)

    def _deduplicate(self, fields: Json) -> Node:
        child, keys = self.node(fields["child"]), self.attributes(fields["keys"])
        if {each.id for each in keys} == {each.id for each in outputs(child)}:
            return Distinct(child)
        return Deduplicate(child, keys)

    def _union(self, fields: Json) -> Node:
        children = tuple(self.node(each) for each in fields["children"])
        if fields.get("byName") or fields.get("allowMissingCol"):
            raise Unread("a union by name that is not resolved")
        return Union(children, _merged([outputs(each) for each in children]))

    def _intersect(self, fields: Json) -> Node:
        return self._set(fields, "intersect")

    def _except(self, fields: Json) -> Node:
        return self._set(fields, "except")

    def _set(self, fields: Json, kind: Any) -> Node:
        left, right = self.node(fields["left"]), self.node(fields["right"])
        return SetOperation(left, right, kind, bool(fields["isAll"]), outputs(left))

    def _window(self, fields: Json) -> Node:
        columns = self.named(fields["windowExpressions"])
        if not all(isinstance(each.value, (WindowCall, Opaque)) for each in columns):
            raise Unread("a window column that is no window function")
        return Window(self.node(fields["child"]), columns)

    def _sort(self, fields: Json) -> Node:
        order = tuple(self.terms.term(each) for each in fields["order"])
        if not all(isinstance(each, SortKey) for each in order):
            raise Unread("a sort key that cannot be read")
        return Sort(self.node(fields["child"]), cast(tuple[SortKey, ...], order), bool(fields["global"]))

    def _limit(self, fields: Json) -> Node:
        child, count = self.node(fields["child"]), _count(self.terms.value(fields["limitExpr"]))
        if isinstance(child, Limit) and child.count is not None:  # GlobalLimit above LocalLimit, or a smaller one
            return Limit(child.child, min(count, child.count), child.offset)
        if isinstance(child, Limit):
            return Limit(child.child, count, child.offset)
        return Limit(child, count)

    def _offset(self, fields: Json) -> Node:
        return Limit(self.node(fields["child"]), None, _count(self.terms.value(fields["offsetExpr"])))

    def _tail(self, fields: Json) -> Node:
        return Tail(self.node(fields["child"]), _count(self.terms.value(fields["limitExpr"])))

    def _sample(self, fields: Json) -> Node:
        lower, upper = (float(fields[name]["$f"]) for name in ("lowerBound", "upperBound"))
        child, seed = self.node(fields["child"]), fields.get("seed")
        return Sample(child, lower, upper, bool(fields["withReplacement"]), int(seed) if seed is not None else 0)

    def _generate(self, fields: Json) -> Node:
        if fields["unrequiredChildIndex"]:
            raise Unread("columns of the input are left out")
        generator = self.terms.value(fields["generator"])
        columns = self.attributes(fields["generatorOutput"])
        return Generate(self.node(fields["child"]), generator, bool(fields["outer"]), columns)

    def _expand(self, fields: Json) -> Node:
        projections = tuple(self.terms.values(row) for row in fields["projections"])
        return Expand(self.node(fields["child"]), projections, self.attributes(fields["output"]))

    def _numbered(self, fields: Json) -> Node:
        child, (column,) = self.node(fields["child"]), self.attributes([fields["sequenceAttr"]])
        number = Opaque("rows are numbered as they come: the index of pandas-on-Spark", (), column.type)
        return Project(child, (Named(number, column.id, column.name), *map(passed, outputs(child))))

    def _repartition(self, fields: Json) -> Node:
        return Repartition(self.node(fields["child"]))

    def _definition(self, fields: Json) -> Node:
        if fields.get("maxDepth") is not None or _is_recursive(self.node(fields["child"])):
            raise Unread("a recursive query")
        return Definition(self.node(fields["child"]), int(fields["id"]))

    def _reference(self, fields: Json) -> Node:
        if fields.get("recursive"):
            raise Unread("a recursive query")
        return Reference(int(fields["cteId"]), self.attributes(fields["output"]))

    def _with(self, fields: Json) -> Node:
        found = tuple(self.node(each) for each in fields["cteDefs"])
        if not all(isinstance(each, Definition) for each in found):
            raise Unread("a definition that cannot be read")
        return With(cast(tuple[Definition, ...], found), self.node(fields["plan"]))

    # ---- writes ---------------------------------------------------------------------------------------------------

    def _insert(self, fields: Json) -> Node:
        partitioned = tuple(each.name for each in self.attributes(fields["partitionColumns"]))
        return writes.insert(fields, self.node(fields["query"]), partitioned)

    def _append(self, fields: Json) -> Node:
        return writes.into_table(fields, self.raw[fields["table"]["$"]]["f"], self.node(fields["query"]))


def _settled(node: Node) -> Node:
    """Refuse an operator with a piece of an expression that nothing has taken up."""
    for term in walk(node):
        if isinstance(term, PIECES):
            raise Unread(f"{type(term).__name__} where a value is expected")
    return node


def _is_recursive(node: Node) -> bool:
    return any(isinstance(each, Break) and each.reason.startswith("UnionLoop") for each in walk_nodes(node))


def _count(value: Expression) -> int:
    while isinstance(value, Cast):
        value = value.value
    if isinstance(value, Literal) and isinstance(value.value, int):
        return value.value
    raise Unread("a row count that is not a number")


def _merged(columns: list[tuple[Attribute, ...]]) -> tuple[Attribute, ...]:
    """The columns of a union: those of its first input, nullable where any is."""
    return tuple(
        Attribute(each[0].id, each[0].name, each[0].type, any(one.nullable for one in each))
        for each in zip(*columns, strict=True)
    )
