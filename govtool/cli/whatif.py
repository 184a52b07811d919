"""Shared parts of the commands of ``govtool whatif``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from govtool.cli.complete import complete_selector
from govtool.cli.formats import OutputFile, chosen
from govtool.cli.graph import bound, opened_graph
from govtool.cli.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK

if TYPE_CHECKING:
    from govtool.answers.whatif import WhatIfAnswer

SubjectArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SELECTOR…",
        autocompletion=complete_selector,
        help="Columns and datasets: crm.users.email, 'mart.**', class:personal … See govtool ls --help.",
    ),
]
FailOnOption = Annotated[
    str,
    typer.Option("--fail-on", metavar="VERDICT", help="Exit with 1 if any finding has this verdict or a worse one."),
]
ToOption = Annotated[str, typer.Option("--to", metavar="NEW", help="The new name or type.")]


class WhatIfOptions(NamedTuple):
    """The options of a what-if."""

    selector: list[str]
    exclude: list[str] | None
    to: str | None
    policy: list[str] | None
    today: str | None
    fail_on: str
    strict: bool
    limit: int | None
    all: bool
    format: list[str] | None
    output: list[Path] | None
    at: str | None
    branch: str | None
    store: str | None


def answer(ui: Ui, action: str, options: WhatIfOptions) -> int:
    """Ask and show."""
    outputs = outputs_of(options.format, options.output, options.fail_on)
    with opened_graph(ui, options.store, options.at, options.branch) as graph:
        found = graph.whatif(
            action,
            *options.selector,
            to=options.to,
            exclude=options.exclude,
            policy=options.policy,
            today=options.today,
        )
    return show(
        ui, found, outputs, fail_on=options.fail_on, strict=options.strict, limit=options.limit, all=options.all
    )


def outputs_of(format: list[str] | None, output: list[Path] | None, fail_on: str) -> list[OutputFile]:
    """Return the outputs; a wrong format or verdict is reported before anything is read.

    Raises:
        UnknownNameError: There is no such verdict (``usage.unknown-verdict``).
    """
    from govtool.answers.answer import at_least
    from govtool.query.whatif import VERDICTS
    from govtool.render.whatif import FORMATS

    at_least(fail_on, VERDICTS, "verdict")
    return chosen(format, output, FORMATS)


def show(
    ui: Ui, found: WhatIfAnswer, outputs: list[OutputFile], *, fail_on: str, strict: bool, limit: int | None, all: bool
) -> int:
    """Write an answer to its outputs, and return the exit code."""
    from govtool.render.whatif import render

    ui.mark("whatif")
    for form, file in outputs:
        ui.show(render(form, found.head(bound(limit, all, form))), file)
    if found.fails(fail_on):
        return EXIT_FINDINGS
    if strict:
        found.check_strict()
    return EXIT_OK
