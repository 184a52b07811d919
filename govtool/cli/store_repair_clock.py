"""``govtool store repair-clock``: commits of a clock in the future."""

from __future__ import annotations

from govtool.cli.options import AuthorOption, BranchOption, StoreOption
from govtool.cli.ui import Ui
from govtool.render.text import short


def store_repair_clock(
    ui: Ui, branch: BranchOption = None, author: AuthorOption = None, store: StoreOption = None
) -> None:
    """Take over what commits of a clock in the future say, so that others can commit again.

      govtool store repair-clock
      govtool store repair-clock --branch redesign

    A commit whose parent is the last one of a possible time; the later slots stay, and are shown by their numbers.
    This machine's clock must agree with the store's.
    """
    from govtool.app.project.project import open_store
    from govtool.app.upkeep.store import repair_clock

    result = repair_clock(open_store(store), branch, author)
    commit = result.commit
    if result.created:
        ui.note(f"{commit.branch}: commit {commit.seq} ({short(commit.id)}) · {commit.message}")
    else:
        ui.note(f"{commit.branch}: no commit is of the future, still at commit {commit.seq} ({short(commit.id)})")
