"""Shell completion of dialects, datasets and columns. Never fails, never writes: at worst it offers nothing."""

from __future__ import annotations

import contextlib

_MOST = 200
"""More candidates than this help nobody."""


def complete_dialect(incomplete: str) -> list[str]:
    """Dialects that start with what was typed."""
    with contextlib.suppress(Exception):
        from govtool.app.sql import dialect_names

        return [name for name in dialect_names() if name.startswith(incomplete.lower())]
    return []
