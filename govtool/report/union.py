"""Two versions of a graph laid over each other, with marks for added, removed and changed parts.

Datasets and columns are the same by name, edges by their two ends and their kind, as in
``govtool.query.versions.diff``: other labels or masking make an edge *changed*; a statement that only moved changes
nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from govtool.report.model import (
    ADDED,
    CHANGED,
    REMOVED,
    ROWS,
    ColumnView,
    DatasetView,
    EdgeView,
    LineageView,
    ViewNode,
)

_QUERY = "query"


class _Name(NamedTuple):
    """A dataset by its name; ended generations of a script's table share one, and are distinguished by their order."""

    name: str
    is_temporary: bool
    generation: int


class _EdgeKey(NamedTuple):
    source: tuple[str, str]
    target: tuple[str, str]
    kind: str


def union(old: LineageView, new: LineageView) -> LineageView:
    """The new version, with parts that only the old one has; each changed part has a mark."""
    before, after = _by_name(old), _by_name(new)
    names = sorted({*before, *after})
    datasets = tuple(_dataset(before.get(name), after.get(name)) for name in names)
    places = {name: number for number, name in enumerate(names)}
    old_moves, new_moves = (_Moves(side, places, datasets) for side in (old, new))
    kept, gone = _edge_keys(old), _edge_keys(new)
    edges = [
        replace(new_moves.edge(edge), change=_edge_change(kept.get(_key(new, edge)), gone[_key(new, edge)]))
        for edge in new.edges
    ]
    offset = len(new.statements)
    for edge in old.edges:
        if _key(old, edge) not in gone:
            moved = old_moves.edge(edge)
            edges.append(replace(moved, statement=moved.statement + offset, change=REMOVED))
    return _without_unused(LineageView(datasets, tuple(edges), (*new.statements, *old.statements)))


def _by_name(view: LineageView) -> dict[_Name, DatasetView]:
    return dict(zip(_names(view), view.datasets, strict=True))


def _names(view: LineageView) -> list[_Name]:
    seen: defaultdict[tuple[str, bool], int] = defaultdict(int)
    found = []
    for dataset in view.datasets:
        key = dataset.name, dataset.is_temporary
        found.append(_Name(*key, seen[key]))
        seen[key] += 1
    return found


def _dataset(old: DatasetView | None, new: DatasetView | None) -> DatasetView:
    if new is None:
        assert old is not None
        return _all_marked(old, REMOVED)
    if old is None:
        return _all_marked(new, ADDED)
    change = CHANGED if old.kind != new.kind else None
    columns = _columns(old.columns, new.columns)
    return replace(new, columns=columns, change=change if _is_shown(new) else None)


def _is_shown(dataset: DatasetView) -> bool:
    """Return whether a comparison lists the dataset: neither a temporary one nor a bare query."""
    return not dataset.is_temporary and dataset.kind != _QUERY


def _all_marked(dataset: DatasetView, change: str) -> DatasetView:
    if not _is_shown(dataset):
        return dataset
    columns = tuple(replace(column, change=None if column.is_unknown else change) for column in dataset.columns)
    return replace(dataset, change=change, columns=columns)


def _columns(old: Iterable[ColumnView], new: Iterable[ColumnView]) -> tuple[ColumnView, ...]:
    """The columns of both, by path; a field finds its container again by the path of that."""
    before, after = ({column.path: column for column in side} for side in (list(old), list(new)))
    order = sorted({*before, *after})
    place = {path: number for number, path in enumerate(order)}
    parents = {**_parents(before), **_parents(after)}
    found = []
    for path in order:
        column = after.get(path) or before[path]
        above = parents.get(path)
        change = None if column.is_unknown else _column_change(before.get(path), after.get(path))
        found.append(replace(column, change=change, parent=None if above is None else place[above]))
    return tuple(found)


def _parents(columns: Mapping[str, ColumnView]) -> dict[str, str]:
    order = list(columns)
    return {path: order[column.parent] for path, column in columns.items() if column.parent is not None}


def _column_change(old: ColumnView | None, new: ColumnView | None) -> str | None:
    if new is None:
        return REMOVED
    if old is None:
        return ADDED
    return CHANGED if old.type != new.type else None


class _Moves:
    """The numbers of one version's nodes in the union."""

    def __init__(self, view: LineageView, places: Mapping[_Name, int], datasets: tuple[DatasetView, ...]) -> None:
        self._datasets = [places[name] for name in _names(view)]
        self._columns = [
            _column_places(dataset, datasets[place])
            for dataset, place in zip(view.datasets, self._datasets, strict=True)
        ]

    def edge(self, edge: EdgeView) -> EdgeView:
        return replace(edge, source=self._node(edge.source), target=self._node(edge.target))

    def _node(self, ref: ViewNode) -> ViewNode:
        column = ROWS if ref.column == ROWS else self._columns[ref.dataset][ref.column]
        return ViewNode(self._datasets[ref.dataset], column)


def _column_places(dataset: DatasetView, merged: DatasetView) -> list[int]:
    place = {column.path: number for number, column in enumerate(merged.columns)}
    return [place[column.path] for column in dataset.columns]


def _edge_keys(view: LineageView) -> dict[_EdgeKey, set[str]]:
    """The manners of each edge by what tells it."""
    found: defaultdict[_EdgeKey, set[str]] = defaultdict(set)
    for edge in view.edges:
        found[_key(view, edge)].add(f"{edge.label}, masking" if edge.is_masking else edge.label)
    return dict(found)


def _key(view: LineageView, edge: EdgeView) -> _EdgeKey:
    return _EdgeKey(view.name_of(edge.source), view.name_of(edge.target), edge.kind)


def _edge_change(old: set[str] | None, new: set[str]) -> str | None:
    if old is None:
        return ADDED
    return None if old == new else CHANGED


def _without_unused(view: LineageView) -> LineageView:
    """The view without the statements that no edge cites any more."""
    used = sorted({edge.statement for edge in view.edges})
    place = {number: at for at, number in enumerate(used)}
    edges = tuple(replace(edge, statement=place[edge.statement]) for edge in view.edges)
    return replace(view, edges=edges, statements=tuple(view.statements[number] for number in used))
