"""The answer of ``erase plan``: what to do with a data subject's data, dataset by dataset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Cell, GraphAnswer
from govtool.answers.evidence import step_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from govtool.policy.erasure.column_plan import ErasurePlan, Task


@dataclass(frozen=True, slots=True)
class ErasePlanAnswer(GraphAnswer):
    """The datasets with a data subject's data, in the order to work through."""

    schema: ClassVar[str] = "erase/1"
    fields: ClassVar[tuple[str, ...]] = (
        *("order", "action", "dataset", "keys", "classes", "columns"),
        *("retention", "owner", "why"),
    )
    types: ClassVar[Mapping[str, str]] = {
        "order": "integer",
        **dict.fromkeys(("keys", "classes", "columns"), "texts"),
    }

    plan: ErasurePlan
    values: tuple[str | None, ...] | None = field(default=None, repr=False)
    """The contents of the subject's columns, for those who asked to see them; personal data, so no log shows it."""

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The datasets, in order."""
        return self.plan.tasks

    def is_unclear(self) -> bool:
        """Return whether a task is unknown, or a statement was not understood that could copy the subject's data."""
        return self.plan.count("unknown") > 0 or self.version.unclear > 0

    def body(self) -> Mapping[str, object]:
        """The keys after the header, as docs/schemas/erase-1.json has them."""
        from govtool.policy.erasure.column_plan import ACTIONS

        plan = self.plan
        return {
            "subjects": list(plan.subjects),
            "values": None if self.values is None else list(self.values),
            "within": plan.within,
            "keys": [{"column": column, "why": why} for column, why in plan.keys],
            "tasks": self.task_objects(),
            "summary": {action: plan.count(action) for action in ACTIONS},
            "coverage": self.version.coverage.counts(),
        }

    def task_objects(self) -> list[dict[str, object]]:
        """The tasks as JSON has them."""
        return [_task_object(task) for task in self.plan.tasks]

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """A row a dataset; one with nothing to do has no order."""
        for task in self.plan.tasks:
            columns = tuple(held.column for held in task.columns)
            labels = (task.keys, task.classes, columns, task.retention, task.owner)
            yield task.order or None, task.action, task.dataset, *labels, task.why


def _task_object(task: Task) -> dict[str, object]:
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
