"""The answer of ``impact``: what a change to columns reaches, or from what they are derived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Cell, GraphAnswer, at_least
from govtool.answers.diagnostics import diagnostic_object
from govtool.answers.evidence import evidence_object

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from govtool.answers.affected_rows import AffectedRows
    from govtool.answers.labels import Labels
    from govtool.graph.index import Index
    from govtool.model import Diagnostic
    from govtool.query.changes.impact import ImpactResult
    from govtool.query.changes.impact_entries import Impacted, ImpactLine

VERDICTS = ("breaks", "unknown", "changes", "rows", "passes")
"""The worst first."""


@dataclass(frozen=True, slots=True)
class ImpactAnswer(GraphAnswer):
    """Everything downstream of a change, or upstream of a column; the worst and nearest first."""

    schema: ClassVar[str] = "impact/1"
    fields: ClassVar[tuple[str, ...]] = (
        *("verdict", "column", "dataset", "kinds", "hops", "via", "evidence"),
        *("classes", "owner"),
    )
    types: ClassVar[Mapping[str, str]] = {
        "hops": "integer",
        **dict.fromkeys(("kinds", "via", "evidence", "classes"), "texts"),
    }

    result: ImpactResult
    """Subject, change, summary, and the entries without their labels."""
    subject_classes: tuple[str, ...]
    """The classes of the columns that the question is about, sorted."""
    subject_owner: str | None
    """The owner of their datasets; None if nobody is known, or they have several."""
    _index: Index = field(repr=False, compare=False)
    _labels: Labels = field(repr=False, compare=False)
    _guard: AbstractContextManager[object] = field(repr=False, compare=False)
    affected: AffectedRows | None = None
    """The rows that a selection reached, with ``where``; None: that was not requested."""

    @property
    def entries(self) -> tuple[Impacted, ...]:
        """The entries: the rows of a dataset are one, and stand for the columns that have none of their own."""
        with self._guard:
            return tuple(self._labelled(self.result.columns))

    @property
    def lines(self) -> tuple[ImpactLine, ...]:
        """The entries of a table for people: without columns whose relation has their verdict as a whole."""
        with self._guard:
            found = self.result.lines
            labelled = self._labelled(line.entry for line in found)
            return tuple(line._replace(entry=entry) for line, entry in zip(found, labelled, strict=True))

    @property
    def columns(self) -> tuple[Impacted, ...]:
        """One entry a column: those that only the rows of their dataset bring in have their own, too."""
        from govtool.query.changes.impact import expand

        with self._guard:
            order = sorted(expand(self._index, self.result), key=_order)
            return tuple(self._labelled(order))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Diagnostics of the statements that the entries cite as evidence, by place."""
        found = dict.fromkeys(one for entry in self.result.columns for one in entry.diagnostics)
        return tuple(sorted(found, key=lambda one: one.sort_key()))

    def files(self) -> frozenset[str]:
        """The files of the evidence of all entries."""
        entries = (*self.result.columns, *(line.entry for line in self.result.lines))
        return frozenset(item.file for entry in entries for item in entry.evidence)

    def head(self, limit: int | None) -> ImpactAnswer:
        """The answer with the first so many entries, and lines; None leaves it as it is. The summary is that of all."""
        result = self.result
        columns, lines = result.columns[:limit], result.lines[:limit]
        shown = replace(
            result,
            columns=columns,
            truncated=result.truncated + len(result.columns) - len(columns),
            lines=lines,
            truncated_lines=result.truncated_lines + len(result.lines) - len(lines),
        )
        return replace(self, result=shown)

    def fails(self, fail_on: str) -> bool:
        """Return whether anything is as bad as a verdict, or worse.

        Raises:
            UnknownNameError: There is no such verdict (``usage.unknown-verdict``).
        """
        return not self._found.isdisjoint(at_least(fail_on, VERDICTS, "verdict"))

    def is_unclear(self) -> bool:
        """True if a verdict is ``unknown``, or a statement was not understood that could read what is asked about."""
        return "unknown" in self._found or self.version.unclear > 0

    @property
    def _found(self) -> frozenset[str]:
        """The verdicts that a column has, or a dataset of which no column is known."""
        summary = self.result.summary
        return frozenset(verdict.label for verdict, number in (*summary.verdicts, *summary.bare) if number)

    @property
    def is_filtered(self) -> bool:
        """True if ``depth`` or ``kind`` left out what is reached."""
        return self.result.depth is not None or bool(self.result.kinds)

    @property
    def unaffected(self) -> int | None:
        """Columns that are known not to be affected; None where statements were not understood that could read it."""
        return None if self.version.unclear else self.result.summary.no_path

    def body(self) -> Mapping[str, object]:
        """The keys after the header, as docs/schemas/impact-1.json has them."""
        result, summary = self.result, self.result.summary
        bare = {verdict.label: number for verdict, number in summary.bare if number}
        return {
            "subject": result.subject,
            "subject_kind": result.subject_kind,
            "subject_classes": list(self.subject_classes),
            "subject_owner": self.subject_owner,
            "direction": result.direction,
            "change": result.change.text if result.change else None,
            "columns": list(self.items()),
            **({"truncated": result.truncated} if result.truncated else {}),
            **({"unchanged": list(result.unchanged)} if result.unchanged else {}),
            **({"not_compared": result.not_compared} if result.not_compared else {}),
            **({"reached_subjects": list(result.reached_subjects)} if result.reached_subjects else {}),
            "summary": {
                **{verdict.label: number for verdict, number in summary.verdicts},
                "columns": summary.columns,
                "datasets": summary.datasets,
                "no_path": summary.no_path,
                **({} if self.unaffected is None else {"unaffected": self.unaffected}),
                **({"of_unknown_columns": bare} if bare else {}),
                **({"hidden": summary.hidden} if self.is_filtered else {}),
                "not_understood": self.version.unclear,
            },
            **({"filter": {"depth": result.depth, "kinds": list(result.kinds)}} if self.is_filtered else {}),
            **({} if self.affected is None else self.affected.to_dict()),
            "coverage": self.version.coverage.counts(),
            "diagnostics": [diagnostic_object(one) for one in self.diagnostics],
        }

    def items(self) -> Iterator[dict[str, object]]:
        """The JSON value of each column."""
        return (_entry_object(entry) for entry in self.columns)

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """A row a column."""
        for entry in self.columns:
            yield (
                verdict_of(entry),
                entry.column,
                entry.dataset,
                tuple(kind.label for kind in entry.kinds),
                entry.hops,
                entry.via,
                tuple(item.place for item in entry.evidence),
                entry.classes,
                entry.owner,
            )

    def _labelled(self, entries: Iterable[Impacted]) -> Iterator[Impacted]:
        """The entries with classes and owners; as they are where none is known, which costs nothing."""
        labels = self._labels
        if labels.is_empty():
            yield from entries
            return
        for entry in entries:
            yield replace(
                entry,
                classes=labels.classes(entry.node),
                possible_classes=labels.possible_classes(entry.node),
                owner=labels.owner(entry.dataset),
            )


def _order(entry: Impacted) -> tuple[int, int, str]:
    return entry.verdict or 0, entry.hops, entry.column


def verdict_of(entry: Impacted) -> str | None:
    """The verdict in words; None upstream."""
    return entry.verdict.label if entry.verdict is not None else None


def _entry_object(entry: Impacted) -> dict[str, object]:
    return {
        "column": entry.column,
        "dataset": entry.dataset,
        "verdict": verdict_of(entry),
        "kinds": [kind.label for kind in entry.kinds],
        "hops": entry.hops,
        "path": list(entry.path),
        "via": list(entry.via),
        "evidence": [evidence_object(item) for item in entry.evidence],
        "classes": list(entry.classes),
        **({"possible_classes": list(entry.possible_classes)} if entry.possible_classes else {}),
        "owner": entry.owner,
        **({"rows": True, "columns": 0 if entry.rows_only else entry.columns} if entry.is_rows else {}),
        **({"rows_only": True} if entry.rows_only else {}),
    }
