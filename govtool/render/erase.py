"""``govtool erase plan``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from govtool.names import split_name
from govtool.render.answer import GraphVersion, step_object, tally
from govtool.render.envelope import envelope, json_lines
from govtool.render.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.text import count

if TYPE_CHECKING:
    from govtool.policy.erasure import ErasurePlan, Task

FORMATS = ("table", "plain", "json", "csv", "markdown")
REDACTED = "…"
_STYLES = {"delete": "bold red", "search": "bold red", "rebuild": "yellow", "unknown": "magenta", "stays": "green"}
_NOUNS = {
    "delete": "to delete from",
    "search": "to search",
    "rebuild": "to rebuild",
    "follows": "to follow by themselves",
    "expires": "to expire",
    "unknown": "unknown",
    "stays": "to stay",
}
_SHOWN = 4
"""Classes or columns of a cell."""


def render(
    form: str, plan: ErasurePlan, version: GraphVersion, values: Sequence[str | None] | None
) -> Table | Iterable[str]:
    """One of ``FORMATS``; ``values`` is what the columns hold for the subject, or None to keep that to oneself."""
    if form == "csv":
        header = ("order", "action", "dataset", "keys", "classes", "columns", "retention", "owner", "why")
        return to_csv(
            header,
            [
                (
                    t.order or "", t.action, t.dataset, " ".join(t.keys), " ".join(t.classes),
                    " ".join(h.column for h in t.columns), t.retention or "", t.owner or "", t.why,
                )
                for t in plan.tasks
            ],
        )  # fmt: skip
    if form == "json":
        return json_lines(envelope("erase/1", _body(plan, version, values)))
    made = _table(plan, version, values)
    return made if form == "table" else (plain if form == "plain" else markdown)(made)


def _body(plan: ErasurePlan, version: GraphVersion, values: Sequence[str | None] | None) -> dict[str, object]:
    return {
        **version.header(),
        "subjects": list(plan.subjects),
        "values": None if values is None else list(values),
        "within": plan.within,
        "keys": [{"column": column, "why": why} for column, why in plan.keys],
        "tasks": [_task(t) for t in plan.tasks],
        "summary": {action: plan.count(action) for action in _NOUNS},
        "coverage": version.coverage.counts(),
    }


def _task(task: Task) -> dict[str, object]:
    return {
        "order": task.order or None,
        "dataset": task.dataset,
        "dataset_kind": task.dataset_kind,
        "action": task.action,
        "keys": list(task.keys),
        "columns": [
            {"column": h.column, "mode": h.mode, "classes": list(h.classes), "passed": list(h.passed)}
            for h in task.columns
        ],
        "classes": list(task.classes),
        "source": task.source or None,
        "steps": [step_object(s) for s in task.steps],
        "why": task.why,
        "owner": task.owner,
        "retention": task.retention,
        "lacks": list(task.lacks),
        "files": list(task.files),
    }


def _table(plan: ErasurePlan, version: GraphVersion, values: Sequence[str | None] | None) -> Table:
    counts = {_NOUNS[action]: plan.count(action) for action in _NOUNS}
    parts = [count(len(plan.tasks), "dataset"), tally(counts)]
    closing = [version.closing(*parts)]
    lacking = sorted({rule for task in plan.tasks for rule in task.lacks})
    if lacking:
        number = sum(bool(task.lacks) for task in plan.tasks)
        closing.append(f"{count(number, 'dataset')} without the retention that {', '.join(lacking)} wants")
    about = ", ".join(plan.subjects)
    if values is not None and any(values):
        about += f" = {', '.join(v or REDACTED for v in values)}"
    return Table(
        columns=(
            TableColumn("order", justify="right"),
            TableColumn("action"),
            TableColumn("dataset", style="bold"),
            TableColumn("key"),
            TableColumn("classes"),
            TableColumn("keeps"),
            TableColumn("why"),
        ),
        rows=[
            (
                str(t.order) if t.order else "",
                t.action,
                t.dataset,
                _few(t.keys),
                _few(t.classes),
                t.retention or "",
                _why(t),
            )
            for t in plan.tasks
        ],
        heading=version.heading(about, "erasure plan"),
        summary="\n".join(closing),
        row_styles=[_STYLES.get(t.action, "") for t in plan.tasks],
    )


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _why(task: Task) -> str:
    passed = sorted({p for held in task.columns for p in held.passed})
    lowered = all(held.passed for held in task.columns) and passed
    words = [task.why, f"only through {', '.join(passed)}" if lowered else ""]
    if task.action == "search" and task.columns:
        words.append(f"no key among {_few([split_name(h.column)[-1] for h in task.columns])}")
    return "; ".join(word for word in words if word)
