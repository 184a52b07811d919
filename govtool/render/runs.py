"""Runs, one run, the provenance of a version of a dataset, and two runs compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from govtool.render.envelope import compact, envelope, json_lines
from govtool.render.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.text import count, when

if TYPE_CHECKING:
    from govtool.model.run import Run, RunInput, RunOutput
    from govtool.model.version import ContentIdentity
    from govtool.query.rundiff import RunChange, RunDifference
    from govtool.query.runs import History, RunInputVersion, WrittenVersion

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")

_STYLES = {"complete": "green", "failed": "red", "aborted": "red", "running": "yellow"}
_SIGNS = {"added": "+", "removed": "-"}


# ---- JSON -------------------------------------------------------------------------------------------


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
        "inputs": [_side_object(read) for read in run.inputs],
        "outputs": [{**_side_object(written), "mode": written.mode} for written in run.outputs],
        "plan": run.plan,
        "breaks": [
            {"code": note.code, "severity": note.severity, "message": note.message, "target": note.target}
            for note in run.breaks
        ],
    }


def _side_object(side: RunInput | RunOutput) -> dict[str, object]:
    return {
        "dataset": side.dataset,
        "rows": side.rows,
        "bytes": side.bytes,
        "files": side.files,
        "content": identity_object(side.identity),
        "fields": [{"path": path, "type": type_} for path, type_ in side.fields],
    }


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


# ---- a list of runs ---------------------------------------------------------------------------------


def render_runs(form: str, runs: Sequence[Run], header: Mapping[str, object], left_off: int) -> Table | Iterable[str]:
    """A list of runs in one of ``FORMATS``."""
    if form == "json":
        more = {"truncated": left_off} if left_off else {}
        return json_lines(envelope("runs/1", {**header, "runs": [run_object(run) for run in runs], **more}))
    if form == "jsonl":
        return (compact(run_object(run)) for run in runs)
    if form == "csv":
        return to_csv(
            ("started", "ended", "status", "id", "job", "inputs", "outputs", "rows"),
            (
                (
                    run.started or "",
                    run.ended or "",
                    run.status,
                    run.id,
                    run.job,
                    " ".join(read.dataset for read in run.inputs),
                    " ".join(written.dataset for written in run.outputs),
                    _rows(run),
                )
                for run in runs
            ),
        )
    rows = [
        (
            run.status,
            when(run.started or run.ended or ""),
            _took(run),
            run.job,
            run.id,
            ", ".join(written.dataset for written in run.outputs) or "nothing known",
            _rows(run),
        )
        for run in runs
    ]
    table = Table(
        columns=(
            TableColumn("status"),
            TableColumn("started"),
            TableColumn("took", justify="right"),
            TableColumn("job", style="bold"),
            TableColumn("run", style="yellow"),
            TableColumn("wrote"),
            TableColumn("rows", justify="right"),
        ),
        rows=rows,
        summary=_tally(runs) + (f" · {left_off:,} not shown (--all)" if left_off else ""),
        row_styles=[_STYLES.get(run.status, "") for run in runs],
    )
    return table if form == "table" else (plain if form == "plain" else markdown)(table)


def _tally(runs: Sequence[Run]) -> str:
    jobs = len({run.job for run in runs})
    lost = sum(len(run.breaks) for run in runs)
    parts = [f"{count(len(runs), 'run')} of {count(jobs, 'job')}"] if runs else ["no run"]
    return " · ".join(parts + ([f"lineage was lost in {count(lost, 'place')}"] if lost else []))


def _rows(run: Run) -> str:
    known = [written.rows for written in run.outputs if written.rows is not None]
    return f"{sum(known):,}" if known else ""


def _took(run: Run) -> str:
    if not run.started or not run.ended:
        return ""
    try:
        seconds = (datetime.fromisoformat(run.ended) - datetime.fromisoformat(run.started)).total_seconds()
    except (ValueError, TypeError):
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


# ---- one run ----------------------------------------------------------------------------------------


def render_run(
    form: str,
    run: Run,
    readings: Sequence[RunInputVersion],
    names: Mapping[WrittenVersion, str],
    header: Mapping[str, object],
) -> Table | Iterable[str]:
    """One run in one of ``FORMATS``.

    Args:
        form: The format.
        run: The run.
        readings: Which versions it read.
        names: Versions as they are written.
        header: What the answer is about.
    """
    if form in ("json", "jsonl"):
        versions = {r.dataset: (None if r.version is None else names[r.version], r.exact) for r in readings}
        answer = run_object(run)
        for read, about in zip(run.inputs, answer["inputs"], strict=True):  # type: ignore[call-overload]
            about["read"], about["exact"] = versions[read.dataset]
        body = envelope("run/1", {**header, "run": answer})
        return json_lines(body) if form == "json" else [compact(body)]
    rows = _run_rows(run, readings, names)
    if form == "csv":
        return to_csv(("what", "name", "value"), rows)
    table = Table(
        columns=(TableColumn("what", style="dim"), TableColumn("name", style="bold"), TableColumn("value")),
        rows=rows,
        heading=f"{run.job} · {run.id}",
        summary=_run_sentence(run),
    )
    return table if form == "table" else (plain if form == "plain" else markdown)(table)


def _run_rows(
    run: Run, readings: Sequence[RunInputVersion], names: Mapping[WrittenVersion, str]
) -> list[tuple[str, str, str]]:
    facts = (
        ("application", run.application), ("user", run.user), ("started", run.started), ("ended", run.ended),
        ("host", run.host), ("source", run.source), ("known by", run.how), ("error", run.error),
    )  # fmt: skip
    rows = [("run", name, value) for name, value in facts if value]
    of = {reading.dataset: reading for reading in readings}
    for read in run.inputs:
        rows.append(("read", read.dataset, _figures(read, _read(of[read.dataset], names))))
    for written in run.outputs:
        rows.append(("wrote", written.dataset, _figures(written, written.mode)))
    rows += [("software", item.name, item.version) for item in run.software]
    rows += [("config", name, value) for name, value in run.config.items()]
    rows += [("lost", note.code, note.message) for note in run.breaks]
    return rows


def _read(reading: RunInputVersion, names: Mapping[WrittenVersion, str]) -> str:
    if reading.version is None:
        return "written by no known run"
    return f"{'' if reading.exact else 'by time '}{names[reading.version].rpartition('@')[2]}"


def _figures(side: RunInput | RunOutput, first: str) -> str:
    parts = [first] if first else []
    if side.rows is not None:
        parts.append(count(side.rows, "row"))
    if side.files is not None:
        parts.append(count(side.files, "file"))
    if side.bytes is not None:
        parts.append(f"{side.bytes:,} bytes")
    if side.identity is not None:
        version = "" if side.identity.version is None else f" version {side.identity.version}"
        parts.append(f"{side.identity.kind}{version} {side.identity.short}")
    return ", ".join(parts)


def _run_sentence(run: Run) -> str:
    took = _took(run)
    lost = f" · lineage was lost in {count(len(run.breaks), 'place')}" if run.breaks else ""
    return f"{run.status}{f' after {took}' if took else ''}{lost}"


# ---- a version of a dataset -------------------------------------------------------------------------


def render_version(
    form: str,
    version: WrittenVersion,
    ancestors: Mapping[WrittenVersion, int],
    history: History,
    names: Mapping[WrittenVersion, str],
    header: Mapping[str, object],
) -> Table | Iterable[str]:
    """Everything that a version of a dataset holds or was made of, by runs, in one of ``FORMATS``."""
    listed = sorted(ancestors.items(), key=lambda item: (item[1], item[0].dataset, -item[0].number))
    entries = [(one, hops, history.writing(one)) for one, hops in listed]
    if form in ("json", "jsonl"):
        objects: list[dict[str, Any]] = [
            {
                "version": names[one],
                "dataset": one.dataset,
                "hops": hops,
                "content": identity_object(writing.output.identity),
                "run": writing.run.id,
                "job": writing.run.job,
                "status": writing.run.status,
                "time": writing.time or None,
                "software": [{"name": item.name, "version": item.version} for item in writing.run.software],
            }
            for one, hops, writing in entries
        ]
        if form == "jsonl":
            return (compact(item) for item in objects)
        unknown = [{"dataset": dataset, "run": run} for dataset, run in _unwritten(history, entries)]
        body = {**header, "version": names[version], "versions": objects, "without_provenance": unknown}
        return json_lines(envelope("version/1", body))
    rows = [
        (str(hops), names[one], writing.run.job, writing.run.id, writing.run.status, when(writing.time))
        for one, hops, writing in entries
    ]
    if form == "csv":
        return to_csv(("hops", "version", "job", "run", "status", "time"), rows)
    lost = _unwritten(history, entries)
    table = Table(
        columns=(
            TableColumn("hops", justify="right"),
            TableColumn("version", style="bold"),
            TableColumn("job"),
            TableColumn("run", style="yellow"),
            TableColumn("status"),
            TableColumn("time"),
        ),
        rows=rows,
        heading=names[version],
        summary=f"{count(len(rows), 'version')} of {count(len({one.dataset for one in ancestors}), 'dataset')}"
        + (f" · of {count(len(lost), 'read')} nobody knows who wrote it: {_some(lost)}" if lost else ""),
    )
    return table if form == "table" else (plain if form == "plain" else markdown)(table)


def _unwritten(history: History, entries: Iterable[tuple[WrittenVersion, int, Any]]) -> list[tuple[str, str]]:
    """What was read and no run is known to have written: dataset and reader."""
    found = {
        (reading.dataset, writing.run.id): None
        for _, _, writing in entries
        for reading in history.readings(writing.run)
        if reading.version is None
    }
    return sorted(found)


def _some(lost: Sequence[tuple[str, str]]) -> str:
    names = sorted({dataset for dataset, _ in lost})
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


# ---- two runs ---------------------------------------------------------------------------------------


def render_run_diff(form: str, result: RunDifference, header: Mapping[str, object]) -> Table | Iterable[str]:
    """Two runs compared, in one of ``FORMATS``."""
    if form == "json":
        body: dict[str, object] = {
            **header,
            "from": _end(result.first),
            "to": _end(result.second),
            "reproduced": result.reproduced,
            "changes": [_change_object(change) for change in result.changes],
            "unknown": [{"aspect": u.aspect, "name": u.name, "which": u.which} for u in result.not_comparable],
        }
        return json_lines(envelope("run-diff/1", body))
    if form == "jsonl":
        return (compact(_change_object(change)) for change in result.changes)
    rows = [
        (
            change.aspect,
            change.name,
            f"{_SIGNS.get(change.what, '~')} {change.what}",
            change.before or "",
            change.after or "",
            _cause(change),
        )
        for change in result.changes
    ]
    titles = ("aspect", "name", "what", "before", "after", "first cause")
    if form == "csv":
        return to_csv(titles, rows)
    table = Table(
        columns=tuple(TableColumn(title, style="bold" if title == "name" else "") for title in titles),
        rows=rows,
        heading=f"{result.first.id} → {result.second.id}",
        summary=_difference_sentence(result),
    )
    return table if form == "table" else (plain if form == "plain" else markdown)(table)


def _difference_sentence(result: RunDifference) -> str:
    parts = [count(len(result.changes), "difference") if result.changes else "no difference"]
    if result.first.job != result.second.job:
        parts.append("the runs are of different jobs")
    if result.not_comparable:
        aspects = list(dict.fromkeys(u.aspect for u in result.not_comparable))
        parts.append(f"cannot be compared: {', '.join(aspects)} (not told by a run)")
    return " · ".join(parts)


def _end(run: Run) -> dict[str, object]:
    return {"id": run.id, "job": run.job, "status": run.status, "started": run.started, "ended": run.ended}


def _change_object(change: RunChange) -> dict[str, object]:
    cause = change.cause
    return {
        "aspect": change.aspect,
        "name": change.name,
        "what": change.what,
        "before": change.before,
        "after": change.after,
        "cause": None
        if cause is None
        else {"kind": cause.kind, "text": cause.text, "way": list(cause.way), "runs": list(cause.runs)},
    }


def _cause(change: RunChange) -> str:
    cause = change.cause
    if cause is None:
        return ""
    way = " ← ".join(cause.way)
    return f"{cause.kind}: {cause.text}" + (f" (via {way})" if way else "")
