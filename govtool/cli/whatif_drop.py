"""``govtool whatif drop``."""

from __future__ import annotations

from govtool.cli.bundles import ListOptions
from govtool.cli.selecting import selects
from govtool.cli.ui import Ui
from govtool.cli.whatif import SubjectArgument, WhatIfOptions, answer

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
