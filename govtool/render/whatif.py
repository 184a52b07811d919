"""``govtool whatif``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from govtool.model.derivation import ROWS
from govtool.names import split_name
from govtool.render.answer import already, closing, heading, places, tally, unclear, way
from govtool.render.formats.envelope import compact, json_lines
from govtool.render.layout.rows import ROW_FORMATS, laid_out
from govtool.render.layout.table import Table, TableColumn, to_csv
from govtool.render.layout.text import count
from govtool.wording import few

if TYPE_CHECKING:
    from govtool.answers.whatif import WhatIfAnswer
    from govtool.query.changes.whatif import Affected, WhatIf

FORMATS = ROW_FORMATS
_NAMED = 10
"""Names in a sentence of the summary."""
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


def render(form: str, answer: WhatIfAnswer) -> Table | Iterable[str]:
    """One of ``FORMATS``."""
    if form == "csv":
        rows = [
            (a.verdict, a.column, a.dataset, a.hops, way(a.via), a.cause, places(a.evidence)) for a in answer.entries
        ]
        return to_csv(answer.fields, rows)
    if form == "jsonl":
        return (compact(item) for item in answer.items())
    if form == "json":
        return json_lines(answer.to_dict())
    made = _table(answer)
    return laid_out(form, made)


def _lines(affected: Sequence[Affected]) -> list[tuple[Affected, str]]:
    """Entries and how they are named: a relation that fares as a whole is one line, as in ``impact``.

    The line is that of its rows and stands for the columns of the same verdict, cause and survival; the first two of
    those that are reached in a way of their own are named.
    """
    whole = {_fate(entry): entry for entry in affected if entry.column == f"{entry.dataset}.{ROWS}"}
    within: dict[int, list[Affected]] = {}
    lines = []
    for entry in affected:
        rows = whole.get(_fate(entry))
        if rows is None:
            lines.append((entry, entry.column))
        elif rows is entry:
            within.setdefault(id(rows), [])
        else:
            within.setdefault(id(rows), []).append(entry)
    lines += [(entry, _whole_name(entry, within[id(entry)])) for entry in whole.values()]
    order = {id(entry): number for number, entry in enumerate(affected)}
    return sorted(lines, key=lambda line: order[id(line[0])])


def _fate(entry: Affected) -> tuple[object, ...]:
    return entry.dataset, entry.verdict, entry.cause, entry.survives


def _whole_name(rows: Affected, columns: Sequence[Affected]) -> str:
    """``stg.users.* (9 columns: email …)``."""
    if not columns:
        return rows.column
    own = [c for c in columns if (c.hops, c.via, c.evidence) != (rows.hops, rows.via, rows.evidence)]
    names = ", ".join(split_name(c.column)[-1] for c in own[:2])
    more = " …" if names and len(columns) > len(own[:2]) else ""
    return f"{rows.column} ({count(len(columns), 'column')}{': ' if names else ''}{names}{more})"


def _via(entry: Affected) -> str:
    """The way, and what an entry survives on: ``union all, survives on crm.more``."""
    parts = [way(entry.via), f"survives on {', '.join(entry.survives)}" if entry.survives else ""]
    return ", ".join(filter(None, parts))


def _question(result: WhatIf) -> tuple[str, str]:
    """The changed columns and datasets, and what is done to them: ``what if: rename to mail``."""
    if not result.parts:
        return few(result.subjects), f"what if: {result.action}{_new(result)}"
    changes = "; ".join(f"{part.action} {few(part.subjects)}{_new(part)}" for part in result.parts)
    return f"{len(result.parts)} changes", f"what if: {changes}"


def _new(part: WhatIf) -> str:
    return f" to {part.to}" if part.to else ""


def _table(answer: WhatIfAnswer) -> Table:
    result, version, effect = answer.result, answer.version, answer.effect
    lines = _lines(result.affected)
    several = len(result.subjects) > 1
    shown = lines[: answer.limit]
    left = len(lines) - len(shown)
    text = tally({_NOUNS[verdict]: number for verdict, number in result.counts.items()})
    if not text:  # of datasets none of whose columns is known there are none to count
        text = f"{count(len(result.datasets), 'dataset')} unknown" if result.affected else "nothing is affected"
    idle = ", ".join(filter(None, (already(part.unchanged, part.to or "") for part in result.parts or (result,))))
    known = unclear(version)
    if known and not result.affected:
        text = "no path found"
    parts = [
        idle,
        *result.not_compared,
        text,
        known,
        f"{count(len(result.datasets), 'dataset')}, {count(len(result.jobs), 'file')}",
    ]
    if left:
        parts.append(f"{count(left, 'more entry', 'more entries')} (--all)")
    sentences = [closing(version, *parts)]
    named = (("datasets", result.datasets), ("jobs", result.jobs), ("reports", result.reports))
    sentences += [
        f"{noun}: {few(names, _NAMED)}" for noun, names in (*named, ("no longer used", result.unused)) if names
    ]
    if effect is not None and effect.ended:
        ended = count(len(effect.ended), "finding")
        sentences.append(f"policies: {ended} would end ({', '.join(effect.rules)}), {effect.left:,} would stay")
    return Table(
        columns=(
            TableColumn("verdict"),
            TableColumn("column", style="bold"),
            TableColumn("hops", justify="right"),
            TableColumn("via"),
            *([TableColumn("cause")] if several else []),  # of one subject it is in the heading
            TableColumn("evidence", style="dim"),
        ),
        rows=[
            (a.verdict, name, str(a.hops or ""), _via(a), *([a.cause] if several else []), places(a.evidence))
            for a, name in shown
        ],
        heading=heading(version, *_question(result)),
        summary="\n".join(sentences),
        row_styles=[_STYLES[a.verdict] for a, _ in shown],
        names=1,
        groups=[a.dataset for a, _ in shown],
    )
