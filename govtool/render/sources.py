"""The sources of a store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from govtool.answers.coverage import Coverage, sentence
from govtool.render.layout.rows import DATA_FORMATS, ROW_FORMATS, data_lines, laid_out
from govtool.render.layout.table import Table, TableColumn
from govtool.render.layout.text import count, percent, when

if TYPE_CHECKING:
    from govtool.answers.sources import SourceRow, SourcesAnswer

FORMATS = ROW_FORMATS


def render_sources(form: str, answer: SourcesAnswer) -> Table | Iterable[str]:
    """The sources in one of ``FORMATS``."""
    if form in DATA_FORMATS:
        return data_lines(form, answer, (source.to_dict() for source in answer.sources))
    rows: list[tuple[str, ...]] = [_row(source) for source in answer.sources]
    columns: tuple[TableColumn, ...] = (
        TableColumn("source", style="bold"),
        TableColumn("read from"),
        TableColumn("files", justify="right"),
        TableColumn("coverage", justify="right"),
        TableColumn("last commit"),
    )
    if not any(place for _, place, *_ in rows):  # each was read from where its name says
        columns, rows = (columns[0], *columns[2:]), [(row[0], *row[2:]) for row in rows]
    total = sum((source.counted.coverage for source in answer.sources), Coverage())
    table = Table(
        columns=columns,
        rows=rows,
        summary=f"{count(len(answer.sources), 'source')} · {sentence(total)}",
    )
    return laid_out(form, table)


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
