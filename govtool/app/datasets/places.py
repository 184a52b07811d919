"""Locations of datasets, and names of locations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.app.project.path_root import paths_root, within_root
from govtool.errors import AmbiguousNameError, UnknownNameError, UsageError
from govtool.names import current_id, place_of_id
from govtool.store.backends.location import REMOTE

if TYPE_CHECKING:
    from govtool.store import Commit, Reader


@dataclass(frozen=True, slots=True)
class PlacedDataset:
    """A dataset, its other names, and its place."""

    names: tuple[str, ...]
    """Canonical ids, the one that was asked for first."""
    path: str
    """A local path or a URI."""


def path_id(place: str) -> str:
    """The name of a place in the graph: ``file:///data/orders``, ``s3://lake/orders``; see ``[paths] root``."""
    from govtool.capture.openlineage.identity import normalise
    from govtool.store.backends.location import local_path

    path = local_path(place)
    if path is not None:
        return within_root(absolute_id(path))
    scheme, _, rest = place.partition("://")
    host, _, key = rest.partition("/")
    return normalise(f"{scheme}://{host}", key).id


def absolute_id(path: Path) -> str:
    """The name of a local path, whatever ``[paths] root`` is."""
    from govtool.capture.openlineage.identity import normalise

    return normalise("file", str(path.absolute())).id


def place_of(store: Reader, commit: Commit, dataset: str) -> PlacedDataset | None:
    """The place of a dataset of the graph: its own name if that is a path, else that of an alias.

    Returns:
        None if the graph has no such dataset.

    Raises:
        UsageError: the dataset has no place that is known, ``usage.place``.
        AmbiguousNameError: several are called so.
    """
    from govtool.app.versions.index import open_index
    from govtool.query.alias import other_names
    from govtool.query.selection.select import select

    index = open_index(store, commit)
    try:
        subject = select(index, dataset)
    except UnknownNameError as error:
        if isinstance(error, AmbiguousNameError):
            raise
        return None
    own = index.dataset_name(subject.dataset)
    aliases = {index.dataset_name(other) for other in other_names(index, subject.dataset)}
    for name in (own, *sorted(aliases)):
        path = _path(name)
        if path is not None:
            return PlacedDataset((own, *sorted(aliases - {own})), path)
    raise UsageError(
        f"where the data of {own} lies is not known",
        code="usage.place",
        hint=f"govtool verify PATH --name {own}",
    )


def local_place(dataset: str) -> Path | None:
    """The path of a dataset on this machine; None where it lies elsewhere, or a relative one has no root."""
    place = place_of_id(current_id(dataset))
    if place is None or place[0] != "file":
        return None
    root = paths_root()
    if place[1].startswith("/"):
        return Path(place[1])
    return Path(root, place[1]) if root else None


def _path(name: str) -> str | None:
    """The path or URI behind the id of a dataset, if it is one."""
    local = local_place(name)
    if local is not None:
        return str(local)
    scheme, separator, _ = name.partition("://")
    return name if separator and scheme in REMOTE else None
