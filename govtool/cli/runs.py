"""``govtool runs``: what ran, and when, with what."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.shared.common import selects
from govtool.cli.shared.options import ListOptions
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_OK

_DEFAULT = ListOptions()


@selects
def runs(
    ui: Ui,
    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="Only runs of this job; a glob.")] = None,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="complete, failed, aborted, running or unknown.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="Only runs that read or wrote it; a glob.")
    ] = None,
    software: Annotated[
        str | None,
        typer.Option("--software", metavar="SPEC", help="Only runs that used it: pandas, 'pandas<2.1', parser==1.4."),
    ] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="DATE", help="Started then or later (UTC).")] = None,
    options: ListOptions = _DEFAULT,
) -> int:
    """List runs: jobs, how they ended, what they read and wrote. The newest first.

      govtool runs
      govtool runs 'nightly_*' --status failed --software 'pandas<2.1'

    Runs come from Spark, OpenLineage and W3C PROV: see govtool ingest.
    """
    from govtool.api.opening import open as open_version
    from govtool.query.selection.select import nothing_selected
    from govtool.render.runs import FORMATS, render_runs

    outputs = options.outputs(FORMATS)
    graph = open_version(options.store, ref=options.at, branch=options.branch)
    answer = graph.runs(job, status=status, dataset=dataset, software=software, since=since)
    ui.mark("read the runs")
    options.show(ui, outputs, render_runs, answer)
    if not answer.known:
        ui.hint("no source holds runs: govtool ingest spark|openlineage|prov PATH")
    if not answer.runs and any((job, status, dataset, software, since)):
        raise nothing_selected("govtool runs")
    return EXIT_OK
