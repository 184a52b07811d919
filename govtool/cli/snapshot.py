"""``govtool snapshot``: tie data to its provenance."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.options import AuthorOption, BranchOption, MessageOption, StoreOption
from govtool.cli.ui import Ui
from govtool.render.table import Table


def snapshot(
    ui: Ui,
    place: Annotated[str, typer.Argument(metavar="PATH", help="A file, a folder, a Delta or Iceberg table, s3://…")],
    run: Annotated[str, typer.Option("--run", metavar="RUN", help="The run or software that made it.")],
    made_of: Annotated[
        list[str] | None,
        typer.Option("--derived-from", metavar="PATH", help="Data that it was made of. Repeatable."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="DATASET", help="Its name in the graph.")] = None,
    rows: Annotated[
        bool, typer.Option("--row-digest", help="Also record a digest of its rows, whatever their order and files.")
    ] = False,
    message: MessageOption = None,
    author: AuthorOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Record a version of a dataset: its content, the run that made it and what it was made of, in one commit.

      govtool snapshot data/orders --run nightly-2026-11-20 --derived-from data/raw
      govtool snapshot s3://lake/orders --run app-17 --name sales.orders

    Take the snapshots of what it was made of first: an ancestor without a snapshot of its present content is unknown.
    """
    from govtool.app.datasets.snapshot import take_snapshot
    from govtool.app.project.project import open_store
    from govtool.render.snapshot import snapshot_sentence

    with ui.progressing("reading data") as progress:
        result, made = take_snapshot(
            open_store(store),
            place,
            run=run,
            name=name,
            made_of=made_of or (),
            rows=rows,
            branch=branch,
            message=message,
            author=author,
            progress=progress,
        )
    for ancestor in made.ancestors:
        if ancestor.commit is None:
            ui.note(f"warning: nothing recorded {ancestor.dataset} as it is now")
    ui.table(Table(columns=(), rows=(), summary=snapshot_sentence(result, made)))


snapshot.spellings = {"--from": "--derived-from", "--rows": "--row-digest"}  # type: ignore[attr-defined]  # former names
