"""``govtool index``: build the local index of a commit ahead of time."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.shared.complete import complete_engine
from govtool.cli.shared.graph_arguments import opened_graph, records_needed
from govtool.cli.shared.options import AtOption, BranchOption, MasterOption, StoreOption
from govtool.cli.shared.ui import Ui
from govtool.errors import UsageError
from govtool.render.layout.text import count, short, size


def index(
    ui: Ui,
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="With --records: a run, an application or JOB~1.")
    ] = None,
    records: Annotated[
        bool, typer.Option("--records", help="Index the keys of a recorded run's inputs, for traces of rows.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="With --records: remove these indexes of keys.")] = False,
    publish: Annotated[
        bool, typer.Option("--publish", help="Also put the index into the store, for readers without one.")
    ] = False,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="local|spark",
            autocompletion=complete_engine,
            help="local, or spark for graphs larger than a machine's memory.",
        ),
    ] = "local",
    master: MasterOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Build the local index of a commit ahead of time.

      govtool index
      govtool index --publish --store s3://bucket/lineage
      govtool index --engine spark --master spark://host:7077
      govtool index 'job~1' --records

    Otherwise the first question builds it. It is kept in GOVTOOL_CACHE, else in ~/.cache/govtool. Readers without an
    index of a commit read the published one page by page: run this with --publish after an ingest, for example in CI.
    With --records it indexes the keys of a run's input files, with at most 8 bytes per row and key, once for all
    runs.
    """
    if records or remove or run is not None:
        if engine != "local" or master is not None:
            raise UsageError("--engine and --master are not for keys of records", code="usage.arguments")
        _index_records(ui, run, records, remove, (store, at, branch))
        return
    with opened_graph(ui, store, at, branch) as graph:
        built = graph.index(engine, master)
    ui.mark("open the index")
    commit = built.commit
    ui.note(
        f"commit {commit.seq} ({short(commit.id)}): {count(built.datasets, 'dataset')}, "
        f"{count(built.columns, 'column')}, {count(built.edges, 'edge')}"
    )
    if publish:
        from govtool.app.project.project import open_store
        from govtool.app.versions.published import publish_index

        with ui.progressing("publishing the index") as progress:
            publication = publish_index(open_store(store), commit, graph.snapshot().index, progress)
        what = "published" if publication.created else "published already"
        ui.note(
            f"{what}: {count(publication.pages, 'page')}, {size(publication.size)}; whole {size(publication.whole)}"
        )


def _index_records(
    ui: Ui, run: str | None, records: bool, remove: bool, opened: tuple[str | None, str | None, str | None]
) -> None:
    if run is None or not records:
        raise UsageError(
            "keys are indexed for a run: give both RUN and --records", code="usage.arguments", hint="govtool runs"
        )
    with records_needed(), opened_graph(ui, *opened) as graph, ui.progressing("indexing keys"):
        answers = graph.index_records(run, remove=remove)
    for each in answers:
        if not each.columns:
            ui.note(f"no keys for {each.dataset}: {each.why}")
            continue
        columns = ", ".join(each.columns)
        done = f"{count(each.built, 'file')}{' removed' if remove else ''}, {size(each.bytes)}"
        present = f", {count(each.present, 'file')} indexed before" if each.present else ""
        why = f": {each.why}" if each.why else ""
        ui.note(f"{each.dataset} by {columns}: {done}{present}{why}")
    if not answers:
        ui.note(f"no trace of {run} looks up keys of files")
