"""Names that a shell may offer for what was typed so far."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from govtool.app.project.project import commit_at, read_store

if TYPE_CHECKING:
    from govtool.graph.index import Index
    from govtool.store import Commit, Reader

MOST_NAMES = 200
"""More candidates than this help nobody."""


def complete_names(store_option: str | None, typed: str) -> list[str]:
    """Datasets and columns of the newest commit that start with what was typed, in full or from a later part on.

    Nothing if the index of the commit is not in the cache: a key press is no time to build one.
    """
    found = cached_graph(store_option)
    return names_for(found[0], typed) if found else []


def cached_graph(store_option: str | None) -> tuple[Index, Reader, Commit] | None:
    """The newest commit and its index; None if the index is not in the cache."""
    from govtool.app.versions.index import open_index
    from govtool.graph.layout import FORMAT
    from govtool.store.cache import cache_dir, lookup

    store = read_store(store_option)
    commit = commit_at(store, None)
    if not lookup(cache_dir(store.store_id, f"{commit.content_id}-{FORMAT}")):
        return None
    return open_index(store, commit), store, commit


def complete_refs(store_option: str | None, typed: str) -> list[str]:
    """``HEAD``, the commits before it by number of steps, and the tags of the store."""
    from govtool.store.refs import tag_names

    names = ["HEAD", "HEAD~1", *tag_names(read_store(store_option).objects)]
    return [name for name in names if name.startswith(typed)][:MOST_NAMES]


def names_for(index: Index, typed: str) -> list[str]:
    """Sorted candidates, at most ``MOST_NAMES``: ``us`` gives ``users``, ``users.e`` gives ``users.email``."""
    from govtool.query.selection.select import complete

    found = [name[_start(name, typed) :] for name in complete(index, typed, MOST_NAMES)]
    return sorted({*found, *_last_parts(index, typed)})[:MOST_NAMES]


def _start(name: str, typed: str) -> int:
    """Return the position at which the typed part starts in a full name."""
    return 0 if name.startswith(typed) else name.find(f".{typed}") + 1


def _last_parts(index: Index, typed: str) -> set[str]:
    """Last parts of dataset names; they lie side by side in the order of suffixes."""
    from govtool.arrays.suffix import suffix_key

    order = index.arrays["dataset_suffix"]
    at = bisect_left(range(len(order)), typed, key=lambda i: suffix_key(index.dataset_name(order[i])))
    found: set[str] = set()
    while at < len(order) and len(found) < MOST_NAMES:
        last = suffix_key(index.dataset_name(order[at])).split("\0", 1)[0]
        if not last.startswith(typed):
            break
        found.add(last)
        at += 1
    return found
