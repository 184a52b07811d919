"""The findings of `doctor`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from govtool.answers.envelope import envelope
from govtool.render.formats.envelope import compact, json_lines
from govtool.render.layout.table import Table, TableColumn, markdown, plain
from govtool.render.layout.text import count, printable

if TYPE_CHECKING:
    from govtool.app.upkeep.doctor import Diagnosis

FORMATS = ("table", "plain", "json", "jsonl", "markdown")
_STYLES = {"ok": "green", "note": "yellow", "wrong": "red"}


def render_diagnosis(form: str, found: Diagnosis) -> Table | Iterable[str]:
    """The findings in one of ``FORMATS``."""
    checks = [{"what": c.what, "state": c.state, "detail": c.detail, "hint": c.hint} for c in found.checks]
    if form == "jsonl":
        return (compact(check) for check in checks)
    if form == "json":
        aliases = [
            {
                "pattern": p.pattern,
                "name": p.name,
                "datasets": [list(pair) for pair in p.datasets],
                "columns_agreeing": round(p.agreeing, 3),
            }
            for p in found.aliases
        ]
        return json_lines(envelope("doctor/1", {"healthy": found.healthy, "checks": checks, "aliases": aliases}))
    wrong = sum(c.state == "wrong" for c in found.checks)
    table = Table(
        columns=(
            TableColumn("state"),
            TableColumn("what", style="bold"),
            TableColumn("found"),
            TableColumn("what to do", style="dim"),
        ),
        rows=[(c.state, c.what, c.detail, c.hint) for c in found.checks],
        summary=f"{count(wrong, 'thing')} wrong" if wrong else "nothing wrong",
        row_styles=[_STYLES[c.state] for c in found.checks],
    )
    if form == "table":
        return table
    return chain((plain if form == "plain" else markdown)(table), alias_lines(found))


def alias_lines(found: Diagnosis) -> list[str]:
    """The proposals as TOML to take over, each with why."""
    if not found.aliases:
        return []
    lines = ["", "# names that may be one dataset: take over what you know to be so", "[aliases]"]
    for p in found.aliases:
        agreeing = f", {p.agreeing:.0%} of the columns agree" if p.agreeing else ", columns unknown"
        lines.append(
            printable(f"{_quoted(p.pattern)} = {_quoted(p.name)}  # {count(len(p.datasets), 'dataset')}{agreeing}")
        )
    return lines


def _quoted(text: str) -> str:
    """A TOML string."""
    if "'" not in text and text.isprintable():
        return f"'{text}'" if '"' in text or "\\" in text else f'"{text}"'
    return '"' + "".join(ch if ch.isprintable() and ch not in '"\\' else f"\\u{ord(ch):04x}" for ch in text) + '"'
