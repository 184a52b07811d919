"""``govtool ls``: what a selector selects."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.shared.common import ExcludeOption, SelectorArgument, selects
from govtool.cli.shared.graph_arguments import opened_graph
from govtool.cli.shared.options import ListOptions, PolicyOption, TodayOption
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_OK

_DEFAULT = ListOptions()


@selects
def ls(
    ui: Ui,
    selector: SelectorArgument = None,
    exclude: ExcludeOption = None,
    columns: Annotated[bool, typer.Option("--columns", "-c", help="List datasets column by column.")] = False,
    policy: PolicyOption = None,
    today: TodayOption = None,
    options: ListOptions = _DEFAULT,
) -> int:
    """List datasets and columns.

      govtool ls 'mart.**' --columns
      govtool ls 'class:personal,zone:shared' --exclude share.audit

    Selectors are those of dbt, for columns: see the argument below.
    """
    from govtool.query.selection.select import nothing_selected
    from govtool.render.classes import FORMATS, listing

    outputs = options.outputs(FORMATS)
    with opened_graph(ui, options.store, options.at, options.branch) as graph:
        answer = graph.ls(*selector or (), exclude=exclude, columns=columns, policy=policy, today=today)
    ui.mark("select")
    options.show(ui, outputs, listing, answer)
    if selector and not any(answer.rows()):
        raise nothing_selected(texts=selector)
    return EXIT_OK
