"""Relations of workflows: what an execution reads as ``Payments`` is the same relation in each of its files.

SQL scripts and dbt projects are workflows, too: each run has copies of its CSV files, called by the relation.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from govtool.errors import GovtoolError

if TYPE_CHECKING:
    from govtool.app.erasure.chain import RecordedChain
    from govtool.model.workflow_run import BoundaryRelation, WorkflowRun
    from govtool.store import Commit, Reader

_Grouped = dict[tuple[str, str], dict[str, frozenset[str] | None]]
"""Columns by dataset, by workflow and relation."""


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
    from govtool.app.runs.lookup import read_history
    from govtool.app.workflow_runs.stored import read_workflow_runs

    made = chain.made()
    inputs = {name for name in chain.datasets() if name not in made}
    runs, _ = read_workflow_runs(store, commit)
    found = _grouped(runs, inputs)
    # What cannot be read names no relation: its datasets are called by their own names.
    with contextlib.suppress(GovtoolError):
        _add_sql(found, {run.id: run.source for run in read_history(store, commit).runs}, chain, inputs)
    return tuple(WorkflowRelation(*key, dict(sorted(datasets.items()))) for key, datasets in sorted(found.items()))


def _add_sql(found: _Grouped, sources: Mapping[str, str], chain: RecordedChain, inputs: Collection[str]) -> None:
    """Add the relations that scripts and dbt projects read from files."""
    from govtool.app.workflow_runs.programs.actions import SQL_SOURCE

    for link in chain.links:
        source = sources.get(link.run.run, "")
        if source.startswith(SQL_SOURCE):
            program = source.removeprefix(SQL_SOURCE).rpartition(":")[0]
            for leaf in link.reads:
                if leaf.dataset in inputs:
                    columns = frozenset(column.name.lower() for column in leaf.columns)
                    name = leaf.dataset.rpartition("/")[2].removesuffix(".parquet")
                    found.setdefault((program, name), {})[leaf.dataset] = columns


def _grouped(runs: Iterable[WorkflowRun], inputs: Collection[str]) -> _Grouped:
    from govtool.app.datasets.places import path_id

    found: _Grouped = {}
    for run in runs:
        names = {path: path_id(path) for path in run.relations}
        for each in run.invocations:
            given = [(name, path) for name, path, source in each.inputs if not source]
            for name, path in (*given, *((slot, path) for _, slot, path in each.state)):
                if names.get(path) in inputs:
                    found.setdefault((run.workflow, name), {})[names[path]] = _columns(run.relations[path])
    return found


def _columns(relation: BoundaryRelation) -> frozenset[str] | None:
    fields = json.loads(relation.schema).get("fields") if relation.schema else None
    return None if fields is None else frozenset(str(each["name"]).lower() for each in fields)
