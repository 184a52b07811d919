"""``govtool impact``: what depends on a column, and what a change would break."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.complete import complete_change
from govtool.cli.evidence import check_coverage
from govtool.cli.formats import chosen
from govtool.cli.graph import (
    ColumnArgument,
    DepthOption,
    EvidenceOption,
    KindOption,
    SemanticsOption,
    bound,
    edge_kinds,
    open_graph,
)
from govtool.cli.options import (
    AllOption,
    AtOption,
    BranchOption,
    FormatOption,
    LimitOption,
    MinCoverageOption,
    OutputOption,
    StoreOption,
)
from govtool.cli.policyargs import PolicyOption, TodayOption, today_of
from govtool.cli.selecting import ExcludeOption
from govtool.cli.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK, UnknownNameError, UsageError

if TYPE_CHECKING:
    from govtool.query.impact import Impacted, ImpactResult

_FAIL_ON = ("none", "breaks", "unknown", "changes", "rows", "passes")
"""``none``, then the verdicts from the worst on."""


def impact(
    ui: Ui,
    column: ColumnArgument,
    change: Annotated[
        str | None,
        typer.Option(
            "--change",
            metavar="CHANGE",
            autocompletion=complete_change,
            help="What happens to it: drop, rename:NEW, retype:TYPE or logic (the default).",
        ),
    ] = None,
    upstream: Annotated[bool, typer.Option("--upstream", help="What it is made of, instead.")] = False,
    depth: DepthOption = None,
    kind: KindOption = None,
    semantics: SemanticsOption = "precise",
    fail_on: Annotated[
        str, typer.Option("--fail-on", metavar="VERDICT", help="Exit with 1 if anything is this bad or worse.")
    ] = "none",
    min_coverage: MinCoverageOption = None,
    exclude: ExcludeOption = None,
    policy: PolicyOption = None,
    today: TodayOption = None,
    limit: LimitOption = None,
    all: AllOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    evidence: EvidenceOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """What depends on a column, and what a change would break.

      govtool impact crm.users.email --change drop
      govtool impact mart.audience.email --upstream --format json
      govtool impact 'class:personal,zone:shared' --exclude 'share.audit.*'

    Verdicts, the worst first: breaks, unknown, changes, rows (only which rows there are), passes. Formats: table,
    plain, json, jsonl, csv, markdown.
    """
    from govtool.app.selection import Selector
    from govtool.query.change import Change
    from govtool.query.impact import expand
    from govtool.query.impact import impact as impact_of
    from govtool.render.impact import BY_ENTRY, FORMATS, render

    outputs = chosen(format, output, FORMATS)
    if fail_on not in _FAIL_ON:
        near = tuple(difflib.get_close_matches(fail_on, _FAIL_ON))
        raise UnknownNameError(
            f"no verdict {fail_on}", code="usage.unknown-verdict", nearest=near, hint=f"one of {', '.join(_FAIL_ON)}"
        )
    if upstream and (change or fail_on != "none"):
        raise UsageError("--upstream has no verdicts", code="usage.arguments", hint="leave out --change and --fail-on")
    wanted = Change.parse(change or "logic")
    kinds = edge_kinds(kind)
    graph = open_graph(ui, store, at, branch, evidence)
    about = Selector(graph.index, graph.store, graph.commit, policy, today_of(today)).subjects(column, exclude or ())
    answers: dict[int | None, ImpactResult] = {}
    for form, file in outputs:
        most = bound(limit, all, form)
        if most not in answers:
            answers[most] = impact_of(
                graph.index,
                about,
                direction="up" if upstream else "down",
                depth=depth,
                kinds=kinds,
                change=None if upstream else wanted,
                semantics=semantics,
                limit=most,
            )
            ui.mark("impact")
        result = answers[most]
        entries = result.columns if form in BY_ENTRY else _one_a_column(expand(graph.index, result))
        ui.show(render(form, result, entries, graph.version), file)
    check_coverage(graph.version.coverage, strict=False, min_coverage=min_coverage)
    found = {verdict.label for verdict, number in result.summary.verdicts if number}
    worse = _FAIL_ON[1 : _FAIL_ON.index(fail_on) + 1]
    return EXIT_FINDINGS if found & set(worse) else EXIT_OK


def _one_a_column(entries: Iterable[Impacted]) -> list[Impacted]:
    return sorted(entries, key=lambda entry: (entry.verdict or 0, entry.hops, entry.column))
