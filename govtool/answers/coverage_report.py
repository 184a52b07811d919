"""The answer of ``coverage``: how much was understood, by source, and what was not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Cell, GraphAnswer
from govtool.answers.coverage import Coverage
from govtool.answers.diagnostics import diagnostic_object

if TYPE_CHECKING:
    from govtool.answers.coverage import CoverageReport

_COUNTS = tuple(Coverage().counts())


@dataclass(frozen=True, slots=True)
class CoverageAnswer(GraphAnswer):
    """The counts of statements by source; the reasons that cost most; the diagnostics."""

    schema: ClassVar[str] = "coverage/1"
    fields: ClassVar[tuple[str, ...]] = ("source", "dialect", "files", *_COUNTS)
    types: ClassVar[Mapping[str, str]] = dict.fromkeys(("files", *_COUNTS), "integer")

    report: CoverageReport

    @property
    def total(self) -> Coverage:
        """The sum over all sources."""
        return self.report.total

    def sources(self) -> Iterator[dict[str, object]]:
        """The JSON value of each source."""
        return (dict(zip(self.fields, row, strict=True)) for row in self.rows())

    def body(self) -> Mapping[str, object]:
        """Sources, their sum, reasons and diagnostics."""
        return {
            "sources": list(self.sources()),
            "coverage": self.total.counts(),
            "reasons": [asdict(reason) for reason in self.report.reasons],
            "diagnostics": list(self.body_diagnostics()),
        }

    def body_diagnostics(self) -> Iterator[dict[str, object]]:
        """The JSON value of each diagnostic."""
        for source, diagnostic in self.report.diagnostics:
            yield {"source": source, **diagnostic_object(diagnostic)}

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row a source."""
        for entry in self.report.sources:
            yield entry.source, entry.dialect, entry.files, *entry.coverage.counts().values()
