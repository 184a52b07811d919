"""The facts of a commit: what is said of datasets and columns besides lineage."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from govtool.errors import GovtoolError
from govtool.model.fact import FACTS, Fact, decode_facts

if TYPE_CHECKING:
    from pathlib import Path

    from govtool.store import Commit, Reader

OWNERS_FILE = "owners.json"
"""The file of the local cache that holds the owners of datasets."""
_FORMAT = 2
"""Version of the names in it."""


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


def dataset_owners(store: Reader, commit: Commit) -> dict[str, str]:
    """The owners of datasets that are recorded as facts, kept in the local cache: answers show them.

    Raises:
        StoreError: a fragment cannot be read.
        IntegrityError: a fragment is not what was written.
    """
    from govtool.store import cache

    directory = owners_dir(store, commit)
    if cache.lookup(directory):
        try:
            found = json.loads((directory / OWNERS_FILE).read_text(encoding="utf-8"))
            return {str(dataset): str(owner) for dataset, owner in found.items()}
        except (OSError, ValueError, AttributeError):  # evicted meanwhile, or damaged: the store knows
            return read_owners(store, commit)
    owners = read_owners(store, commit)
    keep_owners(store, commit, owners)
    return owners


def keep_owners(store: Reader, commit: Commit, owners: Mapping[str, str]) -> None:
    """Put the owners of datasets into the local cache; a cache that cannot be written is left alone."""
    from govtool.store import cache

    text = json.dumps(owners, sort_keys=True)
    with contextlib.suppress(GovtoolError):
        cache.publish(owners_dir(store, commit), lambda at: _write(at / OWNERS_FILE, text))


def owners_dir(store: Reader, commit: Commit) -> Path:
    """Return the folder of the local cache for the owners of a commit's datasets, ``owners.json``."""
    from govtool.store import cache

    return cache.cache_dir(store.cache_id, f"{commit.content_id}-owners-{_FORMAT}")


def read_owners(store: Reader, commit: Commit) -> dict[str, str]:
    """The first owner of each dataset, in the facts' order; ``govtool.policy.classes.dataset_facts`` takes them."""
    owners: dict[str, str] = {}
    for fact in read_facts(store, commit):
        if fact.column is None and fact.name in ("owner", "meta.owner"):
            owners.setdefault(fact.dataset, fact.value)
    return owners


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
