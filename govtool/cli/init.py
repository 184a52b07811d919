"""``govtool init``: create a store."""

from __future__ import annotations

from govtool.cli.options import StoreOption
from govtool.cli.ui import Ui


def init(ui: Ui, store: StoreOption = None) -> None:
    """Create a store.

      govtool init
      govtool init --store /srv/lineage

    Without a place it is made in .govtool of the working directory.
    """
    from govtool.api.opening import init as create

    ui.note(f"created a store in {create(store)}")
    ui.hint("govtool ingest sql FOLDER --dialect DIALECT")
