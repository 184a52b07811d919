"""``govtool compare``: one kind of evidence against another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from govtool.cli.shared.formats import chosen
from govtool.cli.shared.graph_arguments import bound, opened_graph
from govtool.cli.shared.options import (
    AllOption,
    AtOption,
    BranchOption,
    FormatOption,
    LimitOption,
    ListOptions,
    OutputOption,
    StoreOption,
)
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK, UnknownNameError


def compare_oracle(
    ui: Ui,
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Exports: JSON, JSON lines, CSV or Parquet.")],
    oracle: Annotated[
        str, typer.Option("--oracle", metavar="NAME", help="auto, snowflake or databricks. Default: by content.")
    ] = "auto",
    differences: Annotated[bool, typer.Option("--differences", help="Show only differences.")] = False,
    fail_under: Annotated[
        float | None,
        typer.Option("--fail-under", metavar="PERCENT", min=0, max=100, help="Exit with 1 if fewer edges agree."),
    ] = None,
    limit: LimitOption = None,
    all: AllOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Compare the graph with a warehouse's own records: edges that agree, and edges of one side only.

      govtool compare oracle access_history.json --differences
      govtool compare oracle column_lineage.parquet --fail-under 95 -f json

    Reads exports of Snowflake's ACCESS_HISTORY (query_id, objects_modified) and of Databricks'
    system.access.column_lineage. Edges into columns of datasets that both know are compared. Each difference has
    its reason. Exit 3 if they have no dataset in common.
    """
    from govtool.render.compare_oracle import FORMATS, reasons, render

    outputs = chosen(format, output, FORMATS)
    with opened_graph(ui, store, at, branch) as graph:
        answer = graph.compare_oracle(files, oracle=oracle, differences=differences)
    ui.mark("compare")
    for form, file in outputs:
        ui.show(render(form, answer.head(bound(limit, all, form))), file)
        if form == "table" and file is None and answer.agreement.rate != 1:
            ui.write([""])
            ui.table(reasons(answer))
    rate = answer.agreement.rate
    if fail_under is not None and (rate is None or rate * 100 < fail_under):
        return EXIT_FINDINGS
    return EXIT_OK


_DEFAULT = ListOptions()


def compare_static(
    ui: Ui,
    other: Annotated[str, typer.Argument(metavar="runtime", help="The evidence to compare with.")] = "runtime",
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if anything differs.")] = False,
    options: ListOptions = _DEFAULT,
) -> int:
    """Compare lineage from text with lineage from runs: dead SQL, and dynamic code.

      govtool compare static runtime
      govtool compare static runtime --format markdown --exit-code

    Static lineage comes from SQL and declarations, runtime lineage from Spark and OpenLineage. Paths through views and
    temporary tables are compared from end to end. List names of one dataset in [aliases] of govtool.toml.
    """
    from govtool.api.opening import open as open_version
    from govtool.render.compare import FORMATS, render_compared

    if other != "runtime":
        raise UnknownNameError(
            f"static is compared with runtime, not with {other[:40]!r}",
            code="usage.arguments",
            nearest=("runtime",),
            hint="govtool compare static runtime",
        )
    outputs = options.outputs(FORMATS)
    with ui.progressing("building the indexes", "definitions") as progress:
        answer = open_version(options.store, ref=options.at, branch=options.branch, progress=progress).compare_static()
    ui.mark("compare")
    for form, file in outputs:
        ui.show(render_compared(form, answer, options.bound(form)), file)
    return EXIT_FINDINGS if exit_code and answer.differs else EXIT_OK
