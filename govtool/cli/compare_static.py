"""``govtool compare static runtime``: what the text says against what ran."""

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
from govtool.cli.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK, UnknownNameError


def compare_static(
    ui: Ui,
    other: Annotated[str, typer.Argument(metavar="runtime", help="What to compare with.")] = "runtime",
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if anything differs.")] = False,
    limit: LimitOption = None,
    all: AllOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Compare lineage from text with lineage from runs: dead SQL, and dynamic code.

      govtool compare static runtime
      govtool compare static runtime --format markdown --exit-code

    Static is what SQL and declarations say, runtime what Spark and OpenLineage saw. Ways through views and temporary
    tables are compared from end to end. Names that are one dataset belong into [aliases] of govtool.toml.
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
    outputs = chosen(format, output, FORMATS)
    with ui.progressing("building the indexes") as progress:
        answer = open_version(store, ref=at, branch=branch, progress=progress).compare_static()
    ui.mark("compare")
    for form, file in outputs:
        ui.show(render_compared(form, answer, bound(limit, all, form)), file)
    return EXIT_FINDINGS if exit_code and answer.differs else EXIT_OK
