"""What the commands of ``govtool whatif`` have in common."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from govtool.cli.complete import complete_selector
from govtool.cli.formats import chosen
from govtool.cli.graph import bound
from govtool.cli.policyargs import today_of
from govtool.cli.selecting import open_selector
from govtool.cli.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK, UnknownNameError, UsageError

SubjectArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SELECTOR…",
        autocompletion=complete_selector,
        help="Columns and datasets: crm.users.email, 'mart.**', class:personal … See govtool ls --help.",
    ),
]
FailOnOption = Annotated[
    str, typer.Option("--fail-on", metavar="VERDICT", help="Exit with 1 if anything is this bad or worse.")
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
    limit: int | None
    all: bool
    format: list[str] | None
    output: list[Path] | None
    at: str | None
    branch: str | None
    store: str | None


def answer(ui: Ui, action: str, options: WhatIfOptions) -> int:
    """Ask and show."""
    from govtool.app.policy import load_policies
    from govtool.app.whatif import policy_effect
    from govtool.query.whatif import VERDICTS, whatif
    from govtool.render.whatif import FORMATS, render

    outputs = chosen(options.format, options.output, FORMATS)
    levels = ("none", *VERDICTS)
    if options.fail_on not in levels:
        raise UnknownNameError(
            f"no verdict {options.fail_on}",
            code="usage.unknown-verdict",
            nearest=tuple(difflib.get_close_matches(options.fail_on, levels)),
            hint=f"one of {', '.join(levels)}",
        )
    day = today_of(options.today)
    graph, selecting = open_selector(ui, options.policy, day, options.store, options.at, options.branch)
    found = whatif(graph.index, action, selecting.select(options.selector, options.exclude or ()), options.to)
    ui.mark("whatif")
    effect = None
    try:
        policies = load_policies(options.policy)
    except UsageError as error:
        if error.code != "policy.none" or options.policy:
            raise
    else:
        effect = policy_effect(graph.index, policies, found, day, selecting.tool_facts)
        ui.mark("policies")
    for form, file in outputs:
        ui.show(render(form, found, graph.version, bound(options.limit, options.all, form), effect), file)
    worse = VERDICTS[: VERDICTS.index(options.fail_on) + 1] if options.fail_on != "none" else ()
    return EXIT_FINDINGS if any(a.verdict in worse for a in found.affected) else EXIT_OK
