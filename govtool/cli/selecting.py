"""Selectors on the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.complete import complete_selector

SelectorArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SELECTOR]…",
        autocompletion=complete_selector,
        help="crm.users.email, mart.**, x+, 2+x+1, @x, class:personal, tag:pii, zone:shared, owner:growth, "
        "job:nightly_*, changed:main..HEAD, opaque:, unused:. A space is a union, a comma an intersection.",
    ),
]
ExcludeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude", metavar="SELECTOR", autocompletion=complete_selector, help="Leave these out. Repeatable."
    ),
]
