"""``govtool explain``: where a column comes from, who reads it, and what is not known about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from govtool.app.diagnostics import diagnostic_object
from govtool.model.fact import Fact
from govtool.query.evidence import WayStep
from govtool.query.explain import DatasetDefinition, Explanation
from govtool.query.select import few
from govtool.render.answer import GraphVersion, step_object
from govtool.render.envelope import envelope, json_lines
from govtool.render.errors import place_of
from govtool.render.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.text import count, printable

FORMATS = ("table", "plain", "json", "csv", "markdown")

_Row = tuple[str, str, str, str]
_COLUMNS = (
    TableColumn("about", style="dim"),
    TableColumn("name", style="bold"),
    TableColumn("how"),
    TableColumn("evidence", style="dim"),
)


def render(form: str, result: Explanation, version: GraphVersion, facts: Sequence[Fact] = ()) -> Table | Iterable[str]:
    """One of ``FORMATS``; ``facts`` are those about the subject's dataset and its columns."""
    of_subject = _facts_of_subject(result, facts)
    if form == "json":
        return json_lines(envelope("explain/1", _stated(result, version, of_subject)))
    if form == "csv":
        return to_csv(("about", "name", "how", "evidence"), _rows(result, of_subject))
    made = table(result, version, of_subject)
    return made if form == "table" else (plain if form == "plain" else markdown)(made)


def render_many(
    form: str, results: Sequence[Explanation], left_off: int, version: GraphVersion, facts: Mapping[str, Sequence[Fact]]
) -> Table | Iterable[str]:
    """One of ``FORMATS`` for several columns and datasets.

    Args:
        form: The format.
        results: One a column or dataset.
        left_off: How many more there are.
        version: Of the graph.
        facts: By dataset.
    """
    of_subject = [_facts_of_subject(result, facts.get(result.dataset, ())) for result in results]
    names = few([result.subject for result in results])
    if form == "json":
        each = [
            {key: value for key, value in body.items() if key not in ("store", "commit", "coverage")}
            for body in (_stated(one, version, own) for one, own in zip(results, of_subject, strict=True))
        ]
        body = {
            **version.header(),
            "subject": names,
            "subject_kind": "selection",
            "subjects": each,
            **({"truncated": left_off} if left_off else {}),
            "coverage": version.coverage.counts(),
            "diagnostics": [],
        }
        return json_lines(envelope("explain/1", body))
    if form == "csv":
        rows = ((one.subject, *row) for one, own in zip(results, of_subject, strict=True) for row in _rows(one, own))
        return to_csv(("subject", "about", "name", "how", "evidence"), rows)
    lines: list[_Row] = []
    for one, own in zip(results, of_subject, strict=True):
        lines += [(one.subject_kind, one.subject, _about(one), ""), *_sections(one, own)]
    edges = sum(one.truncated for one in results)
    notes = [count(left_off, "more subject")] if left_off else []
    notes += [count(edges, "more edge")] if edges else []
    made = Table(
        columns=_COLUMNS,
        rows=lines,
        heading=version.heading(names, count(len(results) + left_off, "subject")),
        summary=version.closing(count(len(results), "subject"), f"{', '.join(notes)} (--all)" if notes else ""),
        row_styles=["bold" if row[0] in ("column", "dataset") else "" for row in lines],
    )
    return made if form == "table" else (plain if form == "plain" else markdown)(made)


def _facts_of_subject(result: Explanation, facts: Sequence[Fact]) -> list[Fact]:
    """What is said of the subject, of all that is said of its dataset."""
    path = None if result.subject_kind == "dataset" else result.subject.removeprefix(f"{result.dataset}.")
    return [fact for fact in facts if path is None or fact.column == path]


def _stated(result: Explanation, version: GraphVersion, of_subject: Sequence[Fact]) -> dict[str, object]:
    stated = [{"column": f.column, "name": f.name, "value": f.value, "how": f.how, "file": f.file} for f in of_subject]
    return {**_body(result, version), "facts": stated}


def _sections(result: Explanation, facts: Sequence[Fact]) -> list[_Row]:
    """The rows, the name of a section only at its first; what looks the same, as of variants of a template, once.

    Definitions all stay: how many there are is an answer.
    """
    rows: list[_Row] = []
    section = ""
    seen: set[_Row] = set()
    for row in _rows(result, facts):
        if row in seen and row[0] != "defined by":
            continue
        seen.add(row)
        rows.append(row if row[0] != section else ("", *row[1:]))
        section = row[0]
    return rows


def table(result: Explanation, version: GraphVersion, facts: Sequence[Fact] = ()) -> Table:
    """Sections one below the other: what is said, made of, rows by, reads, goes to, read by, not understood."""
    about = _about(result)
    left = f"{count(result.truncated, 'more edge')} (--all)" if result.truncated else ""
    return Table(
        columns=_COLUMNS,
        rows=_sections(result, facts),
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


def _ends(step: WayStep) -> str:
    return f"{step.source} → {step.target}"


def _words(definition: DatasetDefinition) -> str:
    return definition.statement.kind.replace("_", " ")


def _state(definition: DatasetDefinition) -> str:
    notes = [] if definition.status == "understood" else [definition.status]
    notes += [] if definition.names_column else ["does not name it"]
    notes += [] if definition.complete else ["may have more columns"]
    return ", ".join([definition.mode, *notes])


def _place(definition: DatasetDefinition) -> str:
    return f"{definition.statement.file}:{definition.statement.line}"


def _how(step: WayStep) -> str:
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


def _body(result: Explanation, version: GraphVersion) -> dict[str, object]:
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


def _definition_object(definition: DatasetDefinition) -> dict[str, object]:
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
