"""SQL expressions to typed expressions: names are resolved, types inferred, casts made explicit."""

from __future__ import annotations

from sqlglot import exp

from govtool.records.plan.expressions import (
    Call,
    Expression,
    WindowCall,
)
from govtool.records.plan.sql_aggregates import AGGREGATES, aggregate_call, window_frame, window_function
from govtool.records.plan.sql_context import Context
from govtool.records.plan.sql_operators import ARITHMETIC, COMPARED, READERS, arithmetic_call, comparison, function_call
from govtool.records.plan.sql_scope import Calls, Scope
from govtool.records.plan.sql_typed import TypedTerms, words
from govtool.records.plan.sql_types import FUNCTIONS
from govtool.records.plan.types import BYTE, LONG

GROUPING, GROUPING_ID = "grouping", "grouping_id"
"""Calls that say which keys a row of grouping sets does not have; a plan has none."""


class Terms(TypedTerms):
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
        super().__init__(context, scope)
        self._aggregates = aggregates
        self._windows = windows

    def bound(self, at: exp.Expr) -> Expression:
        """Read an expression.

        Raises:
            UsageError: It names what is not there, or is not covered.
        """
        name = type(at).__name__
        if not isinstance(at, exp.Query):
            self.require_known(at, name)
        if name in COMPARED or name == "NEQ":
            return comparison(self, at, name)
        if name in ARITHMETIC:
            return arithmetic_call(self, at, ARITHMETIC[name])
        if name in AGGREGATES or isinstance(at, (exp.Filter, exp.IgnoreNulls)):
            return self._aggregate(at)
        if name in FUNCTIONS:
            return function_call(self, at, name)
        if isinstance(at, exp.Window):
            return self._window(at)
        if isinstance(at, (exp.Grouping, exp.GroupingId)):
            return self._grouping(at)
        reader = READERS.get(type(at))
        if reader is None:
            raise self.context.refused(f"the function {at.name.upper()}" if name == "Anonymous" else words(at), at=at)
        return reader(self, at)

    def _aggregate(self, at: exp.Expr) -> Expression:
        if self._aggregates is None:
            raise self.context.wrong(f"an aggregate may not stand here: {at.sql(dialect=self.context.dialect)}", at)
        inner = Terms(self.context, self.scope)
        call = aggregate_call(inner, at)
        return self._aggregates.column(call, call.name)

    def _grouping(self, at: exp.Grouping | exp.GroupingId) -> Expression:
        """A call that ``Groups`` replaces by what the grouping set of a row says."""
        if self._aggregates is None:
            raise self.context.wrong(f"a grouping may not stand here: {at.sql(dialect=self.context.dialect)}", at)
        inner = Terms(self.context, self.scope)
        is_single = isinstance(at, exp.Grouping)
        arguments = tuple(inner.bound(each) for each in at.expressions)
        if is_single and len(arguments) != 1:
            raise self.context.wrong("GROUPING takes one column", at)
        return Call(GROUPING if is_single else GROUPING_ID, arguments, BYTE if is_single else LONG)

    def _window(self, at: exp.Window) -> Expression:
        if self._windows is None:
            raise self.context.wrong("a window function may not stand here", at)
        inner = Terms(self.context, self.scope, self._aggregates)
        if at.args.get("alias") or at.args.get("first") is not None:
            raise self.context.refused("a named window", at=at)
        partition = tuple(inner.bound(each) for each in at.args.get("partition_by") or ())
        order = at.args.get("order")
        keys = tuple(inner.sort_key(each, inner.bound(each.this)) for each in (order.expressions if order else ()))
        function, framed = window_function(inner, at.this)
        frame = window_frame(self, at.args.get("spec"), bool(keys)) if framed else None
        call = WindowCall(function, partition, keys, frame, function.type)
        return self._windows.column(call, function.name)
