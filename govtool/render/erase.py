"""``govtool erase plan``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from govtool.names import split_name
from govtool.render.answer import closing, heading, tally, unclear
from govtool.render.layout.rows import DATA_FORMATS, ROW_FORMATS, data_lines, laid_out
from govtool.render.layout.table import Table, TableColumn
from govtool.render.layout.text import count
from govtool.wording import few

if TYPE_CHECKING:
    from govtool.answers.erase import ErasePlanAnswer
    from govtool.policy.erasure.column_plan import Task

FORMATS = ROW_FORMATS
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


def render(form: str, answer: ErasePlanAnswer) -> Table | Iterable[str]:
    """One of ``FORMATS``."""
    if form in DATA_FORMATS:
        return data_lines(form, answer, answer.task_objects())
    return laid_out(form, _table(answer))


def _table(answer: ErasePlanAnswer) -> Table:
    plan, version, values = answer.plan, answer.version, answer.values
    counts = {_NOUNS[action]: plan.count(action) for action in _NOUNS}
    parts = [count(len(plan.tasks), "dataset"), tally(counts), unclear(version)]
    sentences = [closing(version, *parts)]
    lacking = sorted({rule for task in plan.tasks for rule in task.lacks})
    if lacking:
        number = sum(bool(task.lacks) for task in plan.tasks)
        sentences.append(f"{count(number, 'dataset')} without the retention that {', '.join(lacking)} wants")
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
                few(t.keys, _SHOWN),
                few(t.classes, _SHOWN),
                t.retention or "",
                _why(t),
            )
            for t in plan.tasks
        ],
        heading=heading(version, about, "erasure plan"),
        summary="\n".join(sentences),
        row_styles=[_STYLES.get(t.action, "") for t in plan.tasks],
        styled=1,
        names=2,
    )


def _why(task: Task) -> str:
    passed = sorted({p for held in task.columns for p in held.passed})
    lowered = all(held.passed for held in task.columns) and passed
    words = [task.why, f"only through {', '.join(passed)}" if lowered else ""]
    if task.action == "search" and task.columns:
        words.append(f"no key among {few([split_name(h.column)[-1] for h in task.columns], _SHOWN)}")
    return "; ".join(word for word in words if word)
