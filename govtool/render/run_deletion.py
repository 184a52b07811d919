"""Rows of a workflow run after a deletion as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from govtool.render.formats.envelope import compact
from govtool.render.layout.rows import ROW_FORMATS, rendered
from govtool.render.layout.table import Table, TableColumn
from govtool.wording import count

if TYPE_CHECKING:
    from govtool.answers.run_deletion import RunDeletionAnswer

FORMATS = ROW_FORMATS


def render_run_deletion(form: str, answer: RunDeletionAnswer, limit: int | None = None) -> Table | Iterable[str]:
    """An answer in one of ``FORMATS``.

    Args:
        form: The format.
        answer: The answer.
        limit: Rows of ``table``, ``plain``, ``markdown`` and ``csv``; None: all.
    """
    return rendered(form, answer, lambda: _table(answer, limit), limit)


def answer_lines(answers: Sequence[RunDeletionAnswer]) -> Iterator[str]:
    """Several answers, one a line."""
    return (compact(each.to_dict()) for each in answers)


def _table(answer: RunDeletionAnswer, limit: int | None) -> Table:
    rows = list(answer.rows())
    shown = [["" if cell is None else str(cell) for cell in row] for row in islice(rows, limit)]
    left = f"\n{count(len(rows) - len(shown), 'more row')} (--all)" if len(shown) < len(rows) else ""
    columns = tuple(TableColumn(name, "right" if name == "execution" else "left") for name in answer.fields)
    return Table(
        columns=columns,
        rows=shown,
        heading=f"{answer.run} without {', '.join(answer.deleted)}",
        summary="\n".join(_summary(answer)) + left,
    )


def _summary(answer: RunDeletionAnswer) -> Iterator[str]:
    for name, counts in answer.counts.items():
        found = answer.relations[name]
        parts = [f"{number:,} {status}" for status, number in sorted(counts.items())]
        parts += [f"{len(found.gains):,} gained"] if found.gains else []
        parts += ["rows may appear"] if found.gains_possible else []
        yield f"{name}: {', '.join(parts) or 'no row'}"
    if answer.replayed:
        yield f"evaluated again: {', '.join(answer.replayed)}"
    for name, reason in answer.not_replayable.items():
        yield f"{name} cannot be made again: {reason}"
    yield from answer.notes
