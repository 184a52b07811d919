"""Branches and tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from govtool.answers.commits import commit_object
from govtool.answers.envelope import envelope
from govtool.render.formats.envelope import compact, json_lines
from govtool.render.layout.rows import ROW_FORMATS, laid_out
from govtool.render.layout.table import Table, TableColumn, to_csv
from govtool.render.layout.text import count, when

if TYPE_CHECKING:
    from govtool.store import Commit

FORMATS = ROW_FORMATS


def render(form: str, what: str, names: Sequence[tuple[str, Commit]], store: str) -> Table | Iterable[str]:
    """Names and their commits in one of ``FORMATS``; ``what`` is ``branch`` or ``tag``."""
    objects = [{"name": name, "commit": commit_object(at)} for name, at in names]
    plural = "branches" if what == "branch" else f"{what}s"
    if form == "json":
        return json_lines(envelope(f"{plural}/1", {"store": store, plural: objects}))
    if form == "jsonl":
        return (compact(each) for each in objects)
    if form == "csv":
        rows = ((name, at.branch, at.seq, at.id, at.time, at.message) for name, at in names)
        return to_csv(("name", "branch", "seq", "id", "time", "message"), rows)
    table = Table(
        columns=(
            TableColumn("name", style="bold"),
            TableColumn("seq", justify="right"),
            TableColumn("id", style="yellow"),
            TableColumn("time"),
            TableColumn("message"),
        ),
        rows=[(name, _seq(at, what), at.short, when(at.time), at.message) for name, at in names],
        summary=count(len(names), what, plural),
    )
    return laid_out(form, table)


def _seq(at: Commit, what: str) -> str:
    return str(at.seq) if what == "branch" else f"{at.seq} on {at.branch}"
