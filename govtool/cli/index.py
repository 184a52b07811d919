"""``govtool index``: build the local index of a commit ahead of time."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.graph import open_graph
from govtool.cli.options import AtOption, BranchOption, StoreOption
from govtool.cli.ui import Ui
from govtool.render.text import count, short, size


def index(
    ui: Ui,
    publish: Annotated[
        bool, typer.Option("--publish", help="Put it into the store as well, for readers without one.")
    ] = False,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Build the local index of a commit ahead of time.

      govtool index
      govtool index --publish --store s3://bucket/lineage

    The first question builds it otherwise. It lives in GOVTOOL_CACHE, else in ~/.cache/govtool. Whoever has no index
    of a commit asks the published one page by page: run this with --publish after an ingest, as in CI.
    """
    graph = open_graph(ui, store, at, branch)
    graph.index.resident()
    commit = graph.version.commit
    ui.note(
        f"commit {commit.seq} ({short(commit.id)}): {count(graph.index.dataset_count, 'dataset')}, "
        f"{count(graph.index.node_count - graph.index.dataset_count, 'column')}, "
        f"{count(graph.index.edge_count, 'edge')}"
    )
    if publish:
        from govtool.app.project import open_store
        from govtool.app.published import publish_index

        with ui.progressing("publishing the index") as progress:
            publication = publish_index(open_store(store), commit, graph.index, progress)
        what = "published" if publication.created else "published already"
        ui.note(
            f"{what}: {count(publication.pages, 'page')}, {size(publication.size)}; whole {size(publication.whole)}"
        )
