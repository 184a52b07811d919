"""Queries that are rewritten to carry ids: which need it, which must not be, and what a command was before."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from govtool.spark.live.jvm.scala import called, safely, sequence
from govtool.spark.live.records.carried import PlanCarrier, is_ranking

_LAZY = frozenset(["Sample", "GlobalLimit", "Offset", "Tail", "Deduplicate"])
_PATTERNS = ("CURRENT_LIKE", "PYTHON_UDF", "SCALA_UDF")


def why_eager(session: Any, plan: Any) -> str:
    """Return why a lazy trace of a plan may not be exact; empty: it is."""
    if not plan.deterministic():
        return "an expression is not deterministic"
    patterns = session._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    for name in _PATTERNS:
        pattern = getattr(patterns, name, None)
        if pattern is not None and plan.containsPattern(pattern()):
            return {"CURRENT_LIKE": "it reads the clock"}.get(name, "it calls functions of the user")
    return _inexact_operator(plan)


def _inexact_operator(plan: Any) -> str:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        kind = node.getClass().getSimpleName()
        if kind in _LAZY or (kind == "Window" and is_ranking(node)):
            return f"{kind} may choose other rows"
        waiting += sequence(node.children())
    return ""


def cannot_carry(session: Any, execution: Any) -> str:
    """Return why the plan of a query must not be rewritten; empty: it may."""
    plan = execution.analyzed()
    if plan.isStreaming():
        return "rows of a stream have no positions"
    patterns = session._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    if plan.containsPattern(patterns.PLAN_EXPRESSION()):
        return "a subquery within an expression cannot carry the ids of records"
    for leaf in sequence(execution.withCachedData().collectLeaves()):
        if leaf.getClass().getSimpleName() == "InMemoryRelation":
            return "it reads cached rows, and these have no positions"
    return ""


def restored(carrier: PlanCarrier, plan: Any, originals: dict[int, Any]) -> tuple[Any, int | None]:
    """A command as it would be without ids, and the key of the query in it that was rewritten; None: there is none.

    Args:
        carrier: Of the session.
        plan: An analyzed plan.
        originals: Queries by the id of the first column of ids of what they became.
    """
    keys: list[int] = []

    def original(node: Any, kind: str) -> Any:
        if kind == "Project" and not keys:
            for column in sequence(node.child().output()):
                number = int(column.exprId().id())
                if number in originals:
                    keys.append(number)
                    return originals[number]
        return None

    made = replaced(carrier, plan, original)
    return made, keys[0] if keys else None


def replaced(carrier: PlanCarrier, plan: Any, change: Callable[[Any, str], Any]) -> Any:
    """A plan, or a command with its query, with other operators in some places.

    Args:
        carrier: Of the session.
        plan: An analyzed plan.
        change: Returns what takes the place of an operator, given with the name of its class; None: it stays.
    """
    kind = str(plan.getClass().getSimpleName())
    other = change(plan, kind)
    if other is not None:
        return other
    children = sequence(plan.children())
    made = [replaced(carrier, child, change) for child in children]
    if any(new is not old for new, old in zip(made, children)):
        return plan.withNewChildren(carrier.seq(made))
    query = safely(partial(called, plan, "query")) if not children and "Command" in kind else None
    if query is None:
        return plan
    new = replaced(carrier, query, change)
    return plan if new is query else carrier.rebuilt(plan, query=new)
