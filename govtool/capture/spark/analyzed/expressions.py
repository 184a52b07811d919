"""Catalyst's expressions, as `plan.Expression`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from govtool.capture.spark import build
from govtool.capture.spark import plan as p
from govtool.capture.spark.analyzed.functions import TRANSPARENT, function_name
from govtool.capture.spark.analyzed.place_names import type_text
from govtool.capture.spark.analyzed.tree import (
    CatalystTree,
    folded,
    held,
    id_of,
    is_tree,
    number,
    tree_of,
    trees,
)
from govtool.capture.spark.identity import column_path
from govtool.model import EdgeKind


class ExpressionReader:
    """Reads expressions; what reads relations is a `RelationReader`."""

    variables: Mapping[str, p.Expression] = MappingProxyType({})
    """What the variables of the session are set to, by name; one that is not here depends on nothing."""

    def relation(self, root: CatalystTree) -> p.Node:
        """Return a relation: the plan of a subquery."""
        raise NotImplementedError

    def computed(self, tree: CatalystTree, key: str) -> tuple[p.Output, ...]:
        """The named expressions of a field."""
        return tuple(
            p.Output(id_of(item), str(item.fields.get("name", "")), self.expression(item))
            for item in trees(tree.fields.get(key))
        )

    def expressions(self, tree: CatalystTree, key: str) -> list[p.Expression]:
        """The expressions of a field."""
        return [self.expression(item) for item in trees(tree.fields.get(key))]

    def optional(self, tree: CatalystTree, key: str) -> p.Expression | None:
        """The expression of a field, if it has one."""
        found = self.expressions(tree, key)
        return found[0] if found else None

    def held(self, tree: CatalystTree, key: str) -> p.Expression | None:
        """The expression of a field that holds it, or its place among the children."""
        found = held(tree, key)
        return self.expression(found) if found is not None else None

    def one(self, tree: CatalystTree, key: str) -> p.Expression:
        """The expression of a field."""
        return self.optional(tree, key) or p.CONSTANT

    def expression(self, root: CatalystTree) -> p.Expression:
        """Return an expression."""
        return folded(root, self._expression)

    def _expression(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        name = tree.name
        if name == "AttributeReference":
            return p.Attribute(id_of(tree), str(tree.fields.get("name", "")))
        if name in ("Literal", "NamedLambdaVariable", "UnresolvedNamedLambdaVariable"):
            return p.CONSTANT
        if name == "VariableReference":
            return self.variables.get(variable_name(tree), p.CONSTANT)
        if name in TRANSPARENT and children:
            return children[0]
        if name in _READERS:
            return _READERS[name](self, tree, children)
        if "replacement" in tree.fields:
            return self._replaceable(tree, children)
        return build.call(function_name(name), children) if function_name(name) else p.Apply("", tuple(children))

    def _replaceable(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        """A function that analysis writes in terms of others: its name, and the columns of what it stands for.

        Its own arguments are not used: rewrites of a plan reach the replacement only.
        """
        if tree.name == "Nvl2" and isinstance(children[0], p.Conditional) and isinstance(children[0].value, p.Apply):
            return build.choice("nvl2", children[0].by, children[0].value.arguments)
        arguments = tuple(_leaves_of(child) for child in children)
        return p.Apply(function_name(tree.name), tuple(item for each in arguments for item in each))

    def _outer_reference(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        inner = next(trees(tree.fields.get("e")), None)
        return self.expression(inner) if inner is not None else p.CONSTANT

    def _lambda_function(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        return children[0]

    def _case_when(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        pairs = len(children) // 2 * 2
        return build.choice("case", children[0:pairs:2], [*children[1:pairs:2], *children[pairs:]])

    def _if(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        return build.choice("if", children[:1], children[1:])

    def _create_named_struct(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        fields = []
        for position in range(0, len(children) - 1, 2):
            name = tree.children[position].fields.get("value")
            step = column_path(name) if isinstance(name, str) and name else f"_{position // 2}"
            fields.append((step, children[position + 1]))
        return p.StructValue("struct", tuple(fields))

    def _cast(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        target = tree.fields.get("dataType")
        source = tree.children[0].fields.get("dataType")
        return _recast(children[0], target) or build.cast("cast", children[0], type_text(source), type_text(target))

    def _get_struct_field(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        name = tree.fields.get("name") or _field_name(tree)
        ordinal = tree.fields.get("ordinal")
        made = children[0].fields if isinstance(children[0], p.StructValue) else ()
        if not name and isinstance(ordinal, int) and ordinal < len(made):
            return p.Field(children[0], made[ordinal][0])
        if isinstance(name, str) and name:
            return p.Field(children[0], column_path(name))
        return p.Apply("", (children[0],))

    def _update_fields(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        fields = dict(_struct_fields(children[0], struct_type(tree.children[0])))
        if not fields:
            return p.Apply("update_fields", tuple(children))
        for change, value in zip(tree.children[1:], children[1:], strict=True):
            name = column_path(str(change.fields.get("name")))
            if change.name == "WithField":
                fields[name] = value
            else:
                fields.pop(name, None)
        return p.StructValue("struct", tuple(fields.items()))

    def _with_field(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        return children[0]

    def _drop_field(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        return p.CONSTANT

    def _get_array_struct_fields(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        field = tree.fields.get("field")
        name = field.get("name") if isinstance(field, Mapping) else None
        if isinstance(name, str) and name:
            return p.Field(p.Field(children[0], "[]"), column_path(name))
        return p.Apply("", (children[0],))

    def _get_array_item(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        item = p.Field(children[0], "[]")
        return item if children[1] is p.CONSTANT else p.Conditional(item, (children[1],))

    def _get_map_value(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        key = tree.children[1].fields.get("value")
        if isinstance(key, str) and tree.children[1].name == "Literal":
            return p.Field(children[0], build.key_step(key))
        item = p.Field(children[0], "[]")
        return item if children[1] is p.CONSTANT else p.Conditional(item, (children[1],))

    def _aggregate_expression(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        function = tree.children[0]
        value = children[0]
        if isinstance(value, p.Apply) and value.kind is EdgeKind.TRANSFORMATION:
            value = p.Apply(value.name, value.arguments, EdgeKind.AGGREGATION)
        if function.name == "PivotFirst":
            value = p.Conditional(
                p.Apply("", children_of(children[0])[1:], EdgeKind.AGGREGATION), children_of(children[0])[:1]
            )
        return p.Conditional(value, tuple(children[1:])) if len(children) > 1 else value

    def _pivot_first(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        return p.Apply("pivotfirst", tuple(children), EdgeKind.AGGREGATION)

    def _window_expression(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
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
            value = p.Conditional(value, tuple(by), EdgeKind.WINDOW) if by else value
        else:
            value = build.over(function_name(plain.name), [self.expression(item) for item in plain.children], by)
        return p.Conditional(value, filters) if filters else value

    def _window_spec_definition(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        return p.CONSTANT  # read with the window expression around it

    def _scalar_subquery(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        plan = tree.fields.get("plan")
        return p.Query(self.relation(tree_of(plan))) if is_tree(plan) else p.CONSTANT  # type: ignore[arg-type]

    def _exists(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        plan = tree.fields.get("plan")
        return p.Query(self.relation(tree_of(plan)), value=False) if is_tree(plan) else p.CONSTANT  # type: ignore[arg-type]

    def _in_subquery(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        return p.Apply("", tuple(children))

    def _python_udf(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        return p.Opaque(f"python-udf: {tree.fields.get('name') or 'function'}", tuple(children))

    def _scala_udf(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        return p.Opaque(f"jvm-udf: {tree.fields.get('udfName') or 'function'}", tuple(children))

    def _hive_simple_udf(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        return p.Opaque(f"jvm-udf: {tree.fields.get('name') or 'function'}", tuple(children))

    def _sql_scalar_function(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        return children[-1]

    def _precise_timestamp_conversion(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        """The start and the end of a time window, which analysis computes with a CASE of its own."""
        return p.Apply("window", _leaves_of(children[0]))

    def _with(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        bindings = []
        for item, child in zip(tree.children, children, strict=True):
            if item.name == "CommonExpressionDef":
                bindings.append((_common(item.fields.get("id")), child))
        body = next(
            child for item, child in zip(tree.children, children, strict=True) if item.name != "CommonExpressionDef"
        )
        return p.Let(tuple(bindings), body)

    def _common_expression_def(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        return children[0]

    def _common_expression_ref(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        return p.Attribute(_common(tree.fields.get("id")))

    def _get_json_object(self, tree: CatalystTree, children: list[p.Expression]) -> p.Expression:
        value = children[0]
        for step in _json_steps(tree.children[1].fields.get("value")):
            value = p.Field(value, step)
        return p.Apply("get_json_object", (value, *children[1:]))


_READERS: dict[str, Callable[[ExpressionReader, CatalystTree, list[p.Expression]], p.Expression]] = {
    "OuterReference": ExpressionReader._outer_reference,
    "LambdaFunction": ExpressionReader._lambda_function,
    "CaseWhen": ExpressionReader._case_when,
    "If": ExpressionReader._if,
    "CreateNamedStruct": ExpressionReader._create_named_struct,
    "Cast": ExpressionReader._cast,
    "GetStructField": ExpressionReader._get_struct_field,
    "UpdateFields": ExpressionReader._update_fields,
    "WithField": ExpressionReader._with_field,
    "DropField": ExpressionReader._drop_field,
    "GetArrayStructFields": ExpressionReader._get_array_struct_fields,
    "GetArrayItem": ExpressionReader._get_array_item,
    "GetMapValue": ExpressionReader._get_map_value,
    "AggregateExpression": ExpressionReader._aggregate_expression,
    "PivotFirst": ExpressionReader._pivot_first,
    "WindowExpression": ExpressionReader._window_expression,
    "WindowSpecDefinition": ExpressionReader._window_spec_definition,
    "ScalarSubquery": ExpressionReader._scalar_subquery,
    "ListQuery": ExpressionReader._scalar_subquery,
    "LateralSubquery": ExpressionReader._scalar_subquery,
    "Exists": ExpressionReader._exists,
    "InSubquery": ExpressionReader._in_subquery,
    "PythonUDF": ExpressionReader._python_udf,
    "PythonUDAF": ExpressionReader._python_udf,
    "ScalaUDF": ExpressionReader._scala_udf,
    "HiveSimpleUDF": ExpressionReader._hive_simple_udf,
    "HiveGenericUDF": ExpressionReader._hive_simple_udf,
    "HiveUDAFFunction": ExpressionReader._hive_simple_udf,
    "ScalaAggregator": ExpressionReader._hive_simple_udf,
    "ScalaUDAF": ExpressionReader._hive_simple_udf,
    "SimpleTypedAggregateExpression": ExpressionReader._hive_simple_udf,
    "SQLScalarFunction": ExpressionReader._sql_scalar_function,
    "PreciseTimestampConversion": ExpressionReader._precise_timestamp_conversion,
    "With": ExpressionReader._with,
    "CommonExpressionDef": ExpressionReader._common_expression_def,
    "CommonExpressionRef": ExpressionReader._common_expression_ref,
    "GetJsonObject": ExpressionReader._get_json_object,
}
"""What reads an expression, by its class in Catalyst."""


def _struct_fields(value: p.Expression, type_: object) -> Iterator[tuple[str, p.Expression]]:
    """The fields of a struct: those that went into it where it is built here, else those of its type."""
    if isinstance(value, p.StructValue):
        yield from value.fields
    elif isinstance(type_, Mapping) and type_.get("type") == "struct":
        for field in type_.get("fields") or ():
            name = column_path(str(field.get("name")))
            yield name, p.Field(value, name)


def children_of(item: p.Expression) -> tuple[p.Expression, ...]:
    """The arguments of a call."""
    return item.arguments if isinstance(item, p.Apply) else ()


def _common(value: object) -> int:
    """Ids of common expressions, apart from those of attributes."""
    return -1 - number(value)


def struct_type(tree: CatalystTree) -> object:
    """The type of a column, or of a field of one; None if that is not known."""
    if tree.name in ("AttributeReference", "Cast"):
        return tree.fields.get("dataType")
    if tree.name == "GetStructField":
        field = _field(tree)
        return field.get("type") if field is not None else None
    return None


def _field(tree: CatalystTree) -> Mapping[str, Any] | None:
    """The field of a struct by its position, where the struct is of a known type."""
    type_ = struct_type(tree.children[0])
    ordinal = tree.fields.get("ordinal")
    fields = type_.get("fields") if isinstance(type_, Mapping) else None
    if isinstance(fields, list) and isinstance(ordinal, int) and ordinal < len(fields):
        found: Mapping[str, Any] = fields[ordinal]
        return found
    return None


def _field_name(tree: CatalystTree) -> str | None:
    """The name of a field by its position, where the struct is a column or made here."""
    field = _field(tree)
    if field is not None:
        return str(field.get("name"))
    child, ordinal = tree.children[0], tree.fields.get("ordinal")
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
        case p.Conditional():
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
    if isinstance(item, p.StructValue) and type_.get("type") == "struct":
        names = [str(field.get("name")) for field in type_.get("fields") or ()]
        if len(names) == len(item.fields):
            return p.StructValue(
                item.name,
                tuple((column_path(name), value) for name, (_, value) in zip(names, item.fields, strict=True)),
            )
    if isinstance(item, p.Elements) and type_.get("type") == "array":
        items = [_recast(each, type_.get("elementType")) for each in item.items]
        if all(each is not None for each in items):
            return p.Elements(item.name, tuple(each for each in items if each is not None), item.kind)
    return None


def _json_steps(path: object) -> list[str]:
    """The steps of a JSON path that names keys and elements only; none for what else it may say."""
    if not isinstance(path, str) or not path.startswith("$"):
        return []
    steps: list[str] = []
    for part in path[1:].replace("[", ".[").split("."):
        if not part:
            continue
        if part.startswith("['") and part.endswith("']"):
            steps.append(build.key_step(part[2:-2]))
        elif part.startswith("["):
            steps.append("[]")
        elif part.isidentifier():
            steps.append(part if steps and part == part.lower() else build.key_step(part))
        else:
            return []
    return steps


def variable_name(tree: CatalystTree) -> str:
    """The name of a variable without those of what holds it, in lower case."""
    written = str(tree.fields.get("originalNameParts", "")).strip("[]")
    return written.rpartition(", ")[2].lower()
