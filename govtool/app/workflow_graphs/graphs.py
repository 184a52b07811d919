"""Provenance graphs of workflows: kept in the store, opened by name.

A graph in the store is an ingest source of its own, ``graph:NAME``: an import replaces it, and earlier commits keep
what it was. It is opened from the local cache, where it is one file of arrays that is mapped into memory.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.answers.workflow_graph import GraphEntry, GraphImportAnswer, GraphListAnswer, UnlistedGraphs
from govtool.app.workflow_graphs.graph_cache import cached_graph
from govtool.app.workflow_graphs.graph_files import is_graph_file, read_graph
from govtool.app.workflow_graphs.run_graphs import DRAWN, RUN_PREFIX, RunDrawing, graphs_of_runs, open_run_graph
from govtool.errors import UnknownNameError, UsageError
from govtool.store.names import DEFAULT_BRANCH

if TYPE_CHECKING:
    from govtool.app.records.damaged import DamagedFragment
    from govtool.store import Commit, FragmentRef, Reader, Store
    from govtool.workflow.graph import ProvenanceGraph

PREFIX = "graph:"
"""The prefix of the ingest sources of graphs."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def import_graph(
    store: Store,
    path: str,
    *,
    name: str | None = None,
    message: str | None = None,
    author: str | None = None,
    branch: str = DEFAULT_BRANCH,
) -> GraphImportAnswer:
    """Read a graph and commit it; one of the same name is replaced.

    Raises:
        UsageError: The file is mistaken (``usage.graph``), or the name cannot be that of a graph
            (``usage.graph-name``).
        StoreError: The commit could not be written.
    """
    from govtool.app.project.user import user_name
    from govtool.store import Changes, Fragment
    from govtool.workflow.storage.parquet import EDGES, GRAPHS, NODES, described, edge_parts, node_parts

    chosen = name if name is not None else Path(path).stem
    if not _NAME.fullmatch(chosen):
        raise UsageError(
            f"{chosen[:60]!r} cannot be the name of a graph: letters, digits, _ . -",
            code="usage.graph-name",
            hint="--name NAME",
        )
    graph = read_graph(path)
    source = f"{PREFIX}{chosen}"
    uploaded = [store.upload(Fragment(source, NODES, data, rows)) for data, rows in node_parts(graph)]
    uploaded += [store.upload(Fragment(source, EDGES, data, rows)) for data, rows in edge_parts(graph)]
    uploaded.sort()
    entry = GraphEntry(chosen, graph.node_count, graph.edge_count, tuple(sorted(graph.modules)))
    about = Fragment(source, GRAPHS, described(chosen, graph.node_count, graph.edge_count, entry.modules), 1)
    result = store.commit(
        Changes(retract=(source,), add=(about,), uploaded=tuple(uploaded)),
        message=message or f"graph import {chosen}",
        author=author or user_name(),
        batch=f"{source}:{_digest(uploaded)}",
        summary={"command": "graph import", "source": source, "nodes": entry.nodes, "edges": entry.edges},
        branch=branch,
    )
    return GraphImportAnswer(entry, result.commit.seq, result.created)


def list_graphs(store: Reader, commit: Commit) -> GraphListAnswer:
    """The graphs of a version of a store, by name, and what cannot be listed because it is damaged.

    Raises:
        StoreError: The store cannot be read.
    """
    from govtool.app.records.damaged import decoded_beside_damage
    from govtool.workflow.storage.parquet import GRAPHS, description

    refs = [ref for ref in store.fragments(commit) if ref.table == GRAPHS]
    imported, lost = decoded_beside_damage(store, refs, lambda data: [GraphEntry(*description(data))])
    of_runs, lost_runs = graphs_of_runs(store, commit)
    return GraphListAnswer(
        (*sorted(imported, key=lambda entry: entry.name), *of_runs), (*map(_unlisted, lost), *lost_runs)
    )


def _unlisted(damage: DamagedFragment) -> UnlistedGraphs:
    name = damage.ref.source.removeprefix(PREFIX)
    return UnlistedGraphs(
        name,
        damage.why,
        damage.ref.key,
        f"restore this object from a copy of the store, or: govtool graph import FILE --name {name}",
    )


def open_graph(store: Reader, commit: Commit, name: str) -> ProvenanceGraph:
    """Open a graph of a version of a store; the cache keeps it as one file of arrays.

    Raises:
        UnknownNameError: There is no graph of this name (``usage.unknown-graph``).
        StoreError: A fragment cannot be read.
    """
    refs = store.fragments_of(commit, f"{PREFIX}{name}")
    if not refs:
        names = [entry.name for entry in list_graphs(store, commit).graphs]
        raise UnknownNameError(
            f"there is no graph and no file named {name!r}",
            code="usage.unknown-graph",
            nearest=tuple(difflib.get_close_matches(name, names, 3, 0.4)),
            hint="govtool graph list",
        )
    return cached_graph(store, _digest(refs), lambda: _built(store, refs))


def _built(store: Reader, refs: Sequence[FragmentRef]) -> ProvenanceGraph:
    from govtool.workflow.storage.parquet import EDGES, NODES, graph_from

    def read(table: str) -> Iterator[bytes]:
        return (store.read(ref) for ref in sorted(refs) if ref.table == table)

    return graph_from(read(NODES), read(EDGES))


def _digest(refs: Sequence[FragmentRef]) -> str:
    return hashlib.sha256("".join(sorted(f"{ref.table}{ref.sha256}" for ref in refs)).encode()).hexdigest()


def graph_called(
    text: str,
    *,
    store: str | None = None,
    at: str | None = None,
    branch: str | None = None,
    drawing: RunDrawing = DRAWN,
) -> ProvenanceGraph:
    """Open the graph of a file or a name. A text that looks like a path, or is a file, is a path.

    Args:
        text: A file, a name, or ``run:`` and the name of a workflow run.
        store: The store of a name.
        at: Its version.
        branch: The branch that counts.
        drawing: Of a run, how its graph is drawn.

    Raises:
        UsageError: The file is mistaken (``usage.graph``).
        UnknownNameError: There is neither (``usage.unknown-graph``).
        StoreError: There is no store, or it cannot be read.
    """
    if drawing != DRAWN and not text.startswith(RUN_PREFIX):
        raise UsageError(
            "--state-nodes, --pig-nodes and --all-runs apply only with --run",
            code="usage.arguments",
            hint="--run RUN",
        )
    if is_graph_file(text):
        return read_graph(text)
    from govtool.app.project.project import commit_at, read_store

    reader = read_store(store)
    commit = commit_at(reader, at, branch)
    return graph_in(reader, commit, text, drawing)


def graph_in(store: Reader, commit: Commit, text: str, drawing: RunDrawing = DRAWN) -> ProvenanceGraph:
    """As ``graph_called``, for a version of a store that is open already."""
    if is_graph_file(text):
        return read_graph(text)
    if text.startswith(RUN_PREFIX):
        return open_run_graph(store, commit, text.removeprefix(RUN_PREFIX), drawing)
    return open_graph(store, commit, text)
