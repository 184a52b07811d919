"""``govtool explain``: where a column comes from, who reads it, and what is not known about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from govtool.app.diagnostics import diagnostic_object
from govtool.model.fact import Fact
from govtool.query.evidence import Step
from govtool.query.explain import Definition, Explanation
from govtool.render.answer import Version, step_object
from govtool.render.envelope import envelope, json_lines
from govtool.render.errors import place_of
from govtool.render.table import Column, Table, markdown, plain, to_csv
from govtool.render.text import count, printable

FORMATS = ("table", "plain", "json", "csv", "markdown")

_Row = tuple[str, str, str, str]


def render(form: str, result: Explanation, version: Version, facts: Sequence[Fact] = ()) -> Table | Iterable[str]:
    """One of ``FORMATS``; ``facts`` are those about the subject's dataset and its columns."""
    path = None if result.subject_kind == "dataset" else result.subject.removeprefix(f"{result.dataset}.")
    said = [fact for fact in facts if path is None or fact.column == path]
    if form == "json":
        stated = [{"column": f.column, "name": f.name, "value": f.value, "how": f.how, "file": f.file} for f in said]
        return json_lines(envelope("explain/1", {**_body(result, version), "facts": stated}))
    if form == "csv":
        return to_csv(("about", "name", "how", "evidence"), _rows(result, said))
    made = table(result, version, said)
    return made if form == "table" else (plain if form == "plain" else markdown)(made)


def table(result: Explanation, version: Version, facts: Sequence[Fact] = ()) -> Table:
    """Sections one below the other: what is said, made of, rows by, reads, goes to, read by, not understood."""
    rows: list[_Row] = []
    section = ""
    for row in _rows(result, facts):
        rows.append(row if row[0] != section else ("", *row[1:]))
        section = row[0]
    about = _about(result)
    left = f"{count(result.truncated, 'more edge')} (--all)" if result.truncated else ""
    return Table(
        columns=(
            Column("about", style="dim"),
            Column("name", style="bold"),
            Column("how"),
            Column("evidence", style="dim"),
        ),
        rows=rows,
        heading=version.heading(result.subject, about),
        summary=version.closing(_summary(result), left),
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
            yield f"-- {printable(definition.statement.file)}:{definition.statement.line}"
            yield from (printable(line) for line in definition.statement.text.splitlines())


def _rows(result: Explanation, facts: Sequence[Fact] = ()) -> Iterator[_Row]:
    for fact in facts:
        about = fact.name if fact.column is None or result.subject_kind != "dataset" else f"{fact.column}: {fact.name}"
        yield "said", about, fact.value, f"{fact.file} ({fact.how})"
    of_column = result.subject_kind == "column"
    for definition in result.definitions:
        yield "defined by", _words(definition), _state(definition), _place(definition)
    for column in result.columns:
        yield ("fields" if of_column else "columns"), column.path, column.type or "", ""
    for step in result.incoming:
        yield "made of", step.source if of_column else _ends(step), _how(step), step.evidence.place
    for step in result.rows:
        yield "rows by", step.source, _how(step), step.evidence.place
    for name in result.reads:
        yield "reads", name, "", ""
    for step in result.outgoing:
        yield "goes to", step.target if of_column else _ends(step), _how(step), step.evidence.place
    for name in result.readers:
        yield "read by", name, "", ""
    for step in result.opaque:
        yield "not understood", _ends(step), _how(step), step.evidence.place
    for diagnostic in result.diagnostics:
        yield "remarks", diagnostic.code, diagnostic.message, place_of(diagnostic)


def _ends(step: Step) -> str:
    return f"{step.source} → {step.target}"


def _words(definition: Definition) -> str:
    return definition.statement.kind.replace("_", " ")


def _state(definition: Definition) -> str:
    notes = [] if definition.status == "understood" else [definition.status]
    notes += [] if definition.names_column else ["does not name it"]
    notes += [] if definition.complete else ["may have more columns"]
    return ", ".join([definition.mode, *notes])


def _place(definition: Definition) -> str:
    return f"{definition.statement.file}:{definition.statement.line}"


def _how(step: Step) -> str:
    label = step.label
    if step.kind.label not in ("identity", "transformation", "opaque") and label.endswith(")"):
        label = f"{step.kind.label.replace('_', ' ')}: {label}"
    notes = [label, *(["through *"] if step.star else []), *(["masked"] if step.masking else [])]
    return ", ".join(notes)


def _summary(result: Explanation) -> str:
    return ", ".join(
        (
            count(len(result.definitions), "definition"),
            f"{count(len(result.incoming), 'edge')} in",
            f"{count(len(result.outgoing), 'edge')} out",
            count(len(result.readers), "reader"),
        )
    )


def _body(result: Explanation, version: Version) -> dict[str, object]:
    return {
        **version.header(),
        "subject": result.subject,
        "subject_kind": result.subject_kind,
        "dataset": result.dataset,
        "dataset_kind": result.dataset_kind,
        "type": result.type,
        "columns": [{"path": column.path, "type": column.type} for column in result.columns],
        "definitions": [_definition_object(definition) for definition in result.definitions],
        "made_of": [step_object(step) for step in result.incoming],
        "rows_by": [step_object(step) for step in result.rows],
        "reads": list(result.reads),
        "goes_to": [step_object(step) for step in result.outgoing],
        "read_by": list(result.readers),
        "opaque": [step_object(step) for step in result.opaque],
        **({"truncated": result.truncated} if result.truncated else {}),
        "coverage": version.coverage.counts(),
        "diagnostics": [diagnostic_object(d) for d in result.diagnostics],
    }


def _definition_object(definition: Definition) -> dict[str, object]:
    statement = definition.statement
    return {
        "kind": statement.kind,
        "mode": definition.mode,
        "status": definition.status,
        "complete": definition.complete,
        "names_column": definition.names_column,
        "dialect": statement.dialect,
        "source": statement.source,
        "how": statement.how,
        "file": statement.file,
        "line": statement.line,
        "fingerprint": statement.fingerprint,
        "run": statement.run,
        "principal": statement.principal,
        "first_seen": statement.first_seen,
        "last_seen": statement.last_seen,
        "count": statement.count,
        "text": statement.text,
    }
