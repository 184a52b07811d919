"""``govtool compare oracle``: agreeing edges, and those that only one side has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from govtool.answers.compare_oracle import edge_object
from govtool.query.agreement import AGREE, ONLY_GRAPH, ONLY_ORACLE
from govtool.render.answer import closing, heading
from govtool.render.layout.rows import DATA_FORMATS, ROW_FORMATS, data_lines, laid_out
from govtool.render.layout.table import Table, TableColumn
from govtool.render.layout.text import count

if TYPE_CHECKING:
    from govtool.answers.compare_oracle import OracleAnswer
    from govtool.query.agreement import Agreement

FORMATS = ROW_FORMATS


def render(form: str, answer: OracleAnswer) -> Table | Iterable[str]:
    """One of ``FORMATS``."""
    if form in DATA_FORMATS:
        return data_lines(form, answer, (edge_object(edge) for edge in answer.edges))
    left_off, export = answer.truncated, answer.export
    made = Table(
        columns=(
            TableColumn("outcome"),
            TableColumn("source", style="bold"),
            TableColumn("target", style="bold"),
            TableColumn("why"),
        ),
        rows=[(e.outcome, e.source, e.target, e.reason or e.evidence) for e in answer.edges],
        heading=heading(answer.version, export.format, f"{export.rows:,} rows"),
        summary=closing(
            answer.version,
            _sentence(answer.agreement),
            count(left_off, "more edge") + " (--all)" if left_off else "",
        ),
    )
    return laid_out(form, made)


def reasons(answer: OracleAnswer) -> Table:
    """Return the number of differences for each reason."""
    found = Counter(
        (edge.outcome, edge.reason if "know" not in edge.reason or "the column" in edge.reason else _shape(edge.reason))
        for edge in answer.agreement.edges
        if edge.outcome != AGREE
    )
    return Table(
        columns=(TableColumn("edges", justify="right"), TableColumn("outcome"), TableColumn("why")),
        rows=[(f"{number:,}", outcome, reason) for (outcome, reason), number in found.most_common()],
    )


def _shape(reason: str) -> str:
    return "the graph does not know the dataset that is read" if reason.startswith("the graph") else reason


def _sentence(agreement: Agreement) -> str:
    rate = "nothing to compare" if agreement.rate is None else f"{agreement.rate:.1%} agree"
    parts = [
        f"{rate} ({agreement.count(AGREE):,}/{len(agreement.edges):,} edges, {count(agreement.datasets, 'dataset')})",
        f"{agreement.count(ONLY_GRAPH):,} only in graph",
        f"{agreement.count(ONLY_ORACLE):,} only in oracle",
    ]
    if agreement.unknown:
        parts.append(f"{count(len(agreement.unknown), 'written dataset')} unknown to the graph")
    return ", ".join(parts)
