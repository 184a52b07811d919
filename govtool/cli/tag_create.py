"""``govtool tag create``: name a commit."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.options import AuthorOption, StoreOption
from govtool.cli.ui import Ui
from govtool.render.text import short


def tag_create(
    ui: Ui,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")],
    ref: Annotated[
        str | None, typer.Argument(metavar="[REF]", help="The commit to tag. Default: HEAD of main.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Move a tag of that name.")] = False,
    author: AuthorOption = None,
    store: StoreOption = None,
) -> None:
    """Name a commit, for --at and diff.

    govtool tag create audited-2026
    govtool tag create v1.0 HEAD~3 --force
    """
    from govtool.app.project.project import open_store
    from govtool.app.versions.branches import create_tag

    tag = create_tag(open_store(store), name, ref, author, replace=force)
    ui.note(f"tag {tag.name} is commit {tag.commit.seq} ({short(tag.commit.id)})")
