"""The interactive report of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from govtool.api.arguments import Day, Ref, Texts, checked, paths, texts
from govtool.api.opened import OpenedVersion

if TYPE_CHECKING:
    import networkx as nx

    from govtool.answers.report import ReportAnswer
    from govtool.api.arguments import Paths


class ReportQuestions(OpenedVersion):
    """The part of ``Graph`` that draws."""

    @checked
    def report(
        self,
        *selector: str,
        exclude: Texts | None = None,
        diff: Ref | None = None,
        erase: Texts | None = None,
        title: str = "Lineage",
        policy: Paths | None = None,
        today: Day | None = None,
    ) -> ReportAnswer:
        """Gather what a report shows; ``to_html()`` of the answer is the page, and a notebook shows it at once.

        Args:
            selector: The datasets to show, as for ``ls``: ``mart.**``, ``crm.users+``; by default all.
            exclude: Selectors of what to leave out.
            diff: A version to compare with: what was added, removed and changed since is marked.
            erase: Columns that identify a person: the plan of an erasure is part of the report, without any value.
            title: The title of the page.
            policy: As for ``impact``: with policies the report has classes, zones and findings.
            today: As for ``impact``.

        Raises:
            UsageError: A selector selects nothing (``usage.nothing-selected``), or a selector or policy is mistaken.
            UnknownNameError: A selector, a column of ``erase`` or the version to compare with does not exist.
        """
        from govtool.app.governance import day_of
        from govtool.app.questions import PolicyChoice
        from govtool.app.report import ReportRequest, report_answer

        rules = PolicyChoice(paths(policy) or None, day_of(today))
        request = ReportRequest(
            selectors=selector,
            exclude=tuple(texts(exclude)),
            base=None if diff is None else str(diff),
            subjects=tuple(texts(erase)),
            title=title,
        )
        return self._fetch(lambda snapshot: report_answer(snapshot, rules, request, self._branch))

    @checked
    def to_html(
        self,
        *selector: str,
        exclude: Texts | None = None,
        diff: Ref | None = None,
        erase: Texts | None = None,
        title: str = "Lineage",
        policy: Paths | None = None,
        today: Day | None = None,
    ) -> str:
        """Return the report as one HTML file that needs no other and requests nothing.

        The arguments and errors are those of ``report``.
        """
        answer = self.report(
            *selector, exclude=exclude, diff=diff, erase=erase, title=title, policy=policy, today=today
        )
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
