"""Answers about runs of workflows: a list, and one run with the invocations of its modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Answer, Cell, GraphAnswer

if TYPE_CHECKING:
    from govtool.model.workflow_run import ModuleInvocation, WorkflowRun


@dataclass(frozen=True, slots=True)
class UnlistedRuns:
    """Runs that are not listed, because their records cannot be read.

    Attributes:
        id: The id of the run; empty: these are all recorded programs.
        workflow: The name of its workflow; empty as well.
        reason: What is wrong, in a sentence.
        object: The key of the damaged object in the store.
        hint: What to do about it.
    """

    id: str
    workflow: str
    reason: str
    object: str
    hint: str

    def to_dict(self) -> dict[str, str]:
        """The keys of its JSON object; those that are not known are left out."""
        values = {"id": self.id, "workflow": self.workflow, "reason": self.reason, "object": self.object}
        return {name: value for name, value in {**values, "hint": self.hint}.items() if value}


@dataclass(frozen=True, slots=True)
class WorkflowRunsAnswer(GraphAnswer):
    """Runs of workflows, the newest first."""

    schema: ClassVar[str] = "workflow-runs/1"
    fields: ClassVar[tuple[str, ...]] = (
        "started",
        "ended",
        "status",
        "id",
        "workflow",
        "mode",
        "executions",
        "invocations",
    )
    types: ClassVar[Mapping[str, str]] = {"executions": "integer", "invocations": "integer"}

    runs: tuple[WorkflowRun, ...]
    truncated: int = 0
    """Number of runs left out."""
    forgotten: frozenset[str] = frozenset()
    """Ids of runs whose private values were removed from the store."""
    damaged: tuple[UnlistedRuns, ...] = ()
    """What is not listed because it cannot be read."""

    @property
    def is_complete(self) -> bool:
        """Whether the records of all runs could be read."""
        return not self.damaged

    def head(self, limit: int | None) -> WorkflowRunsAnswer:
        """The answer with at most ``limit`` runs; None leaves it as it is."""
        shown = self.runs[:limit]
        return replace(self, runs=shown, truncated=self.truncated + len(self.runs) - len(shown))

    def body(self) -> Mapping[str, object]:
        """The runs, without their invocations."""
        more: dict[str, object] = {"truncated": self.truncated} if self.truncated else {}
        if self.damaged:
            more["damaged"] = [each.to_dict() for each in self.damaged]
        return {"runs": list(self.summaries()), **more}

    def summaries(self) -> Iterator[dict[str, object]]:
        """The runs, without their invocations; ``forgotten`` of those whose private values were removed."""
        for run in self.runs:
            yield run_summary(run) | ({"forgotten": True} if run.id in self.forgotten else {})

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row a run."""
        for run in self.runs:
            yield (
                run.started,
                run.ended or None,
                run.status,
                run.id,
                run.workflow,
                run.mode,
                len(run.executions),
                len(run.invocations),
            )


@dataclass(frozen=True, slots=True)
class WorkflowRunAnswer(Answer):
    """One run of a workflow. Its table has one row an invocation."""

    schema: ClassVar[str] = "workflow-run/1"
    fields: ClassVar[tuple[str, ...]] = (
        "execution",
        "invocation",
        "node",
        "inputs",
        "state",
        "new_state",
        "outputs",
        "whole",
    )
    types: ClassVar[Mapping[str, str]] = {
        "execution": "integer",
        "inputs": "texts",
        "state": "texts",
        "new_state": "texts",
        "outputs": "texts",
        "whole": "boolean",
    }

    run: WorkflowRun
    state: str = ""
    """The folder of the sequence, where that is known."""

    def body(self) -> Mapping[str, object]:
        """The run, its invocations, and the files of its relations."""
        run = self.run
        relations = [
            {
                "path": each.path,
                "format": each.format,
                "files": [{"uri": file.uri, "bytes": file.size, "modified": file.modified} for file in each.files],
            }
            for each in run.relations.values()
        ]
        edges = [{"source": source, "target": target, "relation": name} for source, target, name in run.edges]
        invocations = [_invocation_object(each, run.whole) for each in run.invocations]
        more = {"state": self.state} if self.state else {}
        return {"run": {**run_summary(run), "edges": edges, "invocations": invocations, "relations": relations}, **more}

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row for each invocation of a module."""
        for each in self.run.invocations:
            yield (
                each.execution,
                f"{each.module}#{each.number}",
                each.node,
                tuple(f"{source}.{name}" if source else name for name, _, source in each.inputs),
                tuple(slot for _, slot, _ in each.state),
                tuple(slot for _, slot, _ in each.new_state),
                tuple(name for name, _ in each.outputs),
                each.execution <= self.run.whole,
            )


def run_summary(run: WorkflowRun) -> dict[str, object]:
    """A run without its invocations."""
    return {
        "id": run.id,
        "workflow": run.workflow,
        "status": run.status,
        "mode": run.mode,
        "started": run.started,
        **({"ended": run.ended} if run.ended else {}),
        **({"error": run.error} if run.error else {}),
        "applications": list(run.applications),
        "executions": list(run.executions),
        "modules": dict(sorted(_counts(run).items())),
    }


def _counts(run: WorkflowRun) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in run.invocations:
        found[each.module] = found.get(each.module, 0) + 1
    return found


def _invocation_object(each: ModuleInvocation, whole: int) -> dict[str, object]:
    return {
        "execution": each.execution,
        "node": each.node,
        "module": each.module,
        "invocation": each.number,
        "whole": each.execution <= whole,
        "inputs": [{"relation": name, "path": path, **({"from": at} if at else {})} for name, path, at in each.inputs],
        "state": [{"relation": name, "slot": slot, "path": path} for name, slot, path in each.state],
        "new_state": [{"relation": name, "slot": slot, "path": path} for name, slot, path in each.new_state],
        "outputs": [{"relation": name, "path": path, "kept": name in each.kept} for name, path in each.outputs],
    }
