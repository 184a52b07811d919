"""``govtool classes``: the classes of columns, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.bundles import ListOptions
from govtool.cli.graph import opened_graph
from govtool.cli.policyargs import PolicyOption, TodayOption
from govtool.cli.selecting import ExcludeOption, SelectorArgument, selects
from govtool.cli.ui import Ui
from govtool.errors import EXIT_OK

_DEFAULT = ListOptions()


@selects
def classes(
    ui: Ui,
    selector: SelectorArgument = None,
    exclude: ExcludeOption = None,
    direct: Annotated[bool, typer.Option("--direct", help="Values only, no influences and nothing unknown.")] = False,
    policy: PolicyOption = None,
    today: TodayOption = None,
    options: ListOptions = _DEFAULT,
) -> int:
    """Show the classes of columns, and where they are inherited from.

      govtool classes mart.customers --policy pack:gdpr
      govtool classes 'class:personal,zone:shared' -f json

    Formats: table, plain, json, jsonl, csv, markdown.
    """
    from govtool.query.select import nothing_selected
    from govtool.render.classes import FORMATS
    from govtool.render.classes import classes as render

    outputs = options.outputs(FORMATS)
    with opened_graph(ui, options.store, options.at, options.branch) as graph:
        answer = graph.classes(*selector or (), exclude=exclude, direct=direct, policy=policy, today=today)
    ui.mark("classes")
    options.show(ui, outputs, render, answer)
    if selector and not any(answer.rows()):
        raise nothing_selected()
    return EXIT_OK
