"""``govtool impact``: what depends on a column, and what a change would break."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.shared.common import ExcludeOption, selects
from govtool.cli.shared.complete import complete_change
from govtool.cli.shared.diagnostics import show_mistake
from govtool.cli.shared.formats import chosen
from govtool.cli.shared.graph_arguments import (
    ColumnArgument,
    DepthOption,
    EvidenceOption,
    KindOption,
    SemanticsOption,
    bound,
    note_stale,
    opened_graph,
    widest,
)
from govtool.cli.shared.options import (
    AllOption,
    AtOption,
    BranchOption,
    FormatOption,
    LimitOption,
    MinCoverageOption,
    OutputOption,
    PolicyOption,
    StoreOption,
    StrictAnswerOption,
    TodayOption,
)
from govtool.cli.shared.ui import Ui
from govtool.cli.whatif import ToOption, WhatIfOptions
from govtool.cli.whatif import answer as whatif
from govtool.errors import EXIT_EVIDENCE, EXIT_FINDINGS, EXIT_OK, UsageError


@selects
def impact(
    ui: Ui,
    column: ColumnArgument,
    change: Annotated[
        str | None,
        typer.Option(
            "--change",
            metavar="CHANGE",
            autocompletion=complete_change,
            help="drop, rename (see --to), retype, delete, mask; default: logic.",
        ),
    ] = None,
    to: ToOption = None,
    upstream: Annotated[bool, typer.Option("--upstream", help="Show its sources instead.")] = False,
    depth: DepthOption = None,
    kind: KindOption = None,
    semantics: SemanticsOption = "precise",
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="breaks|unknown|changes|rows|passes",
            help="Exit with 1 if a finding has it, or a worse one.",
        ),
    ] = "none",
    strict: StrictAnswerOption = False,
    min_coverage: MinCoverageOption = None,
    exclude: ExcludeOption = None,
    policy: PolicyOption = None,
    today: TodayOption = None,
    limit: LimitOption = None,
    all: AllOption = False,
    format: FormatOption = None,
    tree: Annotated[bool, typer.Option("--tree", help="As a tree: each entry below its predecessor.")] = False,
    output: OutputOption = None,
    evidence: EvidenceOption = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="EXPR",
            help="Count rows that matching rows reached: Spark SQL.",
        ),
    ] = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Show what depends on a column, and what a change would break.

      govtool impact crm.users.email --change drop
      govtool impact mart.audience.email --upstream --format json
      govtool impact 'class:personal,zone:shared' --exclude 'share.audit.*'
      govtool impact raw/users.email --where "country = 'de'"

    Verdicts, worst first: breaks, unknown, changes, rows (only the set of rows), passes. DATASET.* (rows): only its
    set of rows is reached. With --where, exit code 3: rows could not be counted. Delete and mask work as in whatif.
    """
    from govtool.query.changes.change import OF_WHATIF, require_none

    if (action := (change or "").strip().lower()) in OF_WHATIF:
        given: dict[str, object] = {
            "--upstream": upstream,
            "--depth": depth is not None,
            "--kind": kind,
            "--evidence": evidence,
            "--semantics": semantics != "precise",
            "--tree": tree,
            "--where": where,
            "--to": to,
        }
        require_none(given, action)
        options = WhatIfOptions(
            *(limit, all, format, output, at, branch, store),
            *(exclude, policy, today, fail_on, strict),
        )
        return whatif(ui, action, [column], options, min_coverage=min_coverage)
    from govtool.answers.answer import at_least
    from govtool.answers.impact import VERDICTS
    from govtool.render.impact import FORMATS, render

    outputs = chosen(["tree"] if tree and not format else format, output, FORMATS)
    at_least(fail_on, VERDICTS, "verdict")  # a wrong one is reported before the graph is opened
    if upstream and fail_on != "none":
        raise UsageError("--upstream has no verdicts", code="usage.arguments", hint="leave out --change and --fail-on")
    bounds = [bound(limit, all, form) for form, _ in outputs]
    try:
        with opened_graph(ui, store, at, branch) as graph:
            answer = graph.impact(
                column,
                change=change,
                to=to,
                upstream=upstream,
                depth=depth,
                kind=kind,
                semantics=semantics,
                exclude=exclude,
                policy=policy,
                today=today,
                limit=widest(bounds),
                evidence=evidence,
                where=where,
            )
            note_stale(ui, graph, answer.files())
    except UsageError as error:
        if where is None:
            raise
        return show_mistake(ui, error, where, "--where")
    ui.mark("impact")
    for (form, file), most in zip(outputs, bounds, strict=True):
        ui.show(render(form, answer.head(most)), file)
    answer.check_coverage(min_coverage=min_coverage)
    if answer.fails(fail_on):
        return EXIT_FINDINGS
    if strict:
        answer.check_strict()
    return EXIT_OK if answer.affected is None or answer.affected.is_complete else EXIT_EVIDENCE
