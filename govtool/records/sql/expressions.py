"""Expressions of a plan in SQL, over the columns in scope."""

from __future__ import annotations

from collections.abc import Callable

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
    Opaque,
    Outer,
    ScalarSubquery,
    SortKey,
    Udf,
    Variable,
    WindowCall,
)
from govtool.records.plan.tree import Node, Term, fold
from govtool.records.sql.dialect import Dialect, NotExact
from govtool.records.sql.operands import Operand, Visible

_RANKS = frozenset(
    {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "nth_value"}
)
_WHOLE = ("unbounded preceding", "unbounded following")
_RUN_DEPENDENT = frozenset(
    {"current_timestamp", "current_date", "now", "localtimestamp", "current_time", "current_timezone"}
)


class ExpressionWriter:
    """Writes the expressions of one statement.

    Args:
        dialect: The SQL of the executor.
        plan: Writes the plan of a subquery within a scope.

    Attributes:
        udfs: The functions of the user that are called, by kind and digest.
        undetermined: Why another run may give other rows without being wrong.
        steering: Memberships of the filter at hand, by ``id()``, for which NULL and FALSE are the same.
    """

    def __init__(self, dialect: Dialect, plan: Callable[[Node, Visible], Operand]) -> None:
        self.dialect = dialect
        self.udfs: dict[str, Udf] = {}
        self.undetermined: dict[str, None] = {}
        self.steering: frozenset[int] = frozenset()
        self._plan = plan

    def write(self, value: Term, scope: Visible) -> str:
        """An expression over the columns of a scope, or a piece of one."""
        return fold(value, lambda term, parts: self._term(term, list(parts), scope))

    def _term(self, term: Term, parts: list[str], scope: Visible) -> str:
        dialect = self.dialect
        if isinstance(term, Attribute):
            return self._attribute(term, scope)
        if isinstance(term, Outer):
            return self._outer(term, scope)
        if isinstance(term, Literal):
            return dialect.literal(term)
        if isinstance(term, Call):
            return self._call(term, parts)
        if isinstance(term, Cast):
            return dialect.cast(term, parts[0])
        if isinstance(term, Case):
            return dialect.case(term, parts)
        if isinstance(term, Variable):
            return dialect.variable(term)
        if isinstance(term, Lambda):
            return dialect.parameter(term, parts)
        if isinstance(term, SortKey):
            return dialect.sort_key(term, parts[0])
        if isinstance(term, Frame):
            return dialect.frame(term, parts)
        return self._larger(term, parts, scope)

    def _larger(self, term: Term, parts: list[str], scope: Visible) -> str:
        if isinstance(term, AggregateCall):
            return self._aggregate_call(term, parts)
        if isinstance(term, WindowCall):
            return self._window_call(term, parts)
        if isinstance(term, (ScalarSubquery, Exists, InSubquery)):
            return self._subquery(term, parts, scope)
        if isinstance(term, Udf):
            self.udfs[f"{term.reference.kind} {term.reference.digest}"] = term
            return self.dialect.udf(term, parts)
        if isinstance(term, Opaque):
            raise NotExact(term.reason)
        raise NotExact(f"the expression {type(term).__name__}")

    def _attribute(self, attribute: Attribute, scope: Visible) -> str:
        name = scope.names.get(attribute.id)
        if name is None:
            raise NotExact(f"column {attribute.name} is not in the input")
        return name

    def _outer(self, term: Outer, scope: Visible) -> str:
        around = scope.around
        if around is None or term.attribute.id not in around.names:
            raise NotExact(f"column {term.attribute.name} of a query further out")
        scope.used_outer.append(term.attribute.id)
        return around.names[term.attribute.id]

    def _call(self, call: Call, parts: list[str]) -> str:
        if not call.deterministic:
            raise NotExact(f"{call.name}, which is drawn at random or by partition")
        if call.name in _RUN_DEPENDENT:
            raise NotExact(f"{call.name}, which depends on when the query runs")
        if call.name in _RANKS:
            return self.dialect.rank(call, parts)
        return self.dialect.call(call, parts)

    def _aggregate_call(self, call: AggregateCall, parts: list[str]) -> str:
        if not call.deterministic and not call.order:
            self.undetermined[f"{call.name} depends on the order of rows"] = None
        count = len(call.arguments)
        condition = parts[count] if call.filter is not None else ""
        order = parts[count + (1 if call.filter is not None else 0) :]
        return self.dialect.aggregate(call, parts[:count], condition, order)

    def _window_call(self, call: WindowCall, parts: list[str]) -> str:
        function, rest = parts[0], parts[1:]
        partition, rest = rest[: len(call.partition)], rest[len(call.partition) :]
        order, rest = rest[: len(call.order)], rest[len(call.order) :]
        name = call.function.name if isinstance(call.function, (Call, AggregateCall)) else ""
        rows = call.frame is not None and call.frame.kind == "rows" and (call.frame.lower, call.frame.upper) != _WHOLE
        if name in ("row_number", "ntile", "lag", "lead", "nth_value") or rows:
            self.undetermined[f"rows that tie in the order of a window ({name or 'a function'})"] = None
        return self.dialect.over(call, function, partition, order, rest[0] if rest else "")

    def _subquery(self, term: ScalarSubquery | Exists | InSubquery, parts: list[str], scope: Visible) -> str:
        if isinstance(term, InSubquery):
            self.dialect.membership(id(term) in self.steering)
        source = self._plan(term.plan, scope)
        if isinstance(term, Exists):
            return f"EXISTS (SELECT 1 FROM {source.table})"
        columns = ", ".join(f"{source.alias}.{self.dialect.column(each)}" for each in source.columns)
        if isinstance(term, InSubquery):
            values = parts[: len(term.values)]  # behind them are the columns that a correlated subquery reads
            value = values[0] if len(values) == 1 else f"({', '.join(values)})"
            return f"({value} IN (SELECT {columns} FROM {source.table}))"
        return f"(SELECT {columns} FROM {source.table})"


def steering_of(condition: Expression) -> frozenset[int]:
    """The IN (subquery) of a filter, by ``id()``, that stand below AND, OR and at most one NOT of their own."""
    found: list[int] = []
    waiting: list[Term] = [condition]
    while waiting:
        term = waiting.pop()
        if isinstance(term, Call) and term.name == "not" and isinstance(term.arguments[0], InSubquery):
            term = term.arguments[0]
        if isinstance(term, InSubquery):
            found.append(id(term))
        elif isinstance(term, Call) and term.name in ("and", "or"):
            waiting.extend(term.arguments)
    return frozenset(found)
