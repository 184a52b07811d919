"""Options of every command, and of every one that selects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from govtool.cli.shared.complete import complete_selector
from govtool.cli.shared.ui import ColorMode, Ui
from govtool.errors import UsageError

COMMON: dict[str, tuple[Any, object]] = {
    "quiet": (
        Annotated[bool, typer.Option("--quiet", "-q", help="Only the answer and errors.")],
        False,
    ),
    "verbose": (
        Annotated[
            int,
            typer.Option("--verbose", "-v", count=True, help="More detail; repeat for more."),
        ],
        0,
    ),
    "progress": (
        Annotated[bool, typer.Option("--progress/--no-progress", help="Progress bars.")],
        True,
    ),
    "color": (
        Annotated[
            ColorMode,
            typer.Option("--color", metavar="auto|always|never", help="Colour the output. auto respects NO_COLOR."),
        ],
        "auto",
    ),
    "timings": (
        Annotated[bool, typer.Option("--timings", help="Show the time of each stage.")],
        False,
    ),
    "debug": (
        Annotated[bool, typer.Option("--debug", help="Show tracebacks.")],
        False,
    ),
}
"""Options of every command: annotation and default by parameter."""


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
    typer.Option("--exclude", metavar="SELECTOR", autocompletion=complete_selector, help="Exclude these. Repeatable."),
]
AllowEmptyOption = Annotated[
    bool, typer.Option("--allow-empty", help="Exit with 0 instead of 2 if nothing is selected.")
]


def selects(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a command that asks about what is selected: it gets the option ``--allow-empty``."""
    function.selects = True  # type: ignore[attr-defined]
    return function


def name_store(ui: Ui, store: str | None) -> None:
    """Note the address that a commit went to, where it is remote."""
    from govtool.app.project.project import remote_store

    if address := remote_store(store):
        ui.note(f"store: {address}")


def refuse(given: Mapping[str, object], what: str, hint: str) -> None:
    """Refuse options that are for something else.

    Args:
        given: Options by their names, with their values.
        what: What they are not for.
        hint: The command to run.

    Raises:
        UsageError: One is given (``usage.arguments``).
    """
    for name in (name for name, value in given.items() if value is not None and value is not False):
        raise UsageError(f"{name} is not for {what}", code="usage.arguments", hint=hint)
