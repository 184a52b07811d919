"""``govtool store gc``: remove what nothing refers to."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.options import FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui


def store_gc(
    ui: Ui,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be deleted, and delete nothing.")] = False,
    grace: Annotated[
        float,
        typer.Option(
            "--grace", metavar="HOURS", min=0, help="Keep younger objects: they may belong to commits under way."
        ),
    ] = 24.0,
    format: FormatOption = None,
    output: OutputOption = None,
    store: StoreOption = None,
) -> None:
    """Remove what killed and beaten writers left behind. No commit and nothing that one refers to ever goes.

    govtool store gc --dry-run
    govtool store gc --grace 48
    """
    from govtool.app.project.project import open_store
    from govtool.app.upkeep.store import collect
    from govtool.render.upkeep import FORMATS, render_gc

    outputs = chosen(format, output, FORMATS)
    opened = open_store(store)
    with ui.progressing("removing") as progress:
        result = collect(opened, hours=grace, dry_run=dry_run, progress=progress)
    for form, file in outputs:
        ui.show(render_gc(form, result, opened.uri, dry_run=dry_run), file)
