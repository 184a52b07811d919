"""Provenance graphs in the local cache: each is a folder with one file of arrays, which is mapped into memory."""

from __future__ import annotations

import mmap
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.errors import FormatError, IntegrityError, StoreError

if TYPE_CHECKING:
    from govtool.store import Reader
    from govtool.workflow.graph import ProvenanceGraph


def cache_folder(store: Reader, key: str) -> Path:
    """The folder of a graph, whether it is there or not."""
    from govtool.store.cache import cache_dir
    from govtool.workflow.storage.mapped import FORMAT

    return cache_dir(store.cache_id, f"{key}-{FORMAT}-graph")


def graph_in_cache(store: Reader, key: str) -> ProvenanceGraph | None:
    """A graph that was opened before; None if it is not in the cache, or damaged."""
    from govtool.store.cache import lookup
    from govtool.workflow.storage.mapped import FILE, opened

    directory = cache_folder(store, key)
    try:
        return opened(_mapped(directory / FILE)) if lookup(directory) else None
    except (IntegrityError, FormatError, OSError, ValueError):
        return None


def cached_graph(
    store: Reader, key: str, build: Callable[[], ProvenanceGraph], beside: Callable[[Path], None] | None = None
) -> ProvenanceGraph:
    """Open a graph from the cache; one that is not there is built, and kept.

    Args:
        store: The store that it belongs to.
        key: What it is built from.
        build: Builds it.
        beside: Writes more files into the folder of one that was built.
    """
    from govtool.store.cache import publish
    from govtool.workflow.storage.mapped import FILE, opened, pack

    found = graph_in_cache(store, key)
    if found is not None:
        return found
    directory = cache_folder(store, key)
    shutil.rmtree(directory, ignore_errors=True)  # a damaged one
    graph = build()

    def fill(folder: Path) -> None:
        with (folder / FILE).open("wb") as handle:
            handle.writelines(pack(graph))
        if beside is not None:
            beside(folder)

    try:
        publish(directory, fill)
        return opened(_mapped(directory / FILE))
    except (StoreError, OSError, ValueError):
        return graph  # the cache is a help, not a need


def _mapped(file: Path) -> memoryview:
    """The file in memory; a small one is compared with its checksums."""
    from govtool.app.versions.kept_files import ALWAYS_VERIFIED
    from govtool.arrays.layout import verify
    from govtool.workflow.storage.mapped import FORMAT

    with file.open("rb") as handle:
        view = memoryview(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ))
    if len(view) <= ALWAYS_VERIFIED:
        verify(view, FORMAT)
    return view
