"""``govtool replay``: a recorded run over changed inputs."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.shared.diagnostics import show_mistake
from govtool.cli.shared.formats import chosen
from govtool.cli.shared.graph_arguments import records_needed
from govtool.cli.shared.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.shared.ui import Ui
from govtool.cli.trace import AllRunsOption, ShowOption, TraceLimitOption
from govtool.errors import EXIT_EVIDENCE, EXIT_OK, UsageError

_PAGE = 1000


def replay(
    ui: Ui,
    run: Annotated[str, typer.Argument(metavar="RUN", help="A recorded run, an application or JOB~1.")],
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="DATASET", help="Run without rows of this input or boundary; see --where."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="EXPR", help="The rows: a Spark SQL condition, one for each --without."),
    ] = None,
    replaced: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="DATASET=FILE", help="Read a Parquet file, or a folder of them, instead."),
    ] = None,
    script: Annotated[
        str | None,
        typer.Option("--script", metavar="FILE", help="Run your script over the traced rows; --where chooses results."),
    ] = None,
    of: Annotated[
        str | None, typer.Option("--of", metavar="DATASET", help="Choose one output of a run that has several.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="BOUNDARY", help="Compare the rows at this boundary, not the output's."),
    ] = None,
    all_runs: AllRunsOption = False,
    show: ShowOption = 20,
    limit: TraceLimitOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Evaluate a recorded run over changed inputs, and compare with what it wrote.

      govtool replay 'job~1' --without users --where "id = 42"
      govtool replay app-1/0 --with users=fixed.parquet --format json
      govtool replay 'job~1' --script "edited.py --day 3" --where "land = 'de'"

    Boundaries are groups, windows, subqueries …: 'aggregate', 'aggregate-2'; a name that there is not lists them.
    --all-runs goes back through the runs that wrote its inputs, to the dataset that is changed.
    If possible, only the groups and partitions that the change reaches are evaluated. Nothing is written. Results
    that a new run would decide anew (limits with ties, random values) are listed, and the exit code is 3.
    """
    from govtool.api.opening import open as open_version
    from govtool.render.replay import FORMATS, render_replay

    outputs = chosen(format, output, FORMATS)
    forms = {form for form, _ in outputs}
    if limit is None and "csv" not in forms:
        limit = _PAGE if forms & {"json", "jsonl"} else show
    with records_needed():
        graph = open_version(store, ref=at, branch=branch)
    try:
        report = graph.replay(
            run,
            without=without,
            where=where,
            replaced=replaced,
            of=of,
            script=script,
            all_runs=all_runs,
            limit=limit,
            to=to,
        )
    except UsageError as error:
        if where is None or len(where) != 1:
            raise
        return show_mistake(ui, error, where[0], "--where")
    ui.mark("replayed")
    for form, file in outputs:
        ui.show(render_replay(form, report), file, private=True)
    return EXIT_OK if report.is_complete else EXIT_EVIDENCE
