"""The rows of an answer as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from govtool.render.table import to_csv

if TYPE_CHECKING:
    from govtool.answers.answer import Answer, Cell


def answer_csv(answer: Answer, limit: int | None = None) -> Iterator[str]:
    """The lines of the CSV of an answer, at most ``limit`` rows; several names in a cell are separated by spaces."""
    return to_csv(answer.fields, (tuple(map(_text, row)) for row in islice(answer.rows(), limit)))


def _text(cell: Cell) -> object:
    return " ".join(cell) if isinstance(cell, tuple) else "" if cell is None else cell
