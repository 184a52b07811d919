"""Columns that two versions of the graph have, type or make differently."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from govtool.graph.index import Index
from govtool.query.versions.diff import unlike


def column_changes(old: Index, new: Index) -> Iterator[tuple[str, str, int, str]]:
    """Kind of change, name, node (of the old version; for ``add`` of the new), and a detail; sorted by name.

    Only datasets that the two versions tell differently are looked at.
    """
    differ = sorted(unlike(old, new))
    for dataset in _shown(old, differ):
        for node in old.columns(dataset):
            if old.is_unknown(node):
                continue
            here = new.find(old.ref(node))
            if here is None or new.is_hidden(new.node_dataset[here]):
                yield "drop", old.name(node), node, ""
                continue
            was, is_ = old.type(node), new.type(here)
            if was and is_ and was.lower() != is_.lower():
                yield "retype", old.name(node), node, f"{was} to {is_}"
            if _made(old, node) != _made(new, here):
                yield "logic", old.name(node), node, ""
    for dataset in _shown(new, differ):
        for node in new.columns(dataset):
            if not new.is_unknown(node) and old.find(new.ref(node)) is None:
                yield "add", new.name(node), node, ""


def _shown(index: Index, names: Iterable[str]) -> Iterator[int]:
    """The visible datasets of some names."""
    for name in names:
        dataset = index.find_dataset(name)
        if dataset is not None and not index.is_hidden(dataset):
            yield dataset


def _made(index: Index, node: int) -> set[tuple[str, int, tuple[str, ...]]]:
    """Return the sources of a column, and how they reach it."""
    return {(index.name(index.edge_source[e]), index.kind(e), index.functions(e)) for e in index.in_edges(node)}
