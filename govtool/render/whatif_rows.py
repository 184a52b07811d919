"""Deletions under a query as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from govtool.errors import EvidenceError
from govtool.render.formats.envelope import compact, json_lines
from govtool.render.layout.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.layout.text import count
from govtool.wording import few

if TYPE_CHECKING:
    from govtool.answers.whatif_rows import WhatIfRowsAnswer

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")
_STYLES = {"deleted": "bold red", "unknown": "magenta", "recomputed": "yellow", "gained": "cyan", "kept": ""}
_SHOWN = 100
"""Rows of a table where no limit is given."""
_ORDER = ("unknown", "deleted", "recomputed", "gained", "kept")


def render(
    form: str, answers: Sequence[WhatIfRowsAnswer], limit: int | None, *, is_several: bool
) -> Iterator[Table | Iterable[str]]:
    """One of ``FORMATS``; several answers are JSON lines, or one table after the other.

    Args:
        form: The format.
        answers: One a deletion.
        limit: Rows of a table at most.
        is_several: A file of deletions was given: JSON is a line an answer, even if it is one.
    """
    if form == "jsonl" or (form == "json" and is_several):
        yield (compact(each.to_dict()) for each in answers)
    elif form == "json":
        yield json_lines(answers[0].to_dict())
    elif form == "csv":
        rows = [["" if cell is None else cell for cell in row] for each in answers for row in each.rows()]
        yield to_csv(answers[0].fields, rows)
    else:
        for each in answers:
            made = _table(each, _SHOWN if limit is None else limit)
            yield made if form == "table" else (plain if form == "plain" else markdown)(made)


def _table(answer: WhatIfRowsAnswer, limit: int) -> Table:
    rows = sorted(answer.rows(), key=lambda row: _ORDER.index(str(row[0])))
    shown = rows[:limit]
    counts = {**answer.counts, **({"gained": len(answer.result.gains)} if answer.result.gains else {})}
    parts = [f"{counts[name]:,} {name}" for name in _ORDER if name in counts]
    if answer.result.gains_possible:
        parts.append("other rows may appear (--mode auto replays)")
    if answer.result.is_replayed:
        parts.append("replayed")
    if len(rows) > limit:
        parts.append(count(len(rows) - limit, "more row"))
    parts.append(answer.engine)
    return Table(
        columns=(TableColumn("status"), TableColumn(f"before ({', '.join(answer.columns)})"), TableColumn("after")),
        rows=[[_cell(cell) for cell in row] for row in shown],
        heading=_heading(answer.deleted),
        summary=" · ".join(parts),
        row_styles=[_STYLES[str(row[0])] for row in shown],
    )


def _heading(tokens: Sequence[str]) -> str:
    return f"without {few(tokens)}"


def _cell(cell: Any) -> str:
    return "" if cell is None else str(cell)


def check_strict(answers: Sequence[WhatIfRowsAnswer]) -> None:
    """Refuse answers that leave something open.

    Raises:
        EvidenceError: One does (``evidence.unclear``).
    """
    if any(each.is_unclear() for each in answers):
        raise EvidenceError("not every row is certain", code="evidence.unclear", hint="--mode auto replays the query")
