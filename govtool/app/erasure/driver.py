"""Rows that passed through the driver: a query gave them to the job, and a later write has rows that the job held."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from govtool.app.erasure.hanging import hangs, is_before
from govtool.app.records.opening import open_write
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
    store: Reader,
    commit: Commit,
    chain: RecordedChain,
    link: ChainLink,
    reached: Collection[Place],
) -> str:
    """Say why a write may hold rows of the subject that the driver had, or hang on such; empty if it cannot.

    Args:
        store: The store.
        commit: Plans are those of this commit.
        chain: The runs. Of a program whose code is not found, only the queries are listed.
        link: The write.
        reached: Files that hold rows of the subject, or what was made of them.
    """
    earlier = [
        query.run.run
        for query in chain.queries
        if is_before(query.run, link.run) and not query.read_places().isdisjoint(reached)
    ]
    if not earlier:
        return ""
    if not _holds_rows(store, commit, link):
        what = "may have decided whether the job writes it, or what"
        return f"rows that {earlier[-1]} collected {what}" if hangs(chain.hanging, link.run) else ""
    return f"it holds rows of the driver, which had what {earlier[-1]} made of the subject's rows"


def driver_had(
    store: Reader, commit: Commit, chain: RecordedChain, queries: Sequence[ChainLink]
) -> Iterator[tuple[ChainLink, str]]:
    """Say of each query what is not known of the rows that it gave to the job.

    A total that the job compares with is a constant of later plans: no erasure reaches it there.

    Args:
        store: The store.
        commit: Plans are those of this commit.
        chain: The runs.
        queries: Those that read what the subject's rows reached.
    """
    later = [link for link in chain.links if any(is_before(query.run, link.run) for query in queries)]
    with_constants = [link for link in later if has_constants(_plan(store, commit, link))]
    why = "its rows went to the driver: where they are now is not known"
    for query in queries:
        made_with = [link.output for link in with_constants if is_before(query.run, link.run)]
        what = f"constants in the plans of {few(made_with)} stay as they were"
        yield query, f"{why}; {what}, also if the job computed them from those rows" if made_with else why


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
