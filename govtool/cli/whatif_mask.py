"""``govtool whatif mask``."""

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


def whatif_mask(
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
    """Show what changes if columns hold masked values from now on.

      govtool whatif mask crm.users.email
      govtool whatif mask class:personal.contact --policy pack:gdpr

    What is made of them changes, what they decide over is rows; and which findings of policies end.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    request = WhatIfOptions(
        selector, exclude, None, policy, today, fail_on, strict, limit, all, format, output, at, branch, store
    )
    return answer(ui, "mask", request)
