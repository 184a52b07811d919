"""``govtool ls``: what a selector selects."""

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
    from govtool.render.classes import FORMATS, Listed, listing

    outputs = chosen(format, output, FORMATS)
    graph, selecting = open_selector(ui, policy, today_of(today), store, at, branch)
    index = graph.index
    selection = selecting.select(selector or (), exclude or ())
    found = [Listed(index.name(n), "column", index.type(n), 1) for n in selection.columns]
    if columns:
        whole = [n for d in selection.datasets for n in index.columns(d) if not index.is_unknown(n)]
        found += [Listed(index.name(n), "column", index.type(n), 1) for n in whole]
    else:
        found += [
            Listed(index.dataset_name(d), index.dataset_kind(d), None, index.column_count(d))
            for d in selection.datasets
        ]
    found.sort()
    ui.mark("select")
    for form, file in outputs:
        most = bound(limit, all, form)
        shown = found if most is None else found[:most]
        ui.show(listing(form, shown, graph.version, len(found) - len(shown)), file)
    return EXIT_OK
