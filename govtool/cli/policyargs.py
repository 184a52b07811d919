"""What the commands that know policies have in common: their options, and a governed version of the graph."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.graph import Opened, open_graph
from govtool.cli.ui import Ui
from govtool.errors import UsageError

if TYPE_CHECKING:
    from govtool.policy.check import Governed
    from govtool.policy.load import PolicySet

PolicyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="FILE|DIR|pack:NAME",
        help="Policies instead of those in policies/: files, folders, or a pack: starter, gdpr, hipaa, pci.",
    ),
]
TodayOption = Annotated[
    str | None, typer.Option("--today", metavar="DATE", help="The day that counts for what expires: 2026-11-21.")
]


def today_of(text: str | None) -> date:
    """The day that ``--today`` names, or today (UTC).

    Raises:
        UsageError: It is no date (``usage.date``).
    """
    from govtool import clock

    if text is None:
        return clock.now().date()
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text[:40]!r} is not a date", code="usage.date", hint="--today 2026-11-21") from error


def governed(
    ui: Ui,
    policies: PolicySet,
    day: date,
    store: str | None,
    at: str | None,
    branch: str | None,
    *,
    need_zones: bool = False,
) -> tuple[Opened, Governed]:
    """A version of the graph, and what the policies say of it."""
    from govtool.app.policy import stated_facts
    from govtool.app.project import commit_at, read_store
    from govtool.policy.check import govern

    graph = open_graph(ui, store, at, branch)
    reader = read_store(store)
    tool_facts = stated_facts(reader, commit_at(reader, at, branch))
    found = govern(graph.index, policies, day, tool_facts=tool_facts, need_zones=need_zones)
    ui.mark("propagate classes")
    return graph, found
