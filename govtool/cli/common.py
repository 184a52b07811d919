"""Options of every command."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from govtool.cli.ui import ColorMode

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
        Annotated[ColorMode, typer.Option("--color", metavar="auto|always|never", help="Colours; NO_COLOR counts.")],
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
