"""``govtool show``: one commit, one run, or where a version of a dataset comes from."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui


def show(
    ui: Ui,
    ref: Annotated[
        str,
        typer.Argument(
            metavar="REF|RUN|DATASET@VERSION",
            help="A commit: HEAD~1, a number, an id, a tag or a date. A run: its id, or JOB or JOB~1. A version of a "
            "dataset: orders@3, orders@DIGEST, orders@RUN, orders@latest, orders@2026-11-20.",
        ),
    ] = "HEAD",
    at: AtOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """One commit, one run, or everything that a version of a dataset was made of.

      govtool show
      govtool show lake/orders@2026-11-20 --format json
      govtool show lake/orders@latest --at 2026-11-01

    A commit: what it read and what is live in it. A run: what it read and wrote, with which software and settings. A
    version: the runs and versions that led to it, the nearest first. --at answers from what was known at a commit.
    """
    from govtool.answers.commits import CommitAnswer
    from govtool.answers.runs import RunAnswer
    from govtool.api.opening import open as open_version
    from govtool.render.commits import FORMATS, render_commit
    from govtool.render.runs import render_run, render_version

    outputs = chosen(format, output, FORMATS)
    answer = open_version(store, ref=at, branch=branch).show(None if ref == "HEAD" else ref)
    for form, file in outputs:
        if isinstance(answer, CommitAnswer):
            ui.show(render_commit(form, answer), file)
        elif isinstance(answer, RunAnswer):
            ui.show(render_run(form, answer), file)
        else:
            ui.show(render_version(form, answer), file)
