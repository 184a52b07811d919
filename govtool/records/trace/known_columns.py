"""Conditions that another evaluation of a plan can answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from govtool.errors import UsageError
from govtool.records.plan.expressions import Attribute, Expression
from govtool.records.plan.tree import Node
from govtool.records.trace.list_order import depends_on_order, unordered_lists
from govtool.records.trace.segment import reads


def require_known(condition: Expression, columns: Iterable[Attribute], blank: Collection[int], rows: Node) -> None:
    """Refuse a condition on what cannot be evaluated again.

    Args:
        condition: Over the columns.
        columns: Those of the rows.
        blank: Ids of columns that cannot be evaluated again.
        rows: The plan of the rows.

    Raises:
        UsageError: It reads such a column, or depends on the order of a collected list (``usage.opaque-column``).
    """
    read = reads([condition])
    unknown = [column.name for column in columns if column.id in read and column.id in blank]
    if unknown:
        raise UsageError(f"column '{unknown[0]}' cannot be evaluated again", code="usage.opaque-column")
    if depends_on_order(condition, unordered_lists(rows)):
        raise UsageError(
            "the condition depends on the order of a collected list, which another evaluation does not give",
            code="usage.opaque-column",
            hint="size(), array_contains() and sort_array() of the list do not depend on it",
        )
