"""Plans and expressions as every reader builds them: calls by their SQL name, CASE, windows, unions without casts."""

from __future__ import annotations

from collections.abc import Sequence

from govtool.capture.spark.plan import (
    CONSTANT,
    Aggregate,
    Apply,
    Attribute,
    CatalogView,
    Conditional,
    Elements,
    Expression,
    Join,
    Named,
    Node,
    Output,
    Project,
    Reference,
    Renamed,
    Scan,
    Union,
    Values,
    outputs_of,
)
from govtool.functions.facts import AGGREGATES, COLLECTING, GENERATORS, KEYED, RANKS, ROW_VALUES, as_key, positions_of
from govtool.model import EdgeKind

_CONDITIONS = frozenset({"if", "nvl2"})
_CASTS = frozenset({"cast", "ansi_cast", "upcast", "checkoverflowintableinsert", ""})
_WIDTHS = {
    type_: width for width, type_ in enumerate(("tinyint", "smallint", "int", "bigint", "decimal", "float", "double"))
}


def call(name: str, arguments: Sequence[Expression], *, kind: EdgeKind | None = None) -> Expression:
    """A call by its SQL name, as far as the name alone tells: CASE's neighbours, arrays, aggregates, anything else.

    Args:
        name: In any case.
        arguments: In order.
        kind: ``AGGREGATION`` where the plan says that it is an aggregate; by default the name tells.
    """
    name = name.lower()
    items = tuple(arguments)
    if name in _CONDITIONS and len(items) == 3:
        return choice(name, items[:1], items[1:])
    if name in GENERATORS:
        return CONSTANT
    positions = positions_of(name) if name in KEYED else None
    if positions is not None and 0 < positions.key <= len(items):
        return _keyed(name, items, positions.key - 1)
    if kind is None:
        kind = EdgeKind.AGGREGATION if name in AGGREGATES else EdgeKind.TRANSFORMATION
    if name == "array" or name in COLLECTING:
        return Elements(name, items, kind)
    return Apply(name, items, kind)


def _keyed(name: str, items: tuple[Expression, ...], key: int) -> Expression:
    """A call that hides its value, but not its key."""
    others = (*items[:key], *items[key + 1 :])
    return Apply("", (Apply(name, others), Apply(as_key(name), (items[key],))))


def choice(name: str, conditions: Sequence[Expression], values: Sequence[Expression]) -> Expression:
    """CASE, IF and their like: values, steered by conditions."""
    value = Apply(name, tuple(values))
    return Conditional(value, tuple(conditions)) if conditions else value


def over(function: str, arguments: Sequence[Expression], window: Sequence[Expression]) -> Expression:
    """A function over a window; ``window``: the expressions of PARTITION BY and ORDER BY."""
    function = function.lower()
    value: Expression
    if function in RANKS:  # Catalyst repeats the ORDER BY of the window as their arguments; they have none
        value = CONSTANT
    elif function in ROW_VALUES:
        value = Apply(function, tuple(arguments))
    else:
        value = call(function, arguments)
    return Conditional(value, tuple(window), EdgeKind.WINDOW) if window else value


def key_step(key: str) -> str:
    """The step to a key of a map or of a JSON value: ``['user']``."""
    return "['" + key.replace("\\", "\\\\").replace("'", "\\'") + "']"


def union(children: Sequence[Node], outputs: tuple[Named, ...] = (), *, distinct: bool = False) -> Union:
    """A union whose arms are no unions of the same sort: ``a UNION ALL b UNION ALL c`` has three arms."""
    arms: list[Node] = []
    for child in children:
        plain = uncast(child, narrower=False)
        inner = plain.child if isinstance(plain, Renamed) else plain
        if isinstance(inner, Union) and inner.distinct == distinct:
            arms.extend(inner.children)
        else:
            arms.append(plain)
    return Union(tuple(arms), outputs or outputs_of(children[0]), distinct)


def aggregate(child: Node, keys: tuple[Expression, ...], outputs: tuple[Output, ...]) -> Aggregate:
    """An aggregate. PIVOT groups by its column first, which decides no rows: only to which column one adds."""
    pivot = {
        by.id
        for output in outputs
        if isinstance(value := output.value, Conditional) and isinstance(value.value, Apply) and value.value.name == ""
        for by in value.by
        if isinstance(by, Attribute)
    }
    if pivot and isinstance(child, Aggregate):
        own = {output.id: output.value for output in child.outputs}
        pivoted = [own[number] for number in pivot if number in own]
        kept = tuple(
            key for key in child.keys if key not in pivoted and not (isinstance(key, Attribute) and key.id in pivot)
        )
        child = Aggregate(child.child, kept, child.outputs)
    return Aggregate(child, keys, outputs)


def several(first: Node, datasets: Sequence[str], outputs: tuple[Named, ...]) -> Node:
    """Several datasets that one scan reads as if they were one: each may hold any row.

    Args:
        first: The scan of the first.
        datasets: The others.
        outputs: The columns of the scan.
    """
    node = first
    values: list[list[Expression]] = [[Attribute(o.id, o.name)] for o in outputs]
    for number, dataset in enumerate(datasets):
        own = tuple(Named(-1 - number * len(outputs) - i, o.name) for i, o in enumerate(outputs))
        node = Join(node, Scan(dataset, own))
        for value, named in zip(values, own, strict=True):
            value.append(Attribute(named.id, named.name))
    made = (
        Output(o.id, o.name, Apply("", tuple(value), EdgeKind.IDENTITY)) if datasets else Output(o.id, o.name, value[0])
        for o, value in zip(outputs, values, strict=True)
    )
    return Project(node, tuple(made))


def cast(name: str, value: Expression, source: str, target: str) -> Expression:
    """A cast; one to a type that holds less has the type as an argument more: no set operation needs it.

    Args:
        name: The function.
        value: What is cast.
        source: The value's type as SQL writes it; empty if it is not known.
        target: The type that it gets.
    """
    less = narrows(source, target)
    return Apply(name, (value, CONSTANT) if less else (value,))


def narrows(source: str, target: str) -> bool:
    """Return whether a number or a time loses something by a cast, so that analysis never adds it to an arm of a union.

    >>> narrows("bigint", "int"), narrows("int", "bigint"), narrows("string", "int")
    (True, False, False)
    """
    if (source, target) == ("timestamp", "date"):
        return True
    before, after = _WIDTHS.get(source.partition("(")[0]), _WIDTHS.get(target.partition("(")[0])
    return before is not None and after is not None and after < before


def uncast(node: Node, *, narrower: bool = True) -> Node:
    """A select list that does nothing but cast the columns of a query, in order, is how analysis fits types: below
    an INSERT, and in the arms of a union. It is taken off, as nobody wrote it.

    Of a table it stays: there the query has no other select list, so this may well be written. With ``narrower`` casts
    to a type that holds less are taken off, too: a table may have such a type, a set operation never gets one.
    """
    if not isinstance(node, Project) or isinstance(node.child, Scan | CatalogView | Values | Reference):
        return node
    below = outputs_of(node.child)
    if len(below) != len(node.outputs):
        return node
    for column, output in zip(below, node.outputs, strict=True):
        value = output.value
        while isinstance(value, Apply) and value.name in _CASTS and (len(value.arguments) == 1 or narrower):
            value = value.arguments[0]
        if not isinstance(value, Attribute) or value.id != column.id:
            return node
    return Renamed(node.child, tuple(Named(output.id, output.name) for output in node.outputs))
