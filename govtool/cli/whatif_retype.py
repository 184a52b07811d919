"""``govtool whatif retype``."""

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
from govtool.cli.whatif import FailOnOption, SubjectArgument, ToOption, WhatIfOptions, answer


def whatif_retype(
    ui: Ui,
    selector: SubjectArgument,
    to: ToOption,
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
    """Show what breaks or changes if columns get another type.

      govtool whatif retype shop.orders.total --to text
      govtool whatif retype 'shop.orders.*_at' --to date

    Only what is provably incompatible breaks.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    request = WhatIfOptions(
        selector, exclude, to, policy, today, fail_on, strict, limit, all, format, output, at, branch, store
    )
    return answer(ui, "retype", request)
