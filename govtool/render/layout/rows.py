"""The rows of an answer in the forms that all answers with rows have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from govtool.records.cells import json_value
from govtool.render.formats.envelope import compact, json_lines
from govtool.render.layout.table import Table, markdown, plain, to_csv

if TYPE_CHECKING:
    from govtool.answers.answer import Answer, Cell


ROW_FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")
"""The forms of an answer with rows."""
DATA_FORMATS = ("json", "jsonl", "csv")
"""Those that other programs read: its own object, keys and columns, whatever a table shows of it."""


def rendered(form: str, answer: Answer, table: Callable[[], Table], limit: int | None = None) -> Table | Iterable[str]:
    """An answer in one of ``ROW_FORMATS``.

    Args:
        form: The format.
        answer: The answer.
        table: Makes its table; called only where the format needs it.
        limit: Rows of ``csv``; None: all.
    """
    return data_lines(form, answer, limit=limit) if form in DATA_FORMATS else laid_out(form, table())


def data_lines(
    form: str, answer: Answer, objects: Iterable[Mapping[str, object]] | None = None, *, limit: int | None = None
) -> Iterable[str]:
    """An answer in one of ``DATA_FORMATS``.

    Args:
        form: The format.
        answer: The answer.
        objects: The lines of ``jsonl``; None: an object a row.
        limit: Rows of ``csv``; None: all.
    """
    if form == "json":
        return json_lines(answer.to_dict())
    if form == "csv":
        return answer_csv(answer, limit)
    rows = (dict(zip(answer.fields, row, strict=True)) for row in answer.rows())
    return map(compact, rows if objects is None else objects)


def laid_out(form: str, table: Table) -> Table | Iterable[str]:
    """A table as it is, for a terminal, or as the lines of ``plain`` or ``markdown``."""
    return table if form == "table" else (plain if form == "plain" else markdown)(table)


def answer_csv(answer: Answer, limit: int | None = None) -> Iterator[str]:
    """The lines of the CSV of an answer, at most ``limit`` rows; several names in a cell are separated by spaces."""
    return to_csv(answer.fields, map(cells, islice(answer.rows(), limit)))


def cells(row: Iterable[Cell]) -> tuple[object, ...]:
    """A row as CSV has it: several names are one text, no value is an empty cell."""
    return tuple(map(_text, row))


def _text(cell: Cell) -> object:
    return " ".join(cell) if isinstance(cell, tuple) else "" if cell is None else cell


def cell(value: object) -> str:
    """A value of a row of data in a table for people."""
    shown = json_value(value)
    if shown is None:
        return "NULL"
    return shown if isinstance(shown, str) else compact(shown)
