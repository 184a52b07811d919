"""Selectors on the command line."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.complete import complete_selector
from govtool.cli.graph import open_graph
from govtool.cli.ui import Ui

if TYPE_CHECKING:
    from govtool.app.opening import Snapshot
    from govtool.app.selection import Selector

SelectorArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SELECTOR]…",
        autocompletion=complete_selector,
        help="crm.users.email, mart.**, x+, 2+x+1, @x, class:personal, tag:pii, zone:shared, owner:growth, "
        "job:nightly_*, changed:main..HEAD, opaque:, unused:. A space is a union, a comma an intersection.",
    ),
]
ExcludeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude", metavar="SELECTOR", autocompletion=complete_selector, help="Leave these out. Repeatable."
    ),
]


def open_selector(
    ui: Ui, policy: list[str] | None, day: date, store: str | None, at: str | None, branch: str | None
) -> tuple[Snapshot, Selector]:
    """A version of the graph, and what selects from it."""
    from govtool.app.project import commit_at, read_store
    from govtool.app.selection import Selector

    graph = open_graph(ui, store, at, branch)
    reader = read_store(store)
    return graph, Selector(graph.index, reader, commit_at(reader, at, branch), policy, day)
