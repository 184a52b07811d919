"""Shell completion of dialects, datasets and columns. Never fails, never writes: at worst it offers nothing."""

from __future__ import annotations

import contextlib

import typer


def complete_dialect(incomplete: str) -> list[str]:
    """Dialects that start with what was typed."""
    with contextlib.suppress(Exception):
        from govtool.app.sql import dialect_names

        return [name for name in dialect_names() if name.startswith(incomplete.lower())]
    return []


def complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    """Datasets and columns of the newest commit, if its index is in the cache: a key press is no time to build one."""
    with contextlib.suppress(Exception):
        from govtool.app.completion import complete_names

        return complete_names(ctx.params.get("store"), incomplete)
    return []
