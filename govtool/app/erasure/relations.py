"""Relations of workflows: what an execution reads as ``Payments`` is the same relation in each of its files."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from govtool.app.erasure.chain import RecordedChain
    from govtool.model.workflow_run import BoundaryRelation, WorkflowRun
    from govtool.store import Commit, Reader


@dataclass(frozen=True, slots=True)
class WorkflowRelation:
    """An input or the first state of a workflow, over the executions of its runs.

    Attributes:
        workflow: The name of the workflow.
        name: The name of the relation: ``Payments``, ``Post.Accounts``.
        datasets: Its files or folders, and the columns of each in lower case; None: not known.
    """

    workflow: str
    name: str
    datasets: dict[str, frozenset[str] | None]

    def with_column(self, column: str) -> list[str]:
        """The datasets that have a column, or may have it."""
        return [name for name, columns in self.datasets.items() if columns is None or column.lower() in columns]


def workflow_relations(store: Reader, commit: Commit, chain: RecordedChain) -> tuple[WorkflowRelation, ...]:
    """The relations of workflows among the inputs of recorded writes."""
    from govtool.app.workflow_runs.stored import read_workflow_runs

    # A run that cannot be read names no relation: its datasets are called by their own names.
    runs, _ = read_workflow_runs(store, commit)
    made = chain.made()
    return _grouped(runs, {name for name in chain.datasets() if name not in made})


def _grouped(runs: Iterable[WorkflowRun], inputs: Collection[str]) -> tuple[WorkflowRelation, ...]:
    from govtool.app.datasets.places import path_id

    found: dict[tuple[str, str], dict[str, frozenset[str] | None]] = {}
    for run in runs:
        names = {path: path_id(path) for path in run.relations}
        for each in run.invocations:
            given = [(name, path) for name, path, source in each.inputs if not source]
            for name, path in (*given, *((slot, path) for _, slot, path in each.state)):
                if names.get(path) in inputs:
                    found.setdefault((run.workflow, name), {})[names[path]] = _columns(run.relations[path])
    return tuple(WorkflowRelation(*key, dict(sorted(datasets.items()))) for key, datasets in sorted(found.items()))


def _columns(relation: BoundaryRelation) -> frozenset[str] | None:
    fields = json.loads(relation.schema).get("fields") if relation.schema else None
    return None if fields is None else frozenset(str(each["name"]).lower() for each in fields)
