"""What texts say against what ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from govtool.render.envelope import compact, envelope, json_lines
from govtool.render.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.text import count, percent

if TYPE_CHECKING:
    from govtool.query.compare import EvidenceComparison

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")
_SIGNS = {"static": "text only", "runtime": "run only"}
_STYLES = {"static": "yellow", "runtime": "cyan"}


def render_compared(
    form: str, result: EvidenceComparison, header: Mapping[str, object], most: int | None
) -> Table | Iterable[str]:
    """The comparison in one of ``FORMATS``; ``most`` bounds the rows."""
    rows = _rows(result)
    shown = rows if most is None else rows[:most]
    left_off = len(rows) - len(shown)
    if form == "json":
        body: dict[str, object] = {
            **header,
            "datasets": result.datasets,
            "both": result.both,
            "only": [
                {
                    "side": one.side,
                    "target": one.flow.target,
                    "source": one.flow.source,
                    "kind": one.flow.kind,
                    "reason": one.reason,
                    "place": one.place,
                }
                for one in result.only
            ],
            "unmatched": [
                {"side": one.side, "dataset": one.dataset, "edges": one.edges, "reason": one.reason, "place": one.place}
                for one in result.unmatched
            ],
        }
        return json_lines(envelope("compare/1", body))
    titles = ("side", "target", "source", "kind", "reason", "place")
    if form == "jsonl":
        return (compact(dict(zip(titles, row, strict=True))) for row in shown)
    if form == "csv":
        return to_csv(titles, shown)
    table = Table(
        columns=(
            TableColumn("known by"),
            TableColumn("target", style="bold"),
            TableColumn("source"),
            TableColumn("kind"),
            TableColumn("reason"),
            TableColumn("said in", style="dim"),
        ),
        rows=[(_SIGNS[side], *rest) for side, *rest in shown],
        summary=_sentence(result) + (f" · {left_off:,} not shown (--all)" if left_off else ""),
        row_styles=[_STYLES[row[0]] for row in shown],
    )
    return table if form == "table" else (plain if form == "plain" else markdown)(table)


def _rows(result: EvidenceComparison) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [
        (one.side, one.dataset, count(one.edges, "edge"), "", one.reason, one.place) for one in result.unmatched
    ]
    found += [(one.side, one.flow.target, one.flow.source, one.flow.kind, one.reason, one.place) for one in result.only]
    return found


def _sentence(result: EvidenceComparison) -> str:
    sides = {side: sum(one.side == side for one in result.only) for side in _SIGNS}
    alone = {side: sum(one.side == side for one in result.unmatched) for side in _SIGNS}
    total = result.both + sum(sides.values())
    parts = [
        f"{count(result.both, 'edge')} into {count(result.datasets, 'dataset')} known by both "
        f"({percent(result.both, total)})",
        f"{sides['static']:,} by text only",
        f"{sides['runtime']:,} by runs only",
    ]
    if alone["static"]:
        parts.append(f"{count(alone['static'], 'dataset')} never ran")
    if alone["runtime"]:
        parts.append(f"{count(alone['runtime'], 'dataset')} without text")
    return " · ".join(parts)
