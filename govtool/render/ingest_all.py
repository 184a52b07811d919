"""The outcomes of ``govtool ingest``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from govtool.render.layout.rows import DATA_FORMATS, ROW_FORMATS, data_lines, laid_out
from govtool.render.layout.table import Table, TableColumn
from govtool.render.layout.text import count, percent

if TYPE_CHECKING:
    from govtool.answers.ingest_all import IngestAllAnswer, SourceOutcome

FORMATS = ROW_FORMATS


def render_ingested(form: str, answer: IngestAllAnswer) -> Table | Iterable[str]:
    """The outcomes in one of ``FORMATS``."""
    if form in DATA_FORMATS:
        return data_lines(form, answer, (outcome.to_dict() for outcome in answer.outcomes))
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
    return laid_out(form, table)


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
    address = next((each.result.address for each in answer.outcomes if each.result is not None), "")
    where = f" in {address}" if address else ""
    return f"{count(len(states), 'source')}: {', '.join(parts)}{where}"
