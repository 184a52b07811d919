"""``govtool diff``: what changed between two versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from govtool.query.diff import Difference, GraphChange
from govtool.render.answer import evidence_object, places
from govtool.render.envelope import compact, envelope, json_lines
from govtool.render.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.text import short, when

if TYPE_CHECKING:
    from govtool.store import Commit

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")
_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
_STYLES = {"added": "green", "removed": "red", "changed": "yellow"}
_WHATS = ("dataset", "column", "edge")


def render(
    form: str, result: Difference, old: Commit, new: Commit, store: str, most: int | None
) -> Table | Iterable[str]:
    """One of ``FORMATS``; ``most`` bounds the rows of tables."""
    shown = result.changes if most is None else result.changes[:most]
    left_off = len(result.changes) - len(shown)
    if form == "json":
        body: dict[str, object] = {
            "store": store,
            "from": _commit(old),
            "to": _commit(new),
            "changes": [change_object(change) for change in shown],
            "summary": _counts(result),
        }
        return json_lines(envelope("diff/1", body | ({"truncated": left_off} if left_off else {})))
    if form == "jsonl":
        return (compact(change_object(change)) for change in shown)
    if form == "csv":
        return to_csv(
            ("change", "what", "name", "source", "kind", "before", "after", "evidence"),
            (
                (c.change, c.what, c.name, c.source or "", c.kind or "", c.before or "", c.after or "", _all_places(c))
                for c in shown
            ),
        )
    made = _table(result, shown, left_off, old, new)
    return made if form == "table" else (plain if form == "plain" else markdown)(made)


def change_object(change: GraphChange) -> dict[str, object]:
    """The JSON value of one change."""
    return {
        "change": change.change,
        "what": change.what,
        "name": change.name,
        "source": change.source,
        "kind": change.kind,
        "before": change.before,
        "after": change.after,
        "evidence": [evidence_object(item) for item in change.evidence],
    }


def _table(result: Difference, shown: Iterable[GraphChange], left_off: int, old: Commit, new: Commit) -> Table:
    rows = [(_SIGNS[c.change], c.what, _name(c), _detail(c), places(c.evidence)) for c in shown]
    more = f" · {left_off:,} not shown (--all)" if left_off else ""
    return Table(
        columns=(
            TableColumn(""),
            TableColumn("what"),
            TableColumn("name", style="bold"),
            TableColumn("how"),
            TableColumn("statement", style="dim"),
        ),
        rows=rows,
        heading=f"{_version(old)} → {_version(new)}",
        summary=(_sentence(result) or "no difference") + more,
        row_styles=[_STYLES[c.change] for c in shown],
    )


def _name(change: GraphChange) -> str:
    return change.name if change.source is None else f"{change.source} → {change.name}"


def _detail(change: GraphChange) -> str:
    how = f"{change.kind}: " if change.kind else ""
    if change.change == "changed":
        return f"{how}{change.before or 'unknown'} → {change.after or 'unknown'}"
    return how + (change.after or change.before or "") if how or change.after or change.before else ""


def _counts(result: Difference) -> dict[str, object]:
    return {f"{what}s": {change: result.count(what, change) for change in _SIGNS} for what in _WHATS}


def _sentence(result: Difference) -> str:
    parts = []
    for what in _WHATS:
        numbers = [f"{sign}{n:,}" for change, sign in _SIGNS.items() if (n := result.count(what, change))]
        if numbers:
            parts.append(f"{what}s {' '.join(numbers)}")
    return " · ".join(parts)


def _commit(commit: Commit) -> dict[str, object]:
    return {"seq": commit.seq, "id": commit.id, "time": commit.time, "branch": commit.branch}


def _version(commit: Commit) -> str:
    return f"{commit.branch} {commit.seq} {short(commit.id)} ({when(commit.time)})"


def _all_places(change: GraphChange) -> str:
    return " ".join(dict.fromkeys(item.place for item in change.evidence))
