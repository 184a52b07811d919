"""``govtool classes``: the classes of columns, and why."""

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


def classes(
    ui: Ui,
    selector: SelectorArgument = None,
    exclude: ExcludeOption = None,
    direct: Annotated[bool, typer.Option("--direct", help="Values only, no influences and nothing unknown.")] = False,
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
    """Show the classes of columns, and where they are inherited from.

      govtool classes mart.customers --policy pack:gdpr
      govtool classes 'class:personal,zone:shared' -f json

    Formats: table, plain, json, jsonl, csv, markdown.
    """
    from govtool.render.classes import FORMATS
    from govtool.render.classes import classes as render

    outputs = chosen(format, output, FORMATS)
    with opened_graph(ui, store, at, branch) as graph:
        answer = graph.classes(*selector or (), exclude=exclude, direct=direct, policy=policy, today=today)
    ui.mark("classes")
    for form, file in outputs:
        ui.show(render(form, answer.head(bound(limit, all, form))), file)
    return EXIT_OK
