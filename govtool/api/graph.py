"""One version of the lineage graph, and the questions that it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from govtool.api.arguments import Day, Ref, Texts, checked, paths, texts
from govtool.api.export import ExportQuestions
from govtool.api.history import HistoryQuestions
from govtool.api.records import RecordQuestions
from govtool.api.report import ReportQuestions
from govtool.api.workflows import WorkflowQuestions

if TYPE_CHECKING:
    from govtool.answers.answer import GraphAnswer
    from govtool.answers.check import CheckAnswer
    from govtool.answers.classes import ClassesAnswer
    from govtool.answers.erase import ErasePlanAnswer
    from govtool.answers.explain import ExplainAnswer
    from govtool.answers.impact import ImpactAnswer
    from govtool.answers.listing import ListAnswer
    from govtool.answers.path import PathAnswer
    from govtool.answers.row_erasure import RowErasureAnswer
    from govtool.answers.whatif import WhatIfAnswer
    from govtool.api.arguments import Paths
    from govtool.app.questions import PolicyChoice
    from govtool.app.requests import PathArgument


class Graph(HistoryQuestions, RecordQuestions, WorkflowQuestions, ReportQuestions, ExportQuestions):
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
        from govtool.app.project import commit_at

        chosen = branch or self._branch
        return Graph(self._reader, commit_at(self._reader, str(ref), chosen), chosen, self._progress)

    @checked
    def impact(
        self,
        column: str,
        *,
        change: str | None = None,
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
    ) -> ImpactAnswer:
        """List what depends on a column or dataset, and what a change would break.

        Args:
            column: A column or dataset by the shortest unambiguous end of its name, or a selector.
            change: ``drop``, ``rename:NEW``, ``retype:TYPE`` or ``logic`` (the default).
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
        from govtool.app.questions import edge_kinds, impact_answer, parse_change

        chosen, kinds, rules = parse_change(change, upstream=upstream), edge_kinds(texts(kind)), _rules(policy, today)
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
        return _accepted(answer, strict=strict)

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
        from govtool.app.questions import edge_kinds, path_answer

        kinds, rules = edge_kinds(texts(kind)), _rules(policy, today)
        answer = self._fetch(
            lambda snapshot: path_answer(snapshot, start, end, rules, kinds=kinds, semantics=semantics, limit=limit),
            evidence,
        )
        return _accepted(answer, strict=strict)

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
        from govtool.app.questions import explain_answer

        rules = _rules(policy, today)
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
        from govtool.app.questions import list_answer

        rules = _rules(policy, today)
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
        from govtool.app.questions import classes_answer

        rules = _rules(policy, today)
        return self._fetch(
            lambda snapshot: classes_answer(snapshot, selector, rules, exclude=texts(exclude), direct=direct)
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

        Raises:
            UsageError: There are no policies (``policy.none``), they or the baseline are mistaken, or a zone matches
                no dataset (``policy.empty-zone``).
            UnknownNameError: There is no version ``base``.
        """
        from pathlib import Path

        from govtool.app.check import check_answer

        rules, accepted = _rules(policy, today), None if baseline is None else Path(baseline)
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

    @checked
    def whatif(
        self,
        action: str,
        *selector: str,
        to: str | None = None,
        exclude: Texts | None = None,
        policy: Paths | None = None,
        today: Day | None = None,
        limit: int | None = None,
        strict: bool = False,
    ) -> WhatIfAnswer:
        """List the effects of one or several changes of columns or datasets.

        Args:
            action: ``drop``, ``rename``, ``retype``, ``mask`` or ``delete``.
            selector: Columns and datasets, as for ``ls``.
            to: The new name or type, for ``rename`` and ``retype``.
            exclude: Selectors of what to leave out.
            policy: As for ``impact``: the answer has the findings that the change would end.
            today: As for ``impact``.
            limit: Entries to return at most; by default all.
            strict: As for ``impact``.

        Raises:
            EvidenceError: As for ``impact``.
            UsageError: Nothing is selected, the change makes no sense, or a policy is mistaken.
            UnknownNameError: A selector names something that does not exist.
        """
        from govtool.app.whatif import whatif_answer

        rules = _rules(policy, today)
        answer = self._fetch(
            lambda snapshot: whatif_answer(snapshot, action, selector, rules, to=to, exclude=texts(exclude))
        ).head(limit)
        return _accepted(answer, strict=strict)

    @checked
    def whatif_several(
        self,
        *,
        drop: Texts | None = None,
        rename: Texts | None = None,
        retype: Texts | None = None,
        mask: Texts | None = None,
        delete: Texts | None = None,
        exclude: Texts | None = None,
        policy: Paths | None = None,
        today: Day | None = None,
        limit: int | None = None,
        strict: bool = False,
    ) -> WhatIfAnswer:
        """List the effects of changes of different kinds that are made together.

        Args:
            drop: Columns and datasets to drop, as for ``ls``.
            rename: ``COLUMN=NEW`` for each new name.
            retype: ``COLUMN=TYPE`` for each new type.
            mask: Columns and datasets that shall hold masked values.
            delete: Datasets and columns whose data goes.
            exclude: As for ``whatif``.
            policy: As for ``whatif``.
            today: As for ``whatif``.
            limit: As for ``whatif``.
            strict: As for ``whatif``.

        Raises:
            EvidenceError: As for ``whatif``.
            UsageError: As for ``whatif``; or no change is given.
            UnknownNameError: As for ``whatif``.
        """
        from govtool.app.whatif import planned_changes, whatif_several_answer

        changes = planned_changes(
            drop=texts(drop), rename=texts(rename), retype=texts(retype), mask=texts(mask), delete=texts(delete)
        )
        rules = _rules(policy, today)
        answer = self._fetch(
            lambda snapshot: whatif_several_answer(snapshot, changes, rules, exclude=texts(exclude))
        ).head(limit)
        return _accepted(answer, strict=strict)

    @checked
    def erase_plan(
        self,
        subject: Texts,
        *,
        key: Texts | None = None,
        within: str = "30d",
        show_values: bool = False,
        policy: Paths | None = None,
        today: Day | None = None,
        strict: bool = False,
        run: str | None = None,
        all_runs: bool = False,
    ) -> ErasePlanAnswer | RowErasureAnswer:
        """Every dataset with a data subject's data, in the order to work through; with a run, row by row.

        Args:
            subject: ``COLUMN`` or ``COLUMN=VALUE``, one or several. The value is personal data: it is neither stored
                nor logged.
            key: Selectors of further columns that hold the same identifier.
            within: Leave data to expire that is kept no longer than this.
            show_values: Whether the answer repeats the values.
            policy: As for ``impact``: the plan knows classes, declassifiers and retention.
            today: As for ``impact``.
            strict: As for ``impact``.
            run: A run, an application, ``JOB~1``, or a run of a workflow: the answer then lists rows, and the subject
                is ``COLUMN=VALUE``.
            all_runs: Go on to the runs that exchange files with it; without a run, all recorded runs.

        Raises:
            EvidenceError: As for ``impact``.
            UsageError: There is no subject, or it is a dataset; ``within`` is no duration, or a policy is mistaken; no
                row of the runs is the subject's (``usage.no-rows``).
            UnknownNameError: There is no such column, run or dataset.
            AmbiguousNameError: A dataset may be several.
        """
        if run is not None or all_runs:
            return _accepted(self._row_erasure(texts(subject), texts(key), policy, run, all_runs), strict=strict)
        from govtool.app.erase import erase_answer

        rules = _rules(policy, today)
        answer = self._fetch(
            lambda snapshot: erase_answer(
                snapshot, texts(subject), rules, key=texts(key), within=within, show_values=show_values
            )
        )
        return _accepted(answer, strict=strict)

    def _row_erasure(
        self, subject: list[str], key: list[str], policy: Paths | None, run: str | None, all_runs: bool
    ) -> RowErasureAnswer:
        from govtool.app.erasure.report import ErasureRequest, planned_erasure
        from govtool.errors import UsageError

        if policy is not None:
            raise UsageError("a plan on rows knows no policies", code="usage.arguments", hint="leave out --policy")
        request = ErasureRequest(tuple(subject), tuple(key), run, all_runs)
        return planned_erasure(self._reader, self._commit, request, lambda: self.snapshot().index).answer


_GraphAnswer = TypeVar("_GraphAnswer", bound="GraphAnswer")


def _accepted(answer: _GraphAnswer, *, strict: bool) -> _GraphAnswer:
    """The answer; see ``GraphAnswer.check_strict``."""
    if strict:
        answer.check_strict()
    return answer


def _rules(policy: Paths | None, today: Day | None) -> PolicyChoice:
    from govtool.app.governance import day_of
    from govtool.app.questions import PolicyChoice

    return PolicyChoice(paths(policy) or None, day_of(today))
