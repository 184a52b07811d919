"""``govtool classes``: the classes of columns, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.graph import bound
from govtool.cli.options import (
    AllOption,
    AtOption,
    BranchOption,
    FormatOption,
    LimitOption,
    OutputOption,
    StoreOption,
)
from govtool.cli.policyargs import PolicyOption, TodayOption, today_of
from govtool.cli.selecting import ExcludeOption, SelectorArgument, open_selector
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
    """The classes of columns, and by which way they came.

      govtool classes mart.customers --policy pack:gdpr
      govtool classes 'class:personal,zone:shared' -f json

    Formats: table, plain, json, jsonl, csv, markdown.
    """
    from govtool.policy.why import why
    from govtool.render.classes import FORMATS
    from govtool.render.classes import classes as render

    outputs = chosen(format, output, FORMATS)
    graph, selecting = open_selector(ui, policy, today_of(today), store, at, branch)
    spread = selecting.governed.spread
    selection = selecting.select(selector or (), exclude or ())
    rows = [graph.index.rows(d) for d in selection.datasets]
    found = why(spread, {*selection.nodes(graph.index), *rows}, direct_only=direct)
    ui.mark("classes")
    for form, file in outputs:
        most = bound(limit, all, form)
        shown = found if most is None else found[:most]
        ui.show(render(form, shown, graph.version, len(found) - len(shown)), file)
    return EXIT_OK
