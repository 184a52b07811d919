"""Rows that passed through the driver: a query gave them to the job, and a later write has rows that the job held."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from govtool.app.records.opening import open_write
from govtool.app.records.tables import run_order
from govtool.errors import GovtoolError
from govtool.records.plan.nodes import LocalRows
from govtool.records.plan.tree import walk_nodes

if TYPE_CHECKING:
    from govtool.app.erasure.chain import ChainLink, RecordedChain
    from govtool.records.execute.places import Place
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


def _holds_rows(store: Reader, commit: Commit, link: ChainLink) -> bool:
    try:
        root = open_write(store, commit, link.run).plan.root
    except GovtoolError:  # a plan that cannot be read may hold any
        return True
    return any(isinstance(node, LocalRows) and node.columns for node in walk_nodes(root))
