"""``govtool compare oracle``: agreeing edges, and those that only one side has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from govtool.answers.compare_oracle import edge_object
from govtool.query.agreement import AGREE, ONLY_GRAPH, ONLY_ORACLE
from govtool.render.answer import closing, heading
from govtool.render.envelope import compact, json_lines
from govtool.render.rows import answer_csv
from govtool.render.table import Table, TableColumn, markdown, plain
from govtool.render.text import count

if TYPE_CHECKING:
    from govtool.answers.compare_oracle import OracleAnswer
    from govtool.query.agreement import Agreement

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")
_STYLES = {AGREE: "green", ONLY_GRAPH: "yellow", ONLY_ORACLE: "red"}


def render(form: str, answer: OracleAnswer) -> Table | Iterable[str]:
    """One of ``FORMATS``."""
    if form == "json":
        return json_lines(answer.to_dict())
    if form == "jsonl":
        return (compact(edge_object(edge)) for edge in answer.edges)
    if form == "csv":
        return answer_csv(answer)
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
    return made if form == "table" else (plain if form == "plain" else markdown)(made)


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
