"""``govtool diff``: what changed between two versions, or why two runs differ."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.graph import bound
from govtool.cli.options import AllOption, BranchOption, FormatOption, LimitOption, OutputOption, StoreOption
from govtool.cli.policyargs import PolicyOption, TodayOption
from govtool.cli.ui import Ui
from govtool.errors import EXIT_EVIDENCE, EXIT_FINDINGS, EXIT_OK


def diff(
    ui: Ui,
    old: Annotated[
        str, typer.Argument(metavar="[A]", help="From: a branch, HEAD~1, a tag, a date …, or a run.")
    ] = "HEAD~1",
    new: Annotated[str, typer.Argument(metavar="[B]", help="To: likewise.")] = "HEAD",
    strict: Annotated[
        bool, typer.Option("--strict", help="For runs: exit with 3 if a run does not record what is compared.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Of runs: also show what was compared, and what could not be and why.")
    ] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if anything differs.")] = False,
    policy: PolicyOption = None,
    today: TodayOption = None,
    limit: LimitOption = None,
    all: AllOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Compare two versions of the graph, or two runs of a job.

      govtool diff v1.0 main --exit-code --format markdown
      govtool diff main~1 main --policy pack:gdpr
      govtool diff nightly~1 nightly

    Of versions: datasets, columns, edges, and the statements behind it; facts such as tags, owners and descriptions;
    runs and versions of datasets; with --policy also classes of columns and findings. Statements that only moved
    within their file change nothing. Of runs (an id, or JOB and JOB~N): inputs, code, arguments, settings, environment,
    plan and outputs, with the first upstream cause of each difference. Formats: table, plain, json, jsonl, csv,
    markdown.
    """
    from govtool.answers.diff import DiffAnswer
    from govtool.api.opening import open as open_version
    from govtool.render.diff import FORMATS, render
    from govtool.render.runs import render_run_diff

    outputs = chosen(format, output, FORMATS)
    answer = open_version(store, branch=branch).diff(old, new, policy=policy, today=today)
    ui.mark("diff")
    for form, file in outputs:
        if isinstance(answer, DiffAnswer):
            ui.show(render(form, answer.head(bound(limit, all, form))), file)
        else:
            ui.show(render_run_diff(form, answer, explain=explain), file)
    if strict and not isinstance(answer, DiffAnswer) and answer.result.not_comparable:
        return EXIT_EVIDENCE
    return EXIT_FINDINGS if exit_code and answer.differs else EXIT_OK
