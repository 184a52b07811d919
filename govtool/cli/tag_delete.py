"""``govtool tag delete``: take a name away."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.options import StoreOption
from govtool.cli.ui import Ui


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
