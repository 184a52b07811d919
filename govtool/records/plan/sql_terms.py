"""SQL expressions to typed expressions: names are resolved, types inferred, casts made explicit."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Bound,
    Call,
    Case,
    Cast,
    Exists,
    Expression,
    Frame,
    InSubquery,
    Literal,
    Outer,
    ScalarSubquery,
    SortKey,
    WindowCall,
)
from govtool.records.plan.nodes import Project, outputs
from govtool.records.plan.sql_context import Context
from govtool.records.plan.sql_scope import Calls, Scope
from govtool.records.plan.sql_types import FUNCTIONS, NAMED, arithmetic, averaged, common, is_numeric, summed
from govtool.records.plan.text_values import is_no_number, text_value
from govtool.records.plan.tree import Node
from govtool.records.plan.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    VOID,
    Array,
    Decimal,
    Type,
    to_json,
)

EPOCH = datetime.date(1970, 1, 1)
_COMPARED = {"EQ": "=", "GT": ">", "GTE": ">=", "LT": "<", "LTE": "<=", "NullSafeEQ": "<=>"}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "IntDiv": "div", "Mod": "%"}
_READ = {"this", "expression", "expressions", "safe", "typed", "big_int", "nulls_excluded", "is_string", "coalesce"}
_READ_OF: dict[str, frozenset[str]] = {
    "Column": frozenset({"table", "db", "catalog"}),
    "Case": frozenset({"ifs", "default"}),
    "If": frozenset({"true", "false"}),
    "In": frozenset({"query"}),
    "Between": frozenset({"low", "high"}),
    "Cast": frozenset({"to"}),
    "TryCast": frozenset({"to"}),
    "Window": frozenset({"partition_by", "order", "spec", "over", "alias", "first"}),
    "Lag": frozenset({"offset", "default"}),
    "Lead": frozenset({"offset", "default"}),
    "Substring": frozenset({"start", "length"}),
    "TsOrDsAdd": frozenset({"unit"}),
    "ArraySort": frozenset({"asc", "nulls_first"}),
}
"""Arguments of sqlglot's classes that are read, beside the usual ones; others are refused."""
_AGGREGATES = {
    "Sum": "sum", "Avg": "avg", "Min": "min", "Max": "max", "Count": "count", "ArrayAgg": "collect_list",
    "CountIf": "count_if", "LogicalAnd": "bool_and", "LogicalOr": "bool_or", "Stddev": "stddev_samp",
    "StddevSamp": "stddev_samp", "StddevPop": "stddev_pop", "Variance": "var_samp", "VariancePop": "var_pop",
    "First": "first", "Last": "last", "FirstValue": "first", "LastValue": "last",
}  # fmt: skip
_TYPED = {
    "bool_and": BOOLEAN,
    "bool_or": BOOLEAN,
    **dict.fromkeys(("stddev_samp", "stddev_pop", "var_samp", "var_pop"), DOUBLE),
}
"""Aggregates whose argument is cast to the type that they return."""
_INTERVALS = {"DAY": ("date_add", 1), "MONTH": ("add_months", 1), "YEAR": ("add_months", 12)}
"""Units of intervals that are added to dates: the function and how many of its units one is."""
_ORDER_DECIDES = {"first", "last", "collect_list"}
_RANKS = {
    "RowNumber": "row_number", "Rank": "rank", "DenseRank": "dense_rank", "PercentRank": "percent_rank",
    "CumeDist": "cume_dist",
}  # fmt: skip


class Terms:
    """A reader of expressions in one scope.

    Args:
        context: What the whole text shares.
        scope: The names.
        aggregates: Where aggregates are put; None where none may stand.
        windows: Where window functions are put; None where none may stand.
    """

    def __init__(
        self, context: Context, scope: Scope, aggregates: Calls | None = None, windows: Calls | None = None
    ) -> None:
        self._context = context
        self._scope = scope
        self._aggregates = aggregates
        self._windows = windows

    def bound(self, at: exp.Expr) -> Expression:
        """Read an expression.

        Raises:
            UsageError: It names what is not there, or is not covered.
        """
        name = type(at).__name__
        if not isinstance(at, exp.Query):
            self._only_known(at, name)
        if name in _COMPARED or name == "NEQ":
            return self._comparison(at, name)
        if name in _ARITHMETIC:
            return self._arithmetic(at, _ARITHMETIC[name])
        if name in _AGGREGATES or isinstance(at, (exp.Filter, exp.IgnoreNulls)):
            return self._aggregate(at)
        if name in FUNCTIONS:
            return self._function(at, name)
        reader = _READERS.get(type(at))
        if reader is None:
            raise self._context.refused(f"the function {at.name.upper()}" if name == "Anonymous" else _words(at), at=at)
        return reader(self, at)

    def _only_known(self, at: exp.Expr, name: str) -> None:
        """Refuse what a function or an operator has beside the arguments that are read."""
        for key, value in at.args.items():
            if value and key not in _READ and key not in _READ_OF.get(name, ()):
                raise self._context.refused(f"{_words(at)} with {key.upper().replace('_', ' ')}", at=at)

    def condition(self, at: exp.Expr) -> Expression:
        """Read a boolean expression."""
        return self._cast(self.bound(at), BOOLEAN, at)

    def whole_condition(self, at: exp.Expr) -> Expression:
        """Read a condition that stands alone: Spark casts operands of AND and OR, but no whole condition.

        Raises:
            UsageError: It is of another type.
        """
        value = self.bound(at)
        if value.type not in (BOOLEAN, VOID):
            raise self._context.wrong(f"a condition is expected, and this is of type {to_json(value.type)}", at)
        return self._cast(value, BOOLEAN, at)

    def column(self, at: exp.Column) -> Expression:
        """Resolve a column: here, or in a query around this one."""
        name, qualifier = at.name.lower(), at.table.lower()
        if isinstance(at.this, exp.Star):
            raise self._context.refused("a star in an expression", at=at)
        scope: Scope | None = self._scope
        passed: list[Scope] = []
        while scope is not None:
            found = scope.found(name, qualifier)
            if len({each.id for each in found}) > 1:
                raise self._context.wrong(f"column '{at.sql()}' is ambiguous", at)
            if found:
                for inner in passed:
                    inner.outer[found[0].id] = found[0]
                return Outer(found[0]) if passed else found[0]
            passed.append(scope)
            scope = scope.parent
        known = [c.name.lower() for alias, columns in self._scope.tables if qualifier in ("", alias) for c in columns]
        raise self._context.unknown("column", at.name, known, at)

    def sort_key(self, at: exp.Ordered, value: Expression) -> SortKey:
        """The key of an order."""
        return SortKey(value, bool(at.args.get("desc")), bool(at.args.get("nulls_first")))

    # Operators

    def _comparison(self, at: exp.Expr, name: str) -> Expression:
        left, right = self._comparable(at, self.bound(at.this), self.bound(at.expression))
        if name == "NEQ":
            return Call("not", (Call("=", (left, right), BOOLEAN),), BOOLEAN)
        return Call(_COMPARED[name], (left, right), BOOLEAN)

    def _comparable(self, at: exp.Expr, *values: Expression) -> tuple[Expression, ...]:
        """Operands of one type; a word that is compared with numbers fails in Spark, whatever the rows are."""
        same = self._same_type(at, *values)
        for value, found in zip(values, same, strict=True):
            if isinstance(value, Literal) and isinstance(value.value, str) and is_no_number(value.value, found.type):
                raise self._context.wrong(f"'{value.value}' is no number, and is compared with one", at)
        return same

    def _same_type(self, at: exp.Expr, *values: Expression) -> tuple[Expression, ...]:
        wide: Type | None = values[0].type
        for value in values[1:]:
            wide = None if wide is None else common(wide, value.type)
        if wide is None:
            raise self._context.wrong(f"no common type in {at.sql(dialect=self._context.dialect)}", at)
        return tuple(self._cast(value, wide, at) for value in values)

    def _cast(self, value: Expression, kind: Type, at: exp.Expr) -> Expression:
        if value.type == kind:
            return value
        if kind == BOOLEAN and value.type not in (VOID, STRING):
            raise self._context.wrong(f"a condition is expected: {at.sql(dialect=self._context.dialect)}", at)
        if isinstance(value, Literal) and value.type == STRING and kind != STRING:
            return self._constant(value, kind)
        return Literal(None, kind) if value == Literal(None, VOID) else Cast(value, kind, "ansi")

    def _constant(self, text: Literal, kind: Type) -> Expression:
        """The value of a text as another type; its cast, where that is for an engine to decide."""
        found = None if text.value is None else text_value(str(text.value), kind)
        return Cast(text, kind, "ansi") if found is None else Literal(found, kind)

    def _date_added(self, at: exp.TsOrDsAdd) -> Expression:
        """``date_add`` and ``date_sub``, which sqlglot writes as ``date_add(d, n * -1)``."""
        if at.text("unit").upper() != "DAY":
            raise self._context.refused("date_add of anything but days", at=at)
        days, name = at.expression, "date_add"
        if isinstance(days, exp.Mul) and days.expression.sql() == "-1":
            days, name = days.this, "date_sub"
        return Call(name, (self._cast(self.bound(at.this), DATE, at), self._cast(self.bound(days), INTEGER, at)), DATE)

    def _shifted(self, at: exp.Expr, interval: exp.Interval) -> Expression:
        """A date plus or minus an interval of days, months or years."""
        value, unit = self.bound(at.this), interval.text("unit").upper().rstrip("S")
        count = interval.this
        if value.type != DATE or unit not in _INTERVALS or not isinstance(count, exp.Literal):
            raise self._context.refused("an interval but days, months and years added to a date", at=at)
        try:
            number = int(count.name) * (-1 if isinstance(at, exp.Sub) else 1)
        except ValueError:
            raise self._context.refused("an interval of no whole number", at=at) from None
        name, times = _INTERVALS[unit]
        return Call(name, (value, Literal(number * times, INTEGER)), DATE)

    def _sorted_array(self, at: exp.ArraySort) -> Expression:
        value, ascending = self.bound(at.this), at.args.get("asc")
        nulls = at.args.get("nulls_first")
        is_other = nulls is None or (ascending is None and not nulls.this)  # array_sort puts NULL last
        if is_other or at.expression is not None or not isinstance(value.type, Array):
            raise self._context.refused("array_sort", at=at)
        if ascending is not None and not isinstance(ascending, exp.Boolean):
            raise self._context.refused("sort_array in an order that is no constant", at=at)
        return Call("sort_array", (value, Literal(ascending is None or bool(ascending.this), BOOLEAN)), value.type)

    def _arithmetic(self, at: exp.Expr, name: str) -> Expression:
        if isinstance(at.expression, exp.Interval) and name in ("+", "-"):
            return self._shifted(at, at.expression)
        left, right = self.bound(at.this), self.bound(at.expression)
        kinds = arithmetic(name, left.type, right.type)
        if kinds is None:
            raise self._context.refused(f"'{name}' on operands that are no numbers", at=at)
        mode = "ansi"
        return Call(name, (self._cast(left, kinds[0], at), self._cast(right, kinds[0], at)), kinds[1], mode)  # type: ignore[arg-type]

    def _logical(self, at: exp.Expr) -> Expression:
        name = type(at).__name__.lower()
        return Call(name, (self.condition(at.this), self.condition(at.expression)), BOOLEAN)

    def _not(self, at: exp.Expr) -> Expression:
        return Call("not", (self.condition(at.this),), BOOLEAN)

    def _is(self, at: exp.Expr) -> Expression:
        value = self.bound(at.this)
        if isinstance(at.expression, exp.Null):
            return Call("is null", (value,), BOOLEAN)
        if isinstance(at.expression, exp.Boolean):
            return Call("<=>", (self._cast(value, BOOLEAN, at), self.bound(at.expression)), BOOLEAN)
        raise self._context.refused(_words(at), at=at)

    def _between(self, at: exp.Expr) -> Expression:
        value = self.bound(at.this)
        low, high = self.bound(at.args["low"]), self.bound(at.args["high"])
        above, least = self._comparable(at, value, low)
        below, most = self._comparable(at, value, high)
        return Call("and", (Call(">=", (above, least), BOOLEAN), Call("<=", (below, most), BOOLEAN)), BOOLEAN)

    def _in(self, at: exp.In) -> Expression:
        query = at.args.get("query")
        if query is None:
            if not at.expressions:
                raise self._context.refused("IN over anything but a list or a subquery", at=at)
            items = [self.bound(at.this), *map(self.bound, at.expressions)]
            return Call("in", self._comparable(at, *items), BOOLEAN)
        values = at.this.expressions if isinstance(at.this, exp.Tuple) else [at.this]
        plan, outer = self._subquery(query)
        columns = outputs(plan)
        if len(columns) != len(values):
            raise self._context.wrong(f"IN compares {len(values)} values with {len(columns)} columns", at)
        pairs = [self._same_type(at, self.bound(each), column) for each, column in zip(values, columns, strict=True)]
        if any(pair[1] is not column for pair, column in zip(pairs, columns, strict=True)):
            plan = Project(
                plan, tuple(self._context.named(pair[1], c.name) for pair, c in zip(pairs, columns, strict=True))
            )
        return InSubquery(tuple(pair[0] for pair in pairs), plan, outer)

    def _like(self, at: exp.Expr) -> Expression:
        return Call("like", (self._cast(self.bound(at.this), STRING, at), self.bound(at.expression)), BOOLEAN)

    def _negative(self, at: exp.Expr) -> Expression:
        value = self.bound(at.this)
        if isinstance(value, Literal) and isinstance(value.value, (int, float, decimal.Decimal)):
            return Literal(-value.value, value.type)
        if not is_numeric(value.type):
            raise self._context.refused("'-' on an operand that is no number", at=at)
        return Call("negative", (value,), value.type, "ansi")

    # Values

    def _literal(self, at: exp.Literal) -> Expression:
        if at.is_string:
            return Literal(at.this, STRING)
        text = at.this.lower()
        if "e" in text:
            return Literal(float(text), DOUBLE)
        if "." in text:
            number = decimal.Decimal(text)
            _, digits, exponent = number.as_tuple()
            scale = -int(exponent)
            return Literal(number, Decimal(max(len(digits), scale), scale))
        value = int(text)
        if value >= 1 << 63:
            return Literal(decimal.Decimal(value), Decimal(len(text), 0))
        return Literal(value, INTEGER if value < 1 << 31 else LONG)

    def _null(self, at: exp.Expr) -> Expression:
        return Literal(None, VOID)

    def _boolean(self, at: exp.Expr) -> Expression:
        return Literal(bool(at.this), BOOLEAN)

    def _paren(self, at: exp.Expr) -> Expression:
        return self.bound(at.this)

    def _array(self, at: exp.Expr) -> Expression:
        if not at.expressions:
            return Call("array", (), Array(VOID))
        items = self._same_type(at, *map(self.bound, at.expressions))
        return Call("array", items, Array(items[0].type))

    def _case(self, at: exp.Case) -> Expression:
        conditions = []
        for branch in at.args["ifs"]:
            test = branch.this if at.this is None else exp.EQ(this=at.this.copy(), expression=branch.this)
            conditions.append(self.condition(test))
        other = at.args.get("default")
        texts = [branch.args["true"] for branch in at.args["ifs"]] + ([other] if other else [])
        return self._branches(at, conditions, texts)

    def _if(self, at: exp.If) -> Expression:
        other = at.args.get("false")
        return self._branches(at, [self.condition(at.this)], [at.args["true"], *([other] if other else [])])

    def _branches(self, at: exp.Expr, conditions: list[Expression], texts: list[exp.Expr]) -> Expression:
        results = self._same_type(at, *map(self.bound, texts))
        other = results[len(conditions)] if len(results) > len(conditions) else None
        return Case(tuple(zip(conditions, results, strict=False)), other, results[0].type)

    def _coalesce(self, at: exp.Expr) -> Expression:
        items = self._same_type(at, self.bound(at.this), *map(self.bound, at.expressions))
        return Call("coalesce", items, items[0].type)

    def _nullif(self, at: exp.Expr) -> Expression:
        value = self.bound(at.this)
        left, right = self._same_type(at, value, self.bound(at.expression))
        return Case(((Call("=", (left, right), BOOLEAN), Literal(None, value.type)),), value, value.type)

    def _casted(self, at: exp.Expr) -> Expression:
        value, kind = self.bound(at.this), self.type_of(at.args["to"])
        if isinstance(value, Literal) and value.type == STRING and kind == DATE:
            return self._date(str(value.value), at)
        return value if value.type == kind else Cast(value, kind, "ansi")

    def _date(self, text: str, at: exp.Expr) -> Expression:
        try:
            return Literal((datetime.date.fromisoformat(text) - EPOCH).days, DATE)
        except ValueError as error:
            raise self._context.wrong(f"'{text}' is no date", at) from error

    def type_of(self, at: exp.DataType) -> Type:
        """A type that the text names."""
        name = at.this.name
        if name == "DECIMAL":
            digits = [int(each.name) for each in at.expressions] or [10]
            return Decimal(digits[0], digits[1] if len(digits) > 1 else 0)
        if name == "ARRAY" and at.expressions:
            return Array(self.type_of(at.expressions[0]))
        if name not in NAMED or at.expressions:
            raise self._context.refused(f"the type {at.sql(dialect=self._context.dialect)}", at=at)
        return NAMED[name]

    def _function(self, at: exp.Expr, name: str) -> Expression:
        known = FUNCTIONS[name]
        listed = [value if isinstance(value, list) else [value] for value in at.args.values()]
        texts = [part for parts in listed for part in parts if isinstance(part, exp.Expr)]
        if not known.least <= len(texts) <= known.most:
            raise self._context.refused(f"{known.name} with {len(texts)} arguments", at=at)
        if name == "TsOrDsToDate":
            return self._cast(self.bound(texts[0]), DATE, at)
        arguments = []
        for number, text in enumerate(texts):
            value, wanted = self.bound(text), known.parameters[min(number, len(known.parameters) - 1)]
            arguments.append(value if wanted is None else self._cast(value, wanted, at))
        return Call(known.name, tuple(arguments), known.result([value.type for value in arguments]))

    # Subqueries

    def _subquery(self, at: exp.Expr) -> tuple[Node, tuple[Attribute, ...]]:
        query = at.unnest() if isinstance(at, exp.Subquery) else at
        plan, scope = self._context.query(query, self._scope)
        return plan, tuple(scope.outer.values())

    def _scalar(self, at: exp.Expr) -> Expression:
        plan, outer = self._subquery(at)
        columns = outputs(plan)
        if len(columns) != 1:
            raise self._context.wrong(f"a scalar subquery with {len(columns)} columns", at)
        return ScalarSubquery(plan, columns[0].type, outer)

    def _exists(self, at: exp.Expr) -> Expression:
        if not isinstance(at.this, exp.Query):
            raise self._context.refused("the function EXISTS", at=at)
        return Exists(*self._subquery(at.this))

    # Aggregates and windows

    def _aggregate(self, at: exp.Expr) -> Expression:
        if self._aggregates is None:
            raise self._context.wrong(f"an aggregate may not stand here: {at.sql(dialect=self._context.dialect)}", at)
        inner = Terms(self._context, self._scope)
        call = inner.call(at)
        return self._aggregates.column(call, call.name)

    def call(self, at: exp.Expr) -> AggregateCall:
        """Read an aggregate with its FILTER; its arguments are in this reader's scope."""
        if isinstance(at, exp.Filter):
            call = self.call(at.this)
            return AggregateCall(
                call.name, call.arguments, call.type, call.distinct, self.condition(at.expression.this),
                call.order, call.mode, call.options, call.deterministic,
            )  # fmt: skip
        if isinstance(at, exp.IgnoreNulls):
            call = self.call(at.this)
            ignoring = (("ignore nulls", True),)
            return AggregateCall(call.name, call.arguments, call.type, options=ignoring, deterministic=False)
        self._only_known(at, type(at).__name__)
        name = _AGGREGATES.get(type(at).__name__)
        if name is None:
            raise self._context.refused(f"the aggregate {_words(at)}", at=at)
        return self._plain_call(at, name)

    def _plain_call(self, at: exp.Expr, name: str) -> AggregateCall:
        distinct = isinstance(at.this, exp.Distinct)
        texts = at.this.expressions if distinct else [at.this, *at.expressions]
        if name == "count" and (isinstance(at.this, exp.Star) or at.this is None):
            return AggregateCall("count", (Literal(1, INTEGER),), LONG)
        arguments = tuple(self.bound(text) for text in texts)
        if len(arguments) != 1 and name != "count":
            raise self._context.refused(f"{name} of several values", at=at)
        if name == "count_if":
            return AggregateCall("count", (Literal(1, INTEGER),), LONG, filter=self._cast(arguments[0], BOOLEAN, at))
        if name in _TYPED:
            return AggregateCall(name, (self._cast(arguments[0], _TYPED[name], at),), _TYPED[name], distinct)
        kind = self._aggregate_type(name, arguments[0].type, at)
        mode = "ansi" if name in ("sum", "avg") else ""
        return AggregateCall(
            name, arguments, kind, distinct, mode=mode, deterministic=name not in _ORDER_DECIDES  # type: ignore[arg-type]
        )  # fmt: skip

    def _aggregate_type(self, name: str, kind: Type, at: exp.Expr) -> Type:
        rules: dict[str, Callable[[Type], Type | None]] = {"sum": summed, "avg": averaged}
        if name == "count":
            return LONG
        if name == "collect_list":
            return Array(kind, nullable=False)
        found = rules[name](kind) if name in rules else kind
        if found is None:
            raise self._context.wrong(f"{name} of values that are no numbers", at)
        return found

    def _window(self, at: exp.Window) -> Expression:
        if self._windows is None:
            raise self._context.wrong("a window function may not stand here", at)
        inner = Terms(self._context, self._scope, self._aggregates)
        if at.args.get("alias") or at.args.get("first") is not None:
            raise self._context.refused("a named window", at=at)
        partition = tuple(inner.bound(each) for each in at.args.get("partition_by") or ())
        order = at.args.get("order")
        keys = tuple(inner.sort_key(each, inner.bound(each.this)) for each in (order.expressions if order else ()))
        function, framed = inner.windowed(at.this)
        frame = self._frame(at.args.get("spec"), bool(keys)) if framed else None
        call = WindowCall(function, partition, keys, frame, function.type)
        return self._windows.column(call, function.name)

    def windowed(self, at: exp.Expr) -> tuple[AggregateCall | Call, bool]:
        """Read the function of a window, and whether a frame applies to it."""
        self._only_known(at, type(at).__name__)
        rank = _RANKS.get(type(at).__name__)
        if rank is not None:
            if at.this is not None or at.expressions:
                raise self._context.refused(f"{rank} with arguments", at=at)
            return Call(rank, (), DOUBLE if rank in ("percent_rank", "cume_dist") else INTEGER), False
        if isinstance(at, (exp.Lag, exp.Lead)):
            value = self.bound(at.this)
            offset = self.bound(at.args["offset"]) if at.args.get("offset") else Literal(1, INTEGER)
            default = at.args.get("default")
            other = self._cast(self.bound(default), value.type, at) if default else Literal(None, value.type)
            return Call(type(at).__name__.lower(), (value, offset, other), value.type), False
        if isinstance(at, exp.Ntile):
            return Call("ntile", (self.bound(at.this),), INTEGER), False
        call = self.call(at)
        if call.distinct:
            raise self._context.refused("DISTINCT in a window function", at=at)
        return call, True

    def _frame(self, at: exp.Expr | None, ordered: bool) -> Frame:
        if at is None:
            return Frame("range", "unbounded preceding", "current row" if ordered else "unbounded following")
        kind = str(at.args.get("kind") or "ROWS").lower()
        if kind not in ("rows", "range") or at.args.get("exclude"):
            raise self._context.refused(f"a window frame of {kind.upper()}", at=at)
        lower = self._frame_bound(at, "start")
        upper = self._frame_bound(at, "end") if at.args.get("end") else "current row"
        return Frame("rows" if kind == "rows" else "range", lower, upper)

    def _frame_bound(self, at: exp.Expr, end: str) -> Bound | Expression:
        value, side = at.args.get(end), str(at.args.get(f"{end}_side") or "").lower()
        if value == "CURRENT ROW":
            return "current row"
        if value == "UNBOUNDED":
            return "unbounded preceding" if side == "preceding" else "unbounded following"
        found = self.bound(value) if isinstance(value, exp.Expr) else None
        if not isinstance(found, Literal) or not isinstance(found.value, int):
            raise self._context.refused("a window frame whose offset is no whole number", at=at)
        return Literal(-found.value if side == "preceding" else found.value, found.type)


def _words(at: exp.Expr) -> str:
    """A construct's name for a message: ``TABLE SAMPLE``; that of a function is Spark's."""
    if isinstance(at, exp.Func) and not isinstance(at, exp.Case):
        text: str = at.sql(dialect="spark").partition("(")[0]
        if text.replace("_", "").isalnum():
            return text.upper()
    name = type(at).__name__
    return "".join(f" {c}" if c.isupper() and number else c for number, c in enumerate(name)).upper()


_READERS: dict[type, Callable[[Terms, Any], Expression]] = {
    exp.Column: Terms.column,
    exp.And: Terms._logical,
    exp.Or: Terms._logical,
    exp.Not: Terms._not,
    exp.Is: Terms._is,
    exp.Between: Terms._between,
    exp.In: Terms._in,
    exp.Like: Terms._like,
    exp.Neg: Terms._negative,
    exp.Literal: Terms._literal,
    exp.Null: Terms._null,
    exp.Boolean: Terms._boolean,
    exp.Paren: Terms._paren,
    exp.Array: Terms._array,
    exp.Case: Terms._case,
    exp.If: Terms._if,
    exp.Coalesce: Terms._coalesce,
    exp.Nullif: Terms._nullif,
    exp.Cast: Terms._casted,
    exp.TryCast: Terms._casted,
    exp.Subquery: Terms._scalar,
    exp.Select: Terms._scalar,
    exp.Exists: Terms._exists,
    exp.Window: Terms._window,
    exp.TsOrDsAdd: Terms._date_added,
    exp.ArraySort: Terms._sorted_array,
}
