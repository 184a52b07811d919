"""``govtool whatif``, changes of several kinds in one question."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.bundles import ListOptions
from govtool.cli.complete import complete_selector
from govtool.cli.graph import opened_graph
from govtool.cli.selecting import selects
from govtool.cli.ui import Ui
from govtool.cli.whatif import WhatIfOptions, outputs_of, show

_OPTIONS = WhatIfOptions()
_SHOWN = ListOptions()


def _changes(name: str, metavar: str, text: str) -> object:
    return typer.Option(f"--{name}", metavar=metavar, autocompletion=complete_selector, help=f"{text} Repeatable.")


DropOption = Annotated[list[str] | None, _changes("drop", "SELECTOR", "Columns and datasets to drop.")]
RenameOption = Annotated[list[str] | None, _changes("rename", "COLUMN=NEW", "A column or dataset, and its new name.")]
RetypeOption = Annotated[list[str] | None, _changes("retype", "COLUMN=TYPE", "A column, and its new type.")]
MaskOption = Annotated[list[str] | None, _changes("mask", "SELECTOR", "Columns to hold masked values.")]
DeleteOption = Annotated[list[str] | None, _changes("delete", "SELECTOR", "Columns and datasets whose data goes.")]


@selects
def whatif_several(
    ui: Ui,
    drop: DropOption = None,
    rename: RenameOption = None,
    retype: RetypeOption = None,
    mask: MaskOption = None,
    delete: DeleteOption = None,
    options: WhatIfOptions = _OPTIONS,
    shown: ListOptions = _SHOWN,
) -> int:
    """Show what changes of several kinds do together.

      govtool whatif --drop crm.users.phone --rename crm.users.email=mail

    Each column has the worst verdict that any of the changes gives it.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    outputs = outputs_of(options, shown)
    with opened_graph(ui, shown.store, shown.at, shown.branch) as graph:
        found = graph.whatif_several(
            drop=drop,
            rename=rename,
            retype=retype,
            mask=mask,
            delete=delete,
            exclude=options.exclude,
            policy=options.policy,
            today=options.today,
        )
    return show(ui, found, outputs, options, shown)
