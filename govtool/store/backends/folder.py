"""The files below a place that is no store, a folder or a prefix of objects: their sizes, and what reads them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

_LARGEST = 512 * 1024 * 1024
"""Bytes of a file that is read at most."""


def open_folder(place: str, below: str = "") -> tuple[dict[str, int], Callable[[str], bytes | None]]:
    """The sizes of all files below a place, and what reads one of them.

    Args:
        place: A folder or a URI.
        below: Only files in this folder below the place; their names begin with it.

    Raises:
        StoreError: The place cannot be listed.
        UsageError: It is no address.
    """
    from govtool.store.backends.location import local_path

    path = local_path(place)
    return _remote(place, below) if path is None else _local(path, below)


def _local(root: Path, below: str) -> tuple[dict[str, int], Callable[[str], bytes | None]]:
    sizes: dict[str, int] = {}
    for folder, _, names in os.walk(root / below):
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


def _remote(place: str, below: str) -> tuple[dict[str, int], Callable[[str], bytes | None]]:
    import obstore

    from govtool.store.backends.failures import translate
    from govtool.store.backends.location import open_object_store
    from govtool.store.backends.objects import list_with_tags

    objects = open_object_store(f"{place.rstrip('/')}/{below}" if below else place)
    before = f"{below}/" if below else ""
    sizes = {before + key: size for key, size, _ in list_with_tags(place, objects)}

    def read(name: str) -> bytes | None:
        if sizes.get(name, _LARGEST) >= _LARGEST:
            return None
        try:
            return bytes(obstore.get(objects, name.removeprefix(before)).bytes())
        except Exception as error:
            raise translate(error, f"read {name}", place) from error

    return sizes, read
