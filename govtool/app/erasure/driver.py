"""Rows that passed through the driver: a query gave them to the job, and a later write has rows that the job held."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from govtool.app.records.opening import open_write
from govtool.app.records.tables import run_order
from govtool.app.workflow_runs.programs.driver_rows import has_constants
from govtool.errors import GovtoolError
from govtool.records.plan.nodes import LocalRows
from govtool.records.plan.tree import walk_nodes
from govtool.wording import few

if TYPE_CHECKING:
    from govtool.app.erasure.chain import ChainLink, RecordedChain
    from govtool.records.execute.places import Place
    from govtool.records.plan.nodes import Plan
    from govtool.store import Commit, Reader


def through_driver(
    store: Reader, commit: Commit, chain: RecordedChain, link: ChainLink, reached: Collection[Place]
) -> str:
    """Say why a write may hold rows of the subject that the driver had; empty if it cannot.

    Args:
        store: The store.
        commit: Plans are those of this commit.
        chain: The runs.
        link: The write.
        reached: Files that hold rows of the subject, or what was made of them.
    """
    earlier = [
        query.run.run
        for query in chain.queries
        if query.run.application == link.run.application
        and run_order(query.run.run) < run_order(link.run.run)
        and not query.read_places().isdisjoint(reached)
    ]
    if not earlier or not _holds_rows(store, commit, link):
        return ""
    return f"it holds rows of the driver, which had what {earlier[-1]} made of the subject's rows"


def driver_had(store: Reader, commit: Commit, chain: RecordedChain, query: ChainLink) -> str:
    """Say what is not known of the rows that a query gave to the job.

    A total that the job compares with is a constant of later plans: no erasure reaches it there.

    Args:
        store: The store.
        commit: Plans are those of this commit.
        chain: The runs.
        query: The query, which read what the subject's rows reached.
    """
    made_with = [
        link.output
        for link in chain.links
        if link.run.application == query.run.application
        and run_order(query.run.run) < run_order(link.run.run)
        and has_constants(_plan(store, commit, link))
    ]
    why = "its rows went to the driver: where they are now is not known"
    if not made_with:
        return why
    what = f"constants in the plans of {few(made_with)} stay as they were"
    return f"{why}; {what}, also if the job computed them from those rows"


def _holds_rows(store: Reader, commit: Commit, link: ChainLink) -> bool:
    plan = _plan(store, commit, link)
    if plan is None:
        return True
    return any(isinstance(node, LocalRows) and node.columns for node in walk_nodes(plan.root))


def _plan(store: Reader, commit: Commit, link: ChainLink) -> Plan | None:
    """The plan of a write; None if it cannot be read, and may hold anything."""
    try:
        return open_write(store, commit, link.run).plan
    except GovtoolError:
        return None
