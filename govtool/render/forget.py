"""The outcome of ``store forget``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from govtool.render.layout.rows import DATA_FORMATS, ROW_FORMATS, data_lines, laid_out
from govtool.render.layout.table import Table, TableColumn
from govtool.render.layout.text import count

if TYPE_CHECKING:
    from govtool.answers.forget import ForgetAnswer

FORMATS = ROW_FORMATS


def render_forget(form: str, answer: ForgetAnswer) -> Table | Iterable[str]:
    """The outcome in one of ``FORMATS``."""
    if form in DATA_FORMATS:
        return data_lines(form, answer)
    table = Table(
        columns=tuple(TableColumn(name) for name in answer.fields),
        rows=[tuple(str(cell) for cell in row) for row in answer.rows()],
        summary=_summary(answer),
    )
    return laid_out(form, table)


def _summary(answer: ForgetAnswer) -> str:
    verb = "would be forgotten" if answer.dry_run else "forgotten"
    parts = [f"{count(len(answer.fragments), 'fragment')} {verb}"]
    if answer.objects:
        parts.append(f"{count(len(answer.objects), 'object')} deleted")
    if answer.indexes:
        parts.append(f"{count(len(answer.indexes), 'published index', 'published indexes')} deleted")
    parts += [f"{branch}: commit {seq} ({name[:7]})" for branch, seq, name in answer.commits]
    if answer.held:
        holds = "holds" if len(answer.held) == 1 else "hold"
        parts.append(f"{count(len(answer.held), 'object')} of the store still {holds} the text")
    elif not answer.fragments:
        parts.append("nothing in the store holds it")
    return " · ".join(parts)
