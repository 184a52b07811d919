"""The kinds of edges of the provenance graph, in OpenLineage's vocabulary.

Values are stable: they are written to fragments and to the index.
"""

from __future__ import annotations

from enum import IntEnum


class EdgeKind(IntEnum):
    """The way in which a source reaches a target. See docs/primer.md."""

    IDENTITY = 0
    TRANSFORMATION = 1
    AGGREGATION = 2
    CONDITIONAL = 3
    WINDOW = 4
    JOIN = 5
    FILTER = 6
    GROUP_BY = 7
    SORT = 8
    DISTINCT = 9
    SET_OPERATION = 10
    UNION_ALL = 11
    READ = 12
    OPAQUE = 13

    @property
    def label(self) -> str:
        """The name as it is written in answers: ``group_by``."""
        return _LABELS[self]


_LABELS = tuple(kind.name.lower() for kind in EdgeKind)  # the name of a member takes long to look up

VALUE_FLOW = frozenset({EdgeKind.IDENTITY, EdgeKind.TRANSFORMATION, EdgeKind.AGGREGATION})
"""Column to column: the value itself flows (OpenLineage DIRECT)."""

STEERING = frozenset({EdgeKind.CONDITIONAL, EdgeKind.WINDOW})
"""Column to column: steers a value (OpenLineage INDIRECT, LineageX contributed)."""

CONTRIBUTED = VALUE_FLOW | STEERING
"""LineageX's contributed columns."""

ROW_SET = frozenset(EdgeKind(k) for k in range(EdgeKind.JOIN, EdgeKind.UNION_ALL + 1))
"""Column to the row set of a dataset (LineageX referenced)."""

KIND_BY_LABEL = {kind.label: kind for kind in EdgeKind}
"""``{"identity": EdgeKind.IDENTITY, …}``"""
