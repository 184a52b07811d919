"""The data files of a Delta or Iceberg table, beside what the table's log says of them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from govtool.answers.verify import TableFiles
from govtool.capture.tables.delta import Read, delta_files
from govtool.capture.tables.iceberg import current_snapshot, iceberg_files
from govtool.model.version import ContentIdentity
from govtool.store.backends.folder import open_folder

_METADATA = re.compile(r"metadata/(?:v(\d+)|(\d+)-[0-9a-f-]+)(?:\.gz)?\.metadata\.json")


def iceberg_snapshot(place: str) -> int | None:
    """The current snapshot of the Iceberg table at a place; None where its metadata names none."""
    sizes, read = open_folder(place)
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
    sizes, read = open_folder(place)
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
