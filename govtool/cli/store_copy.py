"""``govtool store copy``: copy the store to another place."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.options import StoreOption
from govtool.cli.ui import Ui
from govtool.render.table import Table


def store_copy(
    ui: Ui,
    target: Annotated[str, typer.Argument(metavar="URI", help="Target: a path or s3://bucket/prefix.")],
    store: StoreOption = None,
) -> None:
    """Copy the whole store, or bring an older copy up to date; what is copied is verified.

    govtool store copy s3://bucket/lineage
    govtool store copy backup/ --store s3://bucket/lineage
    """
    from govtool.app.project.project import open_store
    from govtool.app.upkeep.store import copy
    from govtool.render.upkeep import copy_sentence

    with ui.progressing("copying") as progress:
        result, uri = copy(open_store(store), target, progress=progress)
    ui.table(Table(columns=(), rows=(), summary=copy_sentence(result, uri)))
