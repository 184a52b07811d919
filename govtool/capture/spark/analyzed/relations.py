"""Catalyst's relations, as `plan.Node`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from govtool.capture.spark import build
from govtool.capture.spark import plan as p
from govtool.capture.spark.analyzed.expressions import ExpressionReader
from govtool.capture.spark.analyzed.functions import function_name
from govtool.capture.spark.analyzed.place_names import places_of, table_parts, type_text
from govtool.capture.spark.analyzed.tree import (
    CatalystTree,
    Json,
    folded,
    id_of,
    is_tree,
    named,
    number,
    tree_of,
    trees,
)
from govtool.capture.spark.breaks import BREAKS, unknown
from govtool.capture.spark.identity import DatasetPlace, column_path, table_name

_THROUGH = frozenset(
    {
        "SubqueryAlias", "GlobalLimit", "LocalLimit", "Limit", "Offset", "Tail", "Sample", "Repartition",
        "ResolvedHint", "UnresolvedHint", "RebalancePartitions", "EventTimeWatermark", "CollectMetrics", "ReturnAnswer",
        "Subquery",
        "CTERelationDef", "WithWindowDefinition", "LimitAndOffset", "CoalescePartitions", "DataFrameDropColumns",
        "InsertStarAction", "LeafNodeHint", "SupervisingCommand", "WriteFiles", "RepartitionByRange", "PipeOperator",
    }
)  # fmt: skip


class RelationReader(ExpressionReader):
    """Reads one plan."""

    def __init__(
        self,
        leaves: Json,
        streams: Mapping[int, p.Node],
        driver: frozenset[int],
        variables: Mapping[str, p.Expression] | None = None,
        checkpoints: Mapping[int, p.Node] | None = None,
    ) -> None:
        self.variables = variables or {}
        self.checkpoints = checkpoints or {}
        self.rdds: dict[int, p.Node] = {}
        """RDDs whose rows are known, as the plan read them first."""
        self.leaves = leaves
        self.streams = streams
        self.driver = driver
        self.places: dict[str, DatasetPlace] = {}
        self.columns: dict[str, tuple[tuple[str, str], ...]] = {}

    def relation(self, root: CatalystTree) -> p.Node:
        """Return a relation."""
        return folded(root, self._node)

    def _node(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        if tree.name in _READERS:
            return _READERS[tree.name](self, tree, children)
        if tree.name in _THROUGH and len(children) == 1:
            return children[0]
        if tree.name in BREAKS:
            code, name = BREAKS[tree.name]
            keys = tuple(self.expressions(tree, "groupingAttributes"))
            outputs = self._outputs(tree) or (p.outputs_of(children[0]) if children else ())
            return p.LineageBreak(tuple(children), outputs, code, name, keys)
        if (
            tree.name in ("LogicalRelation", "HiveTableRelation")
            or "Relation" in tree.name
            or "DataSource" in tree.name
        ):
            return self._leaf(tree)
        outputs = self._outputs(tree) or (p.outputs_of(children[0]) if children else ())
        return unknown(f"{tree.name} is not known", tuple(children), outputs)

    def _outputs(self, tree: CatalystTree) -> tuple[p.Named, ...]:
        for key in ("output", "outputAttrs", "outputObjAttr", "functionExpr"):
            found = named(tree.fields.get(key))
            if found and key != "functionExpr":
                return found
        return ()

    def _project(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        return p.Project(children[0], self.computed(tree, "projectList"))

    def _filter(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        return p.Filter(children[0], self.one(tree, "condition"))

    def _aggregate(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        outputs = self.computed(tree, "aggregateExpressions")
        keys = tuple(self.expressions(tree, "groupingExpressions"))
        return build.aggregate(children[0], keys, outputs)

    def _sort(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        return p.Sort(children[0], tuple(self.expressions(tree, "order")))

    def _repartition_by_expression(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        return p.Sort(children[0], tuple(self.expressions(tree, "partitionExpressions")))

    def _distinct(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        child = children[0]
        if isinstance(child, p.Union) and not child.distinct:
            return build.union(child.children, child.outputs, distinct=True)
        return p.Distinct(child)

    def _deduplicate(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        return p.Distinct(children[0], tuple(self.expressions(tree, "keys")))

    def _union(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        return build.union(children, p.outputs_of(children[0]))

    def _intersect(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        left, right = (build.uncast(child, narrower=False) for child in children)
        return p.SetOperation(left, right)

    def _join(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        kind = _join_type(tree.fields.get("joinType"))
        condition = self.optional(tree, "condition")
        return p.Join(children[0], children[1], condition, left_only=kind in ("LeftSemi", "LeftAnti"))

    def _as_of_join(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        parts = [self.optional(tree, key) for key in ("asOfCondition", "condition", "orderExpression")]
        known = tuple(part for part in parts if part is not None)
        return p.Join(children[0], children[1], p.Apply("", known) if known else None)

    def _lateral_join(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        right = next(trees(tree.fields.get("right")), None)
        plan = right.fields.get("plan") if right is not None else None
        if not is_tree(plan):
            return unknown("a lateral join without a right side", tuple(children), p.outputs_of(children[0]))
        inner = self.relation(tree_of(plan))  # type: ignore[arg-type]
        return p.Join(children[0], inner, self.optional(tree, "condition"), lateral=True)

    def _window(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        return p.Extend(children[0], self.computed(tree, "windowExpressions"))

    def _with_cte(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        # The plan comes first or last, by version; the definitions are known by their class.
        body = next(i for i, child in enumerate(tree.children) if child.name != "CTERelationDef")
        definitions = tuple(
            (number(child.fields.get("id")), children[i])
            for i, child in enumerate(tree.children)
            if child.name == "CTERelationDef"
        )
        return p.With(definitions, children[body])

    def _cte_relation_ref(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        return p.Reference(number(tree.fields.get("cteId")), named(tree.fields.get("output")))

    def _union_loop(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        outputs = named(tree.fields.get("outputAttrIds")) or p.outputs_of(children[0])
        ids = tree.fields.get("outputAttrIds")
        if isinstance(ids, list) and all(isinstance(item, int) for item in ids) and len(ids) == len(outputs):
            outputs = tuple(p.Named(item, old.name) for item, old in zip(ids, outputs, strict=True))
        return p.Loop(number(tree.fields.get("id")), build.uncast(children[0]), build.uncast(children[1]), outputs)

    def _union_loop_ref(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        return p.Reference(number(tree.fields.get("loopId")), named(tree.fields.get("output")))

    def _expand(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        outputs = named(tree.fields.get("output"))
        projections = tree.fields.get("projections")
        if not isinstance(projections, list) or not projections:
            return unknown("the projections of Expand were not written down", tuple(children), outputs)
        rows = tuple(tuple(self.expression(item) for item in trees(row)) for row in projections)
        return p.Expand(children[0], rows, outputs)

    def _attach_distributed_sequence(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        """The index that pandas on Spark numbers rows by."""
        numbers = (p.Output(each.id, each.name, p.Constant()) for each in named(tree.fields.get("sequenceAttr")))
        kept = (p.Output(each.id, each.name, p.Attribute(each.id, each.name)) for each in p.outputs_of(children[0]))
        return p.Project(children[0], (*numbers, *kept))

    def _generate(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        generator = next(trees(tree.fields.get("generator")))
        outputs = named(tree.fields.get("generatorOutput"))
        name = function_name(generator.name)
        arguments = generator.children
        rows, reason = 1, ""
        while name in ("generator_outer", "user_defined_generator") and len(arguments) == 1:
            generator = arguments[0]
            name, arguments = function_name(generator.name), generator.children
        if generator.name == "Stack" and arguments:
            rows = number(arguments[0].fields.get("value"), 1)
            arguments = arguments[1:]
        elif generator.name in (
            "PythonUDTF",
            "UserDefinedGenerator",
            "HiveGenericUDTF",
            "UserDefinedPythonTableFunction",
        ):
            reason = f"python-udf: {generator.fields.get('name') or 'table function'}"
        pos = {"PosExplode": "posexplode", "VariantExplode": "variant_explode"}
        is_position = generator.name == "PosExplode"
        is_map = generator.name in ("Explode", "PosExplode") and len(outputs) - is_position > 1
        return p.Generate(
            children[0],
            pos.get(generator.name, name),
            tuple(self.expression(argument) for argument in arguments),
            outputs,
            rows,
            reason,
            map=is_map,
        )

    def _local_relation(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        outputs = named(tree.fields.get("output"))
        return self._handed(outputs) or p.Values(outputs)

    def _handed(self, outputs: tuple[p.Named, ...]) -> p.Node | None:
        """The plan behind rows that a batch or the driver handed on; None where that is not known."""
        found = next((self.streams[each.id] for each in outputs if each.id in self.streams), None)
        if found is None or len(p.outputs_of(found)) != len(outputs):
            return None
        return p.Renamed(found, outputs)

    def _range(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        return p.Values(named(tree.fields.get("output")))

    def _one_row_relation(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        return p.Values(())

    def _view(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        described = tree.fields.get("desc") or {}
        identifier = described.get("identifier") or {}
        temporary = tree.fields.get("isTempView") or not identifier.get("database")
        if temporary or identifier.get("database") == "global_temp":
            return build.uncast(children[0]) if tree.fields.get("isText") else children[0]
        name = table_name(table_parts(identifier))
        place = DatasetPlace(name, "view")
        self.places.setdefault(place.id, place)
        outputs = p.outputs_of(children[0])
        self.columns.setdefault(place.id, tuple((column_path(output.name), "") for output in outputs))
        return p.CatalogView(place.id, build.uncast(children[0]), outputs)

    def _logical_rdd(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        outputs = named(tree.fields.get("output"))
        rdd = number((self.leaves.get(str(tree.fields.get("leaf", ""))) or {}).get("rdd"), -1)
        found = self.checkpoints.get(rdd)
        if found is not None and len(p.outputs_of(found)) == len(outputs):
            return p.Renamed(found, outputs)
        known = self._handed(outputs)
        if known is None and {output.id for output in outputs} & self.driver:
            known = p.Values(outputs)
        if known is None and rdd in self.rdds:  # one side of a self-join, whose columns nobody has heard of
            return p.Renamed(self.rdds[rdd], outputs)
        if known is None:
            lost = "rows come from an RDD: where they were before is not known"
            return p.LineageBreak((), outputs, "break.rdd", lost)
        if rdd >= 0:
            self.rdds[rdd] = known
        return known

    def _deserialize_to_object(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        return children[0]

    def _serialize_from_object(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        outputs = tuple(
            p.Named(id_of(item), str(item.fields.get("name", ""))) for item in trees(tree.fields.get("serializer"))
        )
        child = children[0]
        if isinstance(child, p.LineageBreak):
            return p.LineageBreak(child.children, outputs, child.code, child.message, child.keys)
        return p.LineageBreak((child,), outputs, "break.typed", "rows pass through objects of the JVM")

    def _merge_rows(self, tree: CatalystTree, children: list[p.Node]) -> p.Node:
        outputs = named(tree.fields.get("output"))
        return unknown("MergeRows outside of a MERGE", tuple(children), outputs)

    def _leaf(self, tree: CatalystTree) -> p.Node:
        """A table, a path, whatever else a plan begins with."""
        outputs = named(tree.fields.get("output"))
        facts = self.leaves.get(str(tree.fields.get("leaf", ""))) or {}
        places = places_of(facts)
        if not places and facts.get("url"):
            return p.LineageBreak((), outputs, "break.query", "a query that another database answers")
        if not places:
            source = "files of many folders" if facts.get("paths") else facts.get("relation") or tree.name
            return p.LineageBreak((), outputs, "break.source", f"a source without a name: {source}")
        types = {id_of(item): item.fields.get("dataType") for item in trees(tree.fields.get("output"))}
        for place in places:
            if place.id not in self.places or place.aliases:
                self.places[place.id] = place
            self.columns[place.id] = tuple((column_path(o.name), type_text(types.get(o.id))) for o in outputs)
        first = p.Scan(places[0].id, outputs)
        return first if len(places) == 1 else build.several(first, [place.id for place in places[1:]], outputs)


_READERS: dict[str, Callable[[RelationReader, CatalystTree, list[p.Node]], p.Node]] = {
    "Project": RelationReader._project,
    "Filter": RelationReader._filter,
    "Aggregate": RelationReader._aggregate,
    "Sort": RelationReader._sort,
    "RepartitionByExpression": RelationReader._repartition_by_expression,
    "Distinct": RelationReader._distinct,
    "Deduplicate": RelationReader._deduplicate,
    "DeduplicateWithinWatermark": RelationReader._deduplicate,
    "Union": RelationReader._union,
    "Intersect": RelationReader._intersect,
    "Except": RelationReader._intersect,
    "Join": RelationReader._join,
    "AsOfJoin": RelationReader._as_of_join,
    "LateralJoin": RelationReader._lateral_join,
    "Window": RelationReader._window,
    "WithCTE": RelationReader._with_cte,
    "CTERelationRef": RelationReader._cte_relation_ref,
    "UnionLoop": RelationReader._union_loop,
    "UnionLoopRef": RelationReader._union_loop_ref,
    "Expand": RelationReader._expand,
    "AttachDistributedSequence": RelationReader._attach_distributed_sequence,
    "Generate": RelationReader._generate,
    "LocalRelation": RelationReader._local_relation,
    "Range": RelationReader._range,
    "OneRowRelation": RelationReader._one_row_relation,
    "View": RelationReader._view,
    "LogicalRDD": RelationReader._logical_rdd,
    "ExternalRDD": RelationReader._logical_rdd,
    "DeserializeToObject": RelationReader._deserialize_to_object,
    "SerializeFromObject": RelationReader._serialize_from_object,
    "MergeRows": RelationReader._merge_rows,
}
"""What reads a relation, by its class in Catalyst."""


def _join_type(value: object) -> str:
    if isinstance(value, Mapping):
        text = str(value.get("object") or value.get("k") or "")
        return text.rsplit(".", 1)[-1].rstrip("$")
    return str(value or "")
