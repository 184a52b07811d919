"""Selectors on the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from govtool.cli.complete import complete_selector

SelectorArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SELECTOR]…",
        autocompletion=complete_selector,
        help="crm.users.email, mart.**, x+, 2+x+1, @x, class:personal, tag:pii, zone:shared, owner:growth, "
        "job:nightly*, changed:main..HEAD, path:models, opaque:, unused:. A space is a union, a comma an intersection.",
    ),
]
ExcludeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude", metavar="SELECTOR", autocompletion=complete_selector, help="Leave these out. Repeatable."
    ),
]
AllowEmptyOption = Annotated[
    bool, typer.Option("--allow-empty", help="Selecting nothing is no mistake: exit with 0 instead of 2.")
]


def selects(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a command that asks about what is selected: it gets the option ``--allow-empty``."""
    function.selects = True  # type: ignore[attr-defined]
    return function
