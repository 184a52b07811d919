"""One run per execution: the records that several sources have of one execution are joined.

A job that was recorded while it ran, whose event log was read and whose OpenLineage events came in is one job that ran
once. Its records share Spark's application id; live records and event logs also share the number of the execution,
OpenLineage's events have the time at which Spark started it, to the millisecond. Nothing else joins two records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from govtool.model.run import Run, RunRecord

_EXACT_PLAN, _OPENLINEAGE = "plan", "openlineage"
_FIELDS = (
    *("user", "started", "ended", "error", "software", "config", "host"),
    *("inputs", "outputs", "plan", "reproduction", "batches"),
)
"""The fields that a run takes from another record where its own knows nothing."""


def one_run_each(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return a run for every execution, in order of time; of several records of one the fullest speaks first."""
    distinct = _distinct(runs)
    groups = _same_execution(distinct)
    joined = (_joined(group) if len(group) > 1 else group[0] for group in groups)
    return tuple(sorted(joined, key=lambda run: (run.started or run.ended or "", run.id, run.job)))


def _distinct(runs: Iterable[Run]) -> list[Run]:
    """Of several runs of one id and job, the fullest."""
    best: dict[tuple[str, str], Run] = {}
    for run in runs:
        key = (run.id, run.job)
        if key not in best or _fullness(run) > _fullness(best[key]):
            best[key] = run
    return list(best.values())


def _same_execution(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs grouped by the execution that they record."""
    numbered: dict[str, list[list[Run]]] = {}
    groups: list[list[Run]] = []
    for run in (run for run in runs if _is_numbered(run)):
        group = next((group for group in numbered.get(run.id, ()) if _may_be_one(group[0], run)), None)
        if group is None:
            group = []
            groups.append(group)
            numbered.setdefault(run.id, []).append(group)
        group.append(run)
    starts: dict[tuple[str, int | None], list[list[Run]]] = {}
    for group in groups:
        for start in {_milliseconds(run) for run in group} - {None}:
            starts.setdefault((group[0].application, start), []).append(group)
    for run in (run for run in runs if not _is_numbered(run)):
        fitting = [
            group
            for group in starts.get((run.application, _milliseconds(run)), ())
            if run.how == _OPENLINEAGE and _may_be_one(group[0], run)
        ]
        # OpenLineage has no number of the execution: its start says which one, if only one began then.
        if len(fitting) == 1:
            fitting[0].append(run)
        else:
            groups.append([run])
    return groups


def _is_numbered(run: Run) -> bool:
    """True if the id is Spark's application id and the number of an execution."""
    return bool(run.application) and run.id.startswith(f"{run.application}/")


def _milliseconds(run: Run) -> int | None:
    """The start of a run in milliseconds of the epoch, as exact as Spark's clock; None where it is not known."""
    try:
        return round(datetime.fromisoformat(run.started or "").timestamp() * 1000)
    except ValueError:
        return None


def _may_be_one(one: Run, other: Run) -> bool:
    """False where two records name different outputs: one of them counts the writes of the application otherwise."""
    outputs = [{written.dataset for written in run.outputs} for run in (one, other)]
    return not outputs[0] or not outputs[1] or not outputs[0].isdisjoint(outputs[1])


def _joined(records: Sequence[Run]) -> Run:
    """The fullest record, with the fields that only the others know; of the breaks its own: it sees the most."""
    ordered = sorted(records, key=_fullness, reverse=True)
    known = {name: next(filter(None, (getattr(run, name) for run in ordered)), None) for name in _FIELDS}
    found = {name: value for name, value in known.items() if value is not None}
    return replace(ordered[0], **found, records=tuple(RunRecord(r.id, r.job, r.how, r.source) for r in ordered))


def _fullness(run: Run) -> tuple[bool, int, int, int, str]:
    sides = len(run.outputs) + len(run.inputs)
    return (run.how == _EXACT_PLAN, sides, len(run.software), len(run.plan), run.source)
