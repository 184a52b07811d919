"""``govtool verify``: whether data still is what was recorded."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK


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
    at: AtOption = None,
    branch: BranchOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    store: StoreOption = None,
) -> int:
    """Whether data still is what was recorded. Exit code 1 if not.

      govtool verify data/orders
      govtool verify s3://lake/orders --name sales.orders --format json

    What was recorded is what govtool record tied to the data, and what runs say they left. States: match, data-changed
    (without provenance), data-missing (provenance without data), no-provenance.
    """
    from govtool.app.project import commit_at, read_store
    from govtool.app.verify import MATCH, verify_data
    from govtool.render.snapshot import FORMATS, render_verified

    outputs = chosen(format, output, FORMATS)
    opened = read_store(store)
    with ui.progressing("reading data") as progress:
        result = verify_data(opened, commit_at(opened, at, branch), place, name, progress)
    for form, file in outputs:
        ui.show(render_verified(form, result, opened.uri), file)
    return EXIT_OK if result.state == MATCH else EXIT_FINDINGS
