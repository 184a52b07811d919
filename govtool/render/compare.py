"""Lineage from text against lineage from runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from govtool.render.formats.envelope import compact, json_lines
from govtool.render.layout.rows import ROW_FORMATS, laid_out
from govtool.render.layout.table import Table, TableColumn, to_csv
from govtool.render.layout.text import count, percent

if TYPE_CHECKING:
    from govtool.answers.compare import ComparisonAnswer
    from govtool.query.compare import EvidenceComparison

FORMATS = ROW_FORMATS
_SIGNS = {"static": "text only", "runtime": "run only"}
_STYLES = {"static": "yellow", "runtime": "cyan"}


def render_compared(form: str, answer: ComparisonAnswer, most: int | None) -> Table | Iterable[str]:
    """The comparison in one of ``FORMATS``; ``most`` bounds the rows."""
    if form == "json":
        return json_lines(answer.to_dict())
    rows = list(answer.rows())
    shown = rows if most is None else rows[:most]
    left_off = len(rows) - len(shown)
    if form == "jsonl":
        return (compact(dict(zip(answer.fields, row, strict=True))) for row in shown)
    if form == "csv":
        return to_csv(answer.fields, shown)
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
        summary=_sentence(answer.result) + (f" · {left_off:,} not shown (--all)" if left_off else ""),
        row_styles=[_STYLES[row[0]] for row in shown],
    )
    return laid_out(form, table)


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
