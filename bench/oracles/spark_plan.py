"""What the columns of a query depend on, read out of the plan that Spark's own analyzer makes of it.

The analyzer has resolved every name: an attribute has an expression id, and says whose output it is. What is left is to
follow ids through the operators down to tables, and to call clauses by the names of our kinds. Nothing of the extractor
is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bench.oracles.spark_tree import Tree, holds, items_of, projections_of, read
from bench.oracles.views import CONDITIONAL, EXISTS, VALUE, WINDOW, Column, Deps, as_column

MAX_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Value:
    """What a value depends on, and its fields or elements where it was built in place."""

    deps: Deps = frozenset()
    fields: tuple[Value, ...] | None = None
    element: Value | None = None

    def steering(self, kind: str) -> Value:
        """The same as what only steers another value."""
        return Value(frozenset((column, EXISTS if own == EXISTS else kind) for column, own in self.deps))


NOTHING = Value()


def merged(values: Iterable[Value]) -> Value:
    """What depends on all of them; fields by position where all have them."""
    items = list(values)
    if not items:
        return NOTHING
    if len(items) == 1:
        return items[0]
    deps: Deps = frozenset().union(*(item.deps for item in items))
    fields = None
    if all(item.fields is not None for item in items):
        rows = [item.fields or () for item in items]
        if len({len(row) for row in rows}) == 1:
            fields = tuple(merged(column) for column in zip(*rows, strict=True))
    return Value(deps, fields)


Outputs = list[tuple[int, str, Value]]
"""The columns of an operator: expression id, name, what it depends on."""

Bound = Mapping[int, Value]


@dataclass
class PlanLineage:
    """What a plan says."""

    names: list[str]
    contributed: list[Deps]
    referenced: set[tuple[Column, str]] = field(default_factory=set)


class NotReadError(Exception):
    """An operator that this oracle does not know."""


def lineage_of(plan: Any) -> PlanLineage:
    """The lineage of an analyzed plan (a py4j proxy of a ``LogicalPlan``).

    Raises:
        NotReadError: it holds an operator that is not known here.
    """
    text = plan.toJSON()
    reader = Reader(projections_of(plan) if ".Expand" in text else {})
    outputs = reader.outputs(read(json.loads(text)), {})
    names = [name for _, name, _ in outputs]
    if plan.nodeName() == "CreateViewCommand":
        given = [item._1() for item in items_of(plan.userSpecifiedColumns())]
        names = given or names
    return PlanLineage(names, [value.deps for _, _, value in outputs], reader.referenced)


_TRANSPARENT = frozenset(
    {
        "SubqueryAlias",
        "View",
        "ResolvedHint",
        "GlobalLimit",
        "LocalLimit",
        "Limit",
        "Offset",
        "Tail",
        "Sample",
        "Repartition",
        "RebalancePartitions",
        "PipeOperator",
        "CTERelationDef",
    }
)
"""Operators that neither change nor choose by a column."""

_COMMANDS = {
    "InsertIntoHadoopFsRelationCommand": "query",
    "InsertIntoHiveTable": "query",
    "CreateDataSourceTableAsSelectCommand": "query",
    "CreateHiveTableAsSelectCommand": "query",
    "InsertIntoDataSourceCommand": "query",
    "InsertIntoDataSourceDirCommand": "query",
    "CreateViewCommand": "plan",
}
"""Commands, with the field that is their query."""

_COMMON = -1
"""The id under which a common expression is bound."""

_RANKS = frozenset({"Rank", "DenseRank", "PercentRank", "CumeDist", "RowNumber", "NTile"})
"""Window functions that take no value: the columns of ORDER BY that the plan gives them are the window's."""


class Reader:
    """Reads one plan."""

    def __init__(self, projections: Mapping[tuple[int, ...], list[list[Tree]]]) -> None:
        self.referenced: set[tuple[Column, str]] = set()
        self.projections = projections
        self.common: dict[int, Outputs] = {}
        self.loops: dict[int, Outputs] = {}
        self._pivots: dict[int, int] = {}
        self.everything: dict[int, Value] = {}
        """All that was ever bound; for references to an outer query, whose ids are unique."""

    # ---- operators ---------------------------------------------------------------------------------

    def outputs(self, node: Tree, outer: Bound) -> Outputs:
        """The columns of an operator; what it references is recorded."""
        found = self._outputs(node, outer)
        for number, _, value in found:
            self.everything[number] = value
        return found

    def _outputs(self, node: Tree, outer: Bound) -> Outputs:
        kind = node.kind
        method = getattr(self, f"_{kind.lower()}", None)
        if method is not None:
            made: Outputs = method(node, outer)
            return made
        if kind in _TRANSPARENT:
            return self.outputs(node.children[0], outer)
        if kind in _COMMANDS:
            inner = node.tree(_COMMANDS[kind])
            return self._renamed(node, self.outputs(inner, outer))
        if not node.children and "output" in node.fields:
            return [(item.id, item.fields["name"], NOTHING) for item in node.trees("output")]
        raise NotReadError(kind)

    def _renamed(self, node: Tree, found: Outputs) -> Outputs:
        """What a command writes has the command's names."""
        given = node.fields.get("outputColumnNames") or ""
        names = [name.strip() for name in given.strip("[]").split(",")] if isinstance(given, str) and given else []
        if node.kind == "CreateViewCommand":
            names = [
                str(item["_1"]) for item in node.fields.get("userSpecifiedColumns") or () if isinstance(item, dict)
            ]
        if len(names) != len(found):
            return found
        return [(number, name, value) for name, (number, _, value) in zip(names, found, strict=True)]

    def _logicalrelation(self, node: Tree, outer: Bound) -> Outputs:
        identifier = (node.fields.get("catalogTable") or {}).get("identifier")
        if identifier is None:
            raise NotReadError("a relation without a table")
        return self._table(identifier["table"], node.trees("output"))

    def _hivetablerelation(self, node: Tree, outer: Bound) -> Outputs:
        columns = node.trees("dataCols") + node.trees("partitionCols")
        return self._table(node.fields["tableMeta"]["identifier"]["table"], columns)

    def _table(self, table: str, columns: Sequence[Tree]) -> Outputs:
        return [
            (c.id, c.fields["name"], Value(frozenset({((table, c.fields["name"].lower()), VALUE)}))) for c in columns
        ]

    def _onerowrelation(self, node: Tree, outer: Bound) -> Outputs:
        return []

    def _project(self, node: Tree, outer: Bound) -> Outputs:
        bound = self._below(node, outer)
        return [self._named(item, bound) for item in node.trees("projectList")]

    def _filter(self, node: Tree, outer: Bound) -> Outputs:
        found = self.outputs(node.children[0], outer)
        self._refer(self.value(node.tree("condition"), self._bound(found, outer)), "filter")
        return found

    def _sort(self, node: Tree, outer: Bound) -> Outputs:
        found = self.outputs(node.children[0], outer)
        for item in node.trees("order"):
            self._refer(self.value(item, self._bound(found, outer)), "sort")
        return found

    def _repartitionbyexpression(self, node: Tree, outer: Bound) -> Outputs:
        """DISTRIBUTE BY, CLUSTER BY: which rows stand together."""
        found = self.outputs(node.children[0], outer)
        for item in node.trees("partitionExpressions"):
            self._refer(self.value(item, self._bound(found, outer)), "sort")
        return found

    def _aggregate(self, node: Tree, outer: Bound) -> Outputs:
        groups = node.trees("groupingExpressions")
        made = node.trees("aggregateExpressions")
        # PIVOT in two steps: the first groups by the pivot's column, too, which the second undoes.
        groups = groups[: len(groups) - self._pivots.pop(id(node), 0)]
        if any(holds(item, "PivotFirst") for item in made):
            self._pivots[id(node.children[0])] = 1
        bound = self._below(node, outer)
        for item in groups:
            self._refer(self.value(item, bound), "group_by")
        return [self._named(item, bound) for item in made]

    def _window(self, node: Tree, outer: Bound) -> Outputs:
        found = self.outputs(node.children[0], outer)
        bound = self._bound(found, outer)
        return [*found, *(self._named(item, bound) for item in node.trees("windowExpressions"))]

    def _distinct(self, node: Tree, outer: Bound) -> Outputs:
        found = self.outputs(node.children[0], outer)
        for _, _, value in found:
            self._refer(value, "distinct")
        return found

    def _join(self, node: Tree, outer: Bound) -> Outputs:
        left = self.outputs(node.tree("left"), outer)
        right = self.outputs(node.tree("right"), outer)
        if node.fields.get("condition") is not None:
            self._refer(self.value(node.tree("condition"), self._bound([*left, *right], outer)), "join")
        kind = json.dumps(node.fields["joinType"])
        return left if "LeftSemi" in kind or "LeftAnti" in kind else [*left, *right]

    def _lateraljoin(self, node: Tree, outer: Bound) -> Outputs:
        left = self.outputs(node.tree("left"), outer)
        bound = self._bound(left, outer)
        right = self.outputs(node.tree("right").tree("plan"), bound)
        if node.fields.get("condition") is not None:
            self._refer(self.value(node.tree("condition"), self._bound([*left, *right], outer)), "join")
        return [*left, *right]

    def _union(self, node: Tree, outer: Bound) -> Outputs:
        arms = [self.outputs(child, outer) for child in node.children]
        if any(len(arm) != len(arms[0]) for arm in arms):
            raise NotReadError("a union by name that is not resolved")
        return [
            (column[0][0], column[0][1], merged(value for _, _, value in column)) for column in zip(*arms, strict=True)
        ]

    def _intersect(self, node: Tree, outer: Bound) -> Outputs:
        left, right = (self.outputs(child, outer) for child in node.children)
        for _, _, value in (*left, *right):
            self._refer(value, "set_operation")
        return left

    _except = _intersect

    def _generate(self, node: Tree, outer: Bound) -> Outputs:
        found = self.outputs(node.children[0], outer)
        generator = node.tree("generator")
        attributes = node.trees("generatorOutput")
        columns = self._generated(generator, len(attributes), self._bound(found, outer))
        made = [(item.id, item.fields["name"], value) for item, value in zip(attributes, columns, strict=True)]
        return [*found, *made]

    def _generated(self, generator: Tree, width: int, bound: Bound) -> list[Value]:
        kind = generator.kind
        if kind == "Stack":
            cells = [self.value(child, bound) for child in generator.children[1:]]
            return [merged(cells[position::width]) for position in range(width)]
        value = merged(self.value(child, bound) for child in generator.children)
        if kind not in ("GeneratorOuter", "JsonTuple") and generator.children[0].kind != "CreateArray":
            self._refer(value, "filter")  # how many rows there are depends on it
        if kind == "GeneratorOuter":
            return self._generated(generator.children[0], width, bound)
        if kind in ("PosExplode",):
            rest = self._elements(value, width - 1)
            return [NOTHING, *rest]
        if kind == "Inline":
            fields = value.element.fields if value.element is not None else None
            return list(fields) if fields is not None and len(fields) == width else [Value(value.deps)] * width
        if kind == "Explode":
            return self._elements(value, width)
        return [Value(value.deps)] * width

    @staticmethod
    def _elements(value: Value, width: int) -> list[Value]:
        if width == 1 and value.element is not None:
            return [value.element]
        return [Value(value.deps)] * width

    def _expand(self, node: Tree, outer: Bound) -> Outputs:
        below = self.outputs(node.children[0], outer)
        bound = self._bound(below, outer)
        attributes = node.trees("output")
        rows = self.projections[tuple(item.id for item in attributes)]
        found = [
            (item.id, item.fields["name"], merged(self.value(row[position], bound) for row in rows))
            for position, item in enumerate(attributes)
        ]
        number, name, _ = found[-1]
        if name == "spark_grouping_id":  # its bits say which of the grouping columns are left out, the last one first
            known = {one for one, _, _ in below}
            groups = [value for one, _, value in found[:-1] if one not in known]
            found[-1] = number, name, Value(fields=tuple(reversed(groups)))
        return found

    def _scripttransformation(self, node: Tree, outer: Bound) -> Outputs:
        found = self.outputs(node.children[0], outer)
        whole = Value(merged(value for _, _, value in found).deps)
        return [(item.id, item.fields["name"], whole) for item in node.trees("output")]

    def _withcte(self, node: Tree, outer: Bound) -> Outputs:
        for definition in node.trees("cteDefs"):
            self.common[int(definition.fields["id"])] = self.outputs(definition.children[0], outer)
        return self.outputs(node.tree("plan"), outer)

    def _cterelationref(self, node: Tree, outer: Bound) -> Outputs:
        return self._read_again(node, self.common[int(node.fields["cteId"])])

    @staticmethod
    def _read_again(node: Tree, found: Outputs) -> Outputs:
        return [
            (item.id, item.fields["name"], value)
            for item, (_, _, value) in zip(node.trees("output"), found, strict=True)
        ]

    def _unionloop(self, node: Tree, outer: Bound) -> Outputs:
        """A recursive CTE: what it puts out is read again by its own arm, until nothing is new."""
        number = int(node.fields["id"])
        ids = [int(item["id"]) for item in node.fields["outputAttrIds"]]
        anchor = self.outputs(node.tree("anchor"), outer)
        found = [(one, name, value) for one, (_, name, value) in zip(ids, anchor, strict=True)]
        for _ in range(MAX_ROUNDS):
            self.loops[number] = found
            more = self.outputs(node.tree("recursion"), outer)
            again = [
                (one, name, merged([value, new])) for (one, name, value), (_, _, new) in zip(found, more, strict=True)
            ]
            if again == found:
                break
            found = again
        return found

    def _unionloopref(self, node: Tree, outer: Bound) -> Outputs:
        return self._read_again(node, self.loops[int(node.fields["loopId"])])

    def _below(self, node: Tree, outer: Bound) -> Bound:
        found = [item for child in node.children for item in self.outputs(child, outer)]
        return self._bound(found, outer)

    @staticmethod
    def _bound(found: Outputs, outer: Bound) -> Bound:
        return {**outer, **{number: value for number, _, value in found}}

    def _refer(self, value: Value, kind: str) -> None:
        self.referenced.update((column, kind) for column, own in value.deps if own != EXISTS)

    def _named(self, item: Tree, bound: Bound) -> tuple[int, str, Value]:
        value = self.value(item, bound)
        return item.id, item.fields["name"], replace(value, deps=as_column(value.deps))

    # ---- expressions -----------------------------------------------------------------------------

    def value(self, node: Tree, bound: Bound) -> Value:
        """What an expression depends on."""
        kind = node.kind
        if kind in ("AttributeReference", "NamedLambdaVariable"):
            found = bound.get(node.id)
            return found if found is not None else self.everything.get(node.id, NOTHING)
        if kind == "OuterReference":
            return self.value(node.tree("e"), bound)
        if kind in ("Alias", "Cast", "PipeExpression"):
            return self.value(node.children[0], bound)
        if kind == "ShiftRight":  # grouping(c) is a bit of spark_grouping_id
            bits = self.value(node.children[0], bound).fields
            if bits is not None and node.children[1].kind == "Literal":
                return bits[int(node.children[1].fields["value"])]
        if kind == "CaseWhen":
            return self._case(node, bound)
        if kind == "If":
            condition, *branches = (self.value(child, bound) for child in node.children)
            return merged([*branches, condition.steering(CONDITIONAL)])
        if kind in ("ScalarSubquery", "ListQuery", "LateralSubquery"):
            return merged(Value(item.deps) for _, _, item in self.outputs(node.tree("plan"), bound))
        if kind == "Exists":
            return self._exists(node.tree("plan"), bound)
        if kind == "AggregateExpression":
            values = [self.value(node.tree("aggregateFunction"), bound)]
            if node.fields.get("filter") is not None:
                values.append(self.value(node.tree("filter"), bound).steering(CONDITIONAL))
            return merged(values)
        if kind == "WindowExpression":
            function, window = node.children
            taken = NOTHING if function.kind in _RANKS else self.value(function, bound)
            return merged([taken, self.value(window, bound).steering(WINDOW)])
        if kind == "PivotFirst":
            pivot, value = (self.value(child, bound) for child in node.children[:2])
            return merged([value, pivot.steering(CONDITIONAL)])
        if kind in ("CreateNamedStruct",):
            fields = tuple(self.value(child, bound) for child in node.children[1::2])
            return replace(Value(merged(fields).deps), fields=fields)
        if kind == "CreateArray":
            element = merged(self.value(child, bound) for child in node.children)
            return replace(Value(element.deps), element=element)
        if kind in ("GetStructField", "GetArrayStructFields"):
            whole = self.value(node.children[0], bound)
            inside = whole if kind == "GetStructField" else (whole.element or NOTHING)
            if inside.fields is not None:
                return inside.fields[int(node.fields["ordinal"])]
            return Value(whole.deps)
        if kind in ("GetArrayItem", "GetMapValue", "ElementAt"):  # the key says which of the values it is
            array, position = (self.value(child, bound) for child in node.children[:2])
            element = array.element if array.element is not None else Value(array.deps)
            return element if not position.deps else merged([element, position.steering(CONDITIONAL)])
        if kind == "With":
            return self._with(node, bound)
        if kind == "CommonExpressionRef":
            return bound[_COMMON]
        if kind == "LambdaFunction":
            return self.value(node.children[0], bound)
        if any(child.kind == "LambdaFunction" for child in node.children):
            return self._higher_order(node, bound)
        return Value(merged(Value(self.value(child, bound).deps) for child in node.children).deps)

    def _exists(self, node: Tree, bound: Bound) -> Value:
        """What the rows of a query depend on."""
        known, self.referenced = self.referenced, set()
        self.outputs(node, bound)
        rows = self.referenced
        self.referenced = known | rows
        return Value(frozenset((column, EXISTS) for column, _ in rows))

    def _case(self, node: Tree, bound: Bound) -> Value:
        """Children are condition, value, condition, value …, and perhaps one for ELSE."""
        found = [self.value(child, bound) for child in node.children]
        pairs = len(found) // 2 * 2
        conditions = merged(found[0:pairs:2]).steering(CONDITIONAL)
        return merged([*found[1:pairs:2], *found[pairs:], conditions])

    def _with(self, node: Tree, bound: Bound) -> Value:
        """NULLIF, BETWEEN: a value that is used twice. JSON has no ids for these; each has one definition."""
        body, *definitions = node.children
        known = {**bound, _COMMON: merged(self.value(item.children[0], bound) for item in definitions)}
        return self.value(body, known)

    def _higher_order(self, node: Tree, bound: Bound) -> Value:
        """A lambda's variables are elements of what the function is given."""
        given = [self.value(child, bound) for child in node.children if child.kind != "LambdaFunction"]
        elements = merged(item.element if item.element is not None else Value(item.deps) for item in given)
        whole = Value(merged(Value(item.deps) for item in given).deps)
        known = dict(bound)
        results = [whole]
        for child in node.children:
            if child.kind == "LambdaFunction":
                for variable in child.children[1:]:
                    known[variable.id] = elements
                results.append(self.value(child.children[0], known))
        return Value(merged(Value(item.deps) for item in results).deps)
