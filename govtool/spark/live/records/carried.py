"""Plans that carry the ids of records: a Catalyst plan rewritten so that each row has those of the rows behind it.

Rows of files are numbered by Spark itself (``_metadata.row_index``). Operators that work row by row pass ids on. At a
boundary (a group, DISTINCT, a window) a row gets the hash of its key as its id, and a table pairs it with the ids below
it, as Titian's association tables do (Interlandi et al., PVLDB 9(3), section 4): nothing is collected within the query,
and its own expressions stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from govtool.spark.live.jvm.scala import sequence
from govtool.spark.live.records.file_numbers import MAX_FILES, file_expression, listed_paths, numbers_of

PREFIX = "_govtool_"
"""Beginning of the names of carried columns."""
_PASSING = frozenset([
    "Filter", "Sort", "GlobalLimit", "LocalLimit", "Offset", "Tail", "Sample", "SubqueryAlias", "ResolvedHint",
    "Repartition", "RepartitionByExpression", "RebalancePartitions", "Generate",
])  # fmt: skip
"""Operators of one input whose output has all columns of it."""
_JOINS = frozenset(["Inner$", "Cross$", "LeftOuter$", "RightOuter$", "FullOuter$"])
_ATOMS = frozenset([
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp", "timestamp_ntz",
    "string", "binary",
])  # fmt: skip
"""Types of keys whose hashes are equal where the keys are; decimals, too."""


class NotCarried(Exception):
    """An operator cannot pass ids on, with the reason."""


@dataclass
class Carried:
    """A column of ids.

    Attributes:
        stop: The number of the boundary or input whose rows they are.
        column: The Catalyst attribute.
    """

    stop: int
    column: Any


@dataclass
class Boundary:
    """Rows that pairs are made of: one plan with a key's hash and the ids below.

    Attributes:
        number: Of the stop.
        label: For people.
        frame: A Java ``Dataset``: the hash first, then the ids.
        stops: The numbers of the ids' stops, in order.
        exactness: ``exact`` or ``superset``.
        reason: Why it is not exact.
        source: The Java ``Dataset`` below, which must not be evaluated twice.
    """

    number: int
    label: str
    frame: Any
    stops: list[int]
    exactness: str
    reason: str
    source: Any


@dataclass
class CarriedSource:
    """An input.

    Attributes:
        number: Of the stop.
        kind: ``files``, ``driver`` or ``range``.
        leaf: The id of the first column of its leaf, as the plan has it.
        files: URIs by the number that stands for them.
        frame: Of the driver's rows a Java ``Dataset`` of their ids.
    """

    number: int
    kind: str
    leaf: int
    files: Mapping[int, str] = field(default_factory=dict)
    frame: Any = None


class PlanCarrier:
    """Rewrites the plans of one session.

    Args:
        session: The session of pyspark.
        known_rows: Ids of first columns of leaves whose rows the driver made and that are kept.
    """

    def __init__(self, session: Any, known_rows: frozenset[int] = frozenset()) -> None:
        self.session = session
        self.boundaries: list[Boundary] = []
        self.sources: list[CarriedSource] = []
        self._known_rows = known_rows
        self._definitions: dict[int, Any] = {}
        self._numbers = count()
        self._jvm = session._jvm
        self._catalyst = session._jvm.org.apache.spark.sql.catalyst
        self._plans = self._catalyst.plans.logical

    # ---- Java -----------------------------------------------------------------------------------------------------

    def frame(self, plan: Any) -> Any:
        """A plan as a Java ``Dataset``."""
        sql = self._jvm.org.apache.spark.sql
        kind = sql.classic.Dataset if int(str(self.session.version).partition(".")[0]) >= 4 else sql.Dataset
        return kind.ofRows(self.session._jsparkSession, plan)

    def seq(self, items: list[Any]) -> Any:
        """Return a Scala ``Seq``."""
        return self._jvm.PythonUtils.toSeq(items)

    def project(self, columns: list[Any], plan: Any) -> Any:
        """Return a projection on columns that a plan has, or that are named."""
        return self._plans.Project(self.seq(columns), plan)

    def _with(self, plan: Any, text: str) -> tuple[Any, Any]:
        """A plan with one more column, by an expression of SQL, and the column."""
        name = f"{PREFIX}{next(self._numbers)}"
        column = self._jvm.org.apache.spark.sql.functions.expr(text)
        made = self.frame(plan).withColumn(name, column).queryExecution().analyzed()
        return made, sequence(made.output())[-1]

    def with_columns(self, plan: Any, texts: Sequence[str]) -> tuple[Any, list[Any]]:
        """A plan with more columns, by expressions of SQL, and these."""
        columns = []
        for text in texts:
            plan, column = self._with(plan, text)
            columns.append(column)
        return plan, columns

    def alias(self, value: Any, like: Any = None) -> Any:
        """A value as a column of ids; or as the column that another plan has."""
        none, empty = self._jvm.scala.Option.empty(), self.seq([])
        number = self._object("NamedExpression").newExprId() if like is None else like.exprId()
        name = f"{PREFIX}{next(self._numbers)}" if like is None else like.name()
        return self._catalyst.expressions.Alias(value, name, number, empty, none, empty)

    def _object(self, name: str) -> Any:
        """The companion object of an expression's class."""
        return getattr(getattr(self._catalyst.expressions, f"{name}$"), "MODULE$")

    def rebuilt(self, node: Any, **fields: Any) -> Any:
        """Return an operator with other values in some fields."""
        values = []
        for i in range(node.productArity()):
            values.append(fields.get(node.productElementName(i), node.productElement(i)))
        gateway = self.session.sparkContext._gateway
        array = gateway.new_array(self._jvm.java.lang.Object, len(values))
        for i, value in enumerate(values):
            array[i] = value
        return node.getClass().getConstructors()[0].newInstance(array)

    # ---- operators ------------------------------------------------------------------------------------------------

    def carry(self, node: Any) -> tuple[Any, list[Carried]]:
        """Rewrite an analyzed plan.

        Returns:
            The plan with the original columns and those of ids, and the latter.

        Raises:
            NotCarried: An operator cannot pass ids on.
        """
        kind = node.getClass().getSimpleName()
        if kind in _PASSING:
            return self._passed(kind, node)
        if kind not in _RULES:
            raise NotCarried(f"{kind} cannot carry the ids of records")
        return _RULES[kind](self, node)

    def _passed(self, kind: str, node: Any) -> tuple[Any, list[Carried]]:
        if kind == "Generate" and node.unrequiredChildIndex().nonEmpty():
            raise NotCarried("an explode that leaves columns out cannot carry the ids of records")
        child, ids = self.carry(node.children().head())
        return node.withNewChildren(self.seq([child])), ids

    def _carry_with_cte(self, node: Any) -> tuple[Any, list[Carried]]:
        for each in sequence(node.cteDefs()):
            self._definitions[int(each.id())] = each.child()
        return self.carry(node.plan())

    def _carry_cte_relation_ref(self, node: Any) -> tuple[Any, list[Carried]]:
        """A query with a name, in the place where it is read; once, as its rows may differ between two evaluations."""
        below = self._definitions.pop(int(node.cteId()), None)
        if below is None:
            raise NotCarried("a query of WITH that is read twice, or by itself, cannot carry the ids of records")
        own = sequence(below.output())
        child, ids = self.carry(below)
        columns = [self.alias(value, like) for value, like in zip(own, sequence(node.output()))]
        return self.project([*columns, *(each.column for each in ids)], child), ids

    def _carry_view(self, node: Any) -> tuple[Any, list[Carried]]:
        return self.carry(node.child())

    def _carry_project(self, node: Any) -> tuple[Any, list[Carried]]:
        child, ids = self.carry(node.child())
        return self.project([*sequence(node.projectList()), *(each.column for each in ids)], child), ids

    def _carry_join(self, node: Any) -> tuple[Any, list[Carried]]:
        kind = node.joinType().getClass().getSimpleName()
        if kind not in _JOINS:
            raise NotCarried(f"a join of type {kind.rstrip('$')} cannot carry the ids of records")
        left, ids = self.carry(node.left())
        right, others = self.carry(node.right())
        return node.withNewChildren(self.seq([left, right])), [*ids, *others]

    def _carry_union(self, node: Any) -> tuple[Any, list[Carried]]:
        parts = [(sequence(child.output()), *self.carry(child)) for child in sequence(node.children())]
        stops = [each.stop for _, _, ids in parts for each in ids]
        made = []
        for own, plan, ids in parts:
            known = {each.stop: each.column for each in ids}
            columns = list(own)
            for stop in stops:
                if stop not in known:
                    plan, known[stop] = self._with(plan, "CAST(NULL AS BIGINT)")
                columns.append(known[stop])
            made.append(self.project(columns, plan))
        union = node.withNewChildren(self.seq(made))
        outputs = sequence(union.output())[-len(stops) :] if stops else []
        return union, [Carried(stop, column) for stop, column in zip(stops, outputs)]

    def _carry_expand(self, node: Any) -> tuple[Any, list[Carried]]:
        child, ids = self.carry(node.child())
        columns = [each.column for each in ids]
        rows = [self.seq([*sequence(row), *columns]) for row in sequence(node.projections())]
        output = self.seq([*sequence(node.output()), *columns])
        return self.rebuilt(node, projections=self.seq(rows), output=output, child=child), ids

    # ---- boundaries -----------------------------------------------------------------------------------------------

    def _carry_aggregate(self, node: Any) -> tuple[Any, list[Carried]]:
        child, ids = self.carry(node.child())
        keys = sequence(node.groupingExpressions())
        own = self.alias(self._hash(keys))
        results = self.seq([*sequence(node.aggregateExpressions()), own])
        stop = self._boundary("aggregate", keys, child, ids)
        made = self.rebuilt(node, aggregateExpressions=results, child=child)
        return made, [Carried(stop, own.toAttribute())]

    def _carry_distinct(self, node: Any) -> tuple[Any, list[Carried]]:
        return self._distinct(node.child())

    def _carry_deduplicate(self, node: Any) -> tuple[Any, list[Carried]]:
        """By some columns: the row that is kept; its columns, and so its ids, are those of one row."""
        keys = {each.exprId().id() for each in sequence(node.keys())}
        if keys == {each.exprId().id() for each in sequence(node.child().output())}:
            return self._distinct(node.child())
        child, ids = self.carry(node.child())
        return node.withNewChildren(self.seq([child])), ids

    def _distinct(self, below: Any) -> tuple[Any, list[Carried]]:
        keys = sequence(below.output())
        child, ids = self.carry(below)
        own = self.alias(self._hash(keys))
        stop = self._boundary("distinct", keys, child, ids)
        made = self._grouped(keys, [*keys, own], child)
        return made, [Carried(stop, own.toAttribute())]

    def _grouped(self, keys: list[Any], results: list[Any], child: Any) -> Any:
        given, outputs = self.seq(keys), self.seq(results)
        if int(str(self.session.version).partition(".")[0]) >= 4:
            return self._plans.Aggregate(given, outputs, child, self._jvm.scala.Option.empty())
        return self._plans.Aggregate(given, outputs, child)

    def _carry_window(self, node: Any) -> tuple[Any, list[Carried]]:
        """The row itself, and the rows of its partition."""
        child, ids = self.carry(node.child())
        keys = sequence(node.partitionSpec())
        own = self.alias(self._hash(keys))
        whole = node.orderSpec().isEmpty()
        reason = "" if whole or is_ranking(node) else "every row of the partition stands for the frame of a window"
        stop = self._boundary("window", keys, child, ids, reason)
        with_key = self.project([*sequence(child.output()), own], child)
        made = node.withNewChildren(self.seq([with_key]))
        return made, [*ids, Carried(stop, own.toAttribute())]

    def _boundary(self, label: str, keys: list[Any], child: Any, ids: list[Carried], reason: str = "") -> int:
        number = next(self._numbers)
        plan = self.project([self.alias(self._hash(keys)), *(each.column for each in ids)], child)
        grade = "superset" if reason else "exact"
        stops = [each.stop for each in ids]
        made = Boundary(number, label, self.frame(plan), stops, grade, reason, self.frame(child))
        self.boundaries.append(made)
        return number

    def _hash(self, keys: list[Any]) -> Any:
        """A hash of keys: equal keys have equal hashes, and NULL equals NULL. Without keys, a constant."""
        expressions = self._catalyst.expressions
        parts = []
        for key in keys:
            name = str(key.dataType().catalogString())
            if name not in _ATOMS and not name.startswith("decimal("):
                raise NotCarried(f"a key of type {name[:60]} cannot be distinguished by its hash")
            if not key.deterministic():
                raise NotCarried("a key is not deterministic")
            parts += [key, expressions.IsNull(key)]
        if not parts:
            parts.append(self._object("Literal").apply(0))
        return expressions.XxHash64(self.seq(parts))

    # ---- inputs ---------------------------------------------------------------------------------------------------

    def _carry_logical_relation(self, node: Any) -> tuple[Any, list[Carried]]:
        relation = node.relation()
        if not relation.getClass().getSimpleName() == "HadoopFsRelation":
            raise NotCarried("rows of a source that is no files have no positions")
        form = relation.fileFormat().getClass().getSimpleName()
        if form != "ParquetFileFormat":
            raise NotCarried(f"rows of files of {form.replace('FileFormat', '')} have no positions in Spark")
        if node.isStreaming():
            raise NotCarried("rows of a stream have no positions")
        columns = sequence(node.output())
        if not columns or any(each.name().lower() == "_metadata" for each in columns):
            raise NotCarried("a column is called _metadata")
        seed, files = self._numbered(relation)
        number = next(self._numbers)
        made, column = self._with(node, file_expression(seed))
        self.sources.append(CarriedSource(number, "files", columns[0].exprId().id(), files))
        return made, [Carried(number, column)]

    def _numbered(self, relation: Any) -> tuple[int, Mapping[int, str]]:
        """The seed of its files' numbers, and URIs by number."""
        files = relation.inputFiles()
        if len(files) > MAX_FILES:
            raise NotCarried(f"it reads more than {MAX_FILES:,} files")
        found = numbers_of(listed_paths(self._jvm, files))
        if found is None:
            raise NotCarried("its files cannot be distinguished by their hashes")
        return found

    def _carry_local_relation(self, node: Any) -> tuple[Any, list[Carried]]:
        return self._driver(node)

    def _carry_logical_rdd(self, node: Any) -> tuple[Any, list[Carried]]:
        columns = sequence(node.output())
        if not columns or columns[0].exprId().id() not in self._known_rows:
            raise NotCarried("rows of an RDD have no positions")
        return self._driver(node)

    def _driver(self, node: Any) -> tuple[Any, list[Carried]]:
        columns = sequence(node.output())
        if not columns:
            raise NotCarried("rows without columns have no positions")
        number = next(self._numbers)
        made, column = self._with(node, "monotonically_increasing_id()")
        frame = self.frame(self.project([column], made))
        self.sources.append(CarriedSource(number, "driver", columns[0].exprId().id(), frame=frame))
        return made, [Carried(number, column)]

    def _carry_range(self, node: Any) -> tuple[Any, list[Carried]]:
        (number_column,) = sequence(node.output())
        number = next(self._numbers)
        made, column = self._with(node, f"(id - {node.start()}) div {node.step()}")
        self.sources.append(CarriedSource(number, "range", number_column.exprId().id()))
        return made, [Carried(number, column)]


_RULES: dict[str, Callable[[PlanCarrier, Any], tuple[Any, list[Carried]]]] = {
    "WithCTE": PlanCarrier._carry_with_cte,
    "CTERelationRef": PlanCarrier._carry_cte_relation_ref,
    "View": PlanCarrier._carry_view,
    "Project": PlanCarrier._carry_project,
    "Join": PlanCarrier._carry_join,
    "Union": PlanCarrier._carry_union,
    "Expand": PlanCarrier._carry_expand,
    "Aggregate": PlanCarrier._carry_aggregate,
    "Distinct": PlanCarrier._carry_distinct,
    "Deduplicate": PlanCarrier._carry_deduplicate,
    "Window": PlanCarrier._carry_window,
    "LogicalRelation": PlanCarrier._carry_logical_relation,
    "LocalRelation": PlanCarrier._carry_local_relation,
    "LogicalRDD": PlanCarrier._carry_logical_rdd,
    "Range": PlanCarrier._carry_range,
}
"""What rewrites an operator, by its class in Catalyst."""


def is_ranking(node: Any) -> bool:
    """Return whether all functions of a window are those that look at the whole partition, as row_number does."""
    return "AggregateExpression" not in {
        part.getClass().getSimpleName()
        for column in sequence(node.windowExpressions())
        for call in sequence(column.children())
        for part in sequence(call.children())
    }
