"""The answer of ``explain``: where columns and datasets come from, who reads them, and what is recorded about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Cell, GraphAnswer
from govtool.answers.diagnostics import diagnostic_object
from govtool.answers.evidence import runs_words, step_object, users_of
from govtool.wording import few

if TYPE_CHECKING:
    from collections.abc import Mapping

    from govtool.model import Diagnostic
    from govtool.model.fact import Fact
    from govtool.query.evidence import WayStep
    from govtool.query.explain import DatasetDefinition, Explanation


@dataclass(frozen=True, slots=True)
class Explained:
    """One column or dataset."""

    explanation: Explanation
    facts: tuple[Fact, ...]
    """The recorded facts about it: owners, tags, descriptions, tests."""

    def to_dict(self) -> dict[str, object]:
        """Its JSON value."""
        one = self.explanation
        return {
            **_subject_object(one),
            "facts": [
                {"column": f.column, "name": f.name, "value": f.value, "how": f.how, "file": f.file} for f in self.facts
            ],
        }

    def rows(self) -> Iterator[tuple[str, str, str, str]]:
        """Rows ``about, name, how, evidence``, section by section."""
        one = self.explanation
        for fact in self.facts:
            of_subject = fact.column is None or one.subject_kind != "dataset"
            about = fact.name if of_subject else f"{fact.column}: {fact.name}"
            yield "facts", about, fact.value, f"{fact.file} ({fact.how})"
        of_column = one.subject_kind == "column"
        for definition in one.definitions:
            yield "defined by", _words(definition), _state(definition), _place(definition)
        for column in one.columns:
            yield ("fields" if of_column else "columns"), column.path, column.type or "", ""
        for step in one.incoming:
            yield "derived from", step.source if of_column else _ends(step), _how(step), step.place
        for step in one.rows:
            yield "rows depend on", step.source, _how(step), step.place
        for name in one.reads:
            yield "reads", name, "", ""
        for step in one.outgoing:
            how = ", ".join(filter(None, [_how(step), runs_words(step.evidence)]))
            yield "feeds", step.target if of_column else _ends(step), how, step.place
        for name in one.readers:
            yield "read by", name, "", ""
        for step in one.opaque:
            yield "not understood", _ends(step), _how(step), step.place
        for diagnostic in one.diagnostics:
            yield "remarks", diagnostic.code, diagnostic.message, _diagnostic_place(diagnostic)


@dataclass(frozen=True, slots=True)
class ExplainAnswer(GraphAnswer):
    """One step each way from columns and datasets, with all the evidence there is."""

    schema: ClassVar[str] = "explain/1"
    fields: ClassVar[tuple[str, ...]] = ("subject", "about", "name", "how", "evidence")

    subjects: tuple[Explained, ...]
    several: bool
    """True if a selector selected more than one."""
    truncated: int = 0
    """Number of selected columns and datasets left out."""

    @property
    def name(self) -> str:
        """The subject, or the first few of several."""
        return few([one.explanation.subject for one in self.subjects])

    def files(self) -> frozenset[str]:
        """The files of the evidence of all definitions and edges."""
        found: set[str] = set()
        for one in (subject.explanation for subject in self.subjects):
            found.update(definition.statement.file for definition in one.definitions)
            for step in (*one.incoming, *one.rows, *one.outgoing, *one.opaque):
                found.update(evidence.file for evidence in (step.evidence, *step.more))
        return frozenset(found)

    def body(self) -> Mapping[str, object]:
        """The keys after the header, as docs/schemas/explain-1.json has them."""
        coverage = self.version.coverage.counts()
        if not self.several:
            (one,) = (subject.to_dict() for subject in self.subjects)
            return _in_order(one, coverage)
        return {
            "subject": self.name,
            "subject_kind": "selection",
            "subjects": [subject.to_dict() for subject in self.subjects],
            **({"truncated": self.truncated} if self.truncated else {}),
            "coverage": coverage,
            "diagnostics": [],
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """The rows of each subject, section by section."""
        for subject in self.subjects:
            for row in subject.rows():
                yield subject.explanation.subject, *row


def _in_order(value: dict[str, object], coverage: dict[str, int]) -> dict[str, object]:
    """The value with its coverage where it has always been: before the diagnostics."""
    tail = ("diagnostics", "facts")
    first = {key: item for key, item in value.items() if key not in tail}
    return {**first, "coverage": coverage, **{key: value[key] for key in tail}}


def facts_about(result: Explanation, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The facts about a subject, of all about its dataset."""
    path = None if result.subject_kind == "dataset" else result.subject.removeprefix(f"{result.dataset}.")
    return tuple(fact for fact in facts if path is None or fact.column == path)


def _diagnostic_place(diagnostic: Diagnostic) -> str:
    """``file:line:column`` with as many parts as are known."""
    line = diagnostic.line or None
    parts = (diagnostic.file or None, line, diagnostic.column or None if line else None)
    return ":".join(str(part) for part in parts if part is not None)


def _ends(step: WayStep) -> str:
    return f"{step.source} → {step.target}"


def _words(definition: DatasetDefinition) -> str:
    return definition.statement.kind.replace("_", " ")


def _state(definition: DatasetDefinition) -> str:
    notes = [] if definition.status == "understood" else [definition.status]
    notes += [] if definition.names_column else ["does not name it"]
    notes += [] if definition.complete else ["may have more columns"]
    return ", ".join(filter(None, [definition.mode, *notes, runs_words(definition.statement)]))


def _place(definition: DatasetDefinition) -> str:
    return f"{definition.statement.file}:{definition.statement.line}"


def _how(step: WayStep) -> str:
    label = step.label
    if (
        step.kind is not None
        and step.kind.label not in ("identity", "transformation", "opaque")
        and label.endswith(")")
    ):
        label = f"{step.kind.label.replace('_', ' ')}: {label}"
    notes = [label, *(["through *"] if step.star else []), *(["masked"] if step.masking else [])]
    return ", ".join(notes)


def _subject_object(result: Explanation) -> dict[str, object]:
    return {
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
        "users": users_of(statement.principal),
        "first_seen": statement.first_seen,
        "last_seen": statement.last_seen,
        "count": statement.count,
        "text": statement.text,
    }
