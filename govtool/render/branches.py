"""Branches and tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from govtool.answers.commits import commit_object
from govtool.answers.envelope import envelope
from govtool.render.formats.envelope import compact, json_lines
from govtool.render.layout.rows import ROW_FORMATS, laid_out
from govtool.render.layout.table import Table, TableColumn, to_csv
from govtool.render.layout.text import count, when

if TYPE_CHECKING:
    from govtool.store import Commit

FORMATS = ROW_FORMATS


class NamedRef(Protocol):
    """A branch or a tag."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def at(self) -> Commit:
        """Its place."""


def render(form: str, what: str, names: Sequence[NamedRef], store: str) -> Table | Iterable[str]:
    """Names and their commits in one of ``FORMATS``; ``what`` is ``branch`` or ``tag``."""
    objects = [{"name": each.name, "commit": commit_object(each.at)} for each in names]
    plural = "branches" if what == "branch" else f"{what}s"
    if form == "json":
        return json_lines(envelope(f"{plural}/1", {"store": store, plural: objects}))
    if form == "jsonl":
        return (compact(each) for each in objects)
    if form == "csv":
        rows = ((n.name, n.at.branch, n.at.seq, n.at.id, n.at.time, n.at.message) for n in names)
        return to_csv(("name", "branch", "seq", "id", "time", "message"), rows)
    table = Table(
        columns=(
            TableColumn("name", style="bold"),
            TableColumn("seq", justify="right"),
            TableColumn("id", style="yellow"),
            TableColumn("time"),
            TableColumn("message"),
        ),
        rows=[(n.name, _seq(n, what), n.at.short, when(n.at.time), n.at.message) for n in names],
        summary=count(len(names), what, plural),
    )
    return laid_out(form, table)


def _seq(named: NamedRef, what: str) -> str:
    return str(named.at.seq) if what == "branch" else f"{named.at.seq} on {named.at.branch}"
