"""Provenance graphs of workflows: read from files, kept in the store, opened by name.

A graph in the store is an ingest source of its own, ``graph:NAME``: an import replaces it, and earlier commits keep
what it was. It is opened from the local cache, where it is one file of arrays that is mapped into memory.
"""

from __future__ import annotations

import difflib
import hashlib
import mmap
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.answers.workflow_graph import GraphEntry, GraphImportAnswer, GraphListAnswer
from govtool.errors import FormatError, IntegrityError, StoreError, UnknownNameError, UsageError
from govtool.store.names import DEFAULT_BRANCH

if TYPE_CHECKING:
    from govtool.app.workflow_runs.programs.replaced import PartitionHistory
    from govtool.store import Commit, FragmentRef, Reader, Store
    from govtool.workflow.graph import ProvenanceGraph
    from govtool.workflow.modules.run_graph import StateNodes
    from govtool.workflow.modules.run_tuples import OutputTuples, RunGraph

PREFIX = "graph:"
"""The prefix of the ingest sources of graphs."""
RUN_PREFIX = "run:"
"""The prefix of names that mean the graph of a workflow run."""
SUFFIXES = {".json": "json", ".graphml": "graphml", ".xml": "graphml"}
"""Formats that are read, by the end of a file's name."""
_OUTPUTS = "outputs.json"
"""The file of the cache with the output rows of a run, beside its graph."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def read_graph(path: str) -> ProvenanceGraph:
    """Read a graph from a file: JSON, or GraphML by its name.

    Raises:
        UsageError: It cannot be read, is no graph, or mistaken (``usage.graph``), with the line and the reason.
    """
    from govtool.given_files import read_given
    from govtool.workflow.formats.read_graphml import read_graphml
    from govtool.workflow.formats.read_json import MAX_BYTES, read_json, refuse_large

    file = Path(path)
    try:
        refuse_large(file.stat().st_size, path)
        data = read_given(file, MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot be read: {reason.lower()}", code="usage.graph", location=path) from error
    reader = read_graphml if SUFFIXES.get(file.suffix.lower()) == "graphml" else read_json
    return reader(data, path)


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
    """The graphs of a version of a store, by name.

    Raises:
        StoreError: A fragment cannot be read.
    """
    from govtool.workflow.storage.parquet import GRAPHS, description

    refs = [ref for ref in store.fragments(commit) if ref.table == GRAPHS]
    found = [GraphEntry(*description(data)) for data in store.read_many(refs)]
    return GraphListAnswer((*sorted(found, key=lambda entry: entry.name), *_graphs_of_runs(store, commit)))


def _graphs_of_runs(store: Reader, commit: Commit) -> Iterator[GraphEntry]:
    """The graphs that runs with records have; their sizes are known of workflows' in the cache."""
    from govtool.app.workflow_runs.programs.recorded import list_recorded_runs
    from govtool.model.workflow_run import run_text

    for run in list_recorded_runs(store, commit):
        if run.mode == "records" and run.executions:
            modules = tuple(sorted({each.module for each in run.invocations if each.execution <= run.whole}))
            graph = _in_cache(store, _run_key(run_text(run)))
            nodes, edges = (None, None) if graph is None else (graph.node_count, graph.edge_count)
            yield GraphEntry(f"{RUN_PREFIX}{run.id}", nodes, edges, modules)


@dataclass(frozen=True, slots=True)
class RunDrawing:
    """How the graph of a run is drawn.

    Attributes:
        state_nodes: Which state tuples have nodes.
        pig_nodes: Operators have the nodes of the paper's figures.
        all_runs: A program goes on through the runs that exchange files with it.
    """

    state_nodes: StateNodes = "read"
    pig_nodes: bool = False
    all_runs: bool = False


_DRAWN = RunDrawing()


def _run_key(text: str, drawing: RunDrawing = _DRAWN) -> str:
    from govtool.app.workflow_runs.circuit_cache import code_digest

    # The text of a run has all of its actions, those of joined runs, too.
    drawn = f"{drawing.state_nodes} pig" if drawing.pig_nodes else drawing.state_nodes
    return hashlib.sha256(f"{code_digest()} {drawn} {text}".encode("utf-8", "surrogatepass")).hexdigest()


def _in_cache(store: Reader, key: str) -> ProvenanceGraph | None:
    """A graph that was opened before."""
    from govtool.store.cache import cache_dir, lookup
    from govtool.workflow.storage import mapped

    directory = cache_dir(store.cache_id, f"{key}-{mapped.FORMAT}-graph")
    try:
        return mapped.opened(_mapped(directory / mapped.FILE)) if lookup(directory) else None
    except (IntegrityError, FormatError, OSError, ValueError):
        return None


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
            f"no graph is called {name!r}, and no file",
            code="usage.unknown-graph",
            nearest=tuple(difflib.get_close_matches(name, names, 3, 0.4)),
            hint="govtool graph list",
        )
    return _cached(store, _digest(refs), lambda: _built(store, refs))


def _cached(
    store: Reader, key: str, build: Callable[[], ProvenanceGraph], beside: Callable[[Path], None] | None = None
) -> ProvenanceGraph:
    from govtool.store.cache import cache_dir, lookup, publish
    from govtool.workflow.storage import mapped

    directory = cache_dir(store.cache_id, f"{key}-{mapped.FORMAT}-graph")
    file = directory / mapped.FILE
    if lookup(directory):
        try:
            return mapped.opened(_mapped(file))
        except (IntegrityError, FormatError, OSError, ValueError):
            _discard(directory)
    graph = build()
    try:
        publish(directory, lambda folder: _fill(folder, graph, beside))
        return mapped.opened(_mapped(file))
    except (StoreError, OSError, ValueError):
        return graph  # the cache is a help, not a need


def _built(store: Reader, refs: Sequence[FragmentRef]) -> ProvenanceGraph:
    from govtool.workflow.storage.parquet import EDGES, NODES, graph_from

    def read(table: str) -> Iterator[bytes]:
        return (store.read(ref) for ref in sorted(refs) if ref.table == table)

    return graph_from(read(NODES), read(EDGES))


def _write(file: Path, graph: ProvenanceGraph) -> None:
    from govtool.workflow.storage.mapped import pack

    with file.open("wb") as handle:
        handle.writelines(pack(graph))


def _fill(folder: Path, graph: ProvenanceGraph, beside: Callable[[Path], None] | None) -> None:
    from govtool.workflow.storage import mapped

    _write(folder / mapped.FILE, graph)
    if beside is not None:
        beside(folder)


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


def _discard(directory: Path) -> None:
    import shutil

    shutil.rmtree(directory, ignore_errors=True)


def _digest(refs: Sequence[FragmentRef]) -> str:
    return hashlib.sha256("".join(sorted(f"{ref.table}{ref.sha256}" for ref in refs)).encode()).hexdigest()


def graph_called(
    text: str,
    *,
    store: str | None = None,
    at: str | None = None,
    branch: str | None = None,
    drawing: RunDrawing = _DRAWN,
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
    if drawing != _DRAWN and not text.startswith(RUN_PREFIX):
        raise UsageError(
            "nodes of states and of operators, and all runs, are chosen for the graph of a run",
            code="usage.arguments",
            hint="--run RUN",
        )
    if _is_file(text):
        return read_graph(text)
    from govtool.app.project.project import commit_at, read_store

    reader = read_store(store)
    commit = commit_at(reader, at, branch)
    return graph_in(reader, commit, text, drawing)


def graph_in(store: Reader, commit: Commit, text: str, drawing: RunDrawing = _DRAWN) -> ProvenanceGraph:
    """As ``graph_called``, for a version of a store that is open already."""
    if _is_file(text):
        return read_graph(text)
    if text.startswith(RUN_PREFIX):
        return open_run_graph(store, commit, text.removeprefix(RUN_PREFIX), drawing)
    return open_graph(store, commit, text)


def is_of_run(text: str) -> bool:
    """Return whether a name is that of the graph of a run, which is built from the run's records."""
    return text.startswith(RUN_PREFIX) and not _is_file(text)


def _is_file(text: str) -> bool:
    return "/" in text or Path(text).suffix.lower() in SUFFIXES or Path(text).is_file()


def chosen_state_nodes(text: str) -> StateNodes:
    """Read which state tuples are to have nodes.

    Raises:
        UnknownNameError: It is neither ``read`` nor ``all`` (``usage.unknown-state-nodes``).
    """
    if text == "read":
        return "read"
    if text == "all":
        return "all"
    raise UnknownNameError(
        f"no state nodes {text!r}", code="usage.unknown-state-nodes", nearest=("read", "all"), hint="--state-nodes all"
    )


def open_run_graph(store: Reader, commit: Commit, name: str, drawing: RunDrawing = _DRAWN) -> ProvenanceGraph:
    """The graph of a workflow run; it is built from the run's records once, and the cache keeps it.

    Raises:
        UnknownNameError: There is no such run (``usage.unknown-run``).
        UsageError: It has no records (``usage.no-records``), or a file has changed since.
    """
    return _run_parts(store, commit, name, drawing)[0]


def run_outputs(
    text: str,
    *,
    store: str | None = None,
    at: str | None = None,
    branch: str | None = None,
    drawing: RunDrawing = _DRAWN,
) -> tuple[OutputTuples, ...]:
    """The rows of the outputs of a workflow run with their nodes; none for a graph that is not a run's.

    The arguments are those of ``graph_called``: graphs of one run have other nodes if they are drawn otherwise.

    Raises:
        UsageError: As for ``open_run_graph``.
        StoreError: There is no store, or it cannot be read.
    """
    from govtool.app.project.project import commit_at, read_store

    if not is_of_run(text):
        return ()
    reader = read_store(store)
    name = text.removeprefix(RUN_PREFIX)
    return _run_parts(reader, commit_at(reader, at, branch), name, drawing)[1]()


def run_notes(
    text: str, *, store: str | None = None, at: str | None = None, branch: str | None = None, all_runs: bool = False
) -> tuple[str, ...]:
    """Remarks on the graph of a run: what of it is not drawn as it was forgotten, and where it begins.

    That is, for a graph joined with other runs, inputs at which it begins although a recorded run wrote there. The
    arguments are those of ``graph_called``, and of ``find_recorded_run``.
    """
    from govtool.app.project.project import commit_at, read_store
    from govtool.app.workflow_runs.programs.recorded import find_recorded_run

    if not is_of_run(text):
        return ()
    reader = read_store(store)
    name = text.removeprefix(RUN_PREFIX)
    found = find_recorded_run(reader, commit_at(reader, at, branch), name, all_runs=all_runs)
    return (*found.forgotten(), *(found.notes if all_runs else ()))


def run_histories(
    text: str, *, store: str | None = None, at: str | None = None, branch: str | None = None, all_runs: bool = False
) -> tuple[PartitionHistory, ...]:
    """The writes of a run into outputs of which a later one replaced a part; none for a graph that is not a run's.

    The arguments are those of ``graph_called``, and of ``find_recorded_run``.
    """
    from govtool.app.project.project import commit_at, read_store
    from govtool.app.workflow_runs.programs.recorded import find_recorded_run

    if not is_of_run(text):
        return ()
    reader = read_store(store)
    name = text.removeprefix(RUN_PREFIX)
    return find_recorded_run(reader, commit_at(reader, at, branch), name, all_runs=all_runs).histories


def _run_parts(
    store: Reader, commit: Commit, name: str, drawing: RunDrawing = _DRAWN
) -> tuple[ProvenanceGraph, Callable[[], tuple[OutputTuples, ...]]]:
    from govtool.app.workflow_runs.programs.recorded import find_recorded_run
    from govtool.model.workflow_run import run_text
    from govtool.store.cache import cache_dir
    from govtool.workflow.storage import mapped
    from govtool.workflow.storage.outputs import outputs_from, outputs_text

    found = find_recorded_run(store, commit, name, all_runs=drawing.all_runs)
    key = _run_key(run_text(found.run), drawing)
    built: list[RunGraph] = []

    def build() -> ProvenanceGraph:
        built.append(found.graph(drawing.state_nodes, pig_nodes=drawing.pig_nodes))
        return built[0].graph

    def beside(folder: Path) -> None:
        (folder / _OUTPUTS).write_text(outputs_text(built[0].outputs), encoding="utf-8", errors="surrogatepass")

    graph = _cached(store, key, build, beside)
    file = cache_dir(store.cache_id, f"{key}-{mapped.FORMAT}-graph") / _OUTPUTS

    def outputs() -> str:
        if built:
            return outputs_text(built[0].outputs)
        try:
            return file.read_text(encoding="utf-8", errors="surrogatepass")
        except FileNotFoundError:  # evicted meanwhile
            return outputs_text(found.graph(drawing.state_nodes, pig_nodes=drawing.pig_nodes).outputs)

    return graph, lambda: outputs_from(outputs())
