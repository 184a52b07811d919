"""Runs, one run, the provenance of a version of a dataset, and two runs compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from govtool.answers.run_diff import cause_text, run_change_object
from govtool.answers.runs import rows_written, run_object
from govtool.query.runs.aspects import ASPECTS, ROW_DIGESTS, UNKNOWN
from govtool.query.runs.offsets import extent_text
from govtool.render.layout.rows import DATA_FORMATS, ROW_FORMATS, data_lines, laid_out
from govtool.render.layout.table import Table, TableColumn, to_csv
from govtool.render.layout.text import count, when
from govtool.wording import few

if TYPE_CHECKING:
    from govtool.answers.run_diff import RunDiffAnswer
    from govtool.answers.runs import ProvenanceAnswer, RunAnswer, RunsAnswer
    from govtool.model.positions import PositionsCost
    from govtool.model.run import Run, RunInput, RunOutput
    from govtool.query.runs.diff import RunDifference
    from govtool.query.runs.history import RunInputVersion, WrittenVersion

FORMATS = ROW_FORMATS

_STYLES = {"complete": "green", "failed": "red", "aborted": "red", "running": "yellow"}
_SIGNS = {"added": "+", "removed": "-"}


# ---- a list of runs ---------------------------------------------------------------------------------


def render_runs(form: str, answer: RunsAnswer) -> Table | Iterable[str]:
    """A list of runs in one of ``FORMATS``."""
    runs = answer.runs
    if form in DATA_FORMATS:
        return data_lines(form, answer, (run_object(run) for run in runs))
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
        summary=_tally(runs) + (f" · {answer.truncated:,} not shown (--all)" if answer.truncated else ""),
        row_styles=[_STYLES.get(run.status, "") for run in runs],
    )
    return laid_out(form, table)


def _tally(runs: Sequence[Run]) -> str:
    jobs = len({run.job for run in runs})
    lost = sum(len(run.breaks) for run in runs)
    parts = [f"{count(len(runs), 'run')} of {count(jobs, 'job')}"] if runs else ["no run"]
    return " · ".join(parts + ([f"lineage was lost in {count(lost, 'place')}"] if lost else []))


def _rows(run: Run) -> str:
    known = rows_written(run)
    return "" if known is None else f"{known:,}"


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


def render_run(form: str, answer: RunAnswer) -> Table | Iterable[str]:
    """One run in one of ``FORMATS``."""
    if form in ("json", "jsonl"):
        return data_lines(form, answer, [answer.to_dict()])
    run = answer.run
    rows = _run_rows(run, answer.readings, answer.names, _kept(answer))
    if form == "csv":
        return to_csv(("what", "name", "value"), rows)
    table = Table(
        columns=(TableColumn("what", style="dim"), TableColumn("name", style="bold"), TableColumn("value")),
        rows=rows,
        heading=f"{run.job} · {run.id}",
        summary=_run_sentence(run),
    )
    return laid_out(form, table)


def _run_rows(
    run: Run,
    readings: Sequence[RunInputVersion],
    names: Mapping[WrittenVersion, str],
    kept: Sequence[tuple[str, str, str]],
) -> list[tuple[str, str, str]]:
    facts = (
        ("application", run.application), ("user", run.user), ("started", run.started), ("ended", run.ended),
        ("host", run.host), ("source", run.source), ("known by", run.how), ("error", run.error),
    )  # fmt: skip
    rows = [("run", name, value) for name, value in facts if value]
    rows += [("run", "recorded as", f"{one.job} · {one.id} ({one.how}, {one.source})") for one in run.records]
    rows += _batch_rows(run)
    of = {reading.dataset: reading for reading in readings}
    for read in run.inputs:
        rows.append(("read", read.dataset, _figures(read, _read(of[read.dataset], names))))
    for written in run.outputs:
        rows.append(("wrote", written.dataset, _figures(written, written.mode)))
        if written.row_digest:
            rows.append(("digest", written.dataset, written.row_digest))
    rows += kept
    rows += [("software", item.name, item.version) for item in run.software]
    rows += [("config", name, value) for name, value in run.config.items()]
    rows += [("lost", note.code, note.message) for note in run.breaks]
    return rows


def _batch_rows(run: Run) -> list[tuple[str, str, str]]:
    """The batches of a streaming query that the run processed, and the parts of its sources that they read."""
    batches = run.batches
    if batches is None:
        return []
    numbers = f"{batches.first}" if batches.first == batches.last else f"{batches.first} to {batches.last}"
    rows = [("stream", "query", batches.query), ("stream", "start", batches.run), ("stream", "batch", numbers)]
    for offsets in batches.offsets:
        more = "" if offsets.rows is None else f", {count(offsets.rows, 'row')}"
        rows.append(("stream", offsets.source, f"{extent_text(offsets)}{more}"))
    return rows


def _read(reading: RunInputVersion, names: Mapping[WrittenVersion, str]) -> str:
    if reading.version is None:
        return "written by no known run"
    version = names[reading.version].removeprefix(f"{reading.version.dataset}@")
    return f"{'' if reading.exact else 'by time '}{version}"


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


def _kept(answer: RunAnswer) -> list[tuple[str, str, str]]:
    """What the store has for traces of the run's rows."""
    rows = [] if answer.positions is None else [("kept", "positions", _cost(answer.positions))]
    plan = answer.plan
    if plan is None:
        return rows
    private = "literals removed" if plan.private is None else f"literals {plan.private:,}"
    size = f"{plan.plan:,} bytes, files and settings {plan.listing:,}, {private}; before compression"
    return [("kept", "plan of rows", size), *rows, *(("kept", "break", why) for why in plan.breaks)]


def _cost(positions: PositionsCost) -> str:
    parts = [f"{count(positions.pairs, 'pair')}, {positions.bytes:,} bytes"]
    if positions.write_seconds is not None:
        parts.append(f"query with ids {positions.seconds} s, write {positions.write_seconds} s")
    elif positions.seconds is not None:
        parts.append(f"job {positions.seconds} s longer")
    return ", ".join(parts)


def _run_sentence(run: Run) -> str:
    took = _took(run)
    lost = f" · lineage was lost in {count(len(run.breaks), 'place')}" if run.breaks else ""
    return f"{run.status}{f' after {took}' if took else ''}{lost}"


# ---- a version of a dataset -------------------------------------------------------------------------


def render_version(form: str, answer: ProvenanceAnswer) -> Table | Iterable[str]:
    """Everything that a version of a dataset holds or was made of, by runs, in one of ``FORMATS``."""
    if form in ("json", "jsonl"):
        return data_lines(form, answer, answer.items())
    rows = [
        (str(hops), name, writing.run.job, writing.run.id, writing.run.status, when(writing.time))
        for name, hops, writing in answer.entries
    ]
    if form == "csv":
        return to_csv(answer.fields, rows)
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
        heading=answer.name,
        summary=_version_sentence(answer),
    )
    return laid_out(form, table)


def _version_sentence(answer: ProvenanceAnswer) -> str:
    datasets = {writing.version.dataset for _, _, writing in answer.entries}
    sizes = f"{count(len(answer.entries), 'version')} of {count(len(datasets), 'dataset')}"
    lost = answer.unwritten
    return sizes + (f" · no known run wrote {count(len(lost), 'input')}: {_some(lost)}" if lost else "")


def _some(lost: Sequence[tuple[str, str]]) -> str:
    names = sorted({dataset for dataset, _ in lost})
    return few(names)


# ---- two runs ---------------------------------------------------------------------------------------


def render_run_diff(form: str, answer: RunDiffAnswer, *, explain: bool = False) -> Table | Iterable[str]:
    """Two runs compared, in one of ``FORMATS``; ``explain`` adds to tables what each aspect's comparison came to."""
    result = answer.result
    if form in ("json", "jsonl"):
        return data_lines(form, answer, (run_change_object(change) for change in result.changes))
    rows = [
        (
            change.aspect,
            change.name,
            f"{_SIGNS.get(change.what, '~')} {change.what}",
            change.before or "",
            change.after or "",
            cause_text(change),
        )
        for change in result.changes
    ]
    if form == "csv":
        return to_csv(answer.fields, rows)
    if explain:
        rows += _compared(result)
    table = Table(
        columns=tuple(TableColumn(title, style="bold" if title == "name" else "") for title in answer.fields),
        rows=rows,
        heading=f"{result.first.id} → {result.second.id}",
        summary=_difference_sentence(result),
    )
    return laid_out(form, table)


def _compared(result: RunDifference) -> list[tuple[str, str, str, str, str, str]]:
    """Render what was compared, and what could not be and why."""
    found = [
        ("output", o.dataset, f"= {o.verdict}", "", "", o.by if o.verdict == UNKNOWN else f"by the {o.by}")
        for o in result.outputs
    ]
    for aspect in ASPECTS:
        if aspect not in ("output", "status") and result.state(aspect) != "different":
            found.append((aspect, "", f"= {result.state(aspect)}", "", "", ""))
    for lack in result.not_comparable:
        runs = "both runs" if lack.which == "both" else f"the {lack.which} run"
        why = f": {lack.why}" if lack.why else ""
        found.append((lack.aspect, lack.name, "? not compared", "", "", f"not recorded by {runs}{why}"))
    return found


def _difference_sentence(result: RunDifference) -> str:
    parts = [f"outputs {result.verdict}"] if result.outputs else []
    parts.append(count(len(result.changes), "difference") if result.changes else "no difference")
    if result.first.job != result.second.job:
        parts.append("the runs are of different jobs")
    if result.not_comparable:
        aspects = list(dict.fromkeys(u.aspect for u in result.not_comparable))
        remedy = any(lack.why == ROW_DIGESTS for lack in result.not_comparable)
        hint = f"; recorded with {ROW_DIGESTS}" if remedy else ""
        parts.append(f"cannot be compared: {', '.join(aspects)} (not recorded by a run{hint})")
    return " · ".join(parts)
