"""Numbers as people read them: counts with their noun, shares in percent."""

from __future__ import annotations


def count(number: int, singular: str, plural: str | None = None) -> str:
    """``1 column``, ``2 columns``, ``1,234 columns``."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def percent(part: int, whole: int) -> str:
    """A share with one decimal, never rounded up to 100.0%: ``96.4%``; ``n/a`` of nothing."""
    if whole == 0:
        return "n/a"
    return f"{min(100 * part / whole, 99.9 if part < whole else 100.0):.1f}%"
