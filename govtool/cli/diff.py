"""``govtool diff``: what changed between two versions."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.graph import bound
from govtool.cli.options import AllOption, BranchOption, FormatOption, LimitOption, OutputOption, StoreOption
from govtool.cli.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK


def diff(
    ui: Ui,
    old: Annotated[str, typer.Argument(metavar="[A]", help="From: a branch, HEAD~1, a tag, a date …")] = "HEAD~1",
    new: Annotated[str, typer.Argument(metavar="[B]", help="To: likewise.")] = "HEAD",
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if anything differs.")] = False,
    limit: LimitOption = None,
    all: AllOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """What changed between two versions: datasets, columns, edges, and the statements behind it.

      govtool diff
      govtool diff v1.0 main --exit-code --format markdown

    Statements that only moved within their file change nothing. Formats: table, plain, json, jsonl, csv, markdown.
    """
    from govtool.app.diff import diff_commits
    from govtool.app.project import commit_at, read_store
    from govtool.render.diff import FORMATS, render

    outputs = chosen(format, output, FORMATS)
    opened = read_store(store)
    before, after = commit_at(opened, old, branch), commit_at(opened, new, branch)
    ui.mark("open the store")
    result = diff_commits(opened, before, after)
    ui.mark("diff")
    for form, file in outputs:
        ui.show(render(form, result, before, after, opened.uri, bound(limit, all, form)), file)
    return EXIT_FINDINGS if exit_code and result.changes else EXIT_OK
