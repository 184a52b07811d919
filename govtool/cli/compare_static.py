"""``govtool compare static runtime``: what the text says against what ran."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.bundles import ListOptions
from govtool.cli.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK, UnknownNameError

_DEFAULT = ListOptions()


def compare_static(
    ui: Ui,
    other: Annotated[str, typer.Argument(metavar="runtime", help="What to compare with.")] = "runtime",
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
