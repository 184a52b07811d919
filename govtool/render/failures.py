"""``--explain-failures``: each distinct statement that was not understood, with a caret below the place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from govtool.redaction import masked_line
from govtool.render.layout.text import count, printable

if TYPE_CHECKING:
    from govtool.app.coverage.failures import Failure

_WIDTH = 160
"""Characters of a line that are shown around the place."""
_LINES = 12
"""Lines of a statement that are shown around the place."""


def explained(failures: Iterable[Failure]) -> Iterator[str]:
    """The lines of all failures, an empty one between two."""
    for number, failure in enumerate(failures):
        if number:
            yield ""
        note = failure.diagnostic
        place = ":".join(str(part) for part in (note.file, note.line) if part is not None)
        yield printable(f"{place} · {count(failure.runs, 'run')} · {note.code}: {note.message}")
        lines = failure.text.splitlines()
        at = (failure.line or 1) - 1
        first = max(0, at - _LINES // 2)
        for index, line in enumerate(lines[first : first + _LINES], first):
            shown, column = _window(masked_line(line), failure.column if index == at else None)
            yield f"    {printable(shown)}"
            if failure.line is not None and index == at and column is not None:
                yield "    " + " " * len(printable(shown[: column - 1])) + "^"


def _window(line: str, column: int | None) -> tuple[str, int | None]:
    """The part of a long line around a 1-based column, and where the column is in it."""
    if len(line) <= _WIDTH:
        return line, column
    start = max(0, (column or 1) - 1 - _WIDTH // 2)
    head = "…" if start else ""
    tail = "…" if start + _WIDTH < len(line) else ""
    return head + line[start : start + _WIDTH] + tail, None if column is None else column - start + len(head)
