"""The traces and workflow graphs of a report: files and stored graphs read, and what may not leave them redacted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.errors import UsageError
from govtool.given_files import read_given_text
from govtool.model.token import parse_token
from govtool.names import split_name, unquote
from govtool.report.public_text import is_function, is_identifier, public_condition
from govtool.report.trace_view import TraceView, trace_view
from govtool.report.workflow_view import MOST_NODES, GroupKey, WorkflowNodeView, WorkflowView, grouped
from govtool.wording import count
from govtool.workflow.vocabulary import AGGREGATES, WORDS, is_guard

if TYPE_CHECKING:
    from govtool.graph.index import Index
    from govtool.store import Commit, Reader
    from govtool.workflow.graph import ProvenanceGraph

RECORDS = "records"
"""The name of records whose dataset is not known."""
FUNCTION = "function"
"""The label of a function that SQL does not have, in a graph made by hand: it may be a value of the data."""
_AGGREGATES = frozenset(map(str.lower, AGGREGATES))


def read_trace(trace: object, index: Index, *, include_rows: bool) -> TraceView:
    """The view of a trace: an answer of ``trace_back`` or ``trace_forward``, its JSON value, or a file of it.

    Without rows its condition shows those columns that the index has of the traced dataset.

    Raises:
        UsageError: The file cannot be read, or is no trace (``usage.trace``).
    """
    place = str(trace) if isinstance(trace, (str, Path)) else "the trace"
    try:
        answer = _trace_object(trace)
        if not isinstance(answer, Mapping):
            raise ValueError("it is not a JSON object")
        columns = () if include_rows else _names_in(index, answer.get("output"))
        return trace_view(answer, include_rows=include_rows, columns=frozenset(columns))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"{place} is not a trace: {reason}",
            code="usage.trace",
            hint="govtool trace back OUTPUT --where CONDITION --format json -o trace.json",
        ) from error


def _trace_object(trace: object) -> Any:
    if isinstance(trace, (str, Path)):
        return json.loads(read_given_text(Path(trace)))
    if isinstance(trace, Mapping):
        return trace
    to_dict = getattr(trace, "to_dict", None)
    if to_dict is None:
        raise ValueError(f"{type(trace).__name__} is neither an answer nor a file")
    return json.loads(json.dumps(to_dict(), default=str))


def _names_in(index: Index, dataset: object) -> Iterator[str]:
    """The parts of the names of a dataset and of its columns, in lower case; none where the index does not have it."""
    number = index.find_dataset(dataset) if isinstance(dataset, str) else None
    if number is not None:
        for name in (index.dataset_name(number), *map(index.path, index.columns(number))):
            yield from (unquote(part).lower() for part in split_name(name))


def read_workflow(
    store: Reader, commit: Commit, name: str, *, include_rows: bool, is_dataset: Callable[[str], bool]
) -> WorkflowView:
    """The view of a provenance graph: a file, the name of a graph in the store, or ``run:`` and a workflow run.

    Args:
        store: Where graphs and runs are.
        commit: The version.
        name: The file or name.
        include_rows: See ``workflow_view``.
        is_dataset: Whether the version has a dataset of this name.

    Raises:
        UsageError: The file is mistaken (``usage.graph``), or the run has no records (``usage.no-records``).
        UnknownNameError: There is no such graph or run.
        StoreError: A fragment cannot be read.
    """
    from govtool.app.workflow_graphs.graphs import graph_in
    from govtool.app.workflow_graphs.run_graphs import is_of_run

    graph = graph_in(store, commit, name)
    return workflow_view(graph, name, include_rows=include_rows, is_dataset=is_dataset, is_recorded=is_of_run(name))


def workflow_view(
    graph: ProvenanceGraph,
    name: str,
    *,
    include_rows: bool = False,
    is_dataset: Callable[[str], bool] = lambda name: False,
    is_recorded: bool = False,
) -> WorkflowView:
    """The view of a graph. Without rows it has neither ids nor values, and labels are names that are known.

    Args:
        graph: The graph.
        name: What it is called.
        include_rows: Ids of records, values of nodes, literals of comparisons and all labels are part of it.
        is_dataset: Whether a name is that of a dataset.
        is_recorded: The graph was built from a recorded run, so its tokens name datasets and its labels functions.
    """
    public = _PublicLabels(graph, is_dataset, include_rows, is_recorded)
    types, keys = _types(graph), list(_keys(graph, public))
    groups, of_node, between = grouped(keys, types, _edges(graph))
    locked = {graph.modules[module] for module, type_ in zip(_modules(graph), types, strict=True) if type_ == "zoom"}
    fits = graph.node_count <= MOST_NODES
    reason = f"{count(graph.node_count, 'node')}: a page holds {MOST_NODES:,}; govtool zoom and subgraph answer for all"
    return WorkflowView(
        name,
        tuple(graph.modules),
        tuple(sorted(locked)),
        graph.node_count,
        graph.edge_count,
        groups,
        between,
        tuple(_nodes(graph, public, include_rows=include_rows)) if fits else (),
        of_node if fits else (),
        tuple(_edges(graph)) if fits else (),
        None if fits else reason,
    )


def _types(graph: ProvenanceGraph) -> list[str]:
    from govtool.workflow.vocabulary import TYPES

    return [TYPES[number] for number in graph.type.tolist()]


def _modules(graph: ProvenanceGraph) -> list[int]:
    found: list[int] = graph.module.tolist()
    return found


def _labels(graph: ProvenanceGraph) -> list[str]:
    texts = [graph.labels[number] for number in range(len(graph.labels))]
    return [texts[number] for number in graph.label.tolist()]


def _edges(graph: ProvenanceGraph) -> Iterator[tuple[int, int]]:
    import numpy as np

    sources, targets = (np.asarray(ends).tolist() for ends in (graph.edges.source, graph.edges.target))
    return zip(sources, targets, strict=True)


def _keys(graph: ProvenanceGraph, public: _PublicLabels) -> Iterator[GroupKey]:
    """The group of each node: its invocation, the dataset of its record, or neither."""
    invocations = graph.invocation.tolist()
    for type_, label, module, invocation in zip(
        _types(graph), _labels(graph), _modules(graph), invocations, strict=True
    ):
        if module >= 0:
            yield GroupKey("invocation", f"{graph.modules[module]}#{invocation}", module)
        elif type_ in ("wi", "st"):
            yield GroupKey("records", public.dataset(label))
        else:
            yield GroupKey("other", "outside of modules")


class _PublicLabels:
    """Labels of nodes without values of the data."""

    def __init__(
        self, graph: ProvenanceGraph, is_dataset: Callable[[str], bool], include_rows: bool, is_recorded: bool
    ) -> None:
        self._modules, self._is_dataset = frozenset(graph.modules), cache(is_dataset)
        self._all, self._recorded = include_rows or is_recorded, is_recorded

    def dataset(self, token: str) -> str:
        """The dataset of a record's token; ``records`` where it is not known: a token may be a value of the data."""
        try:
            dataset = parse_token(token).dataset
        except UsageError:
            return RECORDS
        return dataset if self._all or dataset in self._modules or self._is_dataset(dataset) else RECORDS

    def of(self, type_: str, label: str) -> str:
        """The label of a node of this type."""
        if type_ in ("wi", "st"):
            return self.dataset(label)
        if label in WORDS or label in self._modules:
            return label
        if is_guard(label):
            return f"[{public_condition(label[1:-1], _AGGREGATES)}]"
        return label if is_function(label) or (self._recorded and is_identifier(label)) else FUNCTION


def _nodes(graph: ProvenanceGraph, public: _PublicLabels, *, include_rows: bool) -> Iterator[WorkflowNodeView]:
    from govtool.workflow.formats.rows import node_rows
    from govtool.workflow.values import ABSENT
    from govtool.workflow.zoom import GraphView

    modules = {module: number for number, module in enumerate(graph.modules)}
    for row in node_rows(GraphView(graph)):
        module = -1 if row.module is None else modules[row.module]
        if include_rows:
            value = None if row.value is ABSENT else str(row.value)
            yield WorkflowNodeView(row.type, row.label, module, row.invocation, str(row.id), value)
        else:
            yield WorkflowNodeView(row.type, public.of(row.type, row.label), module, row.invocation)
