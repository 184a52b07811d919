"""``govtool whatif drop``."""

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


def whatif_drop(
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
    """Show what breaks if columns or datasets are dropped.

      govtool whatif drop crm.users.email crm.users.phone
      govtool whatif drop 'stg.**' --exclude stg.users --format markdown

    Statements that name a dropped column break in all their outputs, and so does whatever reads those.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    request = WhatIfOptions(
        selector, exclude, None, policy, today, fail_on, strict, limit, all, format, output, at, branch, store
    )
    return answer(ui, "drop", request)
