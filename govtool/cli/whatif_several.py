"""``govtool whatif``, changes of several kinds in one question."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.complete import complete_selector
from govtool.cli.graph import opened_graph
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
from govtool.cli.whatif import FailOnOption, outputs_of, show


def _changes(name: str, metavar: str, text: str) -> object:
    return typer.Option(f"--{name}", metavar=metavar, autocompletion=complete_selector, help=f"{text} Repeatable.")


DropOption = Annotated[list[str] | None, _changes("drop", "SELECTOR", "Columns and datasets to drop.")]
RenameOption = Annotated[list[str] | None, _changes("rename", "COLUMN=NEW", "A column or dataset, and its new name.")]
RetypeOption = Annotated[list[str] | None, _changes("retype", "COLUMN=TYPE", "A column, and its new type.")]
MaskOption = Annotated[list[str] | None, _changes("mask", "SELECTOR", "Columns to hold masked values.")]
DeleteOption = Annotated[list[str] | None, _changes("delete", "SELECTOR", "Columns and datasets whose data goes.")]


def whatif_several(
    ui: Ui,
    drop: DropOption = None,
    rename: RenameOption = None,
    retype: RetypeOption = None,
    mask: MaskOption = None,
    delete: DeleteOption = None,
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
    """Show what changes of several kinds do together.

      govtool whatif --drop crm.users.phone --rename crm.users.email=mail --delete crm.more

    Each column has the worst verdict that any of the changes gives it.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    outputs = outputs_of(format, output, fail_on)
    with opened_graph(ui, store, at, branch) as graph:
        found = graph.whatif_several(
            drop=drop,
            rename=rename,
            retype=retype,
            mask=mask,
            delete=delete,
            exclude=exclude,
            policy=policy,
            today=today,
        )
    return show(ui, found, outputs, fail_on=fail_on, strict=strict, limit=limit, all=all)
