"""``govtool diff``: what changed between two versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from govtool.answers.diff import change_object, plural
from govtool.query.versions.diff import DIFFERING
from govtool.render.answer import places
from govtool.render.change_words import SIGNS, change_detail, change_name
from govtool.render.layout.rows import DATA_FORMATS, ROW_FORMATS, data_lines, laid_out
from govtool.render.layout.table import Table, TableColumn
from govtool.render.layout.text import short, when
from govtool.render.pictures.answers import PICTURES, diff_drawing, picture

if TYPE_CHECKING:
    from govtool.answers.diff import DiffAnswer
    from govtool.answers.ingest_plan import IngestPlan
    from govtool.query.versions.diff import Difference, GraphChange
    from govtool.store import Commit

FORMATS = (*ROW_FORMATS, *PICTURES)
_STYLES = {"added": "green", "removed": "red", "changed": "yellow"}


def render(form: str, answer: DiffAnswer) -> Table | Iterable[str]:
    """One of ``FORMATS``."""
    return render_changes(form, answer, lambda: _table(answer))


def render_changes(form: str, answer: DiffAnswer | IngestPlan, table: Callable[[], Table]) -> Table | Iterable[str]:
    """Changes in one of ``FORMATS``; the table is made only where the format needs it."""
    if form in PICTURES:
        return picture(form, diff_drawing(answer))
    if form in DATA_FORMATS:
        return data_lines(form, answer, (change_object(change) for change in answer.changes))
    return laid_out(form, table())


def _table(answer: DiffAnswer) -> Table:
    table = change_table(answer.changes, answer.truncated)
    return replace(
        table,
        heading=f"{version_words(answer.old)} → {version_words(answer.new)}",
        summary=f"{difference_sentence(answer.difference) or 'no difference'}{table.summary}",
    )


def change_table(changes: Sequence[GraphChange], truncated: int, more: str = "--all") -> Table:
    """A row a change; the summary has what is left out, and the option ``more`` that shows it."""
    rows = [(SIGNS[c.change], c.what, change_name(c), change_detail(c), places(c.evidence)) for c in changes]
    return Table(
        columns=(
            TableColumn(""),
            TableColumn("what"),
            TableColumn("name", style="bold"),
            TableColumn("how"),
            TableColumn("statement", style="dim"),
        ),
        rows=rows,
        summary=f" · {truncated:,} not shown ({more})" if truncated else "",
        row_styles=[_STYLES[c.change] for c in changes],
        names=2,
    )


def difference_sentence(result: Difference) -> str:
    """The numbers of changes: ``datasets +1 · columns +3 -1``; empty without any."""
    parts = []
    for what in DIFFERING:
        numbers = [f"{sign}{n:,}" for change, sign in SIGNS.items() if (n := result.count(what, change))]
        if numbers:
            parts.append(f"{plural(what)} {' '.join(numbers)}")
    return " · ".join(parts)


def version_words(commit: Commit) -> str:
    """A commit as a heading names it."""
    return f"{commit.branch} {commit.seq} {short(commit.id)} ({when(commit.time)})"
