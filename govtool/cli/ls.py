"""``govtool ls``: what a selector selects."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.graph import bound, opened_graph
from govtool.cli.options import (
    AllOption,
    AtOption,
    BranchOption,
    FormatOption,
    LimitOption,
    OutputOption,
    StoreOption,
)
from govtool.cli.policyargs import PolicyOption, TodayOption
from govtool.cli.selecting import ExcludeOption, SelectorArgument
from govtool.cli.ui import Ui
from govtool.errors import EXIT_OK


def ls(
    ui: Ui,
    selector: SelectorArgument = None,
    exclude: ExcludeOption = None,
    columns: Annotated[bool, typer.Option("--columns", "-c", help="List datasets column by column.")] = False,
    policy: PolicyOption = None,
    today: TodayOption = None,
    limit: LimitOption = None,
    all: AllOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """List datasets and columns.

      govtool ls 'mart.**' --columns
      govtool ls 'class:personal,zone:shared' --exclude share.audit

    Selectors are those of dbt, for columns: see the argument below. Formats: table, plain, json, jsonl, csv, markdown.
    """
    from govtool.render.classes import FORMATS, listing

    outputs = chosen(format, output, FORMATS)
    with opened_graph(ui, store, at, branch) as graph:
        answer = graph.ls(*selector or (), exclude=exclude, columns=columns, policy=policy, today=today)
    ui.mark("select")
    for form, file in outputs:
        ui.show(listing(form, answer.head(bound(limit, all, form))), file)
    return EXIT_OK
