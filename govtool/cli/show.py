"""``govtool show``: one commit."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.options import BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui


def show(
    ui: Ui,
    ref: Annotated[str, typer.Argument(metavar="REF", help="HEAD~1, a number, an id, a tag or a date.")] = "HEAD",
    format: FormatOption = None,
    output: OutputOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """One commit: what it read and what is live in it.

    govtool show
    govtool show HEAD~1 --format json
    """
    from govtool.app.project import commit_at, read_store
    from govtool.render.commits import FORMATS, render_commit

    outputs = chosen(format, output, FORMATS)
    opened = read_store(store)
    commit = commit_at(opened, None if ref == "HEAD" else ref, branch)
    fragments = opened.fragments(commit)
    for form, file in outputs:
        ui.show(render_commit(form, commit, fragments, opened.uri), file)
