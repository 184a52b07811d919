"""One version of the lineage graph, and the questions that it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from govtool.api.arguments import Day, Ref, Texts, checked, texts
from govtool.api.changes import ChangeQuestions
from govtool.api.export import ExportQuestions
from govtool.api.graph_options import accepted, policy_choice
from govtool.api.history import HistoryQuestions
from govtool.api.records import RecordQuestions
from govtool.api.report import ReportQuestions
from govtool.api.workflow_runs import WorkflowQuestions

if TYPE_CHECKING:
    from govtool.answers.check import CheckAnswer
    from govtool.answers.classes import ClassesAnswer
    from govtool.answers.explain import ExplainAnswer
    from govtool.answers.impact import ImpactAnswer
    from govtool.answers.ls import ListAnswer
    from govtool.answers.path import PathAnswer
    from govtool.answers.suggestions import SuggestionsAnswer
    from govtool.answers.whatif import WhatIfAnswer
    from govtool.api.arguments import Paths
    from govtool.app.project.requests import PathArgument


class Graph(ChangeQuestions, HistoryQuestions, RecordQuestions, WorkflowQuestions, ReportQuestions, ExportQuestions):
    """One version of the lineage graph; ``govtool.open()`` makes it.

    A graph never changes: what is committed later needs another ``open`` or ``at``. It may be used by several threads
    at once. Methods take the options of the command of the same name and return an answer, or raise an error of
    ``govtool.errors``; they neither print nor exit.
    """

    @checked
    def at(self, ref: Ref, branch: str | None = None) -> Graph:
        """Another version of the same store.

        Args:
            ref: A commit's number or id, ``HEAD~1``, a tag, a branch, or a date.
            branch: Where numbers and dates are looked up; by default the branch that was opened.

        Raises:
            UnknownNameError: There is no such commit or branch.
        """
        from govtool.app.project.project import commit_at

        chosen = branch or self._branch
        return Graph(self._reader, commit_at(self._reader, str(ref), chosen), chosen, self._progress)

    @overload
    def impact(  # type: ignore[overload-overlap]  # these two are more exact than any text
        self,
        column: str,
        *,
        change: Literal["delete", "mask"],
        exclude: Texts | None = None,
        policy: Paths | None = None,
        today: Day | None = None,
        limit: int | None = None,
        strict: bool = False,
    ) -> WhatIfAnswer: ...

    @overload
    def impact(
        self,
        column: str,
        *,
        change: str | None = None,
        to: str | None = None,
        upstream: bool = False,
        depth: int | None = None,
        kind: Texts | None = None,
        semantics: str = "precise",
        exclude: Texts | None = None,
        policy: Paths | None = None,
        today: Day | None = None,
        limit: int | None = None,
        evidence: Texts | None = None,
        strict: bool = False,
        where: str | None = None,
    ) -> ImpactAnswer: ...

    @checked
    def impact(
        self,
        column: str,
        *,
        change: str | None = None,
        to: str | None = None,
        upstream: bool = False,
        depth: int | None = None,
        kind: Texts | None = None,
        semantics: str = "precise",
        exclude: Texts | None = None,
        policy: Paths | None = None,
        today: Day | None = None,
        limit: int | None = None,
        evidence: Texts | None = None,
        strict: bool = False,
        where: str | None = None,
    ) -> ImpactAnswer | WhatIfAnswer:
        """List what depends on a column or dataset, and what a change would break.

        Args:
            column: A column or dataset by the shortest unambiguous end of its name, or a selector.
            change: ``drop``, ``rename``, ``retype`` or ``logic`` (the default); ``delete`` and ``mask`` are answered as
                by ``whatif``.
            to: The new name, or the new type; also ``change="rename:NEW"``.
            upstream: Its sources, instead.
            depth: Hops to go at most.
            kind: Follow only edges of these kinds.
            semantics: ``precise``, or ``lineagex``: the arms of a UNION ALL count as references.
            exclude: Selectors of what to leave out.
            policy: Files, folders and ``pack:NAME``; by default the folder ``policies``, if there is one.
            today: The day on which expiry dates are judged; by default today (UTC).
            limit: Entries to return at most; by default all.
            evidence: Only what is known in these ways: ``sql``, ``plan`` …, ``static`` or ``runtime``.
            strict: Refuse an answer to which something could matter that is unknown or was not understood.
            where: A Spark SQL boolean expression over the columns of the dataset: also count the rows of each affected
                dataset that the rows which meet it reached, by recorded runs.

        Raises:
            EvidenceError: With ``strict``, there is such a thing (``evidence.unclear``); the files that recorded runs
                read are gone or have changed (``evidence.changed``).
            UnknownNameError: There is no such column, dataset, class, kind …
            AmbiguousNameError: Several columns or datasets have the name.
            UsageError: Policies cannot be read or are mistaken, or arguments make no sense together; ``where`` is
                mistaken, no row meets it (``usage.no-rows``), or no recorded run read the dataset (``usage.no-run``).
        """
        from govtool.app.questions.columns import edge_kinds, impact_answer, parse_change
        from govtool.query.changes.change import OF_WHATIF, require_none

        if (action := (change or "").strip().lower()) in OF_WHATIF:
            walked = {"upstream": upstream, "depth": depth is not None, "kind": kind, "evidence": evidence}
            require_none({**walked, "semantics": semantics != "precise", "where": where, "to": to}, action)
            return self.whatif(action, column, exclude=exclude, policy=policy, today=today, limit=limit, strict=strict)
        chosen, kinds, rules = (
            parse_change(change, to=to, upstream=upstream),
            edge_kinds(texts(kind)),
            policy_choice(policy, today),
        )
        answer = self._fetch(
            lambda snapshot: impact_answer(
                snapshot,
                column,
                rules,
                change=chosen,
                exclude=texts(exclude),
                depth=depth,
                kinds=kinds,
                semantics=semantics,
                limit=limit,
                where=where,
            ),
            evidence,
        )
        return accepted(answer, strict=strict)

    @checked
    def path(
        self,
        start: str,
        end: str,
        *,
        kind: Texts | None = None,
        semantics: str = "precise",
        policy: Paths | None = None,
        today: Day | None = None,
        limit: int | None = None,
        evidence: Texts | None = None,
        strict: bool = False,
    ) -> PathAnswer:
        """Find the shortest lineage paths between two columns, hop by hop.

        Args:
            start: A column, dataset or selector.
            end: Another one.
            kind: Follow only edges of these kinds.
            semantics: ``precise`` or ``lineagex``.
            policy: As for ``impact``.
            today: As for ``impact``.
            limit: Ways to return at most; by default 5.
            evidence: As for ``impact``.
            strict: Refuse an answer to which something could matter that is unknown or was not understood.

        Raises:
            EvidenceError: With ``strict``, there is such a thing (``evidence.unclear``).
            UnknownNameError: There is no such column, dataset, kind …
            UsageError: Nothing is selected, or a policy or selector is mistaken.
        """
        from govtool.app.questions.columns import edge_kinds, path_answer

        kinds, rules = edge_kinds(texts(kind)), policy_choice(policy, today)
        answer = self._fetch(
            lambda snapshot: path_answer(snapshot, start, end, rules, kinds=kinds, semantics=semantics, limit=limit),
            evidence,
        )
        return accepted(answer, strict=strict)

    @checked
    def explain(
        self,
        column: str,
        *,
        exclude: Texts | None = None,
        policy: Paths | None = None,
        today: Day | None = None,
        limit: int | None = None,
        evidence: Texts | None = None,
    ) -> ExplainAnswer:
        """Show the sources and readers of a column or dataset, and what is not known about it.

        Args:
            column: A column, dataset or selector.
            exclude: Selectors of what to leave out.
            policy: As for ``impact``.
            today: As for ``impact``.
            limit: Edges of each list, and subjects, to return at most; by default all.
            evidence: As for ``impact``.

        Raises:
            UnknownNameError: There is no such column or dataset.
            UsageError: Nothing is selected, or a policy or selector is mistaken.
        """
        from govtool.app.questions.columns import explain_answer

        rules = policy_choice(policy, today)
        return self._fetch(
            lambda snapshot: explain_answer(snapshot, column, rules, exclude=texts(exclude), limit=limit), evidence
        )

    @checked
    def ls(
        self,
        *selector: str,
        exclude: Texts | None = None,
        columns: bool = False,
        policy: Paths | None = None,
        today: Day | None = None,
        limit: int | None = None,
    ) -> ListAnswer:
        """Datasets and columns that selectors select; without a selector, all datasets.

        Args:
            selector: ``mart.**``, ``class:personal,zone:shared``, ``crm.users+`` …
            exclude: Selectors of what to leave out.
            columns: List datasets column by column.
            policy: As for ``impact``.
            today: As for ``impact``.
            limit: Entries to return at most; by default all.

        Raises:
            UnknownNameError: A selector names something that does not exist.
            UsageError: A policy or selector is mistaken.
        """
        from govtool.app.questions.columns import list_answer

        rules = policy_choice(policy, today)
        return self._fetch(
            lambda snapshot: list_answer(snapshot, selector, rules, exclude=texts(exclude), columns=columns)
        ).head(limit)

    @checked
    def classes(
        self,
        *selector: str,
        exclude: Texts | None = None,
        direct: bool = False,
        policy: Paths | None = None,
        today: Day | None = None,
        limit: int | None = None,
    ) -> ClassesAnswer:
        """Show the classes of columns, and where they are inherited from.

        Args:
            selector: As for ``ls``.
            exclude: Selectors of what to leave out.
            direct: Values only: no influences and nothing unknown.
            policy: As for ``impact``; here there have to be some.
            today: As for ``impact``.
            limit: Entries to return at most; by default all.

        Raises:
            UsageError: There are no policies (``policy.none``), or they are mistaken, or a selector is.
        """
        from govtool.app.questions.columns import classes_answer

        rules = policy_choice(policy, today)
        return self._fetch(
            lambda snapshot: classes_answer(snapshot, selector, rules, exclude=texts(exclude), direct=direct)
        ).head(limit)

    @checked
    def suggest_classes(
        self,
        *selector: str,
        min_confidence: float = 0.5,
        exclude: Texts | None = None,
        policy: Paths | None = None,
        today: Day | None = None,
        limit: int | None = None,
    ) -> SuggestionsAnswer:
        """Propose classes for columns, from their names, types and descriptions.

        Args:
            selector: As for ``ls``.
            min_confidence: Confidence from which on a class is suggested, from 0 to 1.
            exclude: Selectors of what to leave out.
            policy: As for ``impact``: columns that these classify already are left out.
            today: As for ``impact``.
            limit: Entries to return at most; by default all.

        Raises:
            UsageError: A policy or selector is mistaken.
        """
        from govtool.app.questions.columns import suggestions_answer

        rules = policy_choice(policy, today)
        return self._fetch(
            lambda snapshot: suggestions_answer(snapshot, selector, rules, exclude=texts(exclude), least=min_confidence)
        ).head(limit)

    @checked
    def check(
        self,
        *,
        policy: Paths | None = None,
        base: Ref | None = None,
        baseline: PathArgument | None = None,
        today: Day | None = None,
        strict: bool = False,
        measure: bool = False,
        verify_index: bool = False,
    ) -> CheckAnswer:
        """The findings of policies.

        Args:
            policy: Files, folders and ``pack:NAME``; by default the folder ``policies``. There have to be some.
            base: Judge only what has come since this version: a branch, a tag, ``HEAD~1``, a date.
            baseline: A file of findings that are accepted; ``CheckAnswer.baseline`` makes one.
            today: The day on which waivers and approvals are judged; by default today (UTC).
            strict: What could not be decided counts as violated. ``check_strict`` of the answer also refuses one to
                which a statement could matter that was not understood.
            measure: Measure the smallest groups of recorded outputs, for declassifiers with ``evidence: [measured]``.
            verify_index: Build the index again first, and refuse a published one that is another.

        Raises:
            IntegrityError: The published index is not that of the version (``store.corrupt-index``).
            UsageError: There are no policies (``policy.none``), they or the baseline are mistaken, or a zone matches
                no dataset (``policy.empty-zone``).
            UnknownNameError: There is no version ``base``.
        """
        from pathlib import Path

        from govtool.app.questions.check import check_answer

        if verify_index:
            from govtool.app.upkeep.store import check_published_index

            self._fetch(lambda snapshot: check_published_index(snapshot.store, snapshot.commit))
        rules, accepted = policy_choice(policy, today), None if baseline is None else Path(baseline)
        return self._fetch(
            lambda snapshot: check_answer(
                snapshot,
                rules,
                base=None if base is None else self.at(base).snapshot(),
                baseline=accepted,
                strict=strict,
                measure=measure,
            )
        )
