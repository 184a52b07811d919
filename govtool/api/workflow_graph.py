"""One provenance graph of a workflow, and the questions that it answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from govtool.api.arguments import NodeId, NodeIds, Ref, Texts, checked, node_texts, texts

if TYPE_CHECKING:
    import networkx as nx

    from govtool.answers.workflow_graph import (
        DependsAnswer,
        GraphDeletionAnswer,
        GraphImportAnswer,
        GraphListAnswer,
        SubgraphAnswer,
        ZoomAnswer,
    )
    from govtool.app.project.requests import PathArgument
    from govtool.app.workflow_graphs.questions import DecideRow
    from govtool.app.workflow_runs.programs.replaced import PartitionHistory
    from govtool.workflow.graph import ProvenanceGraph
    from govtool.workflow.modules.run_tuples import OutputTuples
    from govtool.workflow.zoom import GraphView


class WorkflowGraph:
    """A provenance graph; ``govtool.provenance_graph()`` opens one.

    It never changes: zooming gives another view of the same graph. Questions about deletions are answered by the fine
    graph, whatever is zoomed out.

    Args:
        view: The graph, and the modules that are zoomed out.
        name: What answers call it.
        outputs: Of a workflow run: what reads the rows of its outputs.
        notes: What reads where the graph begins, and what is not drawn as it was forgotten.
        histories: Of a run: what reads the writes into outputs of which a later one replaced a part.
        decide: Of a run: whether a row falls with records, where the graph leaves that open.
    """

    def __init__(
        self,
        view: GraphView,
        name: str,
        outputs: Callable[[], Sequence[OutputTuples]] = tuple,
        notes: Callable[[], Sequence[str]] = tuple,
        histories: Callable[[], Sequence[PartitionHistory]] = tuple,
        decide: DecideRow = lambda row, tokens: "unknown",
    ) -> None:
        """Keep the parts; see the class docstring."""
        self._view, self._name, self._outputs, self._notes = view, name, outputs, notes
        self._histories, self._decide = histories, decide

    def __repr__(self) -> str:
        """``<govtool.WorkflowGraph dealers, 1,204 nodes, 2,113 edges>``."""
        return f"<govtool.WorkflowGraph {self._name}, {self.node_count:,} nodes, {self.edge_count:,} edges>"

    def _repr_html_(self) -> str:
        """The view as a picture to zoom in and out, in a frame of a notebook."""
        from govtool.answers.notebook import workflow_frame
        from govtool.app.report.scenes import workflow_view

        view = workflow_view(self._view.graph, self._name, include_rows=True)
        return workflow_frame(replace(view, zoomed=self.zoomed or None))

    @property
    def name(self) -> str:
        """The name or the file of the graph."""
        return self._name

    @property
    def notes(self) -> tuple[str, ...]:
        """With ``all_runs``, inputs that a recorded run wrote to, and at which the graph begins all the same."""
        return tuple(self._notes())

    @property
    def fine(self) -> ProvenanceGraph:
        """The arrays of the fine graph, for code inside of govtool."""
        return self._view.graph

    @property
    def node_count(self) -> int:
        """The number of nodes that are shown."""
        return self._view.node_count

    @property
    def edge_count(self) -> int:
        """The number of edges that are shown."""
        return self._view.edge_count

    @property
    def modules(self) -> tuple[str, ...]:
        """The names of all modules."""
        return tuple(sorted(self._view.graph.modules))

    @property
    def zoomed(self) -> tuple[str, ...]:
        """The names of the modules that are zoomed out."""
        return tuple(sorted(self._view.zoomed))

    @checked
    def zoom_out(self, *module: str) -> WorkflowGraph:
        """Another view, in which each invocation of some modules is one node.

        Args:
            module: Names of modules. All invocations of a module are zoomed together.

        Raises:
            UnknownNameError: There is no such module (``usage.unknown-module``).
            UsageError: An invocation is named, such as ``M#2`` (``usage.module-invocation``).
        """
        return self._showing(self._view.zoom_out(*module))

    @checked
    def zoom_in(self, *module: str) -> WorkflowGraph:
        """Another view, in which the inside of some modules is shown again.

        Args:
            module: Names of modules that are zoomed out.

        Raises:
            UnknownNameError: There is no such module (``usage.unknown-module``).
            UsageError: A module is not zoomed out (``usage.not-zoomed``), or an invocation is named.
        """
        return self._showing(self._view.zoom_in(*module))

    def _showing(self, view: GraphView) -> WorkflowGraph:
        return WorkflowGraph(view, self._name, self._outputs, self._notes, self._histories, self._decide)

    def difference(self, before: WorkflowGraph) -> ZoomAnswer:
        """Compare this view with another view of the same graph: what it hides, and what it shows besides."""
        from govtool.app.workflow_graphs.questions import zoom_answer

        return zoom_answer(self._name, before._view, self._view)

    @checked
    def subgraph(self, node: NodeId) -> SubgraphAnswer:
        """All that a node comes from, all that comes of it, and the other inputs of that.

        Args:
            node: The id of a node, the token of a record, an invocation (``M#2``), or of a run's graph a row of an
                output: ``RELATION@EXECUTION[key]``.

        Raises:
            UnknownNameError: There is no such node (``usage.unknown-node``).
        """
        from govtool.app.workflow_graphs.questions import subgraph_answer

        return subgraph_answer(self._name, self._view.graph, str(node), self._outputs)

    @checked
    def depends(self, node: NodeId, on: NodeIds) -> DependsAnswer:
        """Return whether a node would be gone without some records (necessity), and which it comes from (lineage).

        Args:
            node: The id of a node, the token of a record, an invocation (``M#2``), or of a run's graph a row of an
                output: ``RELATION@EXECUTION[key]``.
            on: Tokens of records, or ids of nodes. Several are deleted together.

        Raises:
            UnknownNameError: There is no such node or record.
            UsageError: Modules are zoomed out in the file (``usage.zoomed-graph``).
        """
        from govtool.app.workflow_graphs.questions import depends_answer

        return depends_answer(self._name, self._view.graph, str(node), node_texts(on), self._outputs, self._decide)

    @checked
    def delete(self, *token: NodeId) -> GraphDeletionAnswer:
        """The consequences of deleting records: what falls, other values, and what only a new run can decide.

        Args:
            token: Tokens of records, or ids of nodes.

        Raises:
            UnknownNameError: There is no such record (``usage.unknown-token``).
            UsageError: Modules are zoomed out in the file (``usage.zoomed-graph``).
        """
        from govtool.app.workflow_graphs.questions import deletion_answer

        names = tuple(map(str, token))
        return deletion_answer(self._name, self._view.graph, names, self._outputs(), self._histories())

    @checked
    def export(self, format: str = "json") -> Iterator[str]:
        """The lines of a file of the view.

        Args:
            format: ``json``, ``dot``, ``graphml`` or ``prov-json``.

        Raises:
            UnknownNameError: There is no such format (``usage.unknown-format``).
        """
        from govtool.errors import UnknownNameError
        from govtool.workflow.formats.write import FORMATS, WRITERS

        if format not in WRITERS:
            raise UnknownNameError(
                f"no format {format} here", code="usage.unknown-format", hint=f"one of {', '.join(FORMATS)}"
            )
        return WRITERS[format](self._view)

    def to_networkx(self) -> nx.MultiDiGraph[Any]:
        """The view as a ``networkx.MultiDiGraph``, for graphs that Python objects can hold: about 1 KB a node."""
        import networkx as nx

        from govtool.workflow.formats.rows import edge_rows, node_rows

        graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
        graph.add_nodes_from(
            (row.id, {k: v for k, v in row.body().items() if k != "id"}) for row in node_rows(self._view)
        )
        for edge in edge_rows(self._view):
            graph.add_edge(edge.source, edge.target, **({} if edge.side is None else {"side": edge.side}))
        return graph


@checked
def provenance_graph(
    graph: PathArgument,
    *,
    zoomed: Texts | None = None,
    store: PathArgument | None = None,
    ref: Ref | None = None,
    branch: str | None = None,
    state_nodes: str = "read",
    pig_nodes: bool = False,
    all_runs: bool = False,
) -> WorkflowGraph:
    """Open a provenance graph of a workflow.

    Args:
        graph: A file (JSON, GraphML), the name of a graph of the store, or ``run:`` and the name of a workflow run.
        zoomed: Modules that are zoomed out in the first view.
        store: The store of a name; by default as for ``govtool.open``.
        ref: The version of the store; by default the newest.
        branch: The branch that counts; by default ``main``.
        state_nodes: Of a run: ``read``, nodes of state tuples that something was made of, or ``all``, as in the paper.
        pig_nodes: Of a run: operators have the nodes that the paper draws for Pig's statements.
        all_runs: Of a program's run: go on through the runs that wrote its inputs, and those that read its outputs.

    Raises:
        UsageError: The file is mistaken (``usage.graph``), with the line and the reason.
        UnknownNameError: There is no such graph or module.
        StoreError: There is no store, or it cannot be read.
    """
    from govtool.app.workflow_graphs.graphs import graph_called
    from govtool.app.workflow_graphs.run_graphs import (
        RunDrawing,
        chosen_state_nodes,
        falls_in_run,
        run_histories,
        run_notes,
        run_outputs,
    )
    from govtool.workflow.zoom import GraphView

    name = os.fspath(graph)
    place = None if store is None else os.fspath(store)
    at = None if ref is None else str(ref)
    drawing = RunDrawing(chosen_state_nodes(state_nodes), pig_nodes, all_runs)
    version: dict[str, Any] = {"store": place, "at": at, "branch": branch}
    found = GraphView(graph_called(name, drawing=drawing, **version))
    outputs = partial(run_outputs, name, drawing=drawing, **version)
    notes: Callable[[], Sequence[str]] = partial(run_notes, name, all_runs=all_runs, **version)
    histories = cache(partial(run_histories, name, all_runs=all_runs, **version))
    decide = partial(falls_in_run, text=name, all_runs=all_runs, **version)
    return WorkflowGraph(found.zoom_out(*texts(zoomed)), name, cache(outputs), cache(notes), histories, decide)


@checked
def import_graph(
    file: PathArgument,
    *,
    name: str | None = None,
    store: PathArgument | None = None,
    branch: str | None = None,
    message: str | None = None,
    author: str | None = None,
) -> GraphImportAnswer:
    """Read a provenance graph from a file and commit it; one of the same name is replaced.

    Args:
        file: JSON, or GraphML by its name.
        name: What to call it; by default as the file is called.
        store: As for ``govtool.open``.
        branch: Where to commit; by default ``main``.
        message: What the log says.
        author: By default the user's name.

    Raises:
        UsageError: The file is mistaken (``usage.graph``), with the line and the reason.
        StoreError: There is no store, or it cannot be written.
    """
    from govtool.app.project.project import open_store
    from govtool.app.workflow_graphs.graphs import import_graph as import_file
    from govtool.store.names import DEFAULT_BRANCH

    reader = open_store(None if store is None else os.fspath(store))
    return import_file(
        reader, os.fspath(file), name=name, message=message, author=author, branch=branch or DEFAULT_BRANCH
    )


@checked
def list_graphs(
    store: PathArgument | None = None, *, ref: Ref | None = None, branch: str | None = None
) -> GraphListAnswer:
    """The provenance graphs of a version of a store.

    Args:
        store: As for ``govtool.open``.
        ref: The version; by default the newest.
        branch: The branch that counts; by default ``main``.

    Raises:
        StoreError: There is no store, or it cannot be read.
        UnknownNameError: There is no such version.
    """
    from govtool.app.project.project import commit_at, read_store
    from govtool.app.workflow_graphs.graphs import list_graphs as list_of

    reader = read_store(None if store is None else os.fspath(store))
    return list_of(reader, commit_at(reader, None if ref is None else str(ref), branch))
