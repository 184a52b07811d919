"""Commands that say what a view of the catalog stands for."""

from __future__ import annotations

import re

from govtool.capture.spark.identity import DatasetPlace
from govtool.capture.spark.plantext import lists
from govtool.capture.spark.plantext.plan_write import TABLE, PlanWrite, query_below
from govtool.capture.spark.plantext.scans import Names
from govtool.capture.spark.plantext.tree import Operator

_VIEW_COLUMNS = re.compile(r"\A\s*\[(\(.*?\))\](?=, )", re.DOTALL)


def created_view(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    """CREATE VIEW: name, names of columns, the query as text and as a plan. Temporary ones are seen through."""
    text = operator.fields.get("Arguments", "")
    found = TABLE.match(text)
    if found is None or "LocalTempView" in text or "GlobalTempView" in text:
        return None
    rest = text[found.end() + 2 :]
    columns: tuple[str, ...] | None = None
    hidden = 0
    listed = _VIEW_COLUMNS.match(rest)
    if listed is not None:
        elements = lists.split(f"[{listed[1]}]")
        columns = tuple(
            re.sub(r"\A\((.*),(?:None|Some\(.*\))\)\Z", r"\1", item, flags=re.DOTALL) for item in elements.items
        )
        hidden = elements.more
    return PlanWrite(
        DatasetPlace(names.table(found[0]), "view"),
        "create_view",
        "overwrite",
        "replace",
        query_below(operator),
        columns,
        hidden,
    )


def altered_view(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    """ALTER VIEW … AS: name, the query as text and as a plan; a name of one part is that of a temporary view."""
    found = TABLE.match(operator.fields.get("Arguments", ""))
    if found is None or "." not in found[0]:
        return None
    place = DatasetPlace(names.table(found[0]), "view")
    return PlanWrite(place, "create_view", "overwrite", "replace", query_below(operator))
