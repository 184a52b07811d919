"""Catalyst's expressions that are no plain functions, by their classes: literals, columns, aggregates, subqueries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from govtool.records.plan import functions
from govtool.records.plan import types as t
from govtool.records.plan.captured_values import read_value
from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Case,
    Cast,
    Exists,
    Expression,
    Frame,
    InSubquery,
    Lambda,
    Literal,
    Named,
    Opaque,
    Outer,
    ScalarSubquery,
    SortKey,
    Udf,
    UdfReference,
    Variable,
    WindowCall,
)
from govtool.records.plan.term_fields import TermFields, read_mode
from govtool.records.plan.term_pieces import Common, CommonDefinition, Edge, Ordered, Query, Specification, Unread
from govtool.records.plan.tree import Node, Term, fold, rewrite, walk

Json = Any
_SESSION_WINDOW = "spark.sessionWindow"
"""Metadata of a column that changes what a group does with it. A watermark's (``spark.watermarkDelayMs``) counts for
operators with a state alone, which no plan here has: files that a stream wrote hand it on to batch jobs."""
MAX_INLINED = 20_000
"""Terms that common expressions of one expression may unfold to."""
_PYTHON_KINDS = {
    100: "python", 101: "arrow", 200: "pandas", 201: "pandas-grouped-map", 202: "pandas-aggregate",
    203: "pandas-window", 204: "pandas-iterator", 205: "map-in-pandas", 206: "pandas-cogrouped-map",
    207: "map-in-arrow", 209: "arrow-grouped-map", 250: "arrow", 251: "arrow-iterator", 252: "arrow-aggregate",
    300: "python-table", 301: "arrow-table",
}  # fmt: skip
"""Spark's numbers of evaluation types (``PythonEvalType``)."""


# ---- special forms ----------------------------------------------------------------------------------


def _literal(reader: TermFields, fields: Json, own: t.Type) -> Term:
    return Literal(read_value(fields["value"], own), own)


def _attribute(reader: TermFields, fields: Json, own: t.Type) -> Term:
    _unmarked(fields)
    return Attribute(fields["id"], fields["name"], own, bool(fields["nullable"]))


def _alias(reader: TermFields, fields: Json, own: t.Type) -> Term:
    _unmarked(fields)
    return Named(reader.value(fields["child"]), fields["id"], fields["name"])


def _outer(reader: TermFields, fields: Json, own: t.Type) -> Term:
    inner = reader.value(fields["e"])
    if not isinstance(inner, Attribute):
        raise Unread("a value of the query around it that is no column")
    return Outer(inner)


def _cast(reader: TermFields, fields: Json, own: t.Type) -> Term:
    mode = read_mode("evalMode", fields["evalMode"])
    return Cast(reader.value(fields["child"]), reader.type(fields["dataType"]), mode, str(fields["timeZoneId"] or ""))


def _if(reader: TermFields, fields: Json, own: t.Type) -> Term:
    branch = (reader.value(fields["predicate"]), reader.value(fields["trueValue"]))
    return Case((branch,), reader.value(fields["falseValue"]), own)


def _case(reader: TermFields, fields: Json, own: t.Type) -> Term:
    branches = tuple((reader.value(when), reader.value(then)) for when, then in fields["branches"])
    otherwise = fields["elseValue"]
    return Case(branches, None if otherwise is None else reader.value(otherwise), own)


def _in(reader: TermFields, fields: Json, own: t.Type) -> Term:
    return Call("in", (reader.value(fields["value"]), *reader.values(fields["list"])), own)


def _not(reader: TermFields, fields: Json, own: t.Type) -> Term:
    return Call("not", (reader.value(fields["child"]),), own)


def _field(reader: TermFields, fields: Json, own: t.Type) -> Term:
    child = reader.value(fields["child"])
    if not isinstance(child.type, t.Struct):
        raise Unread("a field of what is no struct")
    ordinal = int(fields["ordinal"])
    name = child.type.fields[ordinal].name
    return Call("get field", (child,), own, options=(("field", name), ("ordinal", ordinal)))


def _fields(reader: TermFields, fields: Json, own: t.Type) -> Term:
    child = reader.value(fields["child"])
    if not (isinstance(child.type, t.Array) and isinstance(child.type.element, t.Struct)):
        raise Unread("a field of what is no array of structs")
    ordinal = int(fields["ordinal"])
    name = child.type.element.fields[ordinal].name
    return Call("get fields", (child,), own, options=(("field", name), ("ordinal", ordinal)))


def _sorted(reader: TermFields, fields: Json, own: t.Type) -> Term:
    """``array_sort``: without a function, Catalyst writes down the one that it means."""
    if fields.get("allowNullComparisonResult"):
        raise Unread("array_sort whose function may give NULL")
    value, order = reader.value(fields["argument"]), reader.term(fields["function"])
    if not isinstance(order, Lambda):
        raise Unread("array_sort by what is no function")
    return Call("array_sort", (value,) if order == _rising(order) else (value, order), own)


def _rising(order: Lambda) -> Lambda | None:
    """The function that puts values in rising order, NULL at the end, over the parameters of another."""
    if len(order.parameters) != 2:
        return None
    one, other = order.parameters

    def holds(name: str, *values: Expression) -> Call:
        return Call(name, values, t.BOOLEAN)

    both = holds("and", holds("is null", one), holds("is null", other))
    steps = [(both, 0), (holds("is null", one), 1), (holds("is null", other), -1)]
    steps += [(holds("<", one, other), -1), (holds(">", one, other), 1)]
    body: Expression = Literal(0, t.INTEGER)
    for condition, place in reversed(steps):
        body = Case(((condition, Literal(place, t.INTEGER)),), body, t.INTEGER)
    return Lambda(order.parameters, body)


def _item(reader: TermFields, fields: Json, own: t.Type) -> Term:
    arguments = (reader.value(fields["child"]), reader.value(fields["ordinal"]))
    return Call("get item", arguments, own, read_mode("failOnError", fields["failOnError"]))


def _map_value(reader: TermFields, fields: Json, own: t.Type) -> Term:
    return Call("get value", (reader.value(fields["child"]), reader.value(fields["key"])), own)


def _lambda(reader: TermFields, fields: Json, own: t.Type) -> Term:
    parameters = [reader.term(each) for each in fields["arguments"]]
    if not all(isinstance(each, Variable) for each in parameters):
        raise Unread("a parameter of a lambda that is no variable")
    return Lambda(cast(tuple[Variable, ...], tuple(parameters)), reader.value(fields["function"]))


def _variable(reader: TermFields, fields: Json, own: t.Type) -> Term:
    return Variable(fields["exprId"]["$id"], fields["name"], own)


def _at_least(reader: TermFields, fields: Json, own: t.Type) -> Term:
    """``na.drop``: at least so many values that are neither NULL nor NaN."""
    total: Expression = Literal(0, t.INTEGER)
    for each in reader.values(fields["children"]):
        there: Expression = Call("is not null", (each,), t.BOOLEAN)
        if each.type in (t.FLOAT, t.DOUBLE):
            number = Call("not", (Call("isnan", (each,), t.BOOLEAN),), t.BOOLEAN)
            there = Call("and", (there, number), t.BOOLEAN)
        one = Case(((there, Literal(1, t.INTEGER)),), Literal(0, t.INTEGER), t.INTEGER)
        total = Call("+", (total, one), t.INTEGER)
    return Call(">=", (total, Literal(int(fields["n"]), t.INTEGER)), t.BOOLEAN)


def _raise(reader: TermFields, fields: Json, own: t.Type) -> Term:
    name, arguments = reader.value(fields["errorClass"]), reader.value(fields["errorParms"])
    plain = isinstance(name, Literal) and name.value == "USER_RAISED_EXCEPTION"
    if not plain or not isinstance(arguments, Call) or len(arguments.arguments) != 2:
        raise Unread("an error of a class of its own")
    return Call("raise_error", (arguments.arguments[1],), own)


def _child(reader: TermFields, fields: Json, own: t.Type) -> Term:
    return reader.value(fields["child"])


def _micros(reader: TermFields, fields: Json, own: t.Type) -> Term:
    names: dict[tuple[t.Type, t.Type], str] = {(t.TIMESTAMP, t.LONG): "unix_micros"}
    names[(t.LONG, t.TIMESTAMP)] = "timestamp_micros"
    name = names.get((reader.type(fields["fromType"]), reader.type(fields["toType"])))
    if name is None:
        raise Unread("of timestamps without a zone")
    return Call(name, (reader.value(fields["child"]),), own)


# ---- common expressions -----------------------------------------------------------------------------


def _common_definition(reader: TermFields, fields: Json, own: t.Type) -> Term:
    return CommonDefinition(fields["id"]["f"]["id"], reader.value(fields["child"]))


def _common(reader: TermFields, fields: Json, own: t.Type) -> Term:
    return Common(fields["id"]["f"]["id"], own)


def _with(reader: TermFields, fields: Json, own: t.Type) -> Term:
    found = [reader.term(each) for each in fields["defs"]]
    definitions = {each.id: each.value for each in found if isinstance(each, CommonDefinition)}
    if not all(_is_deterministic(each) for each in definitions.values()):
        raise Unread("a common expression that is drawn at random")

    def change(term: Term) -> Term:
        return definitions.get(term.id, term) if isinstance(term, Common) else term

    made = rewrite(reader.value(fields["child"]), change)
    if fold(made, lambda _, parts: 1 + sum(parts)) > MAX_INLINED:
        raise Unread("common expressions that unfold to too many")
    return made


# ---- aggregates and windows -------------------------------------------------------------------------


def _sort_key(reader: TermFields, fields: Json, own: t.Type) -> Term:
    descending = fields["direction"]["$product"].endswith(".Descending$")
    first = fields["nullOrdering"]["$product"].endswith(".NullsFirst$")
    return SortKey(reader.value(fields["child"]), descending, first)


def _aggregate(reader: TermFields, fields: Json, own: t.Type) -> Term:
    found = reader.term(fields["aggregateFunction"])
    order = found.order if isinstance(found, Ordered) else ()
    function = found.call if isinstance(found, Ordered) else found
    if isinstance(function, Call) and function.name == "array":
        return function  # a pivot: its aggregates are within
    if isinstance(function, Opaque):
        return Opaque(function.reason, function.arguments, own, True)
    if not isinstance(function, Call) or not fields["mode"]["$product"].endswith(".Complete$"):
        raise Unread("an aggregate that is no function, or a part of one")
    condition = fields["filter"]
    return AggregateCall(
        function.name,
        function.arguments,
        own,
        bool(fields["isDistinct"]),
        None if condition is None else reader.value(condition),
        order,
        function.mode,
        function.options,
        function.name not in functions.ORDER_DEPENDENT,
    )


def _pivot(reader: TermFields, fields: Json, own: t.Type) -> Term:
    """PivotFirst: the value for each of a list of values of the pivot column, of one row each, as an array."""
    pivot, value = reader.value(fields["pivotColumn"]), reader.value(fields["valueColumn"])
    found = []
    for each in fields["pivotColumnValues"]:
        wanted = Literal(read_value(each, pivot.type), pivot.type)
        condition = Call("<=>", (pivot, wanted), t.BOOLEAN)
        found.append(AggregateCall("first", (value,), value.type, False, condition, options=(("ignore nulls", True),)))
    return Call("array", tuple(found), own)


def _window(reader: TermFields, fields: Json, own: t.Type) -> Term:
    function, specification = reader.value(fields["windowFunction"]), reader.term(fields["windowSpec"])
    if not isinstance(function, (AggregateCall, Call, Udf, Opaque)) or not isinstance(specification, Specification):
        raise Unread("a window of an unknown form")
    ranks = isinstance(function, Call) and function.name in functions.WINDOWS.values()
    frame = None if ranks and function.name != "nth_value" else specification.frame  # type: ignore[union-attr]
    return WindowCall(function, specification.partition, specification.order, frame, own)


def _specification(reader: TermFields, fields: Json, own: t.Type) -> Term:
    order = tuple(each for each in map(reader.term, fields["orderSpec"]) if isinstance(each, SortKey))
    frame = reader.term(fields["frameSpecification"])
    if not isinstance(frame, Frame):
        raise Unread("a frame that is not resolved")
    return Specification(reader.values(fields["partitionSpec"]), order, frame)


def _frame(reader: TermFields, fields: Json, own: t.Type) -> Term:
    bounds = [reader.term(fields[name]) for name in ("lower", "upper")]
    lower, upper = (each.name if isinstance(each, Edge) else each for each in bounds)
    rows = fields["frameType"]["$product"].endswith(".RowFrame$")
    return Frame("rows" if rows else "range", cast(Any, lower), cast(Any, upper))


# ---- subqueries -------------------------------------------------------------------------------------


def _subquery(reader: TermFields, fields: Json) -> tuple[Node, tuple[Attribute, ...]]:
    if fields.get("joinCond"):
        raise Unread("a subquery whose condition was moved")
    plan = reader.made[fields["plan"]["$"]]
    outer = [each for term in reader.values(fields.get("outerAttrs")) for each in walk(term)]
    found = {each.id: each for each in outer if isinstance(each, Attribute)}
    return plan, tuple(found.values())


def _query(reader: TermFields, fields: Json, own: t.Type) -> Term:
    return Query(*_subquery(reader, fields))


def _scalar_subquery(reader: TermFields, fields: Json, own: t.Type) -> Term:
    plan, outer = _subquery(reader, fields)
    return ScalarSubquery(plan, own, outer)


def _exists(reader: TermFields, fields: Json, own: t.Type) -> Term:
    return Exists(*_subquery(reader, fields))


def _in_subquery(reader: TermFields, fields: Json, own: t.Type) -> Term:
    query = reader.term(fields["query"])
    if not isinstance(query, Query):
        raise Unread("an IN without a query")
    return InSubquery(reader.values(fields["values"]), query.plan, query.outer)


# ---- functions of the user --------------------------------------------------------------------------


def _python_udf(reader: TermFields, fields: Json, own: t.Type) -> Term:
    arguments = reader.values(fields["children"])
    digest = (fields.get("func") or {}).get("$python") or ""
    kind = _PYTHON_KINDS.get(fields.get("evalType", 0), "python-unknown")
    known = reader.udfs.get(digest)
    if known is None:
        known = UdfReference("", str(fields.get("name", "")), "", kind, "not seen when it was made")
    reference = UdfReference(known.module, known.qualname, known.digest, kind, known.reason)
    aggregate = kind.endswith("-aggregate")
    return Udf(reference, arguments, own, aggregate, bool(fields.get("udfDeterministic", True)))


def _foreign(reader: TermFields, fields: Json, own: t.Type) -> Term:
    raise Unread("a function of the user's in Scala or Java")


def _unmarked(fields: Json) -> None:
    metadata = fields.get("$metadata")
    if metadata and _SESSION_WINDOW in metadata:
        raise Unread("a session window")


def _is_deterministic(expression: Expression) -> bool:
    return all(
        not (isinstance(each, (Call, Udf)) and not each.deterministic) and not isinstance(each, ScalarSubquery)
        for each in walk(expression)
    )


FORMS: dict[str, Callable[[TermFields, Json, t.Type], Term]] = {
    "Literal": _literal, "AttributeReference": _attribute, "Alias": _alias,
    "OuterReference": _outer, "Cast": _cast, "If": _if, "CaseWhen": _case, "In": _in,
    "Not": _not, "GetStructField": _field, "GetArrayStructFields": _fields,
    "GetArrayItem": _item, "GetMapValue": _map_value, "LambdaFunction": _lambda,
    "NamedLambdaVariable": _variable, "CommonExpressionDef": _common_definition,
    "CommonExpressionRef": _common, "With": _with, "SortOrder": _sort_key,
    "AggregateExpression": _aggregate, "WindowExpression": _window,
    "WindowSpecDefinition": _specification, "SpecifiedWindowFrame": _frame,
    "ListQuery": _query, "LateralSubquery": _query, "ScalarSubquery": _scalar_subquery,
    "PipeExpression": _child, "SQLScalarFunction": _child, "AtLeastNNonNulls": _at_least,
    "RaiseError": _raise, "PivotFirst": _pivot, "Exists": _exists,
    "ArraySort": _sorted, "InSubquery": _in_subquery, "PythonUDF": _python_udf,
    "PythonUDAF": _python_udf, "ScalaUDF": _foreign, "ScalaAggregator": _foreign,
    "PreciseTimestampConversion": _micros, "KnownNullable": _child, "KnownNotNull": _child,
    "KnownNotContainsNull": _child, "GeneratorOuter": _foreign,
}  # fmt: skip
"""Readers of the fields of an expression with its type, by its class; they raise ``Unread``."""
