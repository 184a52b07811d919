"""The log of commits, one commit, and the outcome of an ingest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from govtool.answers.coverage import over_sources, sentence
from govtool.render.layout.rows import DATA_FORMATS, ROW_FORMATS, data_lines, laid_out
from govtool.render.layout.table import Table, TableColumn, to_csv
from govtool.render.layout.text import count, percent, size, when

if TYPE_CHECKING:
    from govtool.answers.commits import CommitAnswer, LogAnswer
    from govtool.answers.ingest import IngestResult
    from govtool.store import Commit, FragmentRef

_LOGGED_REASONS = 3
"""Reasons that are listed of a commit."""
FORMATS = ROW_FORMATS


def render_log(form: str, answer: LogAnswer) -> Table | Iterable[str]:
    """The log in one of ``FORMATS``."""
    if form in DATA_FORMATS:
        return data_lines(form, answer, answer.objects())
    table = _log_table(answer.commits, answer.truncated)
    return laid_out(form, table)


def _log_table(commits: Sequence[Commit], left_off: int) -> Table:
    older = f" · {left_off:,} older (--all)" if left_off else ""
    weighed = any(_by_runs(commit) for commit in commits)
    return Table(
        columns=(
            TableColumn("seq", justify="right"),
            TableColumn("id", style="yellow"),
            TableColumn("time"),
            TableColumn("author"),
            TableColumn("files", justify="right"),
            TableColumn("coverage", justify="right"),
            *([TableColumn("by runs", justify="right")] if weighed else []),
            TableColumn("message"),
        ),
        rows=[
            (str(c.seq), c.short, when(c.time), c.author, *_figures(c), *([_by_runs(c)] if weighed else []), c.message)
            for c in commits
        ],
        summary=count(len(commits), "commit") + older,
    )


def render_log_coverage(answer: LogAnswer) -> Table:
    """The coverage of each commit, by statements and by runs, with a row for each of the reasons that cost most."""
    rows: list[tuple[str, ...]] = []
    for commit, report in zip(answer.commits, answer.coverage or (), strict=True):
        total = report.total
        counts = (
            (total.understood, total.runs_understood),
            (total.partial, total.runs_partial),
            (total.unclear, total.runs_opaque + total.unread),  # a file that was not read is a statement at least
        )
        weighed = total.runs > total.relevant
        shares = [
            f"{statements:,} ({percent(runs, total.runs + total.unread)})" if weighed else f"{statements:,}"
            for statements, runs in counts
        ]
        reasons = over_sources(report.reasons)
        found = [(f"{r.runs:,}", f"{r.code}: {r.message}") for r in reasons[:_LOGGED_REASONS]]
        left = len(reasons) - len(found)
        if left:
            found.append(("", f"{left:,} more: govtool coverage --at {commit.seq}"))
        for number, reason in enumerate(found or [("", "")]):
            rows.append((*((str(commit.seq), *shares) if not number else ("", "", "", "")), *reason))
    return Table(
        columns=(
            TableColumn("seq", justify="right"),
            *(TableColumn(name, justify="right") for name in ("fully", "partly", "not at all", "runs")),
            TableColumn("reason"),
        ),
        rows=rows,
        summary="statements understood (with the share of runs), and the top reasons for incomplete coverage",
    )


def _figures(commit: Commit) -> tuple[str, str]:
    """Files read and the share understood, where the commit says so."""
    files, counts = commit.summary.get("files"), commit.summary.get("coverage")
    understood, of = (counts.get("understood"), counts.get("statements")) if isinstance(counts, dict) else (None, None)
    share = percent(understood, of + _unread(commit)) if isinstance(understood, int) and isinstance(of, int) else ""
    return f"{files:,}" if isinstance(files, int) else "", share


def _by_runs(commit: Commit) -> str:
    """The share understood by how often statements were run, where a log says that."""
    counts = commit.summary.get("coverage")
    if not isinstance(counts, dict):
        return ""
    runs = [counts.get(f"runs_{name}") for name in ("understood", "partial", "opaque")]
    statements = counts.get("statements")
    numbers = [number for number in runs if isinstance(number, int)]
    if len(numbers) < 3 or not isinstance(statements, int) or sum(numbers) <= statements:
        return ""
    return percent(numbers[0], sum(numbers) + _unread(commit))


def _unread(commit: Commit) -> int:
    """Files that were not read, each as much as a statement; see ``govtool.answers.coverage.sentence``."""
    counts = commit.summary.get("coverage")
    number = counts.get("unread") if isinstance(counts, dict) else None
    return number if isinstance(number, int) else 0


def render_commit(form: str, answer: CommitAnswer) -> Table | Iterable[str]:
    """One commit in one of ``FORMATS``."""
    if form in ("json", "jsonl"):
        return data_lines(form, answer, [answer.to_dict()])
    rows = _facts(answer.commit)
    if form == "csv":
        return to_csv(("name", "value"), rows)
    columns = (TableColumn("name", style="dim"), TableColumn("value"))
    table = Table(columns=columns, rows=rows, summary=_live(answer.fragments))
    return laid_out(form, table)


def _facts(commit: Commit) -> list[tuple[str, str]]:
    facts = [
        ("commit", commit.id),
        ("seq", f"{commit.seq} on {commit.branch}"),
        ("parent", commit.parent or "none"),
        ("time", commit.time),
        ("author", commit.author),
        ("message", commit.message),
        ("tool", commit.tool),
        ("batch", commit.batch),
        ("sources", ", ".join(commit.sources)),
    ]
    return facts + [(key, _value(value)) for key, value in sorted(commit.summary.items()) if key not in ("source",)]


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value(item)}" for key, item in value.items()) or "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _live(fragments: Sequence[FragmentRef]) -> str:
    sources = len({f.source for f in fragments})
    total = size(sum(f.size for f in fragments))
    return f"{count(sources, 'live source')}, {count(len(fragments), 'fragment')}, {total}"


def _log_counts(counts: Mapping[str, Any]) -> str:
    """``1,000 records (3 failed, 2 rejected), 50 distinct``."""
    kinds = ("failed", "unfinished", "rejected", "rolled_back")
    left = ", ".join(f"{counts[name]:,} {name.replace('_', ' ')}" for name in kinds if counts.get(name))
    return f"{count(counts['records'], 'record')}{f' ({left})' if left else ''}, {counts['distinct']:,} distinct"


def ingest_summary(result: IngestResult) -> str:
    """One sentence on an ingest."""
    if not result.created:
        return result.place
    summary = result.commit.summary
    sizes = ", ".join(
        count(number, noun)
        for noun, number in (("file", result.files), ("dataset", summary["datasets"]), ("edge", summary["edges"]))
        if isinstance(number, int)
    )
    if "records" in result.counts:
        sizes = f"{_log_counts(result.counts)}, {sizes}"
    stale = result.counts.get("stale")
    kept = f" · {count(stale, 'file')} kept as before (stale)" if isinstance(stale, int) else ""
    return f"{result.place} · {sizes} · {sentence(result.coverage)}{kept}"
