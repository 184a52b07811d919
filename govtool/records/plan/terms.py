"""Catalyst's expressions as terms: the allow-list reader of what ``PlanWalker`` writes.

For each class every field is either encoded, or known not to matter (:mod:`~govtool.records.plan.functions`), or the
cell is opaque with the class and field as its reason. Nodes come in the order in which they refer to each other, so
that reading never recurses.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

from govtool.records.plan import functions
from govtool.records.plan import types as t
from govtool.records.plan.clock import CLOCKS, Clock
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
    Mode,
    Named,
    Opaque,
    Outer,
    ScalarSubquery,
    SortKey,
    Udf,
    UdfReference,
    Value,
    Variable,
    WindowCall,
)
from govtool.records.plan.tree import Node, Term, fold, rewrite, walk

Json = Any
_ZONED = frozenset({"MakeTimestamp", "ParseToTimestamp"})
"""Functions of which one class makes timestamps with and without a zone."""
_MARKS = ("spark.sessionWindow", "spark.watermarkDelayMs")
"""Metadata of a column that changes what a group or a join does with it."""
MAX_INLINED = 20_000
"""Terms that common expressions of one expression may unfold to."""
EXPRESSIONS = (
    Literal, Attribute, Outer, Call, Cast, Case, Variable, Lambda, AggregateCall, WindowCall, Udf, ScalarSubquery,
    Exists, InSubquery, Opaque,
)  # fmt: skip
_PYTHON_KINDS = {
    100: "python", 101: "arrow", 200: "pandas", 201: "pandas-grouped-map", 202: "pandas-aggregate",
    203: "pandas-window", 204: "pandas-iterator", 205: "map-in-pandas", 206: "pandas-cogrouped-map",
    207: "map-in-arrow", 209: "arrow-grouped-map", 250: "arrow", 251: "arrow-iterator", 252: "arrow-aggregate",
    300: "python-table", 301: "arrow-table",
}  # fmt: skip
"""Spark's numbers of evaluation types (``PythonEvalType``)."""


class Unread(Exception):
    """A class or a field that the allow-list does not have."""


# ---- pieces that live only while an expression is read ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Common(Term):
    """A use of a common expression."""

    id: int
    type: t.Type


@dataclass(frozen=True, slots=True)
class CommonDefinition(Term):
    """A common expression."""

    id: int
    value: Expression


@dataclass(frozen=True, slots=True)
class Query(Term):
    """The plan of an IN or of a lateral join."""

    plan: Node
    outer: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class Specification(Term):
    """A window's specification."""

    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    frame: Frame | None


@dataclass(frozen=True, slots=True)
class Edge(Term):
    """A bound of a frame that is no offset."""

    name: str


@dataclass(frozen=True, slots=True)
class Ordered(Term):
    """An aggregate function with the order that is among its fields."""

    call: Call
    order: tuple[SortKey, ...]


PIECES = (Common, CommonDefinition, Query, Specification, Edge, Ordered)
"""Parts that no operator may hold."""
_EDGES = {"UnboundedPreceding$": "unbounded preceding", "UnboundedFollowing$": "unbounded following"}
_EDGES["CurrentRow$"] = "current row"


class TermReader:
    """Reads expressions of one plan.

    Args:
        types: The types of the plan, as Spark's JSON.
        made: What was read so far, by number.
        zone: The session's time zone.
        udfs: Identities of Python functions by the digest of their command.
    """

    def __init__(self, types: list[Json], made: list[Any], zone: str, udfs: dict[str, UdfReference]) -> None:
        self.types = [_type(each) for each in types]
        self.made = made
        self.zone = zone
        self.udfs = udfs
        self.clock = Clock()
        self._drawn: set[int] = set()
        """Numbers of what is not deterministic, arguments included."""
        self._special: dict[str, Callable[[Json, t.Type], Term]] = {
            "Literal": self._literal, "AttributeReference": self._attribute, "Alias": self._alias,
            "OuterReference": self._outer, "Cast": self._cast, "If": self._if, "CaseWhen": self._case, "In": self._in,
            "Not": self._not, "GetStructField": self._field, "GetArrayStructFields": self._fields,
            "GetArrayItem": self._item, "GetMapValue": self._map_value, "LambdaFunction": self._lambda,
            "NamedLambdaVariable": self._variable, "CommonExpressionDef": self._common_definition,
            "CommonExpressionRef": self._common, "With": self._with, "SortOrder": self._sort_key,
            "AggregateExpression": self._aggregate, "WindowExpression": self._window,
            "WindowSpecDefinition": self._specification, "SpecifiedWindowFrame": self._frame,
            "ListQuery": self._query, "LateralSubquery": self._query, "ScalarSubquery": self._scalar_subquery,
            "PipeExpression": self._child, "SQLScalarFunction": self._child, "AtLeastNNonNulls": self._at_least,
            "RaiseError": self._raise, "PivotFirst": self._pivot, "Exists": self._exists,
            "InSubquery": self._in_subquery, "PythonUDF": self._python_udf,
            "PythonUDAF": self._python_udf, "ScalaUDF": self._foreign, "ScalaAggregator": self._foreign,
            "PreciseTimestampConversion": self._micros, "KnownNullable": self._child, "KnownNotNull": self._child,
            "KnownNotContainsNull": self._child, "GeneratorOuter": self._foreign,
        }  # fmt: skip

    # ---- fields ---------------------------------------------------------------------------------------------------

    def term(self, value: Json) -> Term:
        """The term that a field refers to."""
        if not (isinstance(value, dict) and "$" in value):
            raise Unread("a field is no expression")
        found = self.made[value["$"]]
        if not isinstance(found, Term):
            raise Unread("a field is no expression")
        return found

    def value(self, value: Json) -> Expression:
        """The expression that a field refers to; of a named one its value."""
        found = self.term(value)
        if isinstance(found, Named):
            return found.value
        if isinstance(found, (*EXPRESSIONS, Common)):
            return cast(Expression, found)
        raise Unread(f"{type(found).__name__} where a value is expected")

    def values(self, value: Json) -> tuple[Expression, ...]:
        """The expressions of a field that is a sequence."""
        return tuple(self.value(each) for each in value or ())

    def type(self, value: Json) -> t.Type:
        """A type by its number."""
        return self.types[value["$type"] if isinstance(value, dict) else value]

    # ---- expressions ----------------------------------------------------------------------------------------------

    def read(self, raw: Json) -> Term:
        """Read an expression; what the allow-list does not have is opaque."""
        kind = raw["c"].rsplit(".", 1)[-1]
        if "$random" in raw["f"]:
            self._drawn.add(len(self.made))
        own: t.Type = self.types[raw["t"]] if raw.get("t") is not None else t.VOID
        try:
            if kind in _EDGES:
                return Edge(_EDGES[kind])
            if kind in CLOCKS and (known := self.clock.value(kind, self.zone)) is not None:
                return Literal(known, own)
            special = self._special.get(kind)
            if special is not None:
                return special(raw["f"], own)
            return self._function(kind, raw["f"], own)
        except Unread as why:
            return Opaque(f"{kind}: {why}", self._arguments(raw["f"]), own, ".aggregate." in raw["c"])

    def _arguments(self, fields: dict[str, Json]) -> tuple[Expression, ...]:
        found = []
        for value in _references(fields.values()):
            term = self.made[value]
            if isinstance(term, Named):
                term = term.value
            if isinstance(term, EXPRESSIONS):
                found.append(term)
        return tuple(dict.fromkeys(found)) if len(found) < 200 else tuple(found)

    def _function(self, kind: str, fields: dict[str, Json], own: t.Type) -> Term:
        replacement = fields.get("replacement")
        if replacement is not None and kind not in functions.AGGREGATES:
            found = self.value(replacement)
            if not any(isinstance(each, Opaque) for each in walk(found)):
                return found
        name = (
            functions.SCALARS.get(kind)
            or functions.AGGREGATES.get(kind)
            or functions.WINDOWS.get(kind)
            or functions.GENERATORS.get(kind)
        )
        if name is None:
            raise Unread("not on the list of functions")
        if kind in _ZONED:
            name = f"{name}_{'ntz' if own == t.TIMESTAMP_NTZ else 'ltz'}"
        return self._call(kind, name, fields, own)

    def _call(self, kind: str, name: str, fields: dict[str, Json], own: t.Type) -> Term:
        arguments: list[Expression] = []
        order: list[SortKey] = []
        options: list[tuple[str, Value]] = []
        mode: Mode = ""
        zone, skipped = "", False
        for field, value in fields.items():
            if field in functions.IRRELEVANT:
                continue
            if field == "timeZoneId":
                zone = str(value or "")
            elif field in functions.MODES:
                mode = _mode(field, value)
            elif _is_option(kind, field):
                options.extend(self._options(kind, field, value, own))
            elif field == "orderExpressions":
                order.extend(self._order(value))
            elif value is None:
                skipped = True
            else:
                found = self._operands(value)
                if skipped and found:
                    raise Unread(f"an argument before {field} is left out")
                arguments.extend(found)
        drawn = "$random" in fields and not any(each in self._drawn for each in _references(fields.values()))
        call = Call(name, tuple(arguments), own, mode, tuple(sorted(options)), not drawn, zone)
        return Ordered(call, tuple(order)) if order else call

    def _order(self, value: Json) -> tuple[SortKey, ...]:
        found = tuple(self.term(each) for each in value)
        if not all(isinstance(each, SortKey) for each in found):
            raise Unread("an order that is none")
        return cast(tuple[SortKey, ...], found)

    def _operands(self, value: Json) -> tuple[Expression, ...]:
        if isinstance(value, list):
            return tuple(each for item in value for each in self._operands(item))
        if isinstance(value, dict) and "$f" in value:
            return (Literal(float(value["$f"]), t.DOUBLE),)
        if isinstance(value, dict) and "$" in value:
            return (self.value(value),)
        raise Unread(f"a field holds {str(value)[:40]}")

    def _options(self, kind: str, field: str, value: Json, own: t.Type) -> list[tuple[str, Value]]:
        expected = functions.EXPECTED.get((kind, field), Unread)
        if expected is not Unread:
            if value != expected:
                raise Unread(f"{field} is {value}")
            return []
        if field == "escapeChar":
            return [("escape", str(value))]
        if field == "ignoreNulls":
            return [("ignore nulls", True)] if value else []
        if field in ("options", "$options"):
            pairs = value["$map"] if isinstance(value, dict) else value
            return [("options", tuple((str(key), str(item)) for key, item in pairs))] if pairs else []
        if field in ("schema", "dataType") and isinstance(value, dict) and self.type(value) == own:
            return []  # what the call's type says already
        if kind == "ArraysZip" and field == "names":
            return []  # the names of the fields of its type
        if field == "reverseOpt" and value is None:
            return []
        if field == "unit":
            return [("unit", str(value))]
        raise Unread(f"{field} is {str(value)[:40]}")

    # ---- special forms --------------------------------------------------------------------------------------------

    def _literal(self, fields: Json, own: t.Type) -> Term:
        return Literal(read_value(fields["value"], own), own)

    def _attribute(self, fields: Json, own: t.Type) -> Term:
        _unmarked(fields)
        return Attribute(fields["id"], fields["name"], own, bool(fields["nullable"]))

    def _alias(self, fields: Json, own: t.Type) -> Term:
        _unmarked(fields)
        return Named(self.value(fields["child"]), fields["id"], fields["name"])

    def _outer(self, fields: Json, own: t.Type) -> Term:
        inner = self.value(fields["e"])
        if not isinstance(inner, Attribute):
            raise Unread("a value of the query around it that is no column")
        return Outer(inner)

    def _cast(self, fields: Json, own: t.Type) -> Term:
        mode = _mode("evalMode", fields["evalMode"])
        return Cast(self.value(fields["child"]), self.type(fields["dataType"]), mode, str(fields["timeZoneId"] or ""))

    def _if(self, fields: Json, own: t.Type) -> Term:
        branch = (self.value(fields["predicate"]), self.value(fields["trueValue"]))
        return Case((branch,), self.value(fields["falseValue"]), own)

    def _case(self, fields: Json, own: t.Type) -> Term:
        branches = tuple((self.value(when), self.value(then)) for when, then in fields["branches"])
        otherwise = fields["elseValue"]
        return Case(branches, None if otherwise is None else self.value(otherwise), own)

    def _in(self, fields: Json, own: t.Type) -> Term:
        return Call("in", (self.value(fields["value"]), *self.values(fields["list"])), own)

    def _not(self, fields: Json, own: t.Type) -> Term:
        return Call("not", (self.value(fields["child"]),), own)

    def _field(self, fields: Json, own: t.Type) -> Term:
        child = self.value(fields["child"])
        if not isinstance(child.type, t.Struct):
            raise Unread("a field of what is no struct")
        ordinal = int(fields["ordinal"])
        name = child.type.fields[ordinal].name
        return Call("get field", (child,), own, options=(("field", name), ("ordinal", ordinal)))

    def _fields(self, fields: Json, own: t.Type) -> Term:
        child = self.value(fields["child"])
        if not (isinstance(child.type, t.Array) and isinstance(child.type.element, t.Struct)):
            raise Unread("a field of what is no array of structs")
        ordinal = int(fields["ordinal"])
        name = child.type.element.fields[ordinal].name
        return Call("get fields", (child,), own, options=(("field", name), ("ordinal", ordinal)))

    def _item(self, fields: Json, own: t.Type) -> Term:
        arguments = (self.value(fields["child"]), self.value(fields["ordinal"]))
        return Call("get item", arguments, own, _mode("failOnError", fields["failOnError"]))

    def _map_value(self, fields: Json, own: t.Type) -> Term:
        return Call("get value", (self.value(fields["child"]), self.value(fields["key"])), own)

    def _lambda(self, fields: Json, own: t.Type) -> Term:
        parameters = [self.term(each) for each in fields["arguments"]]
        if not all(isinstance(each, Variable) for each in parameters):
            raise Unread("a parameter of a lambda that is no variable")
        return Lambda(cast(tuple[Variable, ...], tuple(parameters)), self.value(fields["function"]))

    def _variable(self, fields: Json, own: t.Type) -> Term:
        return Variable(fields["exprId"]["$id"], fields["name"], own)

    def _at_least(self, fields: Json, own: t.Type) -> Term:
        """``na.drop``: at least so many values that are neither NULL nor NaN."""
        total: Expression = Literal(0, t.INTEGER)
        for each in self.values(fields["children"]):
            there: Expression = Call("is not null", (each,), t.BOOLEAN)
            if each.type in (t.FLOAT, t.DOUBLE):
                number = Call("not", (Call("isnan", (each,), t.BOOLEAN),), t.BOOLEAN)
                there = Call("and", (there, number), t.BOOLEAN)
            one = Case(((there, Literal(1, t.INTEGER)),), Literal(0, t.INTEGER), t.INTEGER)
            total = Call("+", (total, one), t.INTEGER)
        return Call(">=", (total, Literal(int(fields["n"]), t.INTEGER)), t.BOOLEAN)

    def _raise(self, fields: Json, own: t.Type) -> Term:
        name, arguments = self.value(fields["errorClass"]), self.value(fields["errorParms"])
        plain = isinstance(name, Literal) and name.value == "USER_RAISED_EXCEPTION"
        if not plain or not isinstance(arguments, Call) or len(arguments.arguments) != 2:
            raise Unread("an error of a class of its own")
        return Call("raise_error", (arguments.arguments[1],), own)

    def _child(self, fields: Json, own: t.Type) -> Term:
        return self.value(fields["child"])

    def _micros(self, fields: Json, own: t.Type) -> Term:
        names: dict[tuple[t.Type, t.Type], str] = {(t.TIMESTAMP, t.LONG): "unix_micros"}
        names[(t.LONG, t.TIMESTAMP)] = "timestamp_micros"
        name = names.get((self.type(fields["fromType"]), self.type(fields["toType"])))
        if name is None:
            raise Unread("of timestamps without a zone")
        return Call(name, (self.value(fields["child"]),), own)

    # ---- common expressions ---------------------------------------------------------------------------------------

    def _common_definition(self, fields: Json, own: t.Type) -> Term:
        return CommonDefinition(fields["id"]["f"]["id"], self.value(fields["child"]))

    def _common(self, fields: Json, own: t.Type) -> Term:
        return Common(fields["id"]["f"]["id"], own)

    def _with(self, fields: Json, own: t.Type) -> Term:
        found = [self.term(each) for each in fields["defs"]]
        definitions = {each.id: each.value for each in found if isinstance(each, CommonDefinition)}
        if not all(_is_deterministic(each) for each in definitions.values()):
            raise Unread("a common expression that is drawn at random")

        def change(term: Term) -> Term:
            return definitions.get(term.id, term) if isinstance(term, Common) else term

        made = rewrite(self.value(fields["child"]), change)
        if fold(made, lambda _, parts: 1 + sum(parts)) > MAX_INLINED:
            raise Unread("common expressions that unfold to too many")
        return made

    # ---- aggregates and windows -----------------------------------------------------------------------------------

    def _sort_key(self, fields: Json, own: t.Type) -> Term:
        descending = fields["direction"]["$product"].endswith(".Descending$")
        first = fields["nullOrdering"]["$product"].endswith(".NullsFirst$")
        return SortKey(self.value(fields["child"]), descending, first)

    def _aggregate(self, fields: Json, own: t.Type) -> Term:
        found = self.term(fields["aggregateFunction"])
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
            None if condition is None else self.value(condition),
            order,
            function.mode,
            function.options,
            function.name not in functions.ORDER_DEPENDENT,
        )

    def _pivot(self, fields: Json, own: t.Type) -> Term:
        """PivotFirst: the value for each of a list of values of the pivot column, of one row each, as an array."""
        pivot, value = self.value(fields["pivotColumn"]), self.value(fields["valueColumn"])
        found = []
        for each in fields["pivotColumnValues"]:
            wanted = Literal(read_value(each, pivot.type), pivot.type)
            condition = Call("<=>", (pivot, wanted), t.BOOLEAN)
            found.append(
                AggregateCall("first", (value,), value.type, False, condition, options=(("ignore nulls", True),))
            )
        return Call("array", tuple(found), own)

    def _window(self, fields: Json, own: t.Type) -> Term:
        function, specification = self.value(fields["windowFunction"]), self.term(fields["windowSpec"])
        if not isinstance(function, (AggregateCall, Call, Udf, Opaque)) or not isinstance(specification, Specification):
            raise Unread("a window of an unknown form")
        ranks = isinstance(function, Call) and function.name in functions.WINDOWS.values()
        frame = None if ranks and function.name != "nth_value" else specification.frame  # type: ignore[union-attr]
        return WindowCall(function, specification.partition, specification.order, frame, own)

    def _specification(self, fields: Json, own: t.Type) -> Term:
        order = tuple(each for each in map(self.term, fields["orderSpec"]) if isinstance(each, SortKey))
        frame = self.term(fields["frameSpecification"])
        if not isinstance(frame, Frame):
            raise Unread("a frame that is not resolved")
        return Specification(self.values(fields["partitionSpec"]), order, frame)

    def _frame(self, fields: Json, own: t.Type) -> Term:
        bounds = [self.term(fields[name]) for name in ("lower", "upper")]
        lower, upper = (each.name if isinstance(each, Edge) else each for each in bounds)
        rows = fields["frameType"]["$product"].endswith(".RowFrame$")
        return Frame("rows" if rows else "range", cast(Any, lower), cast(Any, upper))

    # ---- subqueries -----------------------------------------------------------------------------------------------

    def _subquery(self, fields: Json) -> tuple[Node, tuple[Attribute, ...]]:
        if fields.get("joinCond"):
            raise Unread("a subquery whose condition was moved")
        plan = self.made[fields["plan"]["$"]]
        outer = [each for term in self.values(fields.get("outerAttrs")) for each in walk(term)]
        found = {each.id: each for each in outer if isinstance(each, Attribute)}
        return plan, tuple(found.values())

    def _query(self, fields: Json, own: t.Type) -> Term:
        return Query(*self._subquery(fields))

    def _scalar_subquery(self, fields: Json, own: t.Type) -> Term:
        plan, outer = self._subquery(fields)
        return ScalarSubquery(plan, own, outer)

    def _exists(self, fields: Json, own: t.Type) -> Term:
        return Exists(*self._subquery(fields))

    def _in_subquery(self, fields: Json, own: t.Type) -> Term:
        query = self.term(fields["query"])
        if not isinstance(query, Query):
            raise Unread("an IN without a query")
        return InSubquery(self.values(fields["values"]), query.plan, query.outer)

    # ---- functions of the user ------------------------------------------------------------------------------------

    def _python_udf(self, fields: Json, own: t.Type) -> Term:
        arguments, names = [], []
        for each in fields["children"]:
            term = self.term(each)
            arguments.append(self.value(each))
            names.append(term.name if isinstance(term, Named) else "")
        digest = (fields.get("func") or {}).get("$python") or ""
        kind = _PYTHON_KINDS.get(fields.get("evalType", 0), "python-unknown")
        known = self.udfs.get(digest)
        if known is None:
            known = UdfReference("", str(fields.get("name", "")), "", kind, "not seen when it was made")
        reference = UdfReference(known.module, known.qualname, known.digest, kind, known.reason)
        aggregate = kind.endswith("-aggregate")
        return Udf(reference, tuple(arguments), own, aggregate, bool(fields.get("udfDeterministic", True)))

    def _foreign(self, fields: Json, own: t.Type) -> Term:
        raise Unread("a function of the user's in Scala or Java")


def _type(value: Json) -> t.Type:
    try:
        return t.from_json(value)
    except ValueError:
        return t.Unknown(str(value)[:200])


def _mode(field: str, value: Json) -> Mode:
    if isinstance(value, dict) and "$product" in value:
        context = value["f"]
        if not context.get("allowDecimalPrecisionLoss", True):
            raise Unread("decimals under allowPrecisionLoss=false")
        value = context["evalMode"]
    if isinstance(value, dict) and "$enum" in value:
        return cast(Mode, str(value["$enum"]).lower())
    strict = not value if field in ("nullOnInvalidFormat", "legacySizeOfNull") else value
    return "ansi" if strict else "legacy"


def _unmarked(fields: Json) -> None:
    metadata = fields.get("$metadata")
    if metadata and any(mark in metadata for mark in _MARKS):
        raise Unread("a session window or a watermark")


def _is_option(kind: str, field: str) -> bool:
    return (
        (kind, field) in functions.EXPECTED
        or field in ("escapeChar", "ignoreNulls", "schema", "reverseOpt", "unit")
        or (field == "dataType" and kind in _ZONED)
        or (kind, field) == ("ArraysZip", "names")
        or (field == "options" and kind in functions.WITH_OPTIONS)
    )


def _is_deterministic(expression: Expression) -> bool:
    return all(
        not (isinstance(each, (Call, Udf)) and not each.deterministic) and not isinstance(each, ScalarSubquery)
        for each in walk(expression)
    )


def _references(values: Iterable[Json]) -> list[int]:
    found: list[int] = []
    waiting = list(values)
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, list):
            waiting[:0] = value
        elif isinstance(value, dict) and "$" in value:
            found.append(value["$"])
    return found


def read_value(value: Json, kind: t.Type) -> Value:
    """Read a value of ``PlanWalker``.

    Raises:
        Unread: A value of a type that the plan form does not cover.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value
    if not isinstance(value, dict):
        raise Unread("a value of an unknown form")
    if "$f" in value:
        return float(value["$f"].replace("Infinity", "inf"))
    if "$d" in value:
        return decimal.Decimal(value["$d"])
    if "$b" in value:
        return bytes.fromhex(value["$b"])
    return _read_nested(value, kind)


def _read_nested(value: Json, kind: t.Type) -> Value:
    if "$m" in value and isinstance(kind, t.Map):
        keys, items = value["$m"]
        pairs = zip(keys, items, strict=True)
        return tuple((read_value(key, kind.key), read_value(item, kind.value)) for key, item in pairs)
    if "$v" in value:
        if isinstance(kind, t.Array):
            return tuple(read_value(item, kind.element) for item in value["$v"])
        if isinstance(kind, t.Struct):
            fields = zip(value["$v"], kind.fields, strict=True)
            return tuple(read_value(item, each.type) for item, each in fields)
        return tuple(value["$v"])
    raise Unread(f"a value of {value.get('$object', 'an unknown form')}")
