"""The report for readers without scripts: a table of the datasets, their columns, and their sources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from govtool.report.escaping import escaped
from govtool.report.layout import contracted
from govtool.report.model import LineageView
from govtool.report.trace_view import TraceView, trace_words
from govtool.report.workflow_view import WorkflowView, workflow_words

MOST_ROWS = 500
"""Datasets in the table at most."""


def table(view: LineageView) -> str:
    """HTML; every text in it is escaped, and marks that are invisible or turn the direction are written out."""
    shown = [number for number, dataset in enumerate(view.datasets) if not dataset.is_temporary]
    sources = _sources(view)
    rows = "".join(_row(view, number, sources) for number in shown[:MOST_ROWS])
    left = len(shown) - MOST_ROWS
    more = f"<p>{left:,} more datasets are in the data of this file.</p>" if left > 0 else ""
    head = "<tr><th>Dataset</th><th>Kind</th><th>Columns</th><th>Made of</th></tr>"
    return f"<p>The picture needs JavaScript. All datasets as a table:</p><table>{head}{rows}</table>{more}"


def _sources(view: LineageView) -> Mapping[int, list[int]]:
    pairs = {(edge.source.dataset, edge.target.dataset) for edge in view.edges}
    found: defaultdict[int, list[int]] = defaultdict(list)
    for source, target in sorted(contracted(pairs, [dataset.is_temporary for dataset in view.datasets])):
        if source != target:
            found[target].append(source)
    return found


def _row(view: LineageView, number: int, sources: Mapping[int, list[int]]) -> str:
    dataset = view.datasets[number]
    columns = ", ".join(column.path for column in dataset.columns)
    made_of = ", ".join(view.datasets[source].name for source in sources.get(number, ()))
    return (
        "<tr>" + "".join(f"<td>{escaped(one)}</td>" for one in (dataset.name, dataset.kind, columns, made_of)) + "</tr>"
    )


def scene_tables(traces: Iterable[TraceView], workflows: Iterable[WorkflowView]) -> str:
    """HTML of the steps and counts of traces, and of the invocations of workflows."""
    found = [
        _table(f"Trace {trace.direction}, {trace.where}", ("", "Name", "Step", "Rows"), trace_words(trace))
        for trace in traces
    ]
    found += [_table(f"Workflow {one.graph}", ("", "Name", "Nodes by type"), workflow_words(one)) for one in workflows]
    return "".join(found)


def _table(title: str, head: Sequence[str], rows: Iterable[tuple[str, ...]]) -> str:
    kept = list(islice(rows, MOST_ROWS + 1))
    body = "".join("<tr>" + "".join(f"<td>{escaped(one)}</td>" for one in row) + "</tr>" for row in kept[:MOST_ROWS])
    more = "<p>More rows are in the data of this file.</p>" if len(kept) > MOST_ROWS else ""
    names = "".join(f"<th>{name}</th>" for name in head)
    return f"<h2>{escaped(title)}</h2><table><tr>{names}</tr>{body}</table>{more}"
