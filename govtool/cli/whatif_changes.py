"""``govtool whatif drop``, ``rename``, ``retype`` and ``mask``: one change to all columns that are selected."""

from __future__ import annotations

from govtool.cli.bundles import ListOptions
from govtool.cli.selecting import selects
from govtool.cli.ui import Ui
from govtool.cli.whatif import SubjectArgument, ToOption, WhatIfOptions, answer

_OPTIONS = WhatIfOptions()
_SHOWN = ListOptions()


@selects
def whatif_drop(
    ui: Ui,
    selector: SubjectArgument,
    options: WhatIfOptions = _OPTIONS,
    shown: ListOptions = _SHOWN,
) -> int:
    """Show what breaks if columns or datasets are dropped.

      govtool whatif drop crm.users.email crm.users.phone
      govtool whatif drop 'stg.**' --exclude stg.users --format markdown

    Statements that name a dropped column break in all their outputs, and so does whatever reads those.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    return answer(ui, "drop", selector, options, shown)


@selects
def whatif_rename(
    ui: Ui,
    selector: SubjectArgument,
    to: ToOption = None,
    options: WhatIfOptions = _OPTIONS,
    shown: ListOptions = _SHOWN,
) -> int:
    """Show what breaks if a column or dataset is renamed.

      govtool whatif rename crm.users.email --to mail
      govtool whatif rename stg.users --to stg.people -f json

    The first statement to name it breaks; beyond it everything passes.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    return answer(ui, "rename", selector, options, shown, to=to)


@selects
def whatif_retype(
    ui: Ui,
    selector: SubjectArgument,
    to: ToOption = None,
    options: WhatIfOptions = _OPTIONS,
    shown: ListOptions = _SHOWN,
) -> int:
    """Show what breaks or changes if columns get another type.

      govtool whatif retype shop.orders.total --to text
      govtool whatif retype 'shop.orders.*_at' --to date

    Only what is provably incompatible breaks.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    return answer(ui, "retype", selector, options, shown, to=to)


@selects
def whatif_mask(
    ui: Ui,
    selector: SubjectArgument,
    options: WhatIfOptions = _OPTIONS,
    shown: ListOptions = _SHOWN,
) -> int:
    """Show what changes if columns hold masked values from now on.

      govtool whatif mask crm.users.email
      govtool whatif mask class:personal.contact --policy pack:gdpr

    What is made of them changes, what they decide over is rows; and which findings of policies end.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    return answer(ui, "mask", selector, options, shown)
