"""The arguments of commands that question the graph, and the opening of a version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.shared.complete import complete_kind, complete_selector
from govtool.cli.shared.ui import Ui
from govtool.errors import UsageError

if TYPE_CHECKING:
    from govtool.api.graph import Graph
    from govtool.app.versions.opening import Snapshot

SHOWN = 100
"""Entries of a table when neither ``--limit`` nor ``--all`` says otherwise."""

ColumnArgument = Annotated[
    str,
    typer.Argument(
        metavar="COLUMN",
        autocompletion=complete_selector,
        help="A column or dataset, by the shortest unambiguous end of its name. Or a selector: "
        "'mart.**', class:personal … See govtool ls --help.",
    ),
]
KindOption = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        autocompletion=complete_kind,
        help="Only edges of this kind: identity, transformation, aggregation, conditional, join … Repeatable.",
    ),
]
DepthOption = Annotated[int | None, typer.Option("--depth", metavar="N", min=0, help="Follow at most N hops.")]
EvidenceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--evidence",
        metavar="HOW",
        help="Only this evidence: static (sql, catalog, declared), runtime (plan, plan-text, openlineage, prov). "
        "Repeatable.",
    ),
]
SemanticsOption = Annotated[
    str,
    typer.Option("--semantics", metavar="precise|lineagex", help="precise; lineagex also counts UNION ALL's arms."),
]


@contextmanager
def records_needed() -> Iterator[None]:
    """Name the command that records where a question about rows comes to a store without a commit.

    Raises:
        UsageError: The store has no commit yet (``usage.empty-store``).
    """
    try:
        yield
    except UsageError as error:
        if error.code != "usage.empty-store":
            raise
        hint = "govtool run --records -- job.py"
        raise UsageError(error.message, code=error.code, location=error.location, hint=hint) from error


_STALE_SHOWN = 5
"""Stale files that a note names."""


@contextmanager
def opened_graph(ui: Ui, store: str | None, at: str | None, branch: str | None = None) -> Iterator[Graph]:
    """The graph of a commit; while it is asked, a bar shows how far the building of its index is.

    Raises:
        StoreError: There is no store, or it cannot be read.
        UnknownNameError: There is no such commit or branch.
    """
    from govtool.api.opening import open as open_version

    with ui.progressing("building the index", "definitions") as progress:
        graph = open_version(store, ref=at, branch=branch, progress=progress)
        ui.mark("open the store")
        yield graph


def open_graph(ui: Ui, store: str | None, at: str | None, branch: str | None = None) -> Snapshot:
    """Open the graph of a commit; its index is built if the cache has none."""
    with opened_graph(ui, store, at, branch) as graph:
        snapshot = graph.snapshot()
    ui.mark("open the index")
    return snapshot


def bound(limit: int | None, all: bool, form: str) -> int | None:
    """Return the number of entries to ask for: tables are short by default, machines get everything."""
    if all or (limit is None and form not in ("table", "plain", "markdown")):
        return None
    return SHOWN if limit is None else limit


def widest(bounds: Sequence[int | None]) -> int | None:
    """The largest of several bounds: one question answers for all of them."""
    return None if None in bounds else max(one for one in bounds if one is not None)


def note_stale(ui: Ui, graph: Graph, files: Iterable[str]) -> None:
    """Note which files of the evidence cannot be read or understood any more: what they said before was shown."""
    if ui.quiet:
        return
    from govtool.app.ingest.stale import files_kept_stale
    from govtool.render.layout.text import printable

    snapshot = graph.snapshot()
    stale = sorted(set(files) & files_kept_stale(snapshot.store, snapshot.commit))
    if stale:
        shown = ", ".join(printable(file) for file in stale[:_STALE_SHOWN])
        more = f" and {len(stale) - _STALE_SHOWN} more" if len(stale) > _STALE_SHOWN else ""
        ui.note(f"stale evidence, kept from an earlier ingest: {shown}{more} (why: govtool coverage --details)")
