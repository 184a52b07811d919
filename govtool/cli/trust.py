"""``govtool trust``: agree to the store that a checkout's settings name."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.ui import Ui


def trust(ui: Ui, revoke: Annotated[bool, typer.Option("--revoke", help="Take the agreement back.")] = False) -> None:
    """Allow writing to the store that this project's govtool.toml names, outside of its folder.

      govtool trust
      govtool trust --revoke

    Without it, or --store, or GOVTOOL_STORE, nothing is sent to a store that a repository chose. The agreement holds
    for this file and this address; another address needs another.
    """
    from govtool.app.project.trust import trust as agree
    from govtool.render.text import printable

    chosen = agree(revoke=revoke)
    verb = "no longer trusted" if revoke else "trusted"
    ui.show([printable(f"{verb}: {chosen.store}, as {chosen.file} names it")], None)
