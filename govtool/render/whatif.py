"""``govtool whatif``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from govtool.render.answer import GraphVersion, already, evidence_object, places, tally, way
from govtool.render.envelope import compact, envelope, json_lines
from govtool.render.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.text import count

if TYPE_CHECKING:
    from govtool.app.whatif import PolicyEffect
    from govtool.query.whatif import Affected, WhatIf

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")
_STYLES = {
    "lost": "bold red",
    "breaks": "bold red",
    "unknown": "magenta",
    "changes": "yellow",
    "rows": "cyan",
    "passes": "green",
}
_NOUNS = {
    "lost": "lost",
    "breaks": "break",
    "unknown": "unknown",
    "changes": "change",
    "rows": "by rows only",
    "passes": "pass",
}


def render(
    form: str, answer: WhatIf, version: GraphVersion, limit: int | None, effect: PolicyEffect | None
) -> Table | Iterable[str]:
    """One of ``FORMATS``; ``effect`` is what the change does to the policies' findings, where there are policies."""
    shown = answer.affected if limit is None else answer.affected[:limit]
    left = len(answer.affected) - len(shown)
    if form == "csv":
        header = ("verdict", "column", "dataset", "hops", "via", "cause", "evidence")
        return to_csv(
            header,
            [(a.verdict, a.column, a.dataset, a.hops, way(a.via), a.cause, places(a.evidence)) for a in shown],
        )
    if form == "jsonl":
        return (compact(_object(a)) for a in shown)
    if form == "json":
        return json_lines(envelope("whatif/1", _body(answer, version, shown, left, effect)))
    lines = _lines(answer.affected)
    made = _table(answer, version, lines[:limit], len(lines[limit:]) if limit is not None else 0, effect)
    return made if form == "table" else (plain if form == "plain" else markdown)(made)


def _object(entry: Affected) -> dict[str, object]:
    return {
        "column": entry.column,
        "dataset": entry.dataset,
        "dataset_kind": entry.dataset_kind,
        "verdict": entry.verdict,
        "cause": entry.cause or None,
        "hops": entry.hops,
        "path": list(entry.path),
        "via": list(entry.via),
        "evidence": [evidence_object(e) for e in entry.evidence],
    }


def _body(
    answer: WhatIf, version: GraphVersion, shown: tuple[Affected, ...], left: int, effect: PolicyEffect | None
) -> dict[str, object]:
    policies = None
    if effect is not None:
        ended = [{"rule": f.rule, "column": f.column, "source": f.source or None} for f in effect.ended]
        policies = {"ended": ended, "left": effect.left}
    return {
        **version.header(),
        "action": answer.action,
        "to": answer.to,
        "subjects": list(answer.subjects),
        "columns": [_object(a) for a in shown],
        **({"truncated": left} if left else {}),
        "datasets": list(answer.datasets),
        "jobs": list(answer.jobs),
        "unused": list(answer.unused),
        **({"unchanged": list(answer.unchanged)} if answer.unchanged else {}),
        "policies": policies,
        "summary": answer.counts,
        "coverage": version.coverage.counts(),
    }


def _lines(affected: Sequence[Affected]) -> list[tuple[Affected, str]]:
    """Entries and how they are named: the rows of a dataset stand for its columns to which the same happens."""
    alike: dict[tuple[object, ...], list[Affected]] = {}
    for entry in affected:
        same = (entry.dataset, entry.verdict, entry.cause, entry.hops, entry.via, entry.evidence)
        alike.setdefault(same, []).append(entry)
    lines = []
    for entries in alike.values():
        rows = next((e for e in entries if e.column == f"{e.dataset}.*"), None)
        if rows is not None and len(entries) > 1:
            lines.append((rows, f"{rows.column} ({count(len(entries) - 1, 'column')})"))
        else:
            lines += [(entry, entry.column) for entry in entries]
    order = {id(entry): number for number, entry in enumerate(affected)}
    return sorted(lines, key=lambda line: order[id(line[0])])


def _table(
    answer: WhatIf, version: GraphVersion, shown: list[tuple[Affected, str]], left: int, effect: PolicyEffect | None
) -> Table:
    about = ", ".join(answer.subjects[:3]) + (
        f" and {len(answer.subjects) - 3} more" if len(answer.subjects) > 3 else ""
    )
    action = answer.action + (f" to {answer.to}" if answer.to else "")
    text = tally({_NOUNS[verdict]: number for verdict, number in answer.counts.items()}) or "nothing is affected"
    idle = already(answer.unchanged, answer.to or "")
    parts = [idle, text, f"{count(len(answer.datasets), 'dataset')}, {count(len(answer.jobs), 'file')}"]
    if left:
        parts.append(f"{count(left, 'more entry', 'more entries')} (--all)")
    closing = [version.closing(*parts)]
    if answer.unused:
        names = ", ".join(answer.unused[:10]) + (
            f" and {len(answer.unused) - 10} more" if len(answer.unused) > 10 else ""
        )
        closing.append(f"no longer used: {names}")
    if effect is not None and effect.ended:
        rules = ", ".join(dict.fromkeys(f.rule for f in effect.ended))
        closing.append(
            f"policies: {count(len(effect.ended), 'finding')} would end ({rules}), {effect.left:,} would stay"
        )
    return Table(
        columns=(
            TableColumn("verdict"),
            TableColumn("column", style="bold"),
            TableColumn("hops", justify="right"),
            TableColumn("via"),
            TableColumn("cause"),
            TableColumn("evidence", style="dim"),
        ),
        rows=[
            (a.verdict, name, str(a.hops) if a.hops else "", way(a.via), a.cause, places(a.evidence))
            for a, name in shown
        ],
        heading=version.heading(about, f"what if: {action}"),
        summary="\n".join(closing),
        row_styles=[_STYLES[a.verdict] for a, _ in shown],
    )
