"""Columns that an executor gives, as arrays of node ids or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np  # noqa: TID253 - arrays of node ids; only what annotates imports this

from govtool.arrays.sets import Array

NONE = -1
"""Instead of a node: there is none."""


def arrays_of(columns: Sequence[Any]) -> list[Array]:
    """Columns of node ids or numbers as int64 arrays; NULL is ``NONE``."""
    found = []
    for column in columns:
        chunk = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        found.append(chunk.fill_null(NONE).to_numpy(zero_copy_only=False).astype(np.int64, copy=False))
    return found
