"""Parts of optimized plans that several programs have, with other kinds of edges each: stated beside the lineage.

Spark makes one plan of ``ON`` and ``WHERE``, of a semi join and ``EXISTS``, of a cast that somebody wrote and one that
analysis added. The columns are right; by which kind they are reached is that of the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from govtool.capture.spark import build
from govtool.capture.spark.plantext import lists, operator_names
from govtool.capture.spark.plantext.operator_names import plain_name
from govtool.capture.spark.plantext.tree import Operator, PlanTree
from govtool.model import Diagnostic

CODE: Final = "plan.optimized"

_JOIN: Final = Diagnostic(
    CODE,
    "info",
    "the log has the optimized plan: whether a join, WHERE or a subquery (EXISTS, IN, a scalar or LATERAL one) combines"
    " tables is not in it, so `join` may be `filter` (with spark.sql.ui.explainMode=extended a log has it)",
)
_CAST: Final = Diagnostic(
    CODE,
    "info",
    "the log has the optimized plan: whether somebody wrote a cast to a wider type is not in it, so `transformation`"
    " may be `identity` (with spark.sql.ui.explainMode=extended a log has it)",
)
_WRITTEN = re.compile(r"(?=.*#\d+L?\Z)cast\((.*)#(\d+)(L?) as (\w+(?:\([\d,]+\))?)\) AS (.*)#\d+L?\Z")
_ONE_SIDED = ("Inner", "Cross", "LeftSemi", "LeftAnti", "LeftSingle")


def optimized_notes(tree: PlanTree, *, writes: bool) -> Iterator[Diagnostic]:
    """Yield what of a plan may have been written otherwise, each once.

    Args:
        tree: The plan.
        writes: Whether its rows are written, and so fitted to the columns of a target.
    """
    operators = list(tree.operators.values())
    if any(_is_ambiguous(operator) for operator in operators):
        yield _JOIN
    fits = writes or any(plain_name(operator) == "Union" for operator in operators)
    if fits and any(_widens(operator) for operator in operators):
        yield _CAST


def _is_ambiguous(operator: Operator) -> bool:
    if plain_name(operator) not in operator_names.JOINS:
        return False
    fields = operator.fields
    kind = fields.get("Join type", "Inner")
    compares = fields.get("Left keys", "[]") != "[]" or fields.get("Join condition", "None") != "None"
    if kind.startswith("LeftOuter") and len(operator.children) > 1:
        return _below(operator.children[1]) in operator_names.AGGREGATES
    return compares and kind.startswith(_ONE_SIDED)


def _below(operator: Operator) -> str:
    """The name of the first operator that does something to rows."""
    while len(operator.children) == 1 and plain_name(operator) not in operator_names.AGGREGATES:
        operator = operator.children[0]
    return plain_name(operator)


def _widens(operator: Operator) -> bool:
    """Return whether a select list casts a column to a type that holds more, under another name."""
    if plain_name(operator) != "Project" or "cast(" not in operator.fields.get("Output", ""):
        return False
    casts = filter(None, map(_WRITTEN.match, lists.split(operator.fields["Output"]).items))
    return any(cast[1] != cast[5] and not build.narrows("bigint" if cast[3] else "", cast[4]) for cast in casts)
