"""``govtool coverage``: how much was understood, and what was not."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.options import (
    ListOptions,
    MinCoverageOption,
    StrictOption,
)
from govtool.cli.ui import Ui

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
        else:
            ui.write(render(form, answer, details=details, limit=most), file)
    answer.check_coverage(strict=strict, min_coverage=min_coverage)
