"""The rows of an answer in the forms that all answers with rows have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from govtool.render.envelope import compact, json_lines
from govtool.render.table import Table, markdown, plain, to_csv

if TYPE_CHECKING:
    from govtool.answers.answer import Answer, Cell


def rendered(form: str, answer: Answer, table: Callable[[], Table], limit: int | None = None) -> Table | Iterable[str]:
    """An answer as ``table``, ``plain``, ``json``, ``jsonl`` (an object a row), ``csv`` or ``markdown``.

    Args:
        form: The format.
        answer: The answer.
        table: Makes its table; called only where the format needs it.
        limit: Rows of ``csv``; None: all.
    """
    if form == "json":
        return json_lines(answer.to_dict())
    if form == "jsonl":
        return (compact(dict(zip(answer.fields, row, strict=True))) for row in answer.rows())
    if form == "csv":
        return answer_csv(answer, limit)
    made = table()
    return made if form == "table" else (plain if form == "plain" else markdown)(made)


def answer_csv(answer: Answer, limit: int | None = None) -> Iterator[str]:
    """The lines of the CSV of an answer, at most ``limit`` rows; several names in a cell are separated by spaces."""
    return to_csv(answer.fields, (tuple(map(_text, row)) for row in islice(answer.rows(), limit)))


def _text(cell: Cell) -> object:
    return " ".join(cell) if isinstance(cell, tuple) else "" if cell is None else cell
