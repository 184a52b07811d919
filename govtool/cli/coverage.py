"""``govtool coverage``: how much was understood, and what was not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.shared.diagnostics import show_remedy
from govtool.cli.shared.options import (
    ListOptions,
    MinCoverageOption,
    StrictOption,
)
from govtool.cli.shared.ui import Ui

if TYPE_CHECKING:
    from govtool.answers.coverage import CoverageReport

_SHOWN = 50

_DEFAULT = ListOptions()


def coverage(
    ui: Ui,
    details: Annotated[
        bool, typer.Option("--details", help="List what was not understood, and where. csv and jsonl: this instead.")
    ] = False,
    strict: StrictOption = False,
    min_coverage: MinCoverageOption = None,
    options: ListOptions = _DEFAULT,
) -> None:
    """Show how much was understood, by source, with the top 10 reasons for incomplete coverage.

    govtool coverage
    govtool coverage --details --all
    """
    from govtool.api.opening import open as open_version
    from govtool.render.coverage import FORMATS, render, tables

    outputs = options.outputs(FORMATS)
    with_diagnostics = details or any(form == "json" for form, _ in outputs)
    answer = open_version(options.store, ref=options.at, branch=options.branch).coverage(details=with_diagnostics)
    for form, file in outputs:
        most = options.limit if form in ("csv", "jsonl") or options.limit is not None else _SHOWN
        most = None if options.all else most
        if form == "table" and file is None:
            for number, part in enumerate(tables(answer, details=details, limit=most)):
                ui.write([""] if number else [])
                ui.table(part)
            if details:
                _show_lines(ui, answer.report, most)
        else:
            ui.write(render(form, answer, details=details, limit=most), file)
    answer.check_coverage(strict=strict, min_coverage=min_coverage)


def _show_lines(ui: Ui, report: CoverageReport, limit: int | None) -> None:
    """Write the lines of files at which parsers gave up, each with a caret, and what to do."""
    from govtool.app.coverage.source_lines import with_source_lines
    from govtool.render.errors import diagnostic_lines

    for diagnostic, line in with_source_lines(report, limit):
        ui.write([""])
        ui.write("".join(span.text for span in spans) for spans in diagnostic_lines(diagnostic, line))
    show_remedy(ui, [diagnostic for _, diagnostic in report.diagnostics[:limit]])
