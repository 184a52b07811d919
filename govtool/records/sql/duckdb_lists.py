"""Functions over lists in DuckDB's SQL: with lambdas, and those that compare elements.

Elements that are compared are whole numbers, dates, texts, booleans and structs of these: two of them are equal for
DuckDB where they are for Spark.
"""

from __future__ import annotations

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Call, Lambda, Literal
from govtool.records.sql.dialect import Dialect, NotExact, quoted
from govtool.records.sql.duckdb_calls import WriteFunction, number_of

_COMPARED = (*t.INTEGRAL, t.STRING, t.DATE, t.BOOLEAN)
"""Types whose values are compared, ordered and found alike in both engines."""
_DEEPEST = 8
"""Structs within each other whose fields are put in order."""


def with_name(value: str, name: str, body: str) -> str:
    """An expression over a value that it has a name for, so that the value is written once."""
    return f"list_extract(list_transform([{value}], lambda {name}: {body}), 1)"


def _element(kind: t.Type) -> t.Type:
    return kind.element if isinstance(kind, t.Array) else t.VOID


def _require_compared(call: Call, kind: t.Type) -> None:
    """Refuse lists whose elements may be equal for one engine and not for the other.

    Raises:
        NotExact: They may.
    """
    if not is_compared(_element(kind)):
        raise NotExact(f"{call.name} of {t.as_text(kind)}")


def is_compared(kind: t.Type) -> bool:
    """Return whether both engines find the same values of a type equal, and order those of a list alike."""
    if isinstance(kind, t.Struct):
        return bool(kind.fields) and all(is_compared(field.type) for field in kind.fields)
    return kind in _COMPARED


def _lambda(call: Call, at: int, least: int = 1, most: int = 1) -> Lambda:
    """An argument that is a lambda of so many parameters.

    Raises:
        NotExact: It is none, or has others.
    """
    found = call.arguments[at]
    if not isinstance(found, Lambda) or not least <= len(found.parameters) <= most:
        raise NotExact(f"{call.name} with another function")
    return found


def written_lambda(dialect: Dialect, term: Lambda, body: str) -> str:
    """A lambda in DuckDB's SQL."""
    return f"lambda {', '.join(map(dialect.variable, term.parameters))}: {body}"


def _body(written: str) -> str:
    """The body of a lambda that was written."""
    return written.partition(": ")[2]


def _of_elements(function: str) -> WriteFunction:
    """A function of every element, or of every element and its place, which is counted from 0 in Spark."""

    def write(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
        element, *place = map(dialect.variable, _lambda(call, 1, most=2).parameters)
        if not place:
            return f"{function}({parts[0]}, {parts[1]})"
        body = with_name("CAST(n - 1 AS INTEGER)", place[0], _body(parts[1]))
        return f"{function}({parts[0]}, lambda {element}, n: {body})"

    return write


def _any(found: str, otherwise: str) -> WriteFunction:
    """Whether a condition has a value for some element; NULL where it is not known of one, and has it for none."""

    def write(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
        _lambda(call, 1)
        truth = f"list_transform({parts[0]}, {parts[1]})"
        body = (
            f"CASE WHEN list_contains(l, {found}) THEN {found} WHEN l IS NOT NULL AND list_count(l) = len(l)"
            f" THEN {otherwise} END"
        )
        return with_name(truth, "l", body)

    return write


def _aggregate(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    """A fold from the left, and a function of what it gives: DuckDB's has elements of the type of the sum alone."""
    merge, finish = _lambda(call, 2, 2, 2), _lambda(call, 3)
    total, element = merge.parameters
    if not (t.same(kinds[1], total.type) and t.same(merge.type, total.type)):
        raise NotExact("aggregate whose steps are of several types")
    no_sum, no_element = (f"CAST(NULL AS {dialect.type(each.type)})" for each in (total, element))
    one, two = dialect.variable(total), dialect.variable(element)
    step = with_name("struct_extract(s, 'a')", one, with_name("struct_extract(x, 'e')", two, _body(parts[2])))
    items = f"list_transform(l, lambda x: {{'a': {no_sum}, 'e': x}})"
    first = f"{{'a': {parts[1]}, 'e': {no_element}}}"
    folded = f"list_reduce({items}, lambda s, x: {{'a': {step}, 'e': {no_element}}}, {first})"
    (result,) = map(dialect.variable, finish.parameters)
    value = with_name(f"struct_extract({folded}, 'a')", result, _body(parts[3]))
    return with_name(parts[0], "l", f"CASE WHEN l IS NOT NULL THEN {value} END")


def _extreme(function: str) -> WriteFunction:
    def write(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
        if _element(kinds[0]) not in _COMPARED:
            raise NotExact(f"{call.name} of {t.as_text(kinds[0])}")
        return f"{function}({parts[0]})"

    return write


def _distinct(value: str) -> str:
    """The first of equal elements, in order; NULL is an element like another."""
    return f"list_filter({value}, lambda x, i: list_position({value}, x) = i)"


def _array_distinct(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    _require_compared(call, kinds[0])
    return with_name(parts[0], "l", _distinct("l"))


def _pair(left: str, right: str, body: str) -> str:
    """An expression over the lists ``l`` and ``r``; NULL where one of them is."""
    return with_name(left, "l", with_name(right, "r", f"CASE WHEN l IS NOT NULL AND r IS NOT NULL THEN {body} END"))


def _of_two(body: str, alone: bool = False) -> WriteFunction:
    """A set operation over two lists of one type."""

    def write(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
        for kind in kinds:
            _require_compared(call, kind)
        if not t.same(_element(kinds[0]), _element(kinds[1])) or (alone and _element(kinds[0]) not in _COMPARED):
            raise NotExact(f"{call.name} of {' and '.join(map(t.as_text, kinds))}")
        return _pair(parts[0], parts[1], body)

    return write


_UNION = with_name("list_concat(l, r)", "b", _distinct("b"))
_EXCEPT = "list_filter(l, lambda x, i: list_position(l, x) = i AND list_position(r, x) IS NULL)"
_INTERSECT = "list_filter(l, lambda x, i: list_position(l, x) = i AND list_position(r, x) IS NOT NULL)"
_OVERLAP = (
    "(CASE WHEN len(list_filter(l, lambda x: x IS NOT NULL AND list_contains(r, x))) > 0 THEN TRUE"
    " WHEN len(l) > 0 AND len(r) > 0 AND (list_count(l) < len(l) OR list_count(r) < len(r)) THEN NULL ELSE FALSE END)"
)


def concatenated(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    """Lists of one type, one behind the other; NULL where one of them is."""
    if any(not t.same(each, call.type) for each in kinds):
        raise NotExact("concat of lists of several types")
    found = parts[0]
    for part in parts[1:]:
        found = _pair(found, part, "list_concat(l, r)")
    return found


def _flatten(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    return with_name(parts[0], "l", "CASE WHEN l IS NOT NULL AND list_count(l) = len(l) THEN flatten(l) END")


def _slice(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    start, size = (number_of(each) for each in call.arguments[1:])
    if start is None or size is None or start < 1 or size < 0:
        raise NotExact("slice at a place that is computed, or from the end")
    return f"list_slice({parts[0]}, {start}, {start + size - 1})"


def _sort_array(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    """NULLs first in ascending order, last in descending order; equal floats may differ (-0.0)."""
    order = call.arguments[1]
    if not isinstance(order, Literal):
        raise NotExact("sort_array in an order that is no constant")
    options = "'ASC', 'NULLS FIRST'" if order.value else "'DESC', 'NULLS LAST'"
    return _in_order(call, parts[0], kinds[0], options, "(x IS NOT NULL)")


def _array_sort(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    """Ascending order, NULLs last."""
    if len(parts) > 1:
        raise NotExact("array_sort by a function")
    return _in_order(call, parts[0], kinds[0], "'ASC', 'NULLS LAST'", "(x IS NULL)")


def _in_order(call: Call, part: str, kind: t.Type, options: str, first: str) -> str:
    """A list in order. Structs are by their fields, NULL before all, or, in descending order, the other way round."""
    element = _element(kind)
    if not is_compared(element):
        raise NotExact(f"{call.name} of {t.as_text(kind)}")
    if not isinstance(element, t.Struct):
        return f"list_sort({part}, {options})"
    keys = ", ".join(f"'k{at}': {text}" for at, text in enumerate((first, *_keys("x", element)[1:])))
    ordered = f"list_sort(list_transform({part}, lambda x: {{{keys}, 'v': x}}), {options})"
    return f"list_transform({ordered}, lambda y: struct_extract(y, 'v'))"


def _keys(value: str, kind: t.Type, depth: int = 0) -> list[str]:
    """By what a value is put in order, none of it NULL where it decides."""
    if depth > _DEEPEST:
        raise NotExact("structs that are nested deeper")
    there = f"({value} IS NOT NULL)"
    if not isinstance(kind, t.Struct):
        return [there, value]
    fields = [(f"struct_extract({value}, {quoted(field.name)})", field.type) for field in kind.fields]
    return [there, *(key for text, own in fields for key in _keys(text, own, depth + 1))]


def fields_of(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    """A field of every struct of a list."""
    return f"list_transform({parts[0]}, lambda x: struct_extract(x, {quoted(str(dict(call.options)['field']))}))"


LIST_CALLS: dict[str, WriteFunction] = {
    "sort_array": _sort_array, "array_sort": _array_sort, "transform": _of_elements("list_transform"),
    "filter": _of_elements("list_filter"),
    "exists": _any("TRUE", "FALSE"), "forall": _any("FALSE", "TRUE"), "aggregate": _aggregate,
    "array_max": _extreme("list_max"), "array_min": _extreme("list_min"), "array_distinct": _array_distinct,
    "array_union": _of_two(_UNION), "array_except": _of_two(_EXCEPT), "array_intersect": _of_two(_INTERSECT),
    "arrays_overlap": _of_two(_OVERLAP, alone=True), "flatten": _flatten, "slice": _slice, "get fields": fields_of,
}  # fmt: skip
"""Writers of functions over lists."""
