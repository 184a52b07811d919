"""The answer of ``report``: a lineage graph with its findings and its coverage, as data and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Cell, GraphAnswer
from govtool.report.drawing import drawing
from govtool.report.fallback import scene_tables, table
from govtool.report.html import page
from govtool.report.model import LineageView
from govtool.report.trace_view import TraceView
from govtool.report.workflow_view import WorkflowView

if TYPE_CHECKING:
    from govtool.answers.check import CheckAnswer
    from govtool.answers.coverage_report import CoverageAnswer
    from govtool.answers.diff import DiffAnswer
    from govtool.answers.erase import ErasePlanAnswer


@dataclass(frozen=True, slots=True)
class FolderCoverage:
    """The statements of the files of one folder."""

    folder: str
    statements: int
    """Statements in the graph."""
    incomplete: int
    """Those of them that were understood in part, or not at all."""
    errors: int
    """Diagnostics of what was not understood."""

    def to_dict(self) -> dict[str, object]:
        """The JSON value."""
        return {
            "folder": self.folder,
            "statements": self.statements,
            "incomplete": self.incomplete,
            "errors": self.errors,
        }


@dataclass(frozen=True, slots=True)
class ReportAnswer(GraphAnswer):
    """Everything that a report shows."""

    schema: ClassVar[str] = "report/1"
    fields: ClassVar[tuple[str, ...]] = ("dataset", "kind", "zone", "owner", "columns", "classes", "change")
    types: ClassVar[Mapping[str, str]] = {"columns": "integer", "classes": "texts"}

    graph: LineageView = field(repr=False)
    selection: tuple[str, ...] = ()
    """The selectors that chose the datasets; none: all of them."""
    title: str = "Lineage"
    findings: CheckAnswer | None = field(default=None, repr=False)
    """None: there are no policies."""
    coverage: CoverageAnswer | None = field(default=None, repr=False)
    folders: tuple[FolderCoverage, ...] = ()
    difference: DiffAnswer | None = field(default=None, repr=False)
    """The changes since another version, which the graph then marks."""
    erasure: ErasePlanAnswer | None = field(default=None, repr=False)
    traces: tuple[TraceView, ...] = field(default=(), repr=False)
    workflows: tuple[WorkflowView, ...] = field(default=(), repr=False)

    def body(self) -> Mapping[str, object]:
        """The keys after the header, as docs/schemas/report-1.json has them."""
        return {
            "title": self.title,
            "selection": list(self.selection),
            "graph": self.graph.body(),
            "drawing": drawing(self.graph),
            "findings": None if self.findings is None else list(self.findings.items()),
            "sources": None if self.coverage is None else list(self.coverage.sources()),
            "folders": [folder.to_dict() for folder in self.folders],
            "diff": None if self.difference is None else _changes(self.difference),
            "erasure": None if self.erasure is None else _plan(self.erasure),
            "coverage": self.version.coverage.counts(),
            "traces": [trace.body() for trace in self.traces],
            "workflows": [workflow.body() for workflow in self.workflows],
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """A row a dataset; temporary ones are left out."""
        for dataset in self.graph.datasets:
            if not dataset.is_temporary:
                classes = tuple(sorted({name for column in dataset.columns for name in column.classes}))
                about = (dataset.name, dataset.kind, dataset.zone, dataset.owner)
                yield *about, len(dataset.columns), classes, dataset.change

    def _repr_html_(self) -> str:
        """The report itself, in a frame of a notebook."""
        from govtool.answers.notebook import frame

        return frame(self.to_html())

    def to_html(self) -> str:
        """The report as one HTML file that needs no other; see docs/report.md."""
        fallback = table(self.graph) + scene_tables(self.traces, self.workflows)
        return page(self.to_dict(), title=self.title, fallback=fallback)


def _changes(answer: DiffAnswer) -> dict[str, object]:
    """The JSON value of ``diff``, without the evidence: the graph has it."""
    body = answer.body()
    changes = [{key: value for key, value in one.items() if key != "evidence"} for one in _objects(body["changes"])]
    return {"from": body["from"], "to": body["to"], "changes": changes, "summary": body["summary"]}


def _plan(answer: ErasePlanAnswer) -> dict[str, object]:
    """The JSON value of ``erase plan``. A report is passed around: it never holds the values of the subject."""
    return {key: value for key, value in answer.body().items() if key not in ("values", "coverage")}


def _objects(value: object) -> list[dict[str, object]]:
    return [dict(one) for one in value] if isinstance(value, list) else []
