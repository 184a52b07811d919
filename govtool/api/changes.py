"""Questions about planned changes: their effects, and the data that an erasure must reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from govtool.api.arguments import Day, Texts, checked, texts
from govtool.api.graph_options import ChangeOptions, accepted, policy_choice
from govtool.api.opened import OpenedVersion

if TYPE_CHECKING:
    from govtool.answers.erase import ErasePlanAnswer
    from govtool.answers.row_erasure import RowErasureAnswer
    from govtool.answers.whatif import WhatIfAnswer
    from govtool.api.arguments import Paths
    from govtool.app.erasure.report import ErasureRequest


class ChangeQuestions(OpenedVersion):
    """What would happen if columns, datasets or rows changed."""

    @checked
    def whatif(
        self,
        action: str,
        *selector: str,
        to: str | None = None,
        **options: Unpack[ChangeOptions],
    ) -> WhatIfAnswer:
        """List the effects of one or several changes of columns or datasets.

        Args:
            action: ``drop``, ``rename``, ``retype``, ``mask`` or ``delete``.
            selector: Columns and datasets, as for ``ls``.
            to: The new name or type, for ``rename`` and ``retype``.
            **options: ``exclude``, ``policy``, ``today``, ``limit`` and ``strict``: see `ChangeOptions`.

        Raises:
            EvidenceError: As for ``impact``.
            UsageError: Nothing is selected, the change makes no sense, or a policy is mistaken.
            UnknownNameError: A selector names something that does not exist.
        """
        from govtool.app.questions.whatif import whatif_answer

        rules = policy_choice(options.get("policy"), options.get("today"))
        left_out = texts(options.get("exclude"))
        answer = self._fetch(lambda snapshot: whatif_answer(snapshot, action, selector, rules, to=to, exclude=left_out))
        return accepted(answer.head(options.get("limit")), strict=options.get("strict", False))

    @checked
    def whatif_several(
        self,
        *,
        drop: Texts | None = None,
        rename: Texts | None = None,
        retype: Texts | None = None,
        mask: Texts | None = None,
        delete: Texts | None = None,
        **options: Unpack[ChangeOptions],
    ) -> WhatIfAnswer:
        """List the effects of changes of different kinds that are made together.

        Args:
            drop: Columns and datasets to drop, as for ``ls``.
            rename: ``COLUMN=NEW`` for each new name.
            retype: ``COLUMN=TYPE`` for each new type.
            mask: Columns and datasets that shall hold masked values.
            delete: Datasets and columns whose data goes.
            **options: As for ``whatif``.

        Raises:
            EvidenceError: As for ``whatif``.
            UsageError: As for ``whatif``; or no change is given.
            UnknownNameError: As for ``whatif``.
        """
        from govtool.app.questions.whatif import planned_changes, whatif_several_answer

        changes = planned_changes(
            drop=texts(drop), rename=texts(rename), retype=texts(retype), mask=texts(mask), delete=texts(delete)
        )
        rules = policy_choice(options.get("policy"), options.get("today"))
        left_out = texts(options.get("exclude"))
        answer = self._fetch(lambda snapshot: whatif_several_answer(snapshot, changes, rules, exclude=left_out))
        return accepted(answer.head(options.get("limit")), strict=options.get("strict", False))

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
        no_subject: Texts | None = None,
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
            no_subject: Inputs of the runs that hold nothing about a subject, one or several, beside those of
                ``[erasure] no_subject`` in govtool.toml. The answer lists them as declared.

        Raises:
            EvidenceError: As for ``impact``.
            UsageError: There is no subject, or it is a dataset; ``within`` is no duration, or a policy is mistaken; no
                row of the runs is the subject's (``usage.no-rows``); a dataset of ``no_subject`` holds the subject's
                key, or a run wrote it (``usage.no-subject``).
            UnknownNameError: There is no such column, run or dataset.
            AmbiguousNameError: A dataset may be several.
        """
        if run is not None or all_runs:
            from govtool.app.erasure.report import ErasureRequest

            words = [tuple(texts(each)) for each in (subject, key, no_subject)]
            request = ErasureRequest(words[0], words[1], run, all_runs, words[2])
            return accepted(self._row_erasure(request, policy), strict=strict)
        if texts(no_subject):
            from govtool.errors import UsageError

            raise UsageError(
                "a plan on columns does not search rows, so no dataset can be excluded from the search",
                code="usage.arguments",
                hint="--no-subject goes with --run or --all-runs",
            )
        from govtool.app.erasure.columns import erase_answer

        rules = policy_choice(policy, today)
        answer = self._fetch(
            lambda snapshot: erase_answer(
                snapshot, texts(subject), rules, key=texts(key), within=within, show_values=show_values
            )
        )
        return accepted(answer, strict=strict)

    def _row_erasure(self, request: ErasureRequest, policy: Paths | None) -> RowErasureAnswer:
        from govtool.app.erasure.report import planned_erasure
        from govtool.errors import UsageError

        if policy is not None:
            raise UsageError("a plan on rows does not use policies", code="usage.arguments", hint="leave out --policy")
        return planned_erasure(self._reader, self._commit, request, lambda: self.snapshot().index).answer
