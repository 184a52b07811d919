"""``govtool explain``: where a column comes from, who reads it, and what is not known about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from govtool.answers.evidence import runs_words
from govtool.render.answer import closing, heading
from govtool.render.layout.rows import ROW_FORMATS, data_lines, laid_out
from govtool.render.layout.table import Table, TableColumn, to_csv
from govtool.render.layout.text import count, printable
from govtool.render.pictures.answers import PICTURES, explain_drawing, picture

if TYPE_CHECKING:
    from govtool.answers.explain import ExplainAnswer, Explained
    from govtool.query.explain import Explanation

FORMATS = (*ROW_FORMATS, *PICTURES)

_Row = tuple[str, str, str, str]
_COLUMNS = (
    TableColumn("about", style="dim"),
    TableColumn("name", style="bold"),
    TableColumn("how"),
    TableColumn("evidence", style="dim"),
)


def render(form: str, answer: ExplainAnswer) -> Table | Iterable[str]:
    """One of ``FORMATS``. The CSV of one subject does not repeat its name."""
    if form in PICTURES:
        return picture(form, explain_drawing(answer))
    if form in ("json", "jsonl"):
        return data_lines(form, answer, (subject.to_dict() for subject in answer.subjects))
    if form == "csv":
        first = 0 if answer.several else 1
        return to_csv(answer.fields[first:], (row[first:] for row in answer.rows()))
    made = _table_of_several(answer) if answer.several else _table(answer)
    return laid_out(form, made)


def _table_of_several(answer: ExplainAnswer) -> Table:
    lines: list[_Row] = []
    for subject in answer.subjects:
        one = subject.explanation
        lines += [(one.subject_kind, one.subject, _about(one), ""), *_sections(subject)]
    edges = sum(subject.explanation.truncated for subject in answer.subjects)
    notes = [count(answer.truncated, "more subject")] if answer.truncated else []
    notes += [count(edges, "more edge")] if edges else []
    number = len(answer.subjects)
    return Table(
        columns=_COLUMNS,
        rows=lines,
        heading=heading(answer.version, answer.name, count(number + answer.truncated, "subject")),
        summary=closing(answer.version, count(number, "subject"), f"{', '.join(notes)} (--all)" if notes else ""),
        row_styles=["bold" if row[0] in ("column", "dataset") else "" for row in lines],
    )


def _sections(subject: Explained) -> list[_Row]:
    """The rows, the name of a section only at its first; what looks the same, as of variants of a template, once.

    Definitions all stay: how many there are is an answer.
    """
    rows: list[_Row] = []
    section = ""
    seen: set[_Row] = set()
    for row in subject.rows():
        if row in seen and row[0] != "defined by":
            continue
        seen.add(row)
        rows.append(row if row[0] != section else ("", *row[1:]))
        section = row[0]
    return rows


def _table(answer: ExplainAnswer) -> Table:
    """Sections one below the other: facts, derived from, rows depend on, reads, feeds, read by, not understood."""
    (subject,) = answer.subjects
    result = subject.explanation
    left = f"{count(result.truncated, 'more edge')} (--all)" if result.truncated else ""
    return Table(
        columns=_COLUMNS,
        rows=_sections(subject),
        names=1,
        heading=heading(answer.version, result.subject, _about(result)),
        summary=closing(answer.version, _summary(result), left),
    )


def _about(result: Explanation) -> str:
    """``text column of a view``, ``table``, ``column, defined by nothing that was read``."""
    kind = result.dataset_kind.replace("_", " ")
    external = kind == "external"
    if result.subject_kind == "dataset":
        return "defined by nothing that was read" if external else kind
    column = f"{result.type} column" if result.type else "column"
    return f"{column}, defined by nothing that was read" if external else f"{column} of a {kind}"


def statements(result: Explanation) -> Iterator[str]:
    """The text of the statements that define the dataset, literals left out as they are stored."""
    for definition in result.definitions:
        if definition.statement.text:
            yield ""
            place = f"{definition.statement.file}:{definition.statement.line}"
            yield f"-- {printable(' · '.join(filter(None, [place, runs_words(definition.statement)])))}"
            yield from (printable(line) for line in definition.statement.text.splitlines())


def _summary(result: Explanation) -> str:
    return ", ".join(
        (
            count(len(result.definitions), "definition"),
            f"{count(len(result.incoming), 'edge')} in",
            f"{count(len(result.outgoing), 'edge')} out",
            count(len(result.readers), "reader"),
        )
    )
