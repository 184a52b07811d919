"""``govtool store compact``: drop dead entries from the manifest."""

from __future__ import annotations

from govtool.cli.options import AuthorOption, BranchOption, StoreOption
from govtool.cli.ui import Ui
from govtool.render.text import short


def store_compact(ui: Ui, branch: BranchOption = None, author: AuthorOption = None, store: StoreOption = None) -> None:
    """Rewrite the manifest of a branch without what is dead; an ordinary commit that changes nothing else.

    govtool store compact
    govtool store compact --branch redesign
    """
    from govtool.app.project.project import open_store
    from govtool.app.upkeep.store import compact

    result = compact(open_store(store), branch, author)
    commit = result.commit
    if not result.created:
        ui.note(f"{commit.branch}: nothing is dead, still at commit {commit.seq} ({short(commit.id)})")
        return
    sizes = commit.summary["compacted"]
    outcome = f"{sizes['before']:,} entries became {sizes['after']:,}" if isinstance(sizes, dict) else "compacted"
    ui.note(f"{commit.branch}: commit {commit.seq} ({short(commit.id)}) · {outcome}")
