"""Provenance graphs of workflow runs: built from a run's records, kept in the local cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from govtool.answers.workflow_graph import GraphEntry, UnlistedGraphs
from govtool.app.workflow_graphs.graph_cache import cache_folder, cached_graph, graph_in_cache
from govtool.app.workflow_graphs.graph_files import is_graph_file
from govtool.errors import UnknownNameError

if TYPE_CHECKING:
    from govtool.app.workflow_runs.programs.recorded import RecordedRun
    from govtool.app.workflow_runs.programs.replaced import PartitionHistory
    from govtool.store import Commit, Reader
    from govtool.workflow.graph import ProvenanceGraph
    from govtool.workflow.modules.run_graph import StateNodes
    from govtool.workflow.modules.run_tuples import OutputTuples, RunGraph

RUN_PREFIX = "run:"
"""The prefix of names that mean the graph of a workflow run."""
_OUTPUTS = "outputs.json"
"""The file of the cache with the output rows of a run, beside its graph."""


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


DRAWN = RunDrawing()


def _run_key(text: str, drawing: RunDrawing = DRAWN) -> str:
    from govtool.app.workflow_runs.circuit_cache import code_digest

    # The text of a run has all of its actions, those of joined runs, too.
    drawn = f"{drawing.state_nodes} pig" if drawing.pig_nodes else drawing.state_nodes
    return hashlib.sha256(f"{code_digest()} {drawn} {text}".encode("utf-8", "surrogatepass")).hexdigest()


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


def is_of_run(text: str) -> bool:
    """Return whether a name is that of the graph of a run, which is built from the run's records."""
    return text.startswith(RUN_PREFIX) and not is_graph_file(text)


def graphs_of_runs(store: Reader, commit: Commit) -> tuple[list[GraphEntry], list[UnlistedGraphs]]:
    """The graphs that runs with records have, and those that cannot be listed.

    The sizes of graphs of workflows are known where the cache has them.

    Raises:
        StoreError: The store cannot be read.
    """
    from govtool.app.workflow_runs.programs.recorded import list_recorded_runs
    from govtool.model.workflow_run import run_text

    found = list_recorded_runs(store, commit)
    entries = []
    for run in found.runs:
        if run.mode == "records" and run.executions:
            modules = tuple(sorted({each.module for each in run.invocations if each.execution <= run.whole}))
            graph = graph_in_cache(store, _run_key(run_text(run)))
            nodes, edges = (None, None) if graph is None else (graph.node_count, graph.edge_count)
            entries.append(GraphEntry(f"{RUN_PREFIX}{run.id}", nodes, edges, modules))
    return entries, [
        UnlistedGraphs(f"{RUN_PREFIX}{each.id}" if each.id else "", each.reason, each.object, each.hint)
        for each in found.damaged
    ]


def open_run_graph(store: Reader, commit: Commit, name: str, drawing: RunDrawing = DRAWN) -> ProvenanceGraph:
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
    drawing: RunDrawing = DRAWN,
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
    found = _recorded(text, store, at, branch, all_runs=all_runs)
    return () if found is None else (*found.forgotten(), *(found.notes if all_runs else ()))


def run_histories(
    text: str, *, store: str | None = None, at: str | None = None, branch: str | None = None, all_runs: bool = False
) -> tuple[PartitionHistory, ...]:
    """The writes of a run into outputs of which a later one replaced a part; none for a graph that is not a run's.

    The arguments are those of ``graph_called``, and of ``find_recorded_run``.
    """
    found = _recorded(text, store, at, branch, all_runs=all_runs)
    return () if found is None else found.histories


def falls_in_run(
    row: str,
    tokens: Sequence[str],
    *,
    text: str,
    store: str | None = None,
    at: str | None = None,
    branch: str | None = None,
    all_runs: bool = False,
) -> bool | Literal["unknown"]:
    """Return whether a row that a run wrote falls with records, by the values that the run computed.

    Args:
        row: Its address.
        tokens: The records.
        text: The name of the run's graph; this and the others are the arguments of ``graph_called``.
        store: See above.
        at: See above.
        branch: See above.
        all_runs: As for ``find_recorded_run``.
    """
    from govtool.app.project.project import commit_at, read_store
    from govtool.app.workflow_runs.deletion import statuses_of_row
    from govtool.app.workflow_runs.opened import opened_run

    if not is_of_run(text):
        return "unknown"
    reader = read_store(store)
    name = text.removeprefix(RUN_PREFIX)
    with opened_run(reader, commit_at(reader, at, branch), name, all_runs=all_runs) as opened:
        statuses = statuses_of_row(opened, row, tokens)
    if "unknown" in statuses or not statuses:
        return "unknown"
    fallen = {status == "deleted" for status in statuses}
    return fallen.pop() if len(fallen) == 1 else "unknown"


def _recorded(
    text: str, store: str | None, at: str | None, branch: str | None, *, all_runs: bool
) -> RecordedRun | None:
    """The run that the name of a graph means; None for a graph that is not a run's."""
    from govtool.app.project.project import commit_at, read_store
    from govtool.app.workflow_runs.programs.recorded import find_recorded_run

    if not is_of_run(text):
        return None
    reader = read_store(store)
    name = text.removeprefix(RUN_PREFIX)
    return find_recorded_run(reader, commit_at(reader, at, branch), name, all_runs=all_runs)


def _run_parts(
    store: Reader, commit: Commit, name: str, drawing: RunDrawing = DRAWN
) -> tuple[ProvenanceGraph, Callable[[], tuple[OutputTuples, ...]]]:
    from govtool.app.workflow_runs.programs.recorded import find_recorded_run
    from govtool.model.workflow_run import run_text
    from govtool.workflow.storage.outputs import outputs_from, outputs_text

    found = find_recorded_run(store, commit, name, all_runs=drawing.all_runs)
    key = _run_key(run_text(found.run), drawing)
    built: list[RunGraph] = []

    def build() -> ProvenanceGraph:
        built.append(found.graph(drawing.state_nodes, pig_nodes=drawing.pig_nodes))
        return built[0].graph

    def beside(folder: Path) -> None:
        (folder / _OUTPUTS).write_text(outputs_text(built[0].outputs), encoding="utf-8", errors="surrogatepass")

    graph = cached_graph(store, key, build, beside)
    file = cache_folder(store, key) / _OUTPUTS

    def outputs() -> str:
        if built:
            return outputs_text(built[0].outputs)
        try:
            return file.read_text(encoding="utf-8", errors="surrogatepass")
        except FileNotFoundError:  # evicted meanwhile
            return outputs_text(found.graph(drawing.state_nodes, pig_nodes=drawing.pig_nodes).outputs)

    return graph, lambda: outputs_from(outputs())
