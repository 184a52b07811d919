"""Answers about runs: a list, one run, and what a version of a dataset was made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from govtool.answers.answer import Cell, GraphAnswer

if TYPE_CHECKING:
    from govtool.model.positions import PositionsCost
    from govtool.model.records import PlanCost
    from govtool.model.run import Batches, Run, RunInput, RunOutput
    from govtool.model.version import ContentIdentity
    from govtool.query.runs.history import RunInputVersion, Writing, WrittenVersion


@dataclass(frozen=True, slots=True)
class RunsAnswer(GraphAnswer):
    """Runs, the newest first."""

    schema: ClassVar[str] = "runs/1"
    fields: ClassVar[tuple[str, ...]] = (
        *("started", "ended", "status", "id"),
        *("job", "inputs", "outputs", "rows"),
    )
    types: ClassVar[Mapping[str, str]] = {"inputs": "texts", "outputs": "texts", "rows": "integer"}

    runs: tuple[Run, ...]
    known: int
    """The number of all runs of the version, whatever was asked for."""
    truncated: int = 0
    """Number of runs left out."""

    def head(self, limit: int | None) -> RunsAnswer:
        """The answer with at most ``limit`` runs; None leaves it as it is."""
        shown = self.runs[:limit]
        return replace(self, runs=shown, truncated=self.truncated + len(self.runs) - len(shown))

    def body(self) -> Mapping[str, object]:
        """The runs."""
        more = {"truncated": self.truncated} if self.truncated else {}
        return {"runs": [run_object(run) for run in self.runs], **more}

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row a run; ``rows`` are those that it wrote."""
        for run in self.runs:
            yield (
                run.started,
                run.ended,
                run.status,
                run.id,
                run.job,
                tuple(read.dataset for read in run.inputs),
                tuple(written.dataset for written in run.outputs),
                rows_written(run),
            )


@dataclass(frozen=True, slots=True)
class RunAnswer(GraphAnswer):
    """One run: its inputs and outputs, software and settings. Its table has one row per dataset."""

    schema: ClassVar[str] = "run/1"
    fields: ClassVar[tuple[str, ...]] = ("side", "dataset", "rows", "bytes", "files", "version", "exact", "mode")
    types: ClassVar[Mapping[str, str]] = {"rows": "integer", "bytes": "integer", "files": "integer", "exact": "boolean"}

    run: Run
    readings: tuple[RunInputVersion, ...]
    """The versions that it read."""
    names: Mapping[WrittenVersion, str] = field(repr=False)
    """Versions as they are written."""
    positions: PositionsCost | None = None
    """What the positions of its records cost, if the run kept them."""
    plan: PlanCost | None = None
    """What its recorded plan takes in the store, if it was recorded."""

    def body(self) -> Mapping[str, object]:
        """The run; each input with the version that was read."""
        value = run_object(self.run)
        inputs: list[dict[str, object]] = [side_object(read) for read in self.run.inputs]
        for about in inputs:
            about["read"], about["exact"] = self._version(str(about["dataset"]))
        more: dict[str, object] = {} if self.positions is None else {"positions": positions_object(self.positions)}
        if self.plan is not None:
            more["traced"] = plan_object(self.plan)
        return {"run": {**value, "inputs": inputs, **more}}

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row for each dataset that was read or written."""
        for read in self.run.inputs:
            name, exact = self._version(read.dataset)
            yield "input", read.dataset, read.rows, read.bytes, read.files, name, exact, None
        for written in self.run.outputs:
            yield "output", written.dataset, written.rows, written.bytes, written.files, None, None, written.mode

    def _version(self, dataset: str) -> tuple[str | None, bool]:
        """The version of an input that was read, and whether its content or only the time says so."""
        reading = {one.dataset: one for one in self.readings}[dataset]
        return (None if reading.version is None else self.names[reading.version]), reading.exact


@dataclass(frozen=True, slots=True)
class ProvenanceAnswer(GraphAnswer):
    """Everything that a version of a dataset was made of, by runs; the nearest first."""

    schema: ClassVar[str] = "version/1"
    fields: ClassVar[tuple[str, ...]] = ("hops", "version", "job", "run", "status", "time")
    types: ClassVar[Mapping[str, str]] = {"hops": "integer"}

    name: str
    """The version as it is written: ``orders@3f2a9c01``."""
    entries: tuple[tuple[str, int, Writing], ...]
    """Versions with their names and the runs that wrote them; ``hops`` is 0 for the version itself."""
    unwritten: tuple[tuple[str, str], ...]
    """Datasets that no known run wrote, and the runs that read them."""

    def body(self) -> Mapping[str, object]:
        """The versions, and what has no provenance."""
        return {
            "version": self.name,
            "versions": list(self.items()),
            "without_provenance": [{"dataset": dataset, "run": run} for dataset, run in self.unwritten],
        }

    def items(self) -> Iterator[dict[str, Any]]:
        """The JSON value of each version."""
        for name, hops, writing in self.entries:
            yield {
                "version": name,
                "dataset": writing.version.dataset,
                "hops": hops,
                "content": identity_object(writing.output.identity),
                "run": writing.run.id,
                "job": writing.run.job,
                "status": writing.run.status,
                "time": writing.time or None,
                "software": [{"name": item.name, "version": item.version} for item in writing.run.software],
            }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row a version."""
        for name, hops, writing in self.entries:
            yield hops, name, writing.run.job, writing.run.id, writing.run.status, writing.time or None


def rows_written(run: Run) -> int | None:
    """The rows that a run wrote; None if it does not say."""
    known = [written.rows for written in run.outputs if written.rows is not None]
    return sum(known) if known else None


def run_object(run: Run) -> dict[str, object]:
    """The JSON value of a run."""
    return {
        "id": run.id,
        "job": run.job,
        "status": run.status,
        "how": run.how,
        "source": run.source,
        "application": run.application,
        "user": run.user,
        "started": run.started,
        "ended": run.ended,
        "error": run.error,
        "software": [{"name": item.name, "version": item.version} for item in run.software],
        "config": dict(run.config),
        "host": run.host,
        "inputs": [side_object(read) for read in run.inputs],
        "outputs": [output_object(written) for written in run.outputs],
        "plan": run.plan,
        "breaks": [
            {"code": note.code, "severity": note.severity, "message": note.message, "target": note.target}
            for note in run.breaks
        ],
        **({} if run.batches is None else {"batches": batches_object(run.batches)}),
        **({"records": [record._asdict() for record in run.records]} if run.records else {}),
    }


def batches_object(batches: Batches) -> dict[str, object]:
    """The JSON value of the batches of a streaming query that a run processed."""
    return {
        "query": batches.query,
        "run": batches.run,
        "first": batches.first,
        "last": batches.last,
        "offsets": [offsets._asdict() for offsets in batches.offsets],
    }


def positions_object(cost: PositionsCost) -> dict[str, object]:
    """The JSON value of what the positions of a run's records cost."""
    return {
        "pairs": cost.pairs,
        "bytes": cost.bytes,
        "seconds": cost.seconds,
        "write_seconds": cost.write_seconds,
    }


def plan_object(cost: PlanCost) -> dict[str, object]:
    """The JSON value of what the recorded plan of a run takes in the store."""
    return {
        "plan": cost.plan,
        "listing": cost.listing,
        "private": cost.private,
        "boundaries": list(cost.boundaries),
        "breaks": list(cost.breaks),
    }


def side_object(side: RunInput | RunOutput) -> dict[str, object]:
    """The JSON value of a dataset that a run read or wrote."""
    return {
        "dataset": side.dataset,
        "rows": side.rows,
        "bytes": side.bytes,
        "files": side.files,
        "content": identity_object(side.identity),
        "fields": [{"path": path, "type": type_} for path, type_ in side.fields],
    }


def output_object(output: RunOutput) -> dict[str, object]:
    """The JSON value of a dataset that a run wrote."""
    digest = {"row_digest": output.row_digest} if output.row_digest else {}
    return {**side_object(output), "mode": output.mode, **digest}


def identity_object(identity: ContentIdentity | None) -> dict[str, object] | None:
    """The JSON value of what a dataset contained."""
    if identity is None:
        return None
    return {
        "kind": identity.kind,
        "version": identity.version,
        "digest": identity.digest,
        "files": identity.files,
        "bytes": identity.size,
    }
