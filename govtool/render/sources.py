"""The sources of a store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from govtool.answers.coverage import Coverage, sentence
from govtool.render.envelope import compact, json_lines
from govtool.render.rows import answer_csv
from govtool.render.table import Table, TableColumn, markdown, plain
from govtool.render.text import count, percent, when

if TYPE_CHECKING:
    from govtool.answers.sources import SourceRow, SourcesAnswer

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")


def render_sources(form: str, answer: SourcesAnswer) -> Table | Iterable[str]:
    """The sources in one of ``FORMATS``."""
    if form == "json":
        return json_lines(answer.to_dict())
    if form == "jsonl":
        return (compact(source.to_dict()) for source in answer.sources)
    if form == "csv":
        return answer_csv(answer)
    total = sum((source.counted.coverage for source in answer.sources), Coverage())
    table = Table(
        columns=(
            TableColumn("source", style="bold"),
            TableColumn("read from"),
            TableColumn("files", justify="right"),
            TableColumn("coverage", justify="right"),
            TableColumn("last commit"),
        ),
        rows=[_row(source) for source in answer.sources],
        summary=f"{count(len(answer.sources), 'source')} · {sentence(total)}",
    )
    return table if form == "table" else (plain if form == "plain" else markdown)(table)


def _row(source: SourceRow) -> tuple[str, ...]:
    counted, last = source.counted, source.commit
    share = percent(counted.coverage.understood, counted.coverage.relevant + counted.coverage.unread)
    place = f"{counted.kind}:{counted.place}" if counted.kind else "not recorded"
    return (
        counted.source,
        place if place != counted.source else "",
        f"{counted.files:,}",
        share,
        f"{last.seq} · {when(last.time)}" if last is not None else "",
    )
