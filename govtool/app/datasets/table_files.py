"""The data files of a Delta or Iceberg table, beside what the table's log says of them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from govtool.answers.verify import TableFiles
from govtool.capture.tables.delta import Read, delta_files
from govtool.capture.tables.iceberg import current_snapshot, iceberg_files
from govtool.model.version import ContentIdentity

_METADATA = re.compile(r"metadata/(?:v(\d+)|(\d+)-[0-9a-f-]+)(?:\.gz)?\.metadata\.json")
_LARGEST = 512 * 1024 * 1024
"""Bytes of a file of a log that is read at most."""


def iceberg_snapshot(place: str) -> int | None:
    """The current snapshot of the Iceberg table at a place; None where its metadata names none."""
    sizes, read = _opened(place)
    metadata = _newest_metadata(sizes, read)
    return None if metadata is None else current_snapshot(metadata)


def check_table_files(place: str, identity: ContentIdentity) -> TableFiles | None:
    """Compare the files of a table with its log; None for what is no table.

    Args:
        place: A folder or a URI.
        identity: What is there now.

    Raises:
        StoreError: The place cannot be listed.
    """
    if identity.kind not in ("delta", "iceberg"):
        return None
    sizes, read = _opened(place)
    if identity.kind == "delta":
        live = delta_files(sizes, read, identity.version or 0)
    else:
        metadata = _newest_metadata(sizes, read)
        live = None if metadata is None else iceberg_files(metadata, read)
    if live is None:
        return TableFiles(0)
    missing = tuple(sorted(path for path in live if path not in sizes))
    resized = tuple(sorted(p for p, size in live.items() if p in sizes and size >= 0 and sizes[p] != size))
    return TableFiles(len(live), missing, resized)


def _newest_metadata(sizes: Mapping[str, int], read: Read) -> bytes | None:
    found = [(int(match[1] or match[2]), path) for path in sizes if (match := _METADATA.fullmatch(path))]
    return read(max(found)[1]) if found else None


def _opened(place: str) -> tuple[dict[str, int], Read]:
    """The sizes of all files below a place, and what reads one of them."""
    from govtool.store.backends.location import local_path

    path = local_path(place)
    return _remote(place) if path is None else _local(path)


def _local(root: Path) -> tuple[dict[str, int], Read]:
    sizes: dict[str, int] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            file = Path(folder, name)
            if file.exists():
                sizes[file.relative_to(root).as_posix()] = file.stat().st_size

    def read(name: str) -> bytes | None:
        if sizes.get(name, _LARGEST) >= _LARGEST:
            return None
        try:
            return (root / name).read_bytes()
        except OSError:
            return None

    return sizes, read


def _remote(place: str) -> tuple[dict[str, int], Read]:
    import obstore

    from govtool.store.backends.failures import translate
    from govtool.store.backends.location import open_object_store
    from govtool.store.backends.objects import list_with_tags

    objects = open_object_store(place)
    sizes = {key: size for key, size, _ in list_with_tags(place, objects)}

    def read(name: str) -> bytes | None:
        if sizes.get(name, _LARGEST) >= _LARGEST:
            return None
        try:
            return bytes(obstore.get(objects, name).bytes())
        except Exception as error:
            raise translate(error, f"read {name}", place) from error

    return sizes, read
