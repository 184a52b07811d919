"""``govtool help``: the help of a command, or of the options that many commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.shared.command import as_command
from govtool.cli.shared.common import selects
from govtool.cli.shared.options import IngestBundle, ListOptions, PolicyOption, TodayOption
from govtool.cli.shared.ui import Ui

_LIST, _INGEST = ListOptions(), IngestBundle()


def help_command(
    ui: Ui,
    topic: Annotated[
        list[str] | None, typer.Argument(metavar="[options|COMMAND…]", help="A command, or what many commands share.")
    ] = None,
) -> int:
    """Show the help of a command, or explain the options that many commands share.

    govtool help options
    govtool help ingest sql
    """
    from govtool.cli.main import main
    from govtool.cli.shared.help import shared_options_help

    if topic != ["options"]:
        return main([*(topic or ()), "--help"])
    shared = [*as_command("options", _listing).params, *as_command("options", _ingesting).params]
    ui.write(shared_options_help(shared).splitlines())
    return 0


@selects
def _listing(ui: Ui, policy: PolicyOption = None, today: TodayOption = None, options: ListOptions = _LIST) -> None:
    """Take the options of questions."""


def _ingesting(ui: Ui, options: IngestBundle = _INGEST) -> None:
    """Take the options of ingests."""
