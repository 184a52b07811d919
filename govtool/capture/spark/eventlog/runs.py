"""The run that executions of one action are: how it ended, with what it ran, what it read and wrote in figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from govtool.capture.spark.eventlog.application import Application, Execution
from govtool.capture.spark.eventlog.environment import host_of, software_of
from govtool.capture.spark.eventlog.metrics import Figures, figures_of, summed
from govtool.capture.spark.eventlog.scanned import columns_of, largest, registered_by
from govtool.capture.spark.executed import PLAN_TEXT, moment
from govtool.capture.spark.identity import column_path
from govtool.capture.spark.plantext.read import PlanText
from govtool.capture.spark.plantext.writes import PlanWrite
from govtool.capture.spark.redact import clean_config
from govtool.model.run import Run, RunInput, RunOutput
from govtool.model.version import ContentIdentity

_INTERNAL = re.compile(r"/_delta_log(?:/|\Z)|/_spark_metadata(?:/|\Z)|/metadata/[^/]*\.avro\Z")

Columns = dict[str, dict[str, str | None]]
"""Columns with their types, by dataset."""


def run_of(
    application: Application,
    root: Execution,
    group: Iterable[Execution],
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
    return Run(
        id=run_id(application, root, suffix),
        job="",
        status=status,
        how=PLAN_TEXT,
        application=application.id,
        user=application.user,
        started=moment_of(root.started),
        ended=moment_of(root.ended),
        error=error,
        software=software_of(application),
        config=clean_config({**application.config, **root.config}),
        host=host_of(application),
    )


def run_id(application: Application, root: Execution, suffix: str = "") -> str:
    """The id of the run that an execution is."""
    return f"{application.id or application.log}/{root.id}{suffix}"


def moment_of(milliseconds: int | None) -> str | None:
    """A time of a log as ISO 8601; None if it is none."""
    return moment(milliseconds / 1000) if milliseconds is not None else None


def _status(application: Application, root: Execution, group: Iterable[Execution], *, writes: bool) -> tuple[str, str]:
    """How it ended, and why. Sparks before 3.4 tell only of jobs that failed; a write without a job was none."""
    failed = next((e for e in (root, *group) if e.failed), None)
    if failed is not None and (failed is root or root.failed or application.is_old):
        return "failed", failed.error
    if root.ended is not None:
        silent = application.is_old and writes and not any(e.jobs for e in group)
        return ("unknown", "") if silent else ("complete", "")
    if application.ended is not None:
        return "aborted", "the application ended before it did"
    return "running", ""


def is_internal(dataset: str) -> bool:
    """Whether this is what a table format keeps beside its data."""
    return _INTERNAL.search(dataset) is not None


def scanned(
    application: Application,
    plans: Iterable[tuple[Execution, PlanText]],
    *,
    case_sensitive: bool,
) -> tuple[dict[str, Figures], Columns]:
    """What was scanned, and the columns that were seen of it, by dataset.

    Args:
        application: Which knows the figures.
        plans: The executions of one action.
        case_sensitive: Whether names of columns have a case.
    """
    figures: dict[str, list[Figures]] = {}
    columns: Columns = {}
    for execution, plan in plans:
        found: dict[str, list[Figures]] = {}
        for operator, dataset in plan.scans:
            registered = registered_by(operator, execution.registered.scans)
            if registered is not None:
                found.setdefault(dataset, []).append(figures_of(registered, application.values))
            for name, type_ in columns_of(operator).items():
                known = columns.setdefault(dataset, {})
                path = column_path(name, case_sensitive=case_sensitive)
                known[path] = type_ or known.get(path)
        for dataset, rows in found.items():
            figures.setdefault(dataset, []).append(summed(rows))
    return {dataset: largest(each) for dataset, each in figures.items()}, columns


def inputs_of(
    plan: PlanText, write: PlanWrite | None, figures: Mapping[str, Figures], columns: Columns
) -> tuple[RunInput, ...]:
    """What was read, in order of its name."""
    return tuple(sorted(_inputs(plan, write, figures, columns), key=lambda item: item.dataset))


def _inputs(
    plan: PlanText, write: PlanWrite | None, figures: Mapping[str, Figures], columns: Columns
) -> Iterator[RunInput]:
    reads = list(plan.flow.reads)
    if write is not None and write.kind in ("update", "delete", "merge"):
        reads.append(write.place.id)  # rows that are changed are read, be it that nothing is set to what they have
    for dataset in dict.fromkeys(reads):
        if is_internal(dataset):
            continue
        read = figures.get(dataset, Figures())
        source = plan.sources.get(dataset)
        version = source.version if source is not None else None
        if write is not None and write.place.id == dataset:
            version = write.version if version is None else version
        yield RunInput(
            dataset,
            read.rows,
            read.bytes,
            read.files,
            ContentIdentity("delta", version, "", 0, 0) if version is not None else None,
            tuple((path, type_ or "") for path, type_ in sorted(columns.get(dataset, {}).items())),
        )


def outputs_of(
    application: Application, execution: Execution, plan: PlanText, write: PlanWrite | None
) -> tuple[RunOutput, ...]:
    """What an execution wrote."""
    if write is None:
        return ()
    written = figures_of(execution.registered.writes, application.values)
    paths = [column_path(name) for name in write.columns or [column.name for column in plan.flow.columns]]
    fields = tuple((path, "") for path in dict.fromkeys(paths))
    return (RunOutput(write.place.id, write.save_mode, written.rows, written.bytes, written.files, fields=fields),)
