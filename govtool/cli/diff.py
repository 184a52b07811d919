"""``govtool diff``: what changed between two versions, or why two runs differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.shared.formats import chosen
from govtool.cli.shared.graph_arguments import bound
from govtool.cli.shared.options import (
    AllOption,
    BranchOption,
    FormatOption,
    LimitOption,
    OutputOption,
    PolicyOption,
    StoreOption,
    TodayOption,
)
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_EVIDENCE, EXIT_FINDINGS, EXIT_OK, UsageError

if TYPE_CHECKING:
    from govtool.answers.run_diff import RunDiffAnswer

ROWS_SHOWN = 20
"""Rows of each kind with ``--rows`` when neither ``--limit`` nor ``--all`` says otherwise."""


def diff(
    ui: Ui,
    old: Annotated[
        str | None,
        typer.Argument(
            metavar="[A]",
            help="From: a branch, HEAD~1, a tag, a date …, or a run. Default: before the last change; upkeep is none.",
        ),
    ] = None,
    new: Annotated[str, typer.Argument(metavar="[B]", help="To: likewise.")] = "HEAD",
    strict: Annotated[
        bool, typer.Option("--strict", help="For runs: exit with 3 if a run does not record what is compared.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Of runs: also show what was compared, and what could not be and why.")
    ] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if anything differs.")] = False,
    rows: Annotated[
        bool,
        typer.Option("--rows", help="Of runs: the rows of their outputs that differ, and the input rows behind them."),
    ] = False,
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance", metavar="SHARE", help="With --rows: floats that are this close are equal, such as 1e-6."
        ),
    ] = None,
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
      govtool diff nightly~1 nightly --rows -o rows.csv

    Of versions: datasets, columns and edges, each with the statements behind it; facts such as tags, owners and
    descriptions; runs and versions of datasets; with --policy also classes of columns and findings. Statements of
    scripts that change none of these are listed, too: another literal, operator or bound (amount > 20). Of runs (an
    id, or JOB and JOB~N): inputs, code, arguments, settings, environment, plan and outputs, with the first upstream
    cause of each difference. With --rows, of runs recorded with --records, the rows that differ, 20 of each kind
    (--limit), and exit code 3 if some are not known.
    """
    from govtool.answers.diff import DiffAnswer
    from govtool.api.opening import open as open_version
    from govtool.render.diff import FORMATS, render
    from govtool.render.pictures.answers import PICTURES

    outputs = chosen(format, output, FORMATS)
    most = None if all else (ROWS_SHOWN if limit is None else limit)
    graph = open_version(store, branch=branch)
    answer = graph.diff(
        old, new, policy=policy, today=today, rows=rows, limit=most if rows else None, tolerance=tolerance
    )
    ui.mark("diff")
    drawn = [form for form, _ in outputs if form in PICTURES]
    if drawn and not isinstance(answer, DiffAnswer):
        raise UsageError(f"no {drawn[0]} of two runs", code="usage.unknown-format", hint="-f table, json, csv …")
    for form, file in outputs:
        if isinstance(answer, DiffAnswer):
            ui.show(render(form, answer.head(bound(limit, all, form))), file)
        else:
            _show_runs(ui, answer, form, file, explain=explain)
    if strict and not isinstance(answer, DiffAnswer) and answer.result.not_comparable:
        return EXIT_EVIDENCE
    if exit_code and answer.differs:
        return EXIT_FINDINGS
    unknown = not isinstance(answer, DiffAnswer) and answer.row_diff is not None and not answer.row_diff.is_complete
    return EXIT_EVIDENCE if unknown else EXIT_OK


def _show_runs(ui: Ui, answer: RunDiffAnswer, form: str, file: Path | None, *, explain: bool) -> None:
    """Show two runs compared, and below it the rows that differ, if they were requested."""
    from govtool.render.row_diff import row_prose, rows_as_lines
    from govtool.render.runs import render_run_diff

    found = answer.row_diff
    if found is None or form == "json":
        ui.show(render_run_diff(form, answer, explain=explain), file, private=found is not None)
    elif form != "table" or file is not None:
        ui.show(rows_as_lines(form, answer, explain=explain), file, private=True)
    else:
        ui.show(render_run_diff(form, answer, explain=explain))
        ui.show(row_prose(found))
