"""``govtool classes`` and ``classify``: the classes of columns, and proposals for them."""

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
def classes(
    ui: Ui,
    selector: SelectorArgument = None,
    exclude: ExcludeOption = None,
    direct: Annotated[bool, typer.Option("--direct", help="Show only values: no influences, nothing unknown.")] = False,
    policy: PolicyOption = None,
    today: TodayOption = None,
    options: ListOptions = _DEFAULT,
) -> int:
    """Show the classes of columns, and where they are inherited from.

    govtool classes mart.customers --policy pack:gdpr
    govtool classes 'class:personal,zone:shared' -f json
    """
    from govtool.query.selection.select import nothing_selected
    from govtool.render.classes import FORMATS
    from govtool.render.classes import classes as render

    outputs = options.outputs(FORMATS)
    with opened_graph(ui, options.store, options.at, options.branch) as graph:
        answer = graph.classes(*selector or (), exclude=exclude, direct=direct, policy=policy, today=today)
    ui.mark("classes")
    options.show(ui, outputs, render, answer)
    if selector and not any(answer.rows()):
        raise nothing_selected(texts=selector)
    return EXIT_OK


@selects
def classify(
    ui: Ui,
    selector: SelectorArgument = None,
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Propose classes. Required: only policies assign classes.")
    ] = False,
    min_confidence: Annotated[float, typer.Option("--min-confidence", min=0.0, max=1.0, help="From 0 to 1.")] = 0.5,
    exclude: ExcludeOption = None,
    policy: PolicyOption = None,
    today: TodayOption = None,
    options: ListOptions = _DEFAULT,
) -> None:
    """Propose classes for columns, from their names, types and descriptions.

      govtool classify --suggest
      govtool classify --suggest 'raw.**' -f yaml -o policies/suggested.yml

    Columns that policies already classify, and copies of columns with the same class, are left out. To use the
    suggestions, write them with -f yaml into the policy folder, remove the wrong lines, and run govtool check.
    """
    from govtool.query.selection.select import nothing_selected
    from govtool.render.suggestions import FORMATS, render

    outputs = options.outputs(FORMATS)
    with opened_graph(ui, options.store, options.at, options.branch) as graph:
        if selector and not any(graph.ls(*selector, exclude=exclude, policy=policy, today=today).rows()):
            raise nothing_selected(texts=selector)
        answer = graph.suggest_classes(
            *selector or (), min_confidence=min_confidence, exclude=exclude, policy=policy, today=today
        )
    ui.mark("classify")
    options.show(ui, outputs, render, answer)
