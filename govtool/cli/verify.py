"""``govtool verify``: whether data still is what was recorded."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui
from govtool.errors import EXIT_EVIDENCE, EXIT_FINDINGS, EXIT_OK


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

    What was recorded is what govtool snapshot tied to the data, and what runs say they left. States: match, rows-match
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
