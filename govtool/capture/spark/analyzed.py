"""Catalyst's analyzed plan, as a live session writes it down (``govtool.spark.live.catalyst``), as a `plan.Node`.

The plan comes as nodes in preorder, each with its class ``c``, the number of its children ``n``, and its fields; fields
that are expressions are such lists themselves. What ``toJSON()`` leaves out is under ``leaves`` and ``command``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from govtool.capture.spark import plan as p
from govtool.capture.spark.catalyst import TRANSPARENT, function_name
from govtool.capture.spark.identity import Place, column_path, jdbc_name, path_name, table_name, topic_name
from govtool.capture.spark.lost import LOST
from govtool.model import EdgeKind

UNKNOWN = "break.operator"
"""A plan node that is not known: what comes out of it is opaque."""

Json = Mapping[str, Any]


@dataclass(slots=True)
class Tree:
    """A node of Catalyst's tree with its children."""

    name: str
    fields: Json
    children: list[Tree]


@dataclass(frozen=True, slots=True)
class Analyzed:
    """What a record says of a plan."""

    root: p.Node
    """The query: of a command, what it reads and computes."""
    command: str
    """The class of the command; empty for a query."""
    tree: Tree
    places: tuple[Place, ...]
    """Datasets that are read, with their other names."""
    columns: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    """Paths and types of the columns of datasets that are read, as the session saw them."""


def tree_of(nodes: Sequence[Json]) -> Tree:
    """Return a tree from its nodes in preorder; ten thousand levels need no Python frames.

    Raises:
        ValueError: There are too few nodes or too many.
    """
    root: Tree | None = None
    open_: list[tuple[Tree, int]] = []
    for node in nodes:
        tree = Tree(str(node.get("c", "")), node, [])
        while open_ and len(open_[-1][0].children) == open_[-1][1]:
            open_.pop()
        if open_:
            open_[-1][0].children.append(tree)
        elif root is None:
            root = tree
        else:
            raise ValueError("a plan has more nodes than its root has")
        open_.append((tree, int(node.get("n", 0))))
    if root is None or any(len(tree.children) < count for tree, count in open_):
        raise ValueError("a plan lacks nodes")
    return root


def nodes_of(root: Tree) -> list[Json]:
    """The nodes of a tree in preorder; the inverse of `tree_of`."""
    found: list[Json] = []
    stack = [root]
    while stack:
        tree = stack.pop()
        found.append(tree.fields)
        stack.extend(reversed(tree.children))
    return found


def read_plan(
    record: Json, *, streams: Mapping[int, p.Node] | None = None, driver: frozenset[int] = frozenset()
) -> Analyzed:
    """Return the plan of a record.

    Args:
        record: With ``plan``, ``leaves``, ``command``.
        streams: Plans of streams by the ids of the columns of their batches.
        driver: Ids of columns of data that the driver made.

    Raises:
        ValueError, KeyError, TypeError, IndexError: It is no plan.
    """
    reader = _Reader(record.get("leaves") or {}, streams or {}, driver)
    tree = tree_of(record["plan"])
    command = ""
    inner = tree
    if tree.name in COMMANDS or tree.name.endswith("Command"):
        command = tree.name
        query = query_of(tree)
        root: p.Node = reader.relation(query) if query is not None else p.Values(())
        if (record.get("command") or {}).get("table") and command in _FITTED:
            root = p.uncast(root)
        inner = tree
    else:
        root = reader.relation(tree)
    return Analyzed(root, command, inner, tuple(reader.places.values()), tuple(reader.columns.items()))


_FITTED = frozenset(
    {"InsertIntoHadoopFsRelationCommand", "InsertIntoHiveTable", "AppendData", "OverwriteByExpression",
     "OverwritePartitionsDynamic", "InsertIntoDataSourceCommand"}
)  # fmt: skip
"""Commands whose query analysis fits to the table's types."""

COMMANDS = frozenset(
    {
        "InsertIntoHadoopFsRelationCommand", "CreateDataSourceTableAsSelectCommand", "SaveAsV1TableCommand",
        "InsertIntoHiveTable", "CreateHiveTableAsSelectCommand", "InsertIntoDataSourceDirCommand",
        "InsertIntoHiveDirCommand", "SaveIntoDataSourceCommand", "InsertIntoDataSourceCommand", "AppendData",
        "OverwriteByExpression", "OverwritePartitionsDynamic", "CreateTableAsSelect", "ReplaceTableAsSelect",
        "ReplaceData", "WriteDelta", "CreateViewCommand", "AlterViewAsCommand", "MergeIntoTable", "UpdateTable",
        "DeleteFromTable", "CreateNamespace", "DropTable", "CreateTable", "DropTableCommand", "WriteToDataSourceV2",
        "MergeIntoCommand", "UpdateCommand", "DeleteCommand", "SetCatalogAndNamespace", "ShowTables",
    }
)  # fmt: skip
"""Roots that do something, rather than answer."""


def query_of(command: Tree) -> Tree | None:
    """The query of a command: its child, or the plan that one of its fields holds."""
    for key in ("query", "plan"):
        value: Any = command.fields.get(key)
        if _is_tree(value):
            return tree_of(value)
        if isinstance(value, int) and not isinstance(value, bool) and value < len(command.children):
            return command.children[value]
    return None


def _is_tree(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "c" in value[0]


def _trees(value: object) -> Iterator[Tree]:
    """The expressions of a field: one, a list of them, a list of lists."""
    if _is_tree(value):
        yield tree_of(value)  # type: ignore[arg-type]
    elif isinstance(value, list):
        for item in value:
            yield from _trees(item)


def _named(value: object) -> tuple[p.Named, ...]:
    """The attributes of a field."""
    return tuple(
        p.Named(_id(tree), str(tree.fields.get("name", "")))
        for tree in _trees(value)
        if tree.fields.get("exprId") is not None
    )


def _id(tree: Tree) -> int:
    number = tree.fields.get("exprId")
    if not isinstance(number, int):
        raise ValueError(f"{tree.name} has no id")
    return number


_THROUGH = frozenset(
    {
        "SubqueryAlias", "GlobalLimit", "LocalLimit", "Limit", "Offset", "Tail", "Sample", "Repartition",
        "ResolvedHint", "UnresolvedHint", "RebalancePartitions", "EventTimeWatermark", "CollectMetrics", "ReturnAnswer",
        "Subquery",
        "CTERelationDef", "WithWindowDefinition", "LimitAndOffset", "CoalescePartitions", "DataFrameDropColumns",
        "InsertStarAction", "LeafNodeHint", "SupervisingCommand", "WriteFiles", "RepartitionByRange", "PipeOperator",
    }
)  # fmt: skip


class _Reader:
    """Reads one plan."""

    def __init__(self, leaves: Json, streams: Mapping[int, p.Node], driver: frozenset[int]) -> None:
        self.leaves = leaves
        self.streams = streams
        self.driver = driver
        self.places: dict[str, Place] = {}
        self.columns: dict[str, tuple[tuple[str, str], ...]] = {}

    # ---- relations ------------------------------------------------------------------------------------------

    def relation(self, root: Tree) -> p.Node:
        """Return a relation; the children first, on a stack of its own."""
        done: list[p.Node] = []
        stack: list[tuple[Tree, bool]] = [(root, False)]
        while stack:
            tree, seen = stack.pop()
            if seen or not tree.children:
                count = len(tree.children)
                children = done[len(done) - count :] if count else []
                del done[len(done) - count :]
                done.append(self._node(tree, children))
            else:
                stack.append((tree, True))
                stack.extend((child, False) for child in reversed(tree.children))
        return done[0]

    def _node(self, tree: Tree, children: list[p.Node]) -> p.Node:
        read: Callable[[Tree, list[p.Node]], p.Node] | None = getattr(self, f"_{_snake(tree.name)}", None)
        if read is not None:
            return read(tree, children)
        if tree.name in _THROUGH and len(children) == 1:
            return children[0]
        if tree.name in LOST:
            code, name = LOST[tree.name]
            keys = tuple(self._expressions(tree, "groupingAttributes"))
            outputs = self._outputs(tree) or (p.outputs_of(children[0]) if children else ())
            return p.Lost(tuple(children), outputs, code, name, keys)
        if (
            tree.name in ("LogicalRelation", "HiveTableRelation")
            or "Relation" in tree.name
            or "DataSource" in tree.name
        ):
            return self._leaf(tree)
        outputs = self._outputs(tree) or (p.outputs_of(children[0]) if children else ())
        return p.Lost(tuple(children), outputs, UNKNOWN, f"{tree.name} is not known")

    def _outputs(self, tree: Tree) -> tuple[p.Named, ...]:
        for key in ("output", "outputAttrs", "outputObjAttr", "functionExpr"):
            found = _named(tree.fields.get(key))
            if found and key != "functionExpr":
                return found
        return ()

    def _project(self, tree: Tree, children: list[p.Node]) -> p.Node:
        return p.Project(children[0], self._computed(tree, "projectList"))

    def _filter(self, tree: Tree, children: list[p.Node]) -> p.Node:
        return p.Filter(children[0], self._one(tree, "condition"))

    def _aggregate(self, tree: Tree, children: list[p.Node]) -> p.Node:
        outputs = self._computed(tree, "aggregateExpressions")
        keys = tuple(self._expressions(tree, "groupingExpressions"))
        child = children[0]
        pivot = _pivot_columns(outputs)
        if pivot and isinstance(child, p.Aggregate):
            # PIVOT groups by its column first; that decides which column of the output a row adds to, and no rows.
            own = {output.id: output.value for output in child.outputs}
            kept = tuple(key for key in child.keys if not _is_any(key, pivot, own))
            child = p.Aggregate(child.child, kept, child.outputs)
        return p.Aggregate(child, keys, outputs)

    def _sort(self, tree: Tree, children: list[p.Node]) -> p.Node:
        return p.Sort(children[0], tuple(self._expressions(tree, "order")))

    def _repartition_by_expression(self, tree: Tree, children: list[p.Node]) -> p.Node:
        return p.Sort(children[0], tuple(self._expressions(tree, "partitionExpressions")))

    def _distinct(self, tree: Tree, children: list[p.Node]) -> p.Node:
        child = children[0]
        if isinstance(child, p.Union) and not child.distinct:
            return p.union(child.children, child.outputs, distinct=True)
        return p.Distinct(child)

    def _deduplicate(self, tree: Tree, children: list[p.Node]) -> p.Node:
        return p.Distinct(children[0], tuple(self._expressions(tree, "keys")))

    _deduplicate_within_watermark = _deduplicate

    def _union(self, tree: Tree, children: list[p.Node]) -> p.Node:
        return p.union(children, p.outputs_of(children[0]))

    def _intersect(self, tree: Tree, children: list[p.Node]) -> p.Node:
        return p.SetOperation(p.uncast(children[0]), p.uncast(children[1]))

    _except = _intersect

    def _join(self, tree: Tree, children: list[p.Node]) -> p.Node:
        kind = _join_type(tree.fields.get("joinType"))
        condition = self._optional(tree, "condition")
        return p.Join(children[0], children[1], condition, left_only=kind in ("LeftSemi", "LeftAnti"))

    def _as_of_join(self, tree: Tree, children: list[p.Node]) -> p.Node:
        parts = [self._optional(tree, key) for key in ("asOfCondition", "condition", "orderExpression")]
        known = tuple(part for part in parts if part is not None)
        return p.Join(children[0], children[1], p.Apply("", known) if known else None)

    def _lateral_join(self, tree: Tree, children: list[p.Node]) -> p.Node:
        right = next(_trees(tree.fields.get("right")), None)
        plan = right.fields.get("plan") if right is not None else None
        if not _is_tree(plan):
            return p.Lost(tuple(children), p.outputs_of(children[0]), UNKNOWN, "a lateral join without a right side")
        inner = self.relation(tree_of(plan))  # type: ignore[arg-type]
        return p.Join(children[0], inner, self._optional(tree, "condition"), lateral=True)

    def _window(self, tree: Tree, children: list[p.Node]) -> p.Node:
        return p.Extend(children[0], self._computed(tree, "windowExpressions"))

    def _with_cte(self, tree: Tree, children: list[p.Node]) -> p.Node:
        # The plan comes first or last, by version; the definitions are known by their class.
        body = next(i for i, child in enumerate(tree.children) if child.name != "CTERelationDef")
        definitions = tuple(
            (_number(child.fields.get("id")), children[i])
            for i, child in enumerate(tree.children)
            if child.name == "CTERelationDef"
        )
        return p.With(definitions, children[body])

    def _cte_relation_ref(self, tree: Tree, children: list[p.Node]) -> p.Node:
        return p.Reference(_number(tree.fields.get("cteId")), _named(tree.fields.get("output")))

    def _union_loop(self, tree: Tree, children: list[p.Node]) -> p.Node:
        outputs = _named(tree.fields.get("outputAttrIds")) or p.outputs_of(children[0])
        ids = tree.fields.get("outputAttrIds")
        if isinstance(ids, list) and all(isinstance(item, int) for item in ids) and len(ids) == len(outputs):
            outputs = tuple(p.Named(item, old.name) for item, old in zip(ids, outputs, strict=True))
        return p.Loop(_number(tree.fields.get("id")), p.uncast(children[0]), p.uncast(children[1]), outputs)

    def _union_loop_ref(self, tree: Tree, children: list[p.Node]) -> p.Node:
        return p.Reference(_number(tree.fields.get("loopId")), _named(tree.fields.get("output")))

    def _expand(self, tree: Tree, children: list[p.Node]) -> p.Node:
        outputs = _named(tree.fields.get("output"))
        projections = tree.fields.get("projections")
        if not isinstance(projections, list) or not projections:
            return p.Lost(tuple(children), outputs, UNKNOWN, "the projections of Expand were not written down")
        rows = tuple(tuple(self.expression(item) for item in _trees(row)) for row in projections)
        return p.Expand(children[0], rows, outputs)

    def _generate(self, tree: Tree, children: list[p.Node]) -> p.Node:
        generator = next(_trees(tree.fields.get("generator")))
        outputs = _named(tree.fields.get("generatorOutput"))
        name = function_name(generator.name)
        arguments = generator.children
        rows, reason = 1, ""
        while name in ("generator_outer", "user_defined_generator") and len(arguments) == 1:
            generator = arguments[0]
            name, arguments = function_name(generator.name), generator.children
        if generator.name == "Stack" and arguments:
            rows = _number(arguments[0].fields.get("value"), 1)
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

    def _local_relation(self, tree: Tree, children: list[p.Node]) -> p.Node:
        return p.Values(_named(tree.fields.get("output")))

    def _range(self, tree: Tree, children: list[p.Node]) -> p.Node:
        return p.Values(_named(tree.fields.get("output")))

    def _one_row_relation(self, tree: Tree, children: list[p.Node]) -> p.Node:
        return p.Values(())

    def _view(self, tree: Tree, children: list[p.Node]) -> p.Node:
        described = tree.fields.get("desc") or {}
        identifier = described.get("identifier") or {}
        temporary = tree.fields.get("isTempView") or not identifier.get("database")
        if temporary or identifier.get("database") == "global_temp":
            return children[0]
        name = table_name(_parts(identifier))
        place = Place(name, "view")
        self.places.setdefault(place.id, place)
        outputs = p.outputs_of(children[0])
        self.columns.setdefault(place.id, tuple((column_path(output.name), "") for output in outputs))
        return p.View(place.id, p.uncast(children[0]), outputs)

    def _logical_rdd(self, tree: Tree, children: list[p.Node]) -> p.Node:
        outputs = _named(tree.fields.get("output"))
        ids = {output.id for output in outputs}
        stream = next((self.streams[i] for i in ids if i in self.streams), None)
        if stream is not None and len(p.outputs_of(stream)) == len(outputs):
            return p.Renamed(stream, outputs)
        if ids & self.driver:
            return p.Values(outputs)
        return p.Lost((), outputs, "break.rdd", "rows come from an RDD: where they were before is not known")

    _external_rdd = _logical_rdd

    def _deserialize_to_object(self, tree: Tree, children: list[p.Node]) -> p.Node:
        return children[0]

    def _serialize_from_object(self, tree: Tree, children: list[p.Node]) -> p.Node:
        outputs = tuple(
            p.Named(_id(item), str(item.fields.get("name", ""))) for item in _trees(tree.fields.get("serializer"))
        )
        child = children[0]
        if isinstance(child, p.Lost):
            return p.Lost(child.children, outputs, child.code, child.message, child.keys)
        return p.Lost((child,), outputs, "break.typed", "rows pass through objects of the JVM")

    def _merge_rows(self, tree: Tree, children: list[p.Node]) -> p.Node:
        outputs = _named(tree.fields.get("output"))
        return p.Lost(tuple(children), outputs, UNKNOWN, "MergeRows outside of a MERGE")

    def _leaf(self, tree: Tree) -> p.Node:
        """A table, a path, whatever else a plan begins with."""
        outputs = _named(tree.fields.get("output"))
        facts = self.leaves.get(str(tree.fields.get("leaf", ""))) or {}
        place = place_of(facts)
        if place is None:
            source = facts.get("relation") or tree.name
            return p.Lost((), outputs, "break.source", f"a source without a name: {source}")
        known = self.places.get(place.id)
        if known is None or place.aliases:
            self.places[place.id] = place
        types = {_id(item): item.fields.get("dataType") for item in _trees(tree.fields.get("output"))}
        self.columns[place.id] = tuple((column_path(o.name), type_text(types.get(o.id))) for o in outputs)
        return p.Scan(place.id, outputs)

    # ---- expressions ---------------------------------------------------------------------------------------------

    def _computed(self, tree: Tree, key: str) -> tuple[p.Output, ...]:
        return tuple(
            p.Output(_id(item), str(item.fields.get("name", "")), self.expression(item))
            for item in _trees(tree.fields.get(key))
        )

    def _expressions(self, tree: Tree, key: str) -> list[p.Expression]:
        return [self.expression(item) for item in _trees(tree.fields.get(key))]

    def _optional(self, tree: Tree, key: str) -> p.Expression | None:
        found = self._expressions(tree, key)
        return found[0] if found else None

    def _one(self, tree: Tree, key: str) -> p.Expression:
        return self._optional(tree, key) or p.CONSTANT

    def expression(self, root: Tree) -> p.Expression:
        """Return an expression; the children first, on a stack of its own."""
        done: list[p.Expression] = []
        stack: list[tuple[Tree, bool]] = [(root, False)]
        while stack:
            tree, seen = stack.pop()
            if seen or not tree.children:
                count = len(tree.children)
                children = done[len(done) - count :] if count else []
                del done[len(done) - count :]
                done.append(self._expression(tree, children))
            else:
                stack.append((tree, True))
                stack.extend((child, False) for child in reversed(tree.children))
        return done[0]

    def _expression(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        name = tree.name
        if name == "AttributeReference":
            return p.Attribute(_id(tree), str(tree.fields.get("name", "")))
        if name in ("Literal", "NamedLambdaVariable", "UnresolvedNamedLambdaVariable", "VariableReference"):
            return p.CONSTANT
        if name in TRANSPARENT and children:
            return children[0]
        made = getattr(self, f"_x_{_snake(name)}", None)
        if made is not None:
            found: p.Expression = made(tree, children)
            return found
        if "replacement" in tree.fields:
            return self._replaceable(tree, children)
        return p.call(function_name(name), children) if function_name(name) else p.Apply("", tuple(children))

    def _replaceable(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        """A function that analysis writes in terms of others: its name, and the columns of what it stands for.

        Its own arguments are not used: rewrites of a plan reach the replacement only.
        """
        if tree.name == "Nvl2" and isinstance(children[0], p.Steered) and isinstance(children[0].value, p.Apply):
            return p.choice("nvl2", children[0].by, children[0].value.arguments)
        arguments = tuple(_leaves_of(child) for child in children)
        return p.Apply(function_name(tree.name), tuple(item for each in arguments for item in each))

    def _x_outer_reference(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        inner = next(_trees(tree.fields.get("e")), None)
        return self.expression(inner) if inner is not None else p.CONSTANT

    def _x_lambda_function(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        return children[0]

    def _x_case_when(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        pairs = len(children) // 2 * 2
        return p.choice("case", children[0:pairs:2], [*children[1:pairs:2], *children[pairs:]])

    def _x_if(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        return p.choice("if", children[:1], children[1:])

    def _x_create_named_struct(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        fields = []
        for position in range(0, len(children) - 1, 2):
            name = tree.children[position].fields.get("value")
            step = column_path(name) if isinstance(name, str) and name else f"_{position // 2}"
            fields.append((step, children[position + 1]))
        return p.Record("struct", tuple(fields))

    def _x_cast(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        return _recast(children[0], tree.fields.get("dataType")) or p.Apply("cast", (children[0],))

    def _x_get_struct_field(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        name = tree.fields.get("name") or _field_name(tree)
        if isinstance(name, str) and name:
            return p.Field(children[0], column_path(name))
        return p.Apply("", (children[0],))

    def _x_get_array_struct_fields(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        field = tree.fields.get("field")
        name = field.get("name") if isinstance(field, Mapping) else None
        if isinstance(name, str) and name:
            return p.Field(p.Field(children[0], "[]"), column_path(name))
        return p.Apply("", (children[0],))

    def _x_get_array_item(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        item = p.Field(children[0], "[]")
        return item if children[1] is p.CONSTANT else p.Steered(item, (children[1],))

    def _x_get_map_value(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        key = tree.children[1].fields.get("value")
        if isinstance(key, str) and tree.children[1].name == "Literal":
            return p.Field(children[0], p.key_step(key))
        item = p.Field(children[0], "[]")
        return item if children[1] is p.CONSTANT else p.Steered(item, (children[1],))

    def _x_aggregate_expression(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        function = tree.children[0]
        value = children[0]
        if isinstance(value, p.Apply) and value.kind is EdgeKind.TRANSFORMATION:
            value = p.Apply(value.name, value.arguments, EdgeKind.AGGREGATION)
        if function.name == "PivotFirst":
            value = p.Steered(
                p.Apply("", children_of(children[0])[1:], EdgeKind.AGGREGATION), children_of(children[0])[:1]
            )
        return p.Steered(value, tuple(children[1:])) if len(children) > 1 else value

    def _x_pivot_first(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        return p.Apply("pivotfirst", tuple(children), EdgeKind.AGGREGATION)

    def _x_window_expression(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        function, specification = tree.children
        by: list[p.Expression] = []
        for child in specification.children:
            if "Frame" not in child.name:
                by.append(self.expression(child))
        plain = function
        filters: tuple[p.Expression, ...] = ()
        while plain.name in ("AggregateExpression", "Alias") and plain.children:
            filters = (*filters, *(self.expression(item) for item in plain.children[1:]))
            plain = plain.children[0]
        if plain.name in ("PythonUDF", "PythonUDAF", "ScalaUDF", "ScalaAggregator", "ScalaUDAF"):
            value: p.Expression = self.expression(plain)
            value = p.Steered(value, tuple(by), EdgeKind.WINDOW) if by else value
        else:
            value = p.over(function_name(plain.name), [self.expression(item) for item in plain.children], by)
        return p.Steered(value, filters) if filters else value

    def _x_window_spec_definition(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        return p.CONSTANT  # read with the window expression around it

    def _x_scalar_subquery(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        plan = tree.fields.get("plan")
        return p.Query(self.relation(tree_of(plan))) if _is_tree(plan) else p.CONSTANT  # type: ignore[arg-type]

    _x_list_query = _x_scalar_subquery
    _x_lateral_subquery = _x_scalar_subquery

    def _x_exists(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        plan = tree.fields.get("plan")
        return p.Query(self.relation(tree_of(plan)), value=False) if _is_tree(plan) else p.CONSTANT  # type: ignore[arg-type]

    def _x_in_subquery(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        return p.Apply("", tuple(children))

    def _x_python_udf(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        return p.Opaque(f"python-udf: {tree.fields.get('name') or 'function'}", tuple(children))

    _x_python_udaf = _x_python_udf

    def _x_scala_udf(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        return p.Opaque(f"jvm-udf: {tree.fields.get('udfName') or 'function'}", tuple(children))

    def _x_hive_simple_udf(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        return p.Opaque(f"jvm-udf: {tree.fields.get('name') or 'function'}", tuple(children))

    _x_hive_generic_udf = _x_hive_simple_udf
    _x_hive_udaf_function = _x_hive_simple_udf
    _x_scala_aggregator = _x_hive_simple_udf
    _x_scala_udaf = _x_hive_simple_udf
    _x_simple_typed_aggregate_expression = _x_hive_simple_udf

    def _x_sql_scalar_function(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        return children[-1]

    def _x_precise_timestamp_conversion(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        """The start and the end of a time window, which analysis computes with a CASE of its own."""
        return p.Apply("window", _leaves_of(children[0]))

    def _x_with(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        bindings = []
        for item, child in zip(tree.children, children, strict=True):
            if item.name == "CommonExpressionDef":
                bindings.append((_common(item.fields.get("id")), child))
        body = next(
            child for item, child in zip(tree.children, children, strict=True) if item.name != "CommonExpressionDef"
        )
        return p.Let(tuple(bindings), body)

    def _x_common_expression_def(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        return children[0]

    def _x_common_expression_ref(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        return p.Attribute(_common(tree.fields.get("id")))

    def _x_get_json_object(self, tree: Tree, children: list[p.Expression]) -> p.Expression:
        value = children[0]
        for step in _json_steps(tree.children[1].fields.get("value")):
            value = p.Field(value, step)
        return p.Apply("get_json_object", (value, *children[1:]))


def children_of(item: p.Expression) -> tuple[p.Expression, ...]:
    """The arguments of a call."""
    return item.arguments if isinstance(item, p.Apply) else ()


def place_of(facts: Json) -> Place | None:
    """The dataset that facts about a leaf or a command name; None if they name none."""
    paths = [path for path in facts.get("paths") or ([facts["path"]] if facts.get("path") else []) if path]
    if facts.get("table"):
        name = table_name(tuple(str(part) for part in facts["table"]))
        aliases = tuple(dict.fromkeys(path_name(path) for path in paths[:1]))
        return Place(name, "view" if facts.get("view") else "table", aliases)
    if facts.get("url"):
        table = str(facts.get("dbtable") or "")
        return Place(jdbc_name(str(facts["url"]), table or "query"), "table")
    if facts.get("topic"):
        return Place(topic_name(str(facts.get("kafka.bootstrap.servers") or ""), str(facts["topic"])), "table")
    if paths:
        return Place(path_name(common_path(paths)), "file")
    return None


def common_path(paths: Sequence[str]) -> str:
    """The path of files that are read as one: the folder that all of them are in."""
    if len(paths) == 1:
        return paths[0]
    split = [path.rstrip("/").split("/") for path in paths]
    shared: list[str] = []
    for parts in zip(*split, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return "/".join(shared)


def type_text(type_: object) -> str:
    """A type of Spark's JSON schemas as SQL writes it.

    >>> type_text({"type": "array", "elementType": "long", "containsNull": True})
    'array<bigint>'
    """
    if isinstance(type_, str):
        return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(type_, type_)
    if not isinstance(type_, Mapping):
        return ""
    kind = type_.get("type")
    if kind == "array":
        return f"array<{type_text(type_.get('elementType'))}>"
    if kind == "map":
        return f"map<{type_text(type_.get('keyType'))},{type_text(type_.get('valueType'))}>"
    if kind == "struct":
        fields = ",".join(f"{field.get('name')}:{type_text(field.get('type'))}" for field in type_.get("fields") or ())
        return f"struct<{fields}>"
    return str(kind or "")


def _parts(identifier: Json) -> tuple[str, ...]:
    return tuple(str(identifier[key]) for key in ("catalog", "database", "table") if identifier.get(key))


def _join_type(value: object) -> str:
    if isinstance(value, Mapping):
        text = str(value.get("object") or value.get("k") or "")
        return text.rsplit(".", 1)[-1].rstrip("$")
    return str(value or "")


def _number(value: object, default: int = 0) -> int:
    try:
        return int(value)  # type: ignore[call-overload,no-any-return]
    except (TypeError, ValueError):
        return default


def _common(value: object) -> int:
    """Ids of common expressions, apart from those of attributes."""
    return -1 - _number(value)


def _field_name(tree: Tree) -> str | None:
    """The name of a field by its position, where the struct is a column."""
    child = tree.children[0]
    type_ = child.fields.get("dataType")
    ordinal = tree.fields.get("ordinal")
    fields = type_.get("fields") if isinstance(type_, Mapping) else None
    if isinstance(fields, list) and isinstance(ordinal, int) and ordinal < len(fields):
        return str(fields[ordinal].get("name"))
    if child.name == "CreateNamedStruct" and isinstance(ordinal, int) and 2 * ordinal < len(child.children):
        return child.children[2 * ordinal].fields.get("value")
    return None


def _leaves_of(item: p.Expression) -> tuple[p.Expression, ...]:
    """The parts of a replacement that name something: attributes and calls, without the choice that combines them."""
    match item:
        case p.Constant():
            return ()
        case p.Let():
            bound = (each for _, value in item.bindings for each in _leaves_of(value))
            return tuple(dict.fromkeys((*bound, *_leaves_of(item.body))))
        case p.Steered():
            return tuple(dict.fromkeys((*_leaves_of(item.value), *(x for by in item.by for x in _leaves_of(by)))))
        case p.Apply():
            return tuple(dict.fromkeys(x for argument in item.arguments for x in _leaves_of(argument)))
        case p.Attribute(id=number) if number < 0:
            return ()
        case _:
            return (item,)


def _recast(item: p.Expression, type_: object) -> p.Expression | None:
    """A struct, or an array of structs, that is built here and cast: its fields are cast, under the type's names."""
    if not isinstance(type_, Mapping):
        return None
    if isinstance(item, p.Record) and type_.get("type") == "struct":
        names = [str(field.get("name")) for field in type_.get("fields") or ()]
        if len(names) == len(item.fields):
            return p.Record(
                item.name,
                tuple((column_path(name), value) for name, (_, value) in zip(names, item.fields, strict=True)),
            )
    if isinstance(item, p.Elements) and type_.get("type") == "array":
        items = [_recast(each, type_.get("elementType")) for each in item.items]
        if all(each is not None for each in items):
            return p.Elements(item.name, tuple(each for each in items if each is not None), item.kind)
    return None


def _pivot_columns(outputs: Sequence[p.Output]) -> frozenset[int]:
    """Ids of the columns that PIVOT turns into columns."""
    found = set()
    for output in outputs:
        value = output.value
        if isinstance(value, p.Steered) and isinstance(value.value, p.Apply) and value.value.name == "":
            found |= {by.id for by in value.by if isinstance(by, p.Attribute)}
    return frozenset(found)


def _is_any(key: p.Expression, ids: frozenset[int], own: Mapping[int, p.Expression]) -> bool:
    return any(key == p.Attribute(i, getattr(key, "name", "")) or own.get(i) == key for i in ids)


def _json_steps(path: object) -> list[str]:
    """The steps of a JSON path that names keys and elements only; none for what else it may say."""
    if not isinstance(path, str) or not path.startswith("$"):
        return []
    steps: list[str] = []
    for part in path[1:].replace("[", ".[").split("."):
        if not part:
            continue
        if part.startswith("['") and part.endswith("']"):
            steps.append(p.key_step(part[2:-2]))
        elif part.startswith("["):
            steps.append("[]")
        elif part.isidentifier():
            steps.append(part if steps and part == part.lower() else p.key_step(part))
        else:
            return []
    return steps


def _snake(name: str) -> str:
    text = ""
    for i, char in enumerate(name):
        if char.isupper() and i and (not name[i - 1].isupper() or (i + 1 < len(name) and name[i + 1].islower())):
            text += "_"
        text += char.lower()
    return text
