"""The places of the datasets of a view, and of the groups that they form, in a picture from left to right."""

from __future__ import annotations

from collections.abc import Iterable

from govtool.names import split_name
from govtool.report.layout import contracted, place
from govtool.report.model import DatasetView, LineageView

FILES = "files"
"""The group of datasets that are files, stages and addresses."""
QUERIES = "queries"
"""The group of queries that make no dataset."""
TOP = "default"
"""The group of datasets whose names have no schema."""


def group_of(dataset: DatasetView) -> str:
    """The zone that policies put a dataset in; without one its schema.

    >>> group_of(DatasetView("crm.users", "table", ())), group_of(DatasetView('"/tmp/x.csv"', "file", ()))
    ('crm', 'files')
    """
    if dataset.zone:
        return dataset.zone
    if dataset.kind == "query":
        return QUERIES
    parts = split_name(dataset.name)
    if len(parts) > 1:
        return ".".join(parts[:-1])
    return FILES if any(mark in parts[0] for mark in "/@:") else TOP


def drawing(view: LineageView) -> dict[str, object]:
    """The JSON value: groups, and for each dataset its group, layer and rank.

    Temporary datasets have a place too, which nothing is drawn at.
    """
    shown = [not dataset.is_temporary for dataset in view.datasets]
    pairs = {(edge.source.dataset, edge.target.dataset) for edge in view.edges}
    edges = contracted(pairs, [not one for one in shown])
    groups = sorted({group_of(dataset) for dataset in view.datasets})
    number = {name: at for at, name in enumerate(groups)}
    of_dataset = [number[group_of(dataset)] for dataset in view.datasets]
    datasets = place(len(view.datasets), edges)
    zones = place(len(groups), _between(edges, of_dataset))
    return {
        "groups": groups,
        "group_layers": list(zones.layers),
        "group_ranks": list(zones.ranks),
        "group": of_dataset,
        "layer": list(datasets.layers),
        "rank": list(datasets.ranks),
        "crossings": datasets.crossings,
    }


def _between(edges: Iterable[tuple[int, int]], group: list[int]) -> set[tuple[int, int]]:
    return {(group[source], group[target]) for source, target in edges}
