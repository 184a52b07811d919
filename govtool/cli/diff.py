"""``govtool diff``: what changed between two versions, or why two runs differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.formats import OutputFile, chosen
from govtool.cli.graph import bound
from govtool.cli.options import AllOption, BranchOption, FormatOption, LimitOption, OutputOption, StoreOption
from govtool.cli.ui import Ui
from govtool.errors import EXIT_EVIDENCE, EXIT_FINDINGS, EXIT_OK

if TYPE_CHECKING:
    from govtool.model.run import Run
    from govtool.store import Commit, Reader


def diff(
    ui: Ui,
    old: Annotated[
        str, typer.Argument(metavar="[A]", help="From: a branch, HEAD~1, a tag, a date …, or a run.")
    ] = "HEAD~1",
    new: Annotated[str, typer.Argument(metavar="[B]", help="To: likewise.")] = "HEAD",
    strict: Annotated[
        bool, typer.Option("--strict", help="Of runs: exit with 3 if a run does not tell what is to be compared.")
    ] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if anything differs.")] = False,
    limit: LimitOption = None,
    all: AllOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """What changed between two versions, or why two runs of a job differ.

      govtool diff v1.0 main --exit-code --format markdown
      govtool diff nightly~1 nightly

    Of versions: datasets, columns, edges, and the statements behind it; statements that only moved within their file
    change nothing. Of runs (an id, or JOB and JOB~N): inputs, code, plan, settings, environment and outputs, with the
    first upstream cause of each difference. Formats: table, plain, json, jsonl, csv, markdown.
    """
    from govtool.app.diff import diff_commits
    from govtool.app.project import read_store
    from govtool.app.runs import run_or_commit
    from govtool.model.run import Run
    from govtool.render.diff import FORMATS, render

    outputs = chosen(format, output, FORMATS)
    opened = read_store(store)
    before = run_or_commit(opened, old, branch)
    after = run_or_commit(opened, new, branch)
    if isinstance(before, Run) or isinstance(after, Run):
        return _runs(ui, opened, before, after, branch, outputs, strict=strict, exit_code=exit_code)
    ui.mark("open the store")
    result = diff_commits(opened, before, after)
    ui.mark("diff")
    for form, file in outputs:
        ui.show(render(form, result, before, after, opened.uri, bound(limit, all, form)), file)
    return EXIT_FINDINGS if exit_code and result.changes else EXIT_OK


def _runs(
    ui: Ui,
    store: Reader,
    before: Run | Commit,
    after: Run | Commit,
    branch: str | None,
    outputs: list[OutputFile],
    *,
    strict: bool,
    exit_code: bool,
) -> int:
    from govtool.app.project import at_commit, commit_at
    from govtool.app.runs import compare_runs
    from govtool.render.runs import render_run_diff

    commit = commit_at(store, None, branch)
    result = compare_runs(store, commit, before, after)
    for form, file in outputs:
        ui.show(render_run_diff(form, result, at_commit(store, commit)), file)
    if strict and result.not_comparable:
        return EXIT_EVIDENCE
    return EXIT_FINDINGS if exit_code and result.changes else EXIT_OK
