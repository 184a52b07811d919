"""The lineage of SQL as table, JSON, CSV and Markdown. Graph drawings are in ``govtool.render.pictures.drawing``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from govtool.answers.coverage import Coverage, sentence
from govtool.answers.lineage import LineageAnswer, LineageEdge, SqlLineage, to_object
from govtool.render.layout.rows import DATA_FORMATS, ROW_FORMATS, data_lines, laid_out
from govtool.render.layout.table import Table, TableColumn
from govtool.render.layout.text import count
from govtool.render.pictures.answers import PICTURES, picture
from govtool.render.pictures.drawing import Drawing

QUERY = "(query)"
"""The name of a bare SELECT's result in tables; JSON and CSV leave it empty, as ``lineage/1`` has it."""
FORMATS = (*ROW_FORMATS, *PICTURES)


def render(form: str, answer: LineageAnswer) -> Table | Iterable[str]:
    """One of ``FORMATS``; tables end with the coverage."""
    if form in ("table", "plain", "markdown"):
        made = table(answer.results, answer.coverage)
        return laid_out(form, made)
    if form in DATA_FORMATS:
        return data_lines(form, answer, (to_object(result, with_files=True) for result in answer.results))
    return picture(form, drawing(answer.results))


def table(results: Sequence[SqlLineage], coverage: Coverage) -> Table:
    """A row for each column and each source; columns without a source are listed too.

    What only may reach a column has the reason in place of the kind: ``ambiguous``, ``star-unresolved`` …
    """
    rows: list[tuple[str, str, str]] = []
    for result in results:
        rows += _rows(result, _query_name(result, results))
    sources = {source for result in results for source in result.sources}
    targets = {target for result in results for target in result.targets}
    edges = sum(len(result.edges) for result in results)
    queries = sum("" in (result.columns or {}) for result in results)
    into = [count(len(targets), "relation")] if targets or not queries else []
    into += [count(queries, "query", "queries")] if queries else []
    sizes = f"{count(edges, 'edge')} into {' and '.join(into)} from {count(len(sources), 'relation')}"
    return Table(
        columns=(TableColumn("column", style="bold"), TableColumn("from"), TableColumn("kinds", style="dim")),
        rows=rows,
        summary=f"{sizes} · {sentence(coverage)}",
    )


def _query_name(result: SqlLineage, results: Sequence[SqlLineage]) -> str:
    """``(query)``, or among several files ``(report.sql)``: each has a result of its own."""
    return f"({result.id})" if len(results) > 1 else QUERY


def _rows(result: SqlLineage, query: str) -> Iterator[tuple[str, str, str]]:
    by_target: dict[str, list[LineageEdge]] = {}
    for edge in result.all_edges:
        by_target.setdefault(edge.target, []).append(edge)
    order = [f"{target}.{column}" for target, names in (result.columns or {}).items() for column in names]
    listed = set(order)
    rest = [target for target in by_target if target not in listed]
    for column in [*order, *rest]:
        edges = by_target.get(column)
        name = f"{query}{column}" if column.startswith(".") else column
        if not edges:
            yield name, "", ""
        for number, edge in enumerate(edges or ()):
            yield "" if number else name, edge.source, ", ".join(edge.kinds)


def drawing(results: Sequence[SqlLineage]) -> Drawing:
    """Datasets with their columns, and the edges between them."""
    drawn = Drawing()
    for result in results:
        for target, names in (result.columns or {}).items():
            for name in names:
                drawn.add_node(target, name)
        for edge in result.all_edges:
            drawn.add_edge(edge.source, edge.target, edge.kinds)
    return drawn
