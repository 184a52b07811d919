"""``govtool whatif delete``."""

from __future__ import annotations

from govtool.cli.options import (
    AllOption,
    AtOption,
    BranchOption,
    FormatOption,
    LimitOption,
    OutputOption,
    StoreOption,
    StrictAnswerOption,
)
from govtool.cli.policyargs import PolicyOption, TodayOption
from govtool.cli.selecting import ExcludeOption
from govtool.cli.ui import Ui
from govtool.cli.whatif import FailOnOption, SubjectArgument, WhatIfOptions, answer


def whatif_delete(
    ui: Ui,
    selector: SubjectArgument,
    exclude: ExcludeOption = None,
    policy: PolicyOption = None,
    today: TodayOption = None,
    fail_on: FailOnOption = "none",
    strict: StrictAnswerOption = False,
    limit: LimitOption = None,
    all: AllOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """What loses its last source if data is deleted.

      govtool whatif delete crm.users
      govtool whatif delete crm.users.email stg.legacy -f json

    A UNION survives the loss of one arm, a join does not; a loop that only feeds itself dies.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    request = WhatIfOptions(
        selector, exclude, None, policy, today, fail_on, strict, limit, all, format, output, at, branch, store
    )
    return answer(ui, "delete", request)
