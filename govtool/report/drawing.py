"""The places of the datasets of a view, and of the groups that they form, in a picture from left to right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from govtool.names import split_name
from govtool.report.layout import contracted, place
from govtool.report.model import DatasetView, LineageView

FILES = "files"
"""The group of datasets that are files, stages and addresses."""
QUERIES = "queries"
"""The group of queries that make no dataset."""
TOP = "default"
"""The group of datasets whose names have no schema."""
MANY = 40
"""Datasets without a schema that are not left in one group, as those of a dbt project: their files' folders are."""
DEEPEST = 12
"""Levels of folders that are looked at."""
SHARE = 8
"""A folder is divided into those below it while it holds many, and more than one of so many of all of them."""


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


def groups_of(view: LineageView) -> list[str]:
    """The group of each dataset: see ``group_of``; of many without a schema, the folder whose files write them."""
    found = [group_of(dataset) for dataset in view.datasets]
    loose = [at for at, group in enumerate(found) if group == TOP]
    if len(loose) > MANY:
        folders = _folders_of(view, loose)
        many = max(MANY, len(folders) // SHARE)
        for at, folder in _divided(folders, sorted(folders), 1, many).items():
            found[at] = folder
    return found


def _folders_of(view: LineageView, datasets: Iterable[int]) -> dict[int, tuple[str, ...]]:
    """The folders, from the top, of the first file with a statement that writes a dataset; none of one above all."""
    wanted = set(datasets)
    files: dict[int, str] = {}
    for edge in view.edges:
        written = edge.target.dataset
        if written in wanted:
            file = view.statements[edge.statement].file
            files[written] = min(file, files.get(written, file))
    parts = {at: tuple(part for part in file.split("/")[:-1] if part)[:DEEPEST] for at, file in files.items()}
    return {at: folders for at, folders in parts.items() if folders}


def _divided(folders: Mapping[int, tuple[str, ...]], members: Sequence[int], depth: int, many: int) -> dict[int, str]:
    """The name of the folder of each dataset, as far down as a folder still holds many."""
    found: dict[int, str] = {}
    below: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for at in members:
        below[folders[at][:depth]].append(at)
    for path, inside in below.items():
        name = "/".join(path) + "/"
        deeper = [at for at in inside if len(folders[at]) > depth] if len(inside) > many else []
        found.update(dict.fromkeys(inside, name))
        found.update(_divided(folders, deeper, depth + 1, many))
    return found


def drawing(view: LineageView) -> dict[str, object]:
    """The JSON value: groups, and for each dataset its group, layer and rank.

    Temporary datasets have a place too, which nothing is drawn at.
    """
    shown = [not dataset.is_temporary for dataset in view.datasets]
    pairs = {(edge.source.dataset, edge.target.dataset) for edge in view.edges}
    edges = contracted(pairs, [not one for one in shown])
    group = groups_of(view)
    groups = sorted(set(group))
    number = {name: at for at, name in enumerate(groups)}
    of_dataset = [number[name] for name in group]
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
