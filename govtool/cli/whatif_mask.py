"""``govtool whatif mask``."""

from __future__ import annotations

from govtool.cli.bundles import ListOptions
from govtool.cli.selecting import selects
from govtool.cli.ui import Ui
from govtool.cli.whatif import SubjectArgument, WhatIfOptions, answer

_OPTIONS = WhatIfOptions()
_SHOWN = ListOptions()


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
