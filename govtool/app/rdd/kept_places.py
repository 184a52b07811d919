"""Records at one place of a program, by the positions that a run kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from govtool.app.rdd.opened_positions import Ids
    from govtool.records.trace.segment import Exactness

_ORDER: tuple[Exactness, ...] = ("exact", "superset", "coarse", "incomplete")


@dataclass(frozen=True, slots=True)
class KeptPlace:
    """Records at one place.

    Attributes:
        node: The operator; ``RESULT`` for lines of the result.
        ids: Their positions, sorted.
        exactness: How close they keep to the trace.
        why: Why they are not exact.
    """

    node: int
    ids: Ids
    exactness: Exactness = "exact"
    why: str = ""


def graded(found: KeptPlace, before: KeptPlace) -> KeptPlace:
    """What was reached from a place is no more exact than the place."""
    if _ORDER.index(before.exactness) > _ORDER.index(found.exactness):
        return replace(found, exactness=before.exactness, why=before.why)
    return found


def merged(places: Iterable[KeptPlace]) -> tuple[KeptPlace, ...]:
    """One place for each operator."""
    import numpy as np

    found: dict[int, KeptPlace] = {}
    for place in places:
        known = found.get(place.node)
        if known is not None:
            place = graded(replace(place, ids=np.union1d(known.ids, place.ids)), known)
        found[place.node] = place
    return tuple(found[node] for node in sorted(found))


def node_of(place: KeptPlace) -> int:
    """The operator of a place."""
    return place.node
