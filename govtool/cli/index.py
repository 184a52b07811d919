"""``govtool index``: build the local index of a commit ahead of time."""

from __future__ import annotations

from govtool.cli.graph import open_graph
from govtool.cli.options import AtOption, BranchOption, StoreOption
from govtool.cli.ui import Ui
from govtool.render.text import count, short


def index(ui: Ui, at: AtOption = None, branch: BranchOption = None, store: StoreOption = None) -> None:
    """Build the local index of a commit ahead of time.

      govtool index
      govtool index --at HEAD~1

    The first question builds it otherwise. It lives in GOVTOOL_CACHE, else in ~/.cache/govtool.
    """
    graph = open_graph(ui, store, at, branch)
    commit = graph.version.commit
    ui.note(
        f"commit {commit.seq} ({short(commit.id)}): {count(graph.index.dataset_count, 'dataset')}, "
        f"{count(graph.index.node_count - graph.index.dataset_count, 'column')}, "
        f"{count(graph.index.edge_count, 'edge')}"
    )
