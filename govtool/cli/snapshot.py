"""``govtool snapshot`` and ``verify``: versions of datasets, recorded and checked."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.shared.common import name_store
from govtool.cli.shared.formats import chosen
from govtool.cli.shared.options import (
    AtOption,
    AuthorOption,
    BranchOption,
    FormatOption,
    MessageOption,
    OutputOption,
    StoreOption,
)
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_EVIDENCE, EXIT_FINDINGS, EXIT_OK
from govtool.render.layout.table import Table


def snapshot(
    ui: Ui,
    place: Annotated[str, typer.Argument(metavar="PATH", help="A file, a folder, a Delta or Iceberg table, s3://…")],
    run: Annotated[str, typer.Option("--run", metavar="RUN", help="The run or software that made it.")],
    made_of: Annotated[
        list[str] | None,
        typer.Option("--derived-from", metavar="PATH", help="Data from which it was made. Repeatable."),
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
    """Record a version of a dataset in one commit: its content, its run, and the data from which it was made.

      govtool snapshot data/orders --run nightly-2026-11-20 --derived-from data/raw
      govtool snapshot s3://lake/orders --run app-17 --name sales.orders

    Take snapshots of that data first: an ancestor without a snapshot of its present content is unknown.
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
    name_store(ui, store)


snapshot.spellings = {"--from": "--derived-from", "--rows": "--row-digest"}  # type: ignore[attr-defined]  # former names


def verify(
    ui: Ui,
    place: Annotated[
        str,
        typer.Argument(
            metavar="PATH|DATASET",
            help="A file, a folder, a Delta or Iceberg table, s3://…, or a dataset of the graph.",
        ),
    ],
    name: Annotated[str | None, typer.Option("--name", metavar="DATASET", help="Its name in the graph.")] = None,
    rows: Annotated[
        bool, typer.Option("--rows", help="Where files differ, compare the rows, whatever their order and files.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 3 if the files of a table cannot be compared with its log.")
    ] = False,
    at: AtOption = None,
    branch: BranchOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    store: StoreOption = None,
) -> int:
    """Check that data still is what was recorded. Exit code 1 if not.

      govtool verify data/orders
      govtool verify s3://lake/orders --name sales.orders --format json

    The data is compared with govtool snapshot, and with the outputs that runs recorded. States: match, rows-match
    (with --rows: other files, the same rows), data-changed (without provenance), data-missing (provenance without
    data), no-provenance.
    """
    from govtool.api.opening import open as open_version
    from govtool.render.snapshot import FORMATS, render_verified

    outputs = chosen(format, output, FORMATS)
    with ui.progressing("reading data") as progress:
        answer = open_version(store, ref=at, branch=branch).verify(place, name=name, rows=rows, progress=progress)
    for form, file in outputs:
        ui.show(render_verified(form, answer), file)
    if strict and answer.matches and not answer.compared:
        return EXIT_EVIDENCE
    return EXIT_OK if answer.matches else EXIT_FINDINGS
