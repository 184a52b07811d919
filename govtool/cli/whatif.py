"""Shared parts of the commands of ``govtool whatif``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.bundles import ListOptions
from govtool.cli.complete import complete_selector
from govtool.cli.formats import OutputFile
from govtool.cli.graph import opened_graph
from govtool.cli.options import StrictAnswerOption
from govtool.cli.policyargs import PolicyOption, TodayOption
from govtool.cli.selecting import ExcludeOption
from govtool.cli.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK, UsageError

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
    typer.Option(
        "--fail-on",
        metavar="lost|breaks|unknown|changes|rows|passes",
        help="Exit with 1 if any finding has this verdict or a worse one.",
    ),
]
ToOption = Annotated[str | None, typer.Option("--to", metavar="NEW", help="The new name or type.")]


@dataclass(frozen=True, slots=True)
class WhatIfOptions:
    """Options of every what-if, beside its change."""

    exclude: ExcludeOption = None
    policy: PolicyOption = None
    today: TodayOption = None
    fail_on: FailOnOption = "none"
    strict: StrictAnswerOption = False


def answer(
    ui: Ui, action: str, selector: list[str], options: WhatIfOptions, shown: ListOptions, *, to: str | None = None
) -> int:
    """Ask and show."""
    outputs = outputs_of(options, shown)
    if action in ("rename", "retype") and to is None:
        raise _no_target(action, selector)
    with opened_graph(ui, shown.store, shown.at, shown.branch) as graph:
        found = graph.whatif(
            action, *selector, to=to, exclude=options.exclude, policy=options.policy, today=options.today
        )
    return show(ui, found, outputs, options, shown)


def outputs_of(options: WhatIfOptions, shown: ListOptions) -> list[OutputFile]:
    """Return the outputs; a wrong format or verdict is reported before anything is read.

    Raises:
        UnknownNameError: There is no such verdict (``usage.unknown-verdict``), or no such format.
    """
    from govtool.answers.answer import at_least
    from govtool.query.whatif import VERDICTS
    from govtool.render.whatif import FORMATS

    at_least(options.fail_on, VERDICTS, "verdict")
    return shown.outputs(FORMATS)


def show(ui: Ui, found: WhatIfAnswer, outputs: list[OutputFile], options: WhatIfOptions, shown: ListOptions) -> int:
    """Write an answer to its outputs, and return the exit code."""
    from govtool.render.whatif import render

    ui.mark("whatif")
    shown.show(ui, outputs, render, found)
    if found.fails(options.fail_on):
        return EXIT_FINDINGS
    if options.strict:
        found.check_strict()
    return EXIT_OK


def _no_target(action: str, selector: list[str]) -> UsageError:
    """The error about a change to nothing; the last of several words is likely what was meant."""
    words = [*selector[:-1], "--to", selector[-1]] if len(selector) > 1 else [*selector, "--to", "NEW"]
    what = "name" if action == "rename" else "type"
    return UsageError(
        f"the new {what} is missing", code="usage.arguments", hint=" ".join(("govtool whatif", action, *words))
    )
