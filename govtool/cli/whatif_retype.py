"""``govtool whatif retype``."""

from __future__ import annotations

from govtool.cli.bundles import ListOptions
from govtool.cli.selecting import selects
from govtool.cli.ui import Ui
from govtool.cli.whatif import SubjectArgument, ToOption, WhatIfOptions, answer

_OPTIONS = WhatIfOptions()
_SHOWN = ListOptions()


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
