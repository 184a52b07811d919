"""A lineage graph for other tools: edges as rows, JSON, Graphviz, Mermaid, GraphML, PROV-JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from govtool.render.formats.envelope import compact, json_lines
from govtool.render.formats.prov_json import prov_json
from govtool.render.layout.table import to_csv
from govtool.render.pictures.drawing import Drawing, dot, mermaid
from govtool.report.model import LineageView, ViewNode
from govtool.wording import xml_text

if TYPE_CHECKING:
    from govtool.answers.report import ReportAnswer

FORMATS = ("csv", "jsonl", "json", "dot", "mermaid", "graphml", "prov-json", "parquet")
PARQUET = "parquet"
"""The one format that is no text: ``parquet()`` makes it."""
FIELDS = ("source", "target", "kind", "label", "star", "masking", "file", "line")
"""The columns of the CSV, and the keys of the JSON lines."""


def render(form: str, answer: ReportAnswer | LineageView) -> Iterable[str]:
    """One of ``FORMATS`` that is text. Temporary tables are part of it, as the statements have them.

    Args:
        form: The format.
        answer: The graph; for ``json``, the whole report.
    """
    if isinstance(answer, LineageView):
        return _drawn(form, answer)
    return json_lines(answer.to_dict()) if form == "json" else _drawn(form, answer.graph)


def _drawn(form: str, view: LineageView) -> Iterable[str]:
    """One of the formats of the graph alone."""
    if form == "csv":
        return to_csv(FIELDS, edge_rows(view))
    if form == "jsonl":
        return (compact(dict(zip(FIELDS, row, strict=True))) for row in edge_rows(view))
    if form == "graphml":
        return graphml(view)
    if form == "prov-json":
        return prov_json(view)
    return (dot if form == "dot" else mermaid)(drawing(view))


def parquet(view: LineageView) -> bytes:
    """The edges as a file of Parquet with the columns ``FIELDS``."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"star": pa.bool_(), "masking": pa.bool_(), "line": pa.int64()}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in FIELDS])
    rows = [dict(zip(FIELDS, row, strict=True)) for row in edge_rows(view)]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), buffer)
    return buffer.getvalue()


def edge_rows(view: LineageView) -> Iterator[tuple[str | int | bool, ...]]:
    """The values of ``FIELDS`` for each edge."""
    for edge in view.edges:
        statement = view.statements[edge.statement]
        about = (_name(view, edge.source), _name(view, edge.target), edge.kind, edge.label)
        yield *about, edge.is_star, edge.is_masking, statement.file, statement.line


def drawing(view: LineageView) -> Drawing:
    """The graph as ``govtool.render.pictures.drawing`` takes it; the rows of a dataset are its column ``*``."""
    found = Drawing()
    for dataset in view.datasets:
        for column in dataset.columns:
            found.add_node(dataset.name, column.path)
    for edge in view.edges:
        ends = (found.add_node(*view.name_of(node)) for node in (edge.source, edge.target))
        found.edges.setdefault((next(ends), next(ends)), set()).add(edge.kind)
    return found


def graphml(view: LineageView) -> Iterator[str]:
    """GraphML (http://graphml.graphdrawing.org): nodes by number, with ``name``, ``dataset`` and ``type``."""
    import networkx as nx

    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    bases = view.bases()
    for base, dataset in zip(bases, view.datasets, strict=True):
        about = {"dataset": xml_text(dataset.name), "dataset_kind": dataset.kind, "temporary": dataset.is_temporary}
        graph.add_node(base, name=xml_text(f"{dataset.name}.*"), type="", **about)
        for number, column in enumerate(dataset.columns, base + 1):
            name = xml_text(f"{dataset.name}.{column.path}")
            graph.add_node(number, name=name, type=xml_text(column.type or ""), **about)
    for edge in view.edges:
        ends = (bases[node.dataset] + 1 + node.column for node in (edge.source, edge.target))
        place = view.statements[edge.statement]
        graph.add_edge(*ends, kind=edge.kind, label=xml_text(edge.label), file=xml_text(place.file), line=place.line)
    yield from nx.generate_graphml(graph)


def _name(view: LineageView, node: ViewNode) -> str:
    return ".".join(view.name_of(node))
