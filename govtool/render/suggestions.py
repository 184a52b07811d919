"""``govtool classify --suggest``: a table, and a policy to review."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from govtool.render.answer import closing, heading
from govtool.render.layout.rows import ROW_FORMATS, data_lines, laid_out
from govtool.render.layout.table import Table, TableColumn, to_csv
from govtool.render.layout.text import count, printable, short

if TYPE_CHECKING:
    from govtool.answers.suggestions import SuggestionsAnswer

FORMATS = (*ROW_FORMATS, "yaml")


def render(form: str, answer: SuggestionsAnswer) -> Table | Iterable[str]:
    """One of ``FORMATS``."""
    if form == "yaml":
        return policy(answer)
    if form in ("json", "jsonl"):
        return data_lines(form, answer, answer.items())
    if form == "csv":
        rows = ((e.column, e.class_, e.confidence, ", ".join(e.reasons)) for e in answer.entries)
        return to_csv(answer.fields, rows)
    made = _table(answer)
    return laid_out(form, made)


def _table(answer: SuggestionsAnswer) -> Table:
    more = f"{answer.truncated:,} more (--all)" if answer.truncated else ""
    number = count(len(answer.entries) + answer.truncated, "suggestion")
    known = f"{count(answer.classified, 'column')} classified already" if answer.classified else ""
    return Table(
        columns=(
            TableColumn("column", style="bold"),
            TableColumn("class"),
            TableColumn("confidence", justify="right"),
            TableColumn("from", style="dim"),
        ),
        rows=[(e.column, e.class_, f"{e.confidence:.2f}", ", ".join(e.reasons)) for e in answer.entries],
        heading=heading(answer.version, "suggested classes"),
        summary=closing(answer.version, number, more, known),
    )


def policy(answer: SuggestionsAnswer) -> Iterator[str]:
    """A policy with the suggested classes; each column with its confidence and reasons, for a reviewer."""
    yield f"# Suggested by govtool classify --suggest, of commit {short(answer.version.commit.id)}."
    yield "# Hints from names, types and descriptions: review every line, delete what is wrong, and name it your own."
    if answer.truncated:
        yield f"# {answer.truncated:,} more were left out (--all)."
    yield "version: 1"
    yield "name: suggested"
    classes = sorted({one.class_ for one in answer.entries})
    above = {name[:at] for name in classes for at, ch in enumerate(name) if ch == "."}
    yield "classes:" if classes else "classes: {}"
    yield from (f"  {name}: {{}}" for name in sorted({*classes, *above}))
    yield "classify:" if classes else "classify: []"
    for name in classes:
        yield f"  - class: {name}"
        yield "    columns:"
        for one in answer.entries:
            if one.class_ == name:
                yield f"      - {_quoted(one.column)}  # {one.confidence:.2f}: {', '.join(one.reasons)}"


def _quoted(name: str) -> str:
    """A name as a scalar of YAML in single quotes."""
    return "'" + printable(name).replace("'", "''") + "'"
