"""A statement that was not fully understood."""

from __future__ import annotations

from typing import NamedTuple

from govtool.model.diagnostic import Diagnostic


class Shortfall(NamedTuple):
    """A statement that was not fully understood, and the worst of why."""

    status: str
    """``partial`` or ``opaque``."""
    diagnostic: Diagnostic
    runs: int
    text: str
    """As written; empty where the script was not read again."""
    dialect: str
    words: tuple[str, ...] = ()
    """Of a statement that was not understood at all: its words, if it can reach nothing but what it names."""
