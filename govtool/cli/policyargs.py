"""The options of commands that know policies."""

from __future__ import annotations

from typing import Annotated

import typer

PolicyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="FILE|DIR|pack:NAME",
        help="Policies instead of those in policies/: files, folders, or a pack: starter, gdpr, hipaa, pci.",
    ),
]
TodayOption = Annotated[
    str | None,
    typer.Option("--today", metavar="DATE", help="Evaluate expiry dates as of this day (default: today): 2026-11-21."),
]
