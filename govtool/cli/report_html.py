"""``govtool report html``: the graph as one HTML file to click through."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from govtool.cli.shared.common import ExcludeOption, SelectorArgument, selects
from govtool.cli.shared.complete import complete_commit, complete_name
from govtool.cli.shared.graph_arguments import opened_graph
from govtool.cli.shared.options import AtOption, BranchOption, PolicyOption, StoreOption, TodayOption
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_OK, UsageError
from govtool.wording import count

FORMATS = ("html",)


@selects
def report_html(
    ui: Ui,
    selector: SelectorArgument = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write; - for stdout, which is the default."),
    ] = None,
    exclude: ExcludeOption = None,
    diff: Annotated[
        str | None,
        typer.Option(
            "--diff",
            metavar="REF|DATE",
            autocompletion=complete_commit,
            help="Mark what was added, removed and changed since this version: main, HEAD~1, 2026-11-20.",
        ),
    ] = None,
    erase: Annotated[
        list[str] | None,
        typer.Option(
            "--erase",
            metavar="COLUMN",
            autocompletion=complete_name,
            help="Add the plan for erasing whom this column identifies, as ordered lanes. Repeatable.",
        ),
    ] = None,
    trace: Annotated[
        list[Path] | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="Draw a trace of rows: the JSON of govtool trace back or trace forward. Repeatable.",
        ),
    ] = None,
    workflow: Annotated[
        list[str] | None,
        typer.Option(
            "--workflow",
            metavar="GRAPH",
            help="Draw a workflow, to zoom in and out: run:RUN, the name of a graph, or its file. Repeatable.",
        ),
    ] = None,
    include_rows: Annotated[
        bool,
        typer.Option(
            "--include-rows", help="Put the rows of traces, and the records and values of workflows, into the file."
        ),
    ] = False,
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="The title of the page.")] = "Lineage",
    policy: PolicyOption = None,
    today: TodayOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Draw the graph as one HTML file to click through.

      govtool report html -o lineage.html
      govtool report html 'crm.users+' --policy pack:gdpr -o users.html
      govtool report html --diff main -o change.html
      govtool report html --trace trace.json --workflow run:nightly -o run.html

    The file opens without a network and requests nothing. Literals in SQL are redacted, and it has rows only with
    --include-rows. A click on a column highlights everything that it reaches, as govtool impact lists it; findings
    show their path with its SQL.
    """
    to_screen = output is None or str(output) == "-"
    if to_screen and ui.out.isatty():
        raise UsageError("a page cannot be shown on a terminal", code="usage.output", hint="-o lineage.html")
    with opened_graph(ui, store, at, branch) as graph:
        answer = graph.report(
            *selector or (),
            exclude=exclude,
            diff=diff,
            erase=erase,
            title=title,
            policy=policy,
            today=today,
            trace=trace,
            workflow=workflow,
            include_rows=include_rows,
        )
        ui.mark("report")
        page = answer.to_html()
    ui.mark("page")
    ui.write([page], None if to_screen else output)
    if not to_screen:
        ui.note(f"wrote {output}: {count(sum(1 for _ in answer.rows()), 'dataset')}, {len(page.encode()) / 1e6:.1f} MB")
    return EXIT_OK
