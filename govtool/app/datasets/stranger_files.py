"""Files of datasets that no recorded run left there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.records.execute.inputs import local_path
from govtool.records.lake.leaf_options import table_of

if TYPE_CHECKING:
    from govtool.records.lake.written import LiveTables
    from govtool.records.plan.nodes import Relation


def stranger_files(known: Collection[str]) -> int:
    """Return the number of local files in the folders of known datasets that are not among the known files, by URI.

    The folder of a dataset is that above its partition folders, ``day=2026-11-20``: a partition that another writer
    added is one of its.
    """
    paths = {path for path in map(local_path, known) if path is not None}
    return sum(path not in paths for root in set(map(_root, paths)) for path in _data_files(root))


def files_beside(left: Iterable[Relation], live: LiveTables) -> int:
    """Return the number of files of datasets that are not among those that runs left: in folders, or live in tables.

    Args:
        left: What runs left.
        live: What tables have now.
    """
    relations = list(left)
    plain = {file.uri for each in relations if table_of(each) is None for file in each.files}
    return stranger_files(plain) + live.beside(relations)


def are_local(known: Collection[str]) -> bool:
    """Return whether there are files, all of them on this machine: only there are others seen beside them."""
    return bool(known) and all(local_path(uri) is not None for uri in known)


def _root(file: Path) -> Path:
    """The folder of a dataset, of one of its files."""
    parts = file.parent.parts
    partitions = [number for number, part in enumerate(parts) if "=" in part[1:]]
    return Path(*parts[: partitions[0]]) if partitions else file.parent


def _data_files(folder: Path) -> Iterator[Path]:
    """The files of a folder and of its partitions, without those that Spark does not read."""
    for path in folder.iterdir():
        if path.is_dir():
            if "=" in path.name[1:] and not path.name.startswith("."):
                yield from _data_files(path)
        elif path.is_file() and not path.name.startswith(("_", ".")):
            yield path
