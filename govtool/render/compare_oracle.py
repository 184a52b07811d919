"""``govtool compare oracle``: agreeing edges, and those that only one side has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from govtool.query.agreement import AGREE, ONLY_GRAPH, ONLY_ORACLE, ComparedEdge
from govtool.render.answer import GraphVersion
from govtool.render.envelope import compact, envelope, json_lines
from govtool.render.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.text import count

if TYPE_CHECKING:
    from govtool.app.compare_oracle import OracleComparison

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")
_STYLES = {AGREE: "green", ONLY_GRAPH: "yellow", ONLY_ORACLE: "red"}


def render(
    form: str, result: OracleComparison, version: GraphVersion, most: int | None, *, differences: bool
) -> Table | Iterable[str]:
    """One of ``FORMATS``; ``most`` bounds the rows, ``differences`` leaves out what agrees."""
    wanted = [edge for edge in result.agreement.edges if not differences or edge.outcome != AGREE]
    wanted.sort(key=lambda edge: (edge.outcome == AGREE, edge.outcome, edge.target, edge.source))
    shown = wanted if most is None else wanted[:most]
    left_off = len(wanted) - len(shown)
    if form == "json":
        body: dict[str, object] = {
            **version.header(),
            "oracle": result.export.format,
            "rows": result.export.rows,
            "left_out": dict(sorted(result.export.left_out.items())),
            "edges": [_object(edge) for edge in shown],
            "datasets": result.agreement.datasets,
            "unknown_datasets": list(result.agreement.unknown),
            "summary": summary_object(result),
        }
        return json_lines(envelope("compare-oracle/1", body | ({"truncated": left_off} if left_off else {})))
    if form == "jsonl":
        return (compact(_object(edge)) for edge in shown)
    if form == "csv":
        return to_csv(
            ("outcome", "source", "target", "reason", "evidence"),
            ((e.outcome, e.source, e.target, e.reason, e.evidence) for e in shown),
        )
    made = Table(
        columns=(
            TableColumn("outcome"),
            TableColumn("source", style="bold"),
            TableColumn("target", style="bold"),
            TableColumn("why"),
        ),
        rows=[(e.outcome, e.source, e.target, e.reason or e.evidence) for e in shown],
        heading=version.heading(result.export.format, f"{result.export.rows:,} rows"),
        summary=version.closing(_sentence(result), count(left_off, "more edge") + " (--all)" if left_off else ""),
    )
    return made if form == "table" else (plain if form == "plain" else markdown)(made)


def reasons(result: OracleComparison) -> Table:
    """How many differences each reason explains."""
    found = Counter(
        (edge.outcome, edge.reason if "know" not in edge.reason or "the column" in edge.reason else _shape(edge.reason))
        for edge in result.agreement.edges
        if edge.outcome != AGREE
    )
    return Table(
        columns=(TableColumn("edges", justify="right"), TableColumn("outcome"), TableColumn("why")),
        rows=[(f"{number:,}", outcome, reason) for (outcome, reason), number in found.most_common()],
    )


def _shape(reason: str) -> str:
    return "the graph does not know the dataset that is read" if reason.startswith("the graph") else reason


def summary_object(result: OracleComparison) -> dict[str, object]:
    """The figures."""
    agreement = result.agreement
    return {
        "agree": agreement.count(AGREE),
        "only_graph": agreement.count(ONLY_GRAPH),
        "only_oracle": agreement.count(ONLY_ORACLE),
        "rate": None if agreement.rate is None else round(agreement.rate, 6),
    }


def _sentence(result: OracleComparison) -> str:
    agreement = result.agreement
    rate = "nothing to compare" if agreement.rate is None else f"{agreement.rate:.1%} agree"
    parts = [
        f"{rate} ({agreement.count(AGREE):,}/{len(agreement.edges):,} edges, {count(agreement.datasets, 'dataset')})",
        f"{agreement.count(ONLY_GRAPH):,} only in graph",
        f"{agreement.count(ONLY_ORACLE):,} only in oracle",
    ]
    if agreement.unknown:
        parts.append(f"{count(len(agreement.unknown), 'written dataset')} unknown to the graph")
    return ", ".join(parts)


def _object(edge: ComparedEdge) -> dict[str, object]:
    return {
        "outcome": edge.outcome.replace(" in ", "_").replace(" ", "_"),
        "source": edge.source,
        "target": edge.target,
        "reason": edge.reason or None,
        "evidence": edge.evidence or None,
    }
