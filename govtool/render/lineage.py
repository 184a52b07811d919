"""The lineage of SQL as table, JSON, CSV and Markdown. Graph drawings are in ``govtool.render.drawing``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from govtool.app.lineage import LineageEdge, SqlLineage, to_object
from govtool.render.coverage import StatementCounts, sentence
from govtool.render.drawing import Drawing, dot, mermaid
from govtool.render.envelope import compact, envelope, json_lines
from govtool.render.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.text import count

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown", "dot", "mermaid")


def render(form: str, results: Sequence[SqlLineage], coverage: StatementCounts | None = None) -> Table | Iterable[str]:
    """One of ``FORMATS``; tables end with the coverage."""
    if form == "table":
        return table(results, coverage)
    if form == "plain":
        return plain(table(results, coverage))
    if form == "markdown":
        return markdown(table(results, coverage))
    if form == "json":
        body = {"results": [to_object(result, with_files=True) for result in results]}
        return json_lines(envelope("lineage/1", body))
    if form == "jsonl":
        return (compact(to_object(result, with_files=True)) for result in results)
    if form == "csv":
        return to_csv(
            ("target", "source", "kinds", "file"),
            [
                (edge.target, edge.source, " ".join(edge.kinds), str(result.id))
                for result in results
                for edge in _all_edges(result)
            ],
        )
    return (dot if form == "dot" else mermaid)(drawing(results))


def table(results: Sequence[SqlLineage], coverage: StatementCounts | None = None) -> Table:
    """A row for each column and each source; columns without a source are listed too.

    What only may reach a column has the reason in place of the kind: ``ambiguous``, ``star-unresolved`` …
    """
    rows: list[tuple[str, str, str]] = []
    for result in results:
        rows += _rows(result)
    sources = {source for result in results for source in result.sources}
    targets = {target for result in results for target in result.targets}
    edges = sum(len(result.edges) for result in results)
    summary = f"{count(edges, 'edge')} into {count(len(targets), 'relation')} from {count(len(sources), 'relation')}"
    if coverage is not None:
        summary += f" · {sentence(coverage)}"
    return Table(
        columns=(TableColumn("column", style="bold"), TableColumn("from"), TableColumn("kinds", style="dim")),
        rows=rows,
        summary=summary,
    )


def _rows(result: SqlLineage) -> Iterator[tuple[str, str, str]]:
    by_target: dict[str, list[LineageEdge]] = {}
    for edge in _all_edges(result):
        by_target.setdefault(edge.target, []).append(edge)
    order = [f"{target}.{column}" for target, names in (result.columns or {}).items() for column in names]
    listed = set(order)
    rest = [target for target in by_target if target not in listed]
    for column in [*order, *rest]:
        edges = by_target.get(column)
        if not edges:
            yield column, "", ""
        for number, edge in enumerate(edges or ()):
            yield "" if number else column, edge.source, ", ".join(edge.kinds)


def _all_edges(result: SqlLineage) -> tuple[LineageEdge, ...]:
    return (*result.edges, *result.unclear, *result.referenced)


def drawing(results: Sequence[SqlLineage]) -> Drawing:
    """Datasets with their columns, and the edges between them."""
    drawn = Drawing()
    for result in results:
        for target, names in (result.columns or {}).items():
            for name in names:
                drawn.add_node(target, name)
        for edge in _all_edges(result):
            drawn.add_edge(edge.source, edge.target, edge.kinds)
    return drawn
