"""The facts of a commit: what is said of datasets and columns besides lineage."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from govtool.model.fact import FACTS, Fact, decode_facts

if TYPE_CHECKING:
    from govtool.store import Commit, Reader


def read_facts(store: Reader, commit: Commit, dataset: str | None = None) -> tuple[Fact, ...]:
    """All facts of the live sources of a commit, sorted; those about one dataset and its columns if it is given.

    Raises:
        StoreError: a fragment cannot be read.
        IntegrityError: a fragment is not what was written.
    """
    found = [fact for ref in store.fragments(commit) if ref.table == FACTS for fact in decode_facts(store.read(ref))]
    chosen = [fact for fact in found if dataset is None or fact.dataset == dataset]
    return tuple(sorted(set(chosen), key=lambda fact: tuple(part or "" for part in fact)))


def facts_by_dataset(store: Reader, commit: Commit, datasets: Collection[str]) -> dict[str, list[Fact]]:
    """The facts about some datasets and their columns, sorted; see ``read_facts``."""
    found: dict[str, list[Fact]] = {}
    for fact in read_facts(store, commit):
        if fact.dataset in datasets:
            found.setdefault(fact.dataset, []).append(fact)
    return found
