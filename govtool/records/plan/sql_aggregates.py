"""Aggregates and functions over windows of SQL, by the class that sqlglot gives them."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from govtool.records.plan.expressions import (
    AggregateCall,
    Bound,
    Call,
    Expression,
    Frame,
    Literal,
)
from govtool.records.plan.sql_typed import TypedTerms, words
from govtool.records.plan.sql_types import averaged, summed
from govtool.records.plan.types import (
    BOOLEAN,
    DOUBLE,
    INTEGER,
    LONG,
    Array,
    Type,
)

AGGREGATES = {
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
_ORDER_DECIDES = {"first", "last", "collect_list"}
_RANKS = {
    "RowNumber": "row_number", "Rank": "rank", "DenseRank": "dense_rank", "PercentRank": "percent_rank",
    "CumeDist": "cume_dist",
}  # fmt: skip


def aggregate_call(terms: TypedTerms, at: exp.Expr) -> AggregateCall:
    """Read an aggregate with its FILTER; its arguments are in this reader's scope."""
    if isinstance(at, exp.Filter):
        call = aggregate_call(terms, at.this)
        return AggregateCall(
            call.name, call.arguments, call.type, call.distinct, terms.condition(at.expression.this),
            call.order, call.mode, call.options, call.deterministic,
        )  # fmt: skip
    if isinstance(at, exp.IgnoreNulls):
        call = aggregate_call(terms, at.this)
        ignoring = (("ignore nulls", True),)
        return AggregateCall(call.name, call.arguments, call.type, options=ignoring, deterministic=False)
    terms.require_known(at, type(at).__name__)
    name = AGGREGATES.get(type(at).__name__)
    if name is None:
        raise terms.context.refused(f"the aggregate {words(at)}", at=at)
    return _plain_call(terms, at, name)


def _plain_call(terms: TypedTerms, at: exp.Expr, name: str) -> AggregateCall:
    distinct = isinstance(at.this, exp.Distinct)
    texts = at.this.expressions if distinct else [at.this, *at.expressions]
    if not any(texts):
        raise terms.context.wrong(f"{name} of nothing", at)
    if name == "count" and isinstance(at.this, exp.Star):
        return AggregateCall("count", (Literal(1, INTEGER),), LONG)
    arguments = tuple(terms.bound(text) for text in texts)
    if len(arguments) != 1 and name != "count":
        raise terms.context.refused(f"{name} of several values", at=at)
    if name == "count_if":
        return AggregateCall("count", (Literal(1, INTEGER),), LONG, filter=terms.cast(arguments[0], BOOLEAN, at))
    if name in _TYPED:
        return AggregateCall(name, (terms.cast(arguments[0], _TYPED[name], at),), _TYPED[name], distinct)
    kind = _aggregate_type(terms, name, arguments[0].type, at)
    mode = "ansi" if name in ("sum", "avg") else ""
    return AggregateCall(
        name, arguments, kind, distinct, mode=mode, deterministic=name not in _ORDER_DECIDES  # type: ignore[arg-type]
    )  # fmt: skip


def _aggregate_type(terms: TypedTerms, name: str, kind: Type, at: exp.Expr) -> Type:
    rules: dict[str, Callable[[Type], Type | None]] = {"sum": summed, "avg": averaged}
    if name == "count":
        return LONG
    if name == "collect_list":
        return Array(kind, nullable=False)
    found = rules[name](kind) if name in rules else kind
    if found is None:
        raise terms.context.wrong(f"{name} of values that are no numbers", at)
    return found


def window_function(terms: TypedTerms, at: exp.Expr) -> tuple[AggregateCall | Call, bool]:
    """Read the function of a window, and whether a frame applies to it."""
    terms.require_known(at, type(at).__name__)
    rank = _RANKS.get(type(at).__name__)
    if rank is not None:
        if at.this is not None or at.expressions:
            raise terms.context.refused(f"{rank} with arguments", at=at)
        return Call(rank, (), DOUBLE if rank in ("percent_rank", "cume_dist") else INTEGER), False
    if isinstance(at, (exp.Lag, exp.Lead)):
        value = terms.bound(at.this)
        offset = terms.bound(at.args["offset"]) if at.args.get("offset") else Literal(1, INTEGER)
        default = at.args.get("default")
        other = terms.cast(terms.bound(default), value.type, at) if default else Literal(None, value.type)
        return Call(type(at).__name__.lower(), (value, offset, other), value.type), False
    if isinstance(at, exp.Ntile):
        return Call("ntile", (terms.bound(at.this),), INTEGER), False
    call = aggregate_call(terms, at)
    if call.distinct:
        raise terms.context.refused("DISTINCT in a window function", at=at)
    return call, True


def window_frame(terms: TypedTerms, at: exp.Expr | None, ordered: bool) -> Frame:
    """The frame of a window; without one, the default of a window that is ordered or not."""
    if at is None:
        return Frame("range", "unbounded preceding", "current row" if ordered else "unbounded following")
    kind = str(at.args.get("kind") or "ROWS").lower()
    if kind not in ("rows", "range") or at.args.get("exclude"):
        raise terms.context.refused(f"a window frame of {kind.upper()}", at=at)
    lower = _frame_bound(terms, at, "start")
    upper = _frame_bound(terms, at, "end") if at.args.get("end") else "current row"
    return Frame("rows" if kind == "rows" else "range", lower, upper)


def _frame_bound(terms: TypedTerms, at: exp.Expr, end: str) -> Bound | Expression:
    value, side = at.args.get(end), str(at.args.get(f"{end}_side") or "").lower()
    if value == "CURRENT ROW":
        return "current row"
    if value == "UNBOUNDED":
        return "unbounded preceding" if side == "preceding" else "unbounded following"
    found = terms.bound(value) if isinstance(value, exp.Expr) else None
    if not isinstance(found, Literal) or not isinstance(found.value, int):
        raise terms.context.refused("a window frame whose offset is no whole number", at=at)
    return Literal(-found.value if side == "preceding" else found.value, found.type)
