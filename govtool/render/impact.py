"""``govtool impact``: what depends on a column, or what it is made of."""

from __future__ import annotations

from collections.abc import Iterable

from govtool.query.impact import Impacted, ImpactResult
from govtool.render.answer import GraphVersion, already, evidence_object, places, tally, way
from govtool.render.envelope import compact, envelope, json_lines
from govtool.render.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.text import count

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")
BY_ENTRY = ("table", "plain", "markdown")
"""Formats in which the rows of a dataset are one entry; in the others every column has one of its own."""

_STYLES = {"breaks": "bold red", "unknown": "magenta", "changes": "yellow", "rows": "cyan", "passes": "green"}
_NOUNS = {"breaks": "break", "unknown": "unknown", "changes": "change", "rows": "by rows only", "passes": "pass"}


def render(
    form: str, result: ImpactResult, entries: Iterable[Impacted], version: GraphVersion
) -> Table | Iterable[str]:
    """One of ``FORMATS``.

    Args:
        form: The format.
        result: The answer.
        entries: Its entries, or with ``govtool.query.impact.expand`` one for every column (see ``BY_ENTRY``).
        version: What it is about.
    """
    if form in BY_ENTRY:
        made = table(result, version)
        return made if form == "table" else (plain if form == "plain" else markdown)(made)
    if form == "csv":
        return to_csv(
            ("verdict", "column", "dataset", "kinds", "hops", "via", "evidence"),
            (
                (
                    _verdict(entry),
                    entry.column,
                    entry.dataset,
                    " ".join(kind.label for kind in entry.kinds),
                    entry.hops,
                    way(entry.via),
                    " ".join(item.place for item in entry.evidence),
                )
                for entry in entries
            ),
        )
    if form == "jsonl":
        return (compact(entry_object(entry)) for entry in entries)
    return json_lines(envelope("impact/1", _body(result, entries, version)))


def _body(result: ImpactResult, entries: Iterable[Impacted], version: GraphVersion) -> dict[str, object]:
    summary = result.summary
    return {
        **version.header(),
        "subject": result.subject,
        "subject_kind": result.subject_kind,
        "direction": result.direction,
        "change": result.change.text if result.change else None,
        "columns": [entry_object(entry) for entry in entries],
        **({"truncated": result.truncated} if result.truncated else {}),
        **({"unchanged": list(result.unchanged)} if result.unchanged else {}),
        "summary": {
            **{verdict.label: number for verdict, number in summary.verdicts},
            "columns": summary.columns,
            "datasets": summary.datasets,
            "unaffected": summary.unaffected,
        },
        "coverage": version.coverage.counts(),
        "diagnostics": [],
    }


def entry_object(entry: Impacted) -> dict[str, object]:
    """The JSON value of one column, or of the rows of a dataset."""
    return {
        "column": entry.column,
        "dataset": entry.dataset,
        "verdict": _verdict(entry) or None,
        "kinds": [kind.label for kind in entry.kinds],
        "hops": entry.hops,
        "path": list(entry.path),
        "via": list(entry.via),
        "evidence": [evidence_object(item) for item in entry.evidence],
        "classes": [],
        "owner": None,
        **({"rows": True, "columns": entry.columns} if entry.is_rows else {}),
    }


def table(result: ImpactResult, version: GraphVersion) -> Table:
    """The picture of the answer: the worst first."""
    up = result.direction == "up"
    what = "upstream" if up else f"change: {result.change.text if result.change else 'logic'}"
    titles = [
        TableColumn("column", style="bold"),
        TableColumn("hops", justify="right"),
        TableColumn("via"),
        TableColumn("evidence", style="dim"),
    ]
    rows = [
        ([] if up else [_verdict(entry)]) + [_named(entry), str(entry.hops), way(entry.via), places(entry.evidence)]
        for entry in result.columns
    ]
    return Table(
        columns=tuple(titles if up else [TableColumn("verdict"), *titles]),
        rows=rows,
        heading=version.heading(result.subject, what),
        summary=version.closing(_summary(result), _left_off(result)),
        row_styles=() if up else [_STYLES.get(_verdict(entry), "") for entry in result.columns],
    )


def _summary(result: ImpactResult) -> str:
    summary = result.summary
    if result.direction == "up":
        return f"{count(summary.columns, 'column')} of {count(summary.datasets, 'dataset')}"
    counts = {_NOUNS[verdict.label]: number for verdict, number in summary.verdicts}
    text = ", ".join(part for part in (tally(counts), f"{summary.unaffected:,} unaffected") if part)
    idle = already(result.unchanged, result.change.to or "") if result.change else ""
    return " · ".join(part for part in (idle, text) if part)


def _left_off(result: ImpactResult) -> str:
    return f"{count(result.truncated, 'more entry', 'more entries')} (--all)" if result.truncated else ""


def _verdict(entry: Impacted) -> str:
    return entry.verdict.label if entry.verdict is not None else ""


def _named(entry: Impacted) -> str:
    return f"{entry.column} ({count(entry.columns, 'column')})" if entry.is_rows else entry.column
