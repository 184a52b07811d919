"""What statements read that may make them fail: casts and divisions that are not of constants, and their rows.

A handler of all errors runs after each of them. That anything may fail says nothing; that ``10 / b`` does where b is 0
is in the statement. Constraints are not known here, and neither is how large numbers grow.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.scripts.control import row_counts
from govtool.capture.sql.scripts.statement import ParsedStatement
from govtool.capture.sql.scripts.trees import tree_of

_CASTS: Final = (exp.Cast, exp.Convert)
_DIVISIONS: Final = (exp.Div, exp.IntDiv, exp.Mod)
_READINGS: Final = (exp.StrToDate, exp.StrToTime, exp.StrToUnix, exp.ToNumber, exp.ParseJSON)
"""Functions that read a text."""
_MAY_FAIL: Final = (*_CASTS, *_DIVISIONS, *_READINGS)
_CHANGES: Final = (exp.Insert, exp.Update, exp.Delete, exp.Merge)
_REARRANGED: Final = ("group", "having", "qualify", "distinct", "order", "windows")
"""Clauses that may refer to what a query puts out."""


def of(statement: ParsedStatement, dialect: str) -> list[exp.Expr]:
    """Return what decides whether a statement fails, by its values and the conditions that it stands under."""
    if statement.tree is None or statement.head == "exit":
        return []
    tree = tree_of(statement)
    tests = [test for test in statement.tests if not test.args.get("block")]
    if tree is None or not may_fail(tree):
        return [test.copy() for test in tests if may_fail(test)]
    return [*_reads(tree, dialect), *(test.copy() for test in tests)]


def may_fail(tree: exp.Expr) -> bool:
    """Return whether the values of columns decide whether an expression in a tree can be computed."""
    return any(_fails(node) for node in tree.find_all(*_MAY_FAIL))


def _fails(node: exp.Expr) -> bool:
    if isinstance(node, _DIVISIONS):
        divisor = node.expression
        while isinstance(divisor, (exp.Paren, exp.Cast)):
            divisor = divisor.this
        return not isinstance(divisor, (exp.Literal, exp.Nullif, exp.Neg))
    if isinstance(node, exp.TryCast) or node.args.get("safe"):
        return False
    is_text = isinstance(node, _CASTS) and _type(node) in exp.DataType.TEXT_TYPES
    return not is_text and node.find(exp.Column, exp.Parameter, exp.Query) is not None


def _type(node: exp.Expr) -> object:
    return getattr(node.args.get("to") or (node.this if isinstance(node, exp.Convert) else None), "this", None)


def _reads(tree: exp.Expr, dialect: str) -> list[exp.Expr]:
    """What a statement reads to fail: the values that may, of the rows that it touches."""
    if isinstance(tree, exp.Set):
        if tree.args.get("counts") or tree.args.get("fetches"):
            return []
        value = tree.args.get("expression")
        if value is None or not isinstance(value, exp.Query):
            return [] if value is None else [value.copy()]
        tree = value
    if isinstance(tree, exp.Query):
        return [exp.Subquery(this=_narrowed(tree))]
    if not isinstance(tree, _CHANGES):
        return []
    if isinstance(tree, exp.Insert) and isinstance(tree.expression, exp.Query):
        return [exp.Subquery(this=_narrowed(tree.expression))]
    values = [value for value in row_counts.values_of(tree) if may_fail(value)]
    found = None if isinstance(tree, exp.Insert) else row_counts.counted_rows(tree, dialect)
    if found is None:
        return values
    found.set("expressions", values or [exp.Literal.number(1)])
    return [exp.Subquery(this=found)]


def _narrowed(query: exp.Query) -> exp.Query:
    """A query without what it puts out and cannot fail to compute."""
    found = query.copy()
    found.set("into", None)
    if isinstance(found, exp.Select) and not any(found.args.get(clause) for clause in _REARRANGED):
        values = [item for item in found.expressions if may_fail(item)]
        found.set("expressions", values or [exp.Literal.number(1)])
    return found
