"""``govtool coverage``: how much was understood, and what was not."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.evidence import check_coverage
from govtool.cli.formats import chosen
from govtool.cli.options import (
    AllOption,
    AtOption,
    BranchOption,
    FormatOption,
    LimitOption,
    MinCoverageOption,
    OutputOption,
    StoreOption,
    StrictOption,
)
from govtool.cli.ui import Ui

_SHOWN = 50


def coverage(
    ui: Ui,
    details: Annotated[bool, typer.Option("--details", help="List what was not understood, and where.")] = False,
    limit: LimitOption = None,
    all: AllOption = False,
    strict: StrictOption = False,
    min_coverage: MinCoverageOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """How much was understood, per source, and what was not; the ten reasons that cost most.

    govtool coverage
    govtool coverage --details --all
    """
    from govtool.app.coverage import read_coverage
    from govtool.app.project import at_commit, commit_at, read_store
    from govtool.render.coverage import FORMATS, breakdown, costs, reasons, render

    outputs = chosen(format, output, FORMATS)
    opened = read_store(store)
    commit = commit_at(opened, at, branch)
    with_diagnostics = details or any(form == "json" for form, _ in outputs)
    report = read_coverage(opened, commit, with_diagnostics=with_diagnostics)
    for form, file in outputs:
        ui.show(render(form, report, at_commit(opened, commit)), file)
        if report.reasons and form == "table" and file is None:
            ui.write([""])
            ui.table(breakdown(report.total))
            ui.write([""])
            ui.table(costs(report.reasons))
        if details and form == "table":
            ui.write([""], file=None)
            ui.table(reasons(report, None if all else _SHOWN if limit is None else limit))
    check_coverage(report.total, strict=strict, min_coverage=min_coverage)
