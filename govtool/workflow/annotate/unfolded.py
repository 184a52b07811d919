"""Rows made of lists that were computed, as operators over the rows of the lists that they were computed from.

``explode(transform(l, f))`` is a projection of the rows of ``explode(l)``, ``explode(filter(l, p))`` a filter over
them; ``explode(concat(l, m))`` has those of both lists, ``inline(l)`` their fields, and a list in another order has the
same. Where a list was collected, its rows are those that were collected.
"""

from __future__ import annotations

from dataclasses import replace

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call, Expression, Lambda, Named, Variable, passed
from govtool.records.plan.nodes import Filter, Generate, Project, Union, outputs
from govtool.records.plan.tree import Node, Term, walk
from govtool.records.plan.types import BOOLEAN, Array, Struct
from govtool.records.trace.normal import Ids
from govtool.workflow.annotate.rows import rewritten

_BY_ELEMENT = frozenset({"transform", "filter"})
_IN_ANOTHER_ORDER = frozenset({"sort_array", "reverse"})


def unfolded(node: Generate, ids: Ids) -> Node:
    """The same rows with as little computed before the generator as can be; the operator itself if there is no other.

    Args:
        node: The operator.
        ids: Ids of columns to spare.
    """
    call = node.generator
    if node.outer or not isinstance(call, Call) or call.name not in ("explode", "inline") or len(call.arguments) != 1:
        return node
    child, value = _lifted(node.child, call.arguments[0])
    kind = value.type
    if not isinstance(kind, Array) or not (call.name == "inline" or _is_computed(value)):
        return node
    if call.name == "inline" and not isinstance(kind.element, Struct):
        return node
    own = [passed(column) for column in outputs(node.child)]
    if call.name == "inline":
        element = ids.attribute("element", kind.element)
        inner = replace(node, child=child, generator=Call("explode", (value,), kind.element), columns=(element,))
        fields = [_field(element, at, column) for at, column in enumerate(node.columns)]
        return Project(unfolded(inner, ids), (*own, *fields))
    return _computed(node, child, value, own, ids)


def _computed(node: Generate, child: Node, value: Expression, own: list[Named], ids: Ids) -> Node:
    assert isinstance(value, Call)
    if value.name == "concat":
        return _of_each(node, child, value, own, ids)
    if value.name not in _BY_ELEMENT:
        rows = unfolded(replace(node, child=child, generator=Call("explode", value.arguments[:1], value.type)), ids)
        return Project(rows, (*own, *map(passed, node.columns)))
    source, function = value.arguments
    assert isinstance(function, Lambda)
    assert isinstance(source.type, Array)
    (column,), (parameter,) = node.columns, function.parameters
    is_filter = value.name == "filter"
    element = column if is_filter else ids.attribute("element", source.type.element)
    inner = Generate(child, Call("explode", (source,), source.type.element), False, (element,))

    def swap(term: Term) -> Term:
        return element if isinstance(term, Variable) and term.id == parameter.id else term

    body = rewritten(function.body, swap)
    rows = unfolded(inner, ids)
    if is_filter:
        return Project(Filter(rows, body), (*own, passed(column)))
    return Project(rows, (*own, Named(body, column.id, column.name)))


def _of_each(node: Generate, child: Node, value: Call, own: list[Named], ids: Ids) -> Node:
    """The elements of one list, and those of another: none where one of them is NULL."""
    there = [
        Call("is not null", (each,), BOOLEAN)
        for each in value.arguments
        if not (isinstance(each, Attribute) and not each.nullable)
    ]
    for condition in there:
        child = Filter(child, condition)
    (column,) = node.columns
    parts = []
    for each in value.arguments:
        element = ids.attribute(column.name, column.type)
        rows = unfolded(Generate(child, Call("explode", (each,), column.type), False, (element,)), ids)
        parts.append(Project(rows, (*own, passed(element))))
    return Union(tuple(parts), (*(each.attribute for each in own), column))


def _field(element: Attribute, at: int, column: Attribute) -> Named:
    assert isinstance(element.type, Struct)
    name = element.type.fields[at].name
    call = Call("get field", (element,), column.type, options=(("field", name), ("ordinal", at)))
    return Named(call, column.id, column.name)


def _is_computed(value: Expression) -> bool:
    if not isinstance(value, Call):
        return False
    if value.name in _IN_ANOTHER_ORDER or (value.name == "array_sort" and len(value.arguments) == 1):
        return True
    if value.name == "concat":
        return isinstance(value.type, Array) and all(t.same(each.type, value.type) for each in value.arguments)
    if value.name not in _BY_ELEMENT or len(value.arguments) != 2:
        return False
    function = value.arguments[1]
    return isinstance(function, Lambda) and len(function.parameters) == 1


def _lifted(child: Node, value: Expression) -> tuple[Node, Expression]:
    """What a column of projections is computed from, over a plan that also has what it reads."""
    if not isinstance(value, Attribute) or not isinstance(child, Project):
        return child, value
    made = next((each.value for each in child.columns if each.id == value.id), value)
    below, found = _lifted(child.child, made) if isinstance(made, Attribute) else (child.child, made)
    if not _is_computed(found):
        return child, value
    have = {each.id for each in child.columns}
    read = {each.id: each for each in walk(found) if isinstance(each, Attribute)}
    if any(number in have and not _is_passed(child, number) for number in read):
        return child, value
    more = tuple(passed(each) for number, each in read.items() if number not in have)
    return replace(child, child=below, columns=child.columns + more), found


def _is_passed(child: Project, number: int) -> bool:
    return any(each.id == number and each.is_passed for each in child.columns)
