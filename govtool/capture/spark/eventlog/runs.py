"""The run that executions of one action are: how it ended, with what it ran, what it read and wrote in figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from govtool.capture.spark.eventlog.application import Application, SqlExecution
from govtool.capture.spark.eventlog.environment import host_of, software_of
from govtool.capture.spark.eventlog.metrics import Figures, figures_of, summed
from govtool.capture.spark.eventlog.scanned import largest, registered_by
from govtool.capture.spark.executed import PLAN_TEXT, moment
from govtool.capture.spark.execution import Columns, WrittenDataset
from govtool.capture.spark.identity import column_path
from govtool.capture.spark.interpreter import is_internal
from govtool.capture.spark.plantext.read import PlanText
from govtool.capture.spark.redact import clean_config
from govtool.model.run import Run, RunInput, RunOutput
from govtool.model.version import ContentIdentity


def run_of(
    application: Application,
    root: SqlExecution,
    group: Iterable[SqlExecution],
    *,
    suffix: str = "",
    writes: bool = False,
) -> Run:
    """A run of which no more is known than its beginning, its end and its environment.

    Args:
        application: What it ran in.
        root: The execution that it is named after.
        group: All its executions.
        suffix: What tells it apart from other runs of the same execution.
        writes: Whether it should have written.
    """
    status, error = _status(application, root, group, writes=writes)
    return replace(
        environment_run(application, root.config),
        id=run_id(application, root, suffix),
        status=status,
        started=moment_of(root.started),
        ended=moment_of(root.ended),
        error=error,
    )


def environment_run(application: Application, config: Mapping[str, str] = MappingProxyType({})) -> Run:
    """A run of which nothing is known but where it ran; ``config`` has its own settings."""
    return Run(
        id=application.id or application.log,
        job="",
        status="unknown",
        how=PLAN_TEXT,
        application=application.id,
        user=application.user,
        software=software_of(application),
        config=clean_config({**application.config, **config}),
        host=host_of(application),
    )


def run_id(application: Application, root: SqlExecution, suffix: str = "") -> str:
    """The id of the run that an execution is."""
    return f"{application.id or application.log}/{root.id}{suffix}"


def moment_of(milliseconds: int | None) -> str | None:
    """A time of a log as ISO 8601; None if it is none."""
    return moment(milliseconds / 1000) if milliseconds is not None else None


def _status(
    application: Application, root: SqlExecution, group: Iterable[SqlExecution], *, writes: bool
) -> tuple[str, str]:
    """Return the status of an action and its error.

    Spark before 3.4 reports a failure only if a job failed, so that of a write without any job nothing is known.
    """
    failed = next((e for e in (root, *group) if e.failed), None)
    if failed is not None and (failed is root or root.failed or application.is_old):
        return "failed", failed.error
    if root.ended is not None:
        silent = application.is_old and writes and not any(e.jobs for e in group)
        return ("unknown", "") if silent else ("complete", "")
    if application.ended is not None:
        return "aborted", "the application ended before it did"
    return "running", ""


def _scanned(application: Application, plans: Iterable[tuple[SqlExecution, PlanText]]) -> dict[str, Figures]:
    """Return the scans of the executions of one action, by dataset."""
    figures: dict[str, list[Figures]] = {}
    for execution, plan in plans:
        found: dict[str, list[Figures]] = {}
        read = {
            operator.id: {dataset for other, dataset in plan.scans if other is operator} for operator, _ in plan.scans
        }
        for operator, dataset in plan.scans:
            if len(read[operator.id]) > 1:
                continue  # one scan counts what it reads of several datasets together
            registered = registered_by(operator, execution.registered.scans)
            if registered is not None:
                found.setdefault(dataset, []).append(figures_of(registered, application.values))
        for dataset, rows in found.items():
            figures.setdefault(dataset, []).append(summed(rows))
    return {dataset: largest(each) for dataset, each in figures.items()}


def inputs_of(
    application: Application,
    plan: PlanText,
    written: WrittenDataset | None,
    plans: Iterable[tuple[SqlExecution, PlanText]],
    columns: Columns,
) -> tuple[RunInput, ...]:
    """Return the inputs, in order of their names.

    Args:
        application: Which knows the figures.
        plan: Of what was computed.
        written: What was written.
        plans: All executions of the action with their plans.
        columns: Columns that they saw of what they read.
    """
    figures = _scanned(application, plans)
    reads = list(plan.flow.reads)
    if written is not None and written.kind in ("update", "delete", "merge"):
        reads.append(written.place.id)  # rows that are changed are read, be it that nothing is set to what they have
    found = []
    for dataset in sorted({read for read in reads if not is_internal(read)}):
        read = figures.get(dataset, Figures())
        version = _version(plan, written, dataset)
        identity = ContentIdentity("delta", version, "", 0, 0) if version is not None else None
        fields = tuple((path, type_ or "") for path, type_ in sorted(columns.get(dataset, {}).items()))
        found.append(RunInput(dataset, read.rows, read.bytes, read.files, identity, fields))
    return tuple(found)


def _version(plan: PlanText, written: WrittenDataset | None, dataset: str) -> int | None:
    """The version of a Delta table that was read."""
    source = plan.sources.get(dataset)
    version = source.version if source is not None else None
    if version is None and written is not None and written.place.id == dataset:
        return written.version
    return version


def outputs_of(
    application: Application, execution: SqlExecution | None, plan: PlanText, written: WrittenDataset
) -> tuple[RunOutput, ...]:
    """Return the outputs.

    Args:
        application: Which knows the figures.
        execution: That wrote; None: its figures are those of several writes.
        plan: Its plan.
        written: What was written.
    """
    registered = execution.registered.writes if execution is not None else {}
    figures = figures_of(registered, application.values)
    if registered and figures.files is None and written.save_mode == "ignore":
        figures = Figures(0, 0, 0)  # a command that leaves alone what is there never counts
    paths = [column_path(name) for name in written.columns or [column.name for column in plan.flow.columns]]
    fields = tuple((path, "") for path in dict.fromkeys(paths))
    return (
        RunOutput(written.place.id, written.output_mode, figures.rows, figures.bytes, figures.files, fields=fields),
    )
