"""Exactness of a trace, and why it is not exact."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_ORDER = ("exact", "superset", "coarse")


@dataclass(frozen=True, slots=True)
class Note:
    """A reason for which a trace may hold more records than the provenance.

    Attributes:
        exactness: ``superset``: these and maybe others; ``coarse``: a whole input; ``break``: not comparable with
            what was recorded.
        reason: One sentence.
    """

    exactness: str
    reason: str


def worst(notes: Iterable[Note]) -> str:
    """Return the exactness of a trace with these notes."""
    found = {note.exactness for note in notes}
    if "break" in found:
        return "break"
    return max(found | {"exact"}, key=_ORDER.index)
