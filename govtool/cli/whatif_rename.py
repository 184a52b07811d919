"""``govtool whatif rename``."""

from __future__ import annotations

from govtool.cli.bundles import ListOptions
from govtool.cli.selecting import selects
from govtool.cli.ui import Ui
from govtool.cli.whatif import SubjectArgument, ToOption, WhatIfOptions, answer

_OPTIONS = WhatIfOptions()
_SHOWN = ListOptions()


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
