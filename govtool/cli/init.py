"""``govtool init``: create a store, and write govtool.toml."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.options import StoreOption
from govtool.cli.ui import Ui
from govtool.render.text import count


def init(
    ui: Ui,
    sources: Annotated[
        bool | None,
        typer.Option(
            "--sources/--no-sources",
            help="Write a govtool.toml that lists the sources in this folder. Default: where --store is not given.",
        ),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Create a store, and write a govtool.toml that lists what there is to ingest in this folder.

      govtool init
      govtool init --store /srv/lineage

    Without a place the store is made in .govtool of the working directory. SQL, dbt projects, query logs, event logs
    of Spark, OpenLineage events, PROV documents and databases in files are recognised; govtool ingest reads them.
    """
    from govtool.api.opening import init as create
    from govtool.api.opening import write_sources

    wanted = sources if sources is not None else store is None
    ui.note(f"created a store in {create(store)}")
    written = write_sources(store=store) if wanted else None
    if written is None or not written.sources:
        ui.hint("govtool ingest sql FOLDER --dialect DIALECT")
        return
    ui.note(f"wrote {written.file.name} with {count(len(written.sources), 'source')}:")
    for source in written.sources:
        ui.note(f"  {source.label}")
    ui.hint("govtool ingest" + (" (set each dialect in the file first)" if written.needs_dialect else ""))
