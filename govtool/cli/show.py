"""``govtool show``: one commit, one run, or where a version of a dataset comes from."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.options import BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui


def show(
    ui: Ui,
    ref: Annotated[
        str,
        typer.Argument(
            metavar="REF|RUN|DATASET@VERSION",
            help="A commit: HEAD~1, a number, an id, a tag or a date. A run: its id, or JOB or JOB~1. A version of a "
            "dataset: orders@3, orders@DIGEST, orders@RUN, orders@2026-11-20.",
        ),
    ] = "HEAD",
    format: FormatOption = None,
    output: OutputOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """One commit, one run, or everything that a version of a dataset was made of.

      govtool show
      govtool show lake/orders@2026-11-20 --format json

    A commit: what it read and what is live in it. A run: what it read and wrote, with which software and settings. A
    version: the runs and versions that led to it, the nearest first.
    """
    from govtool.app.project import at_commit, commit_at, read_store
    from govtool.app.runs import find_version, read_history, run_or_commit, version_names
    from govtool.model.run import Run
    from govtool.render.commits import FORMATS, render_commit
    from govtool.render.runs import render_run, render_version

    outputs = chosen(format, output, FORMATS)
    opened = read_store(store)
    dataset, separator, wanted = ref.rpartition("@")
    if separator and dataset:
        commit = commit_at(opened, None, branch)
        history = read_history(opened, commit)
        version = find_version(history, dataset, wanted)
        made_of = history.ancestors(version)
        names = version_names(history, made_of)
        for form, file in outputs:
            ui.show(render_version(form, version, made_of, history, names, at_commit(opened, commit)), file)
        return
    found = run_or_commit(opened, ref, branch)
    if isinstance(found, Run):
        commit = commit_at(opened, None, branch)
        history = read_history(opened, commit)
        readings = tuple(history.readings(found))
        names = version_names(history, (r.version for r in readings if r.version is not None))
        for form, file in outputs:
            ui.show(render_run(form, found, readings, names, at_commit(opened, commit)), file)
        return
    fragments = opened.fragments(found)
    for form, file in outputs:
        ui.show(render_commit(form, found, fragments, opened.uri), file)
