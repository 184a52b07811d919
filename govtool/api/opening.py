"""Open a store and one version of its graph; create a store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.api.arguments import Ref, checked
from govtool.api.graph import Graph

if TYPE_CHECKING:
    from govtool.app.project.discover import WrittenSources
    from govtool.app.project.requests import PathArgument
    from govtool.app.versions.index import Progress


@checked
def open(
    store: PathArgument | None = None,
    *,
    ref: Ref | None = None,
    branch: str | None = None,
    progress: Progress | None = None,
) -> Graph:
    """Open one version of the lineage graph.

    Args:
        store: A path or URI. By default GOVTOOL_STORE, ``store`` in govtool.toml, or the ``.govtool`` folder here.
        ref: A commit, tag, branch, ``HEAD~1`` or date; by default the newest commit.
        branch: The branch that counts; by default ``main``.
        progress: Called as ``progress(done, total)`` while an index is built.

    Raises:
        StoreError: There is no store (``store.missing``), or it cannot be read.
        UnknownNameError: There is no such commit or branch.
        UsageError: The store has no commit yet (``usage.empty-store``).
    """
    from govtool.app.project.project import commit_at, read_store

    reader = read_store(None if store is None else os.fspath(store))
    return Graph(reader, commit_at(reader, None if ref is None else str(ref), branch), branch, progress)


@checked
def init(store: PathArgument | None = None) -> str:
    """Create a store and return its URI.

    Args:
        store: A path or URI; by default that of the settings, else ``.govtool`` in the working directory.

    Raises:
        StoreError: There is one already (``store.exists``), or it cannot be written.
    """
    from govtool.app.project.project import create_store

    return create_store(None if store is None else os.fspath(store)).uri


@checked
def write_sources(
    folder: PathArgument | None = None, *, store: PathArgument | None = None, append: bool = False
) -> WrittenSources | None:
    """Write a ``govtool.toml`` that lists the sources in a folder; None where it has one, or holds no sources.

    Args:
        folder: The project's folder; by default the working directory.
        store: A path or URI that the file names; by default none.
        append: Add the sources to a ``govtool.toml`` that lists none.

    Raises:
        UsageError: It cannot be written, or the one that is there is not valid (``usage.config``).
    """
    from govtool.app.project.discover import write_config

    place = Path.cwd() if folder is None else Path(os.fspath(folder))
    return write_config(place, None if store is None else os.fspath(store), append=append)
