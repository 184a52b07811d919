"""The interactive report of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from govtool.api.arguments import Day, Ref, Texts, checked, paths, texts
from govtool.api.opened import OpenedVersion

if TYPE_CHECKING:
    from typing import Unpack

    import networkx as nx

    from govtool.answers.report import ReportAnswer
    from govtool.api.arguments import Paths


class ReportOptions(TypedDict, total=False):
    """Keywords of everything that makes a report."""

    exclude: Texts | None
    """Selectors of what to leave out."""
    diff: Ref | None
    """A version to compare with: what was added, removed and changed since is marked."""
    erase: Texts | None
    """Columns that identify a person: the plan of an erasure is part of the report, without any value."""
    title: str | None
    """The title of the page; by default ``Lineage``."""
    policy: Paths | None
    """As for ``impact``: with policies the report has classes, zones and findings."""
    today: Day | None
    """As for ``impact``."""
    trace: object
    """Traces to draw, one or several: answers of ``trace_back`` or ``trace_forward``, or files of their JSON."""
    workflow: Texts | None
    """Provenance graphs to draw: files, names of graphs in the store, or ``run:`` and a workflow run."""
    include_rows: bool
    """Traces and workflows are drawn with the rows themselves; without it only with counts."""


def _several(value: object) -> tuple[object, ...]:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


class ReportQuestions(OpenedVersion):
    """The part of ``Graph`` that draws."""

    @checked
    def report(self, *selector: str, **options: Unpack[ReportOptions]) -> ReportAnswer:
        """Gather the content of a report; ``to_html()`` of the answer gives the page, and a notebook shows it.

        Args:
            selector: The datasets to show, as for ``ls``: ``mart.**``, ``crm.users+``; by default all.
            **options: Those of ``ReportOptions``.

        Raises:
            UsageError: A selector selects nothing (``usage.nothing-selected``), a selector or policy is mistaken, or
                a file is no trace (``usage.trace``) or no graph (``usage.graph``).
            UnknownNameError: A selector, a column of ``erase``, a graph of ``workflow`` or the version to compare with
                does not exist.
        """
        from govtool.app.questions.columns import PolicyChoice
        from govtool.app.questions.governance import day_of
        from govtool.app.report.graph import ReportRequest, report_answer

        rules = PolicyChoice(paths(options.get("policy")) or None, day_of(options.get("today")))
        base, title = options.get("diff"), options.get("title")
        request = ReportRequest(
            selectors=selector,
            exclude=tuple(texts(options.get("exclude"))),
            base=None if base is None else str(base),
            subjects=tuple(texts(options.get("erase"))),
            title="Lineage" if title is None else title,
            traces=_several(options.get("trace")),
            workflows=tuple(texts(options.get("workflow"))),
            include_rows=bool(options.get("include_rows")),
        )
        return self._fetch(lambda snapshot: report_answer(snapshot, rules, request, self._branch))

    @checked
    def to_html(self, *selector: str, **options: Unpack[ReportOptions]) -> str:
        """Return the report as one HTML file that needs no other and requests nothing.

        The arguments and errors are those of ``report``.
        """
        answer: ReportAnswer = self.report(*selector, **options)
        return answer.to_html()

    def to_networkx(self) -> nx.MultiDiGraph[Any]:
        """Return the whole graph as a ``networkx.MultiDiGraph``.

        Nodes are pairs of a dataset's number and a path, with the attributes ``name``, ``dataset``, ``path``, ``rows``,
        ``elided``, ``container`` and ``type``. Edges have ``kind``, ``functions``, ``star``, ``masking``, ``arm``,
        ``reason``, ``derivation`` and ``evidence``.

        Raises:
            StoreError: A fragment cannot be read.
        """
        from govtool.query.networkx import to_networkx

        return self._fetch(lambda snapshot: to_networkx(snapshot.index.resident()))
