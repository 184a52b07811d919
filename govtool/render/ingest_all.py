"""The outcomes of ``govtool ingest``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from govtool.render.envelope import compact, json_lines
from govtool.render.rows import answer_csv
from govtool.render.table import Table, TableColumn, markdown, plain
from govtool.render.text import count, percent

if TYPE_CHECKING:
    from govtool.answers.ingest_all import IngestAllAnswer, SourceOutcome

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")


def render_ingested(form: str, answer: IngestAllAnswer) -> Table | Iterable[str]:
    """The outcomes in one of ``FORMATS``."""
    if form == "json":
        return json_lines(answer.to_dict())
    if form == "jsonl":
        return (compact(outcome.to_dict()) for outcome in answer.outcomes)
    if form == "csv":
        return answer_csv(answer)
    table = Table(
        columns=(
            TableColumn("source", style="bold"),
            TableColumn("outcome"),
            TableColumn("files", justify="right"),
            TableColumn("coverage", justify="right"),
        ),
        rows=[_row(outcome) for outcome in answer.outcomes],
        summary=_summary(answer),
    )
    return table if form == "table" else (plain if form == "plain" else markdown)(table)


def _row(outcome: SourceOutcome) -> tuple[str, ...]:
    result = outcome.result
    if result is None:
        code = outcome.error.code if outcome.error is not None else ""
        return outcome.source, f"failed: {code}", "", ""
    coverage = result.coverage
    share = percent(coverage.understood, coverage.relevant + coverage.unread)
    return outcome.source, _outcome(outcome), f"{result.files:,}", share


def _outcome(outcome: SourceOutcome) -> str:
    result = outcome.result
    if result is None or not result.created:
        return "no change"
    if result.plan is not None:
        return count(len(result.plan.difference.changes), "change")
    return f"commit {result.commit.seq} ({result.commit.short})"


def _summary(answer: IngestAllAnswer) -> str:
    states = [outcome.state for outcome in answer.outcomes]
    words = {"committed": "committed", "planned": "would be committed", "unchanged": "unchanged", "failed": "failed"}
    parts = [f"{states.count(state)} {text}" for state, text in words.items() if state in states]
    return f"{count(len(states), 'source')}: {', '.join(parts)}"
