"""``govtool tag``: names for commits."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.options import AuthorOption, FormatOption, OutputOption, StoreOption
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


def tag_list(ui: Ui, format: FormatOption = None, output: OutputOption = None, store: StoreOption = None) -> None:
    """The tags of the store and what they name.

    govtool tag list
    govtool tag list --format csv
    """
    from govtool.app.project.project import open_store
    from govtool.app.versions.branches import list_tags
    from govtool.render.branches import FORMATS, render

    outputs = chosen(format, output, FORMATS)
    opened = open_store(store)
    found = list_tags(opened)
    for form, file in outputs:
        ui.show(render(form, "tag", found, opened.uri), file)


def tag_delete(
    ui: Ui,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tag.")],
    store: StoreOption = None,
) -> None:
    """Take a name away; its commit stays.

    govtool tag delete v1.0
    govtool tag delete audited-2026 --store s3://bucket/lineage
    """
    from govtool.app.project.project import open_store
    from govtool.app.versions.branches import delete_tag

    delete_tag(open_store(store), name)
    ui.note(f"tag {name} is gone")
