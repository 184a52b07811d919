"""One dataset that is the same as another: renamed, cloned, or known by two names."""

from __future__ import annotations

from collections.abc import Iterable

from govtool.model.derivation import HIDDEN, ROWS, ColumnRef, Edge
from govtool.model.kinds import EdgeKind


def copied(source: str, columns: Iterable[str], *, complete: bool) -> tuple[Edge, ...]:
    """The edges of a copy: every column, under any name, and the rows.

    Args:
        source: The id of the other dataset.
        columns: Paths of the columns that are known of it.
        complete: Whether these are all; else others, that are not known, are the same too.
    """
    edges = [Edge(ColumnRef(source, path), path, EdgeKind.IDENTITY, star=True) for path in columns]
    edges.append(Edge(ColumnRef(source, ROWS), ROWS, EdgeKind.READ))
    if not complete:
        edges.append(Edge(ColumnRef(source, HIDDEN), HIDDEN, EdgeKind.OPAQUE, reason="star-unresolved"))
    return tuple(edges)
