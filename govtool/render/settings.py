"""The settings in effect."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from govtool.answers.envelope import envelope
from govtool.config import Setting
from govtool.redaction import clean_value
from govtool.render.formats.envelope import json_lines
from govtool.render.layout.rows import laid_out
from govtool.render.layout.table import Table, TableColumn, to_csv

FORMATS = ("table", "plain", "json", "csv", "markdown")


def render(form: str, settings: Sequence[Setting]) -> Table | Iterable[str]:
    """One of ``FORMATS``."""
    if form == "json":
        values = [{"name": s.name, "value": clean_value(s.name, s.value), "origin": s.origin} for s in settings]
        return json_lines(envelope("config/1", {"settings": values}))
    rows = [(s.name, _text(clean_value(s.name, s.value)), s.origin) for s in settings]
    if form == "csv":
        return to_csv(("name", "value", "origin"), rows)
    table = Table(
        columns=(TableColumn("setting", style="bold"), TableColumn("value"), TableColumn("from", style="dim")),
        rows=rows,
    )
    return laid_out(form, table)


def _text(value: object) -> str:
    """A value for people: texts as they are, others as in JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)
