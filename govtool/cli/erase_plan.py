"""``govtool erase plan``: what to do with a data subject's data, dataset by dataset."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.complete import complete_name, complete_selector
from govtool.cli.evidence import check_coverage
from govtool.cli.formats import chosen
from govtool.cli.options import AtOption, BranchOption, FormatOption, MinCoverageOption, OutputOption, StoreOption
from govtool.cli.policyargs import PolicyOption, TodayOption, today_of
from govtool.cli.selecting import open_selector
from govtool.cli.ui import Ui
from govtool.errors import EXIT_EVIDENCE, EXIT_OK


def erase_plan(
    ui: Ui,
    subject: Annotated[
        list[str],
        typer.Option(
            "--subject",
            metavar="COLUMN[=VALUE]",
            autocompletion=complete_name,
            help="What identifies the subject. The value is not needed yet, and never stored or shown. Repeatable.",
        ),
    ],
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="SELECTOR",
            autocompletion=complete_selector,
            help="Further columns that hold the same identifier. Repeatable.",
        ),
    ] = None,
    within: Annotated[
        str, typer.Option("--within", metavar="TIME", help="What is kept no longer than this is left to expire.")
    ] = "30d",
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show the values of --subject instead of an ellipsis.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 3 if anything is unknown.")] = False,
    policy: PolicyOption = None,
    today: TodayOption = None,
    min_coverage: MinCoverageOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Every dataset with a data subject's data, in the order to work through.

      govtool erase plan --subject crm.users.id
      govtool erase plan --subject crm.users.id=42 --key shop.guests.uid -f markdown -o plan.md

    Followed are copies of the key, what is joined on it, and all that is made of their datasets. With policies the plan
    knows classes, declassifiers and retention. Formats: table, plain, json, csv, markdown.
    """
    from govtool.app.erase import parse_subject, plan
    from govtool.render.erase import FORMATS, render

    outputs = chosen(format, output, FORMATS)
    subjects = [parse_subject(text) for text in subject]
    day = today_of(today)
    graph, selecting = open_selector(ui, policy, day, store, at, branch)
    found = plan(selecting, subjects, key or (), within, day)
    ui.mark("plan")
    values = [one.value for one in subjects]
    for form, file in outputs:
        ui.show(render(form, found, graph.version, values if show_values else None), file)
    check_coverage(graph.version.coverage, strict=False, min_coverage=min_coverage)
    return EXIT_EVIDENCE if strict and found.count("unknown") else EXIT_OK
