"""``govtool store anchor``: what to remember about the store."""

from __future__ import annotations

from govtool.cli.options import BranchOption, StoreOption
from govtool.cli.ui import Ui


def store_anchor(ui: Ui, branch: BranchOption = None, store: StoreOption = None) -> None:
    """Print one line to keep where the store's writers cannot change it, for a later fsck to compare with.

    govtool store anchor > anchor.txt
    govtool store anchor --branch redesign
    """
    from govtool.app.project.project import existing_branch, open_store
    from govtool.app.upkeep.store import anchor_text

    opened = open_store(store)
    ui.write([anchor_text(opened, existing_branch(opened, branch))])
