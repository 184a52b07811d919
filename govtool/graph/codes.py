"""The numbers that the arrays of an index are written in. Part of its format."""

from __future__ import annotations

KIND_MASK = 15
"""The bits of an edge's tag that hold its ``EdgeKind``."""
STAR_BIT = 16
"""In an edge's tag: reached through ``*`` only."""
MASKING_BIT = 32
"""In an edge's tag: the value is masked."""
TAGS = 64
"""Tags are below this."""

ELIDED = 1
"""Dataset flag: temporary, dropped, or an ended generation: answers pass through it."""
HIDDEN = 2
"""Dataset flag: no short name leads to it."""

REPLACE, APPEND, UPDATE, DELETE, DECLARE, DROP, RENAME = range(7)
MODES = ("replace", "append", "update", "delete", "declare", "drop", "rename")
"""Modes of derivations by code."""

PARTITION = "partition"
"""The kind of the statement of a derivation that makes rows of one table those of its parent."""

DEFINING = frozenset({"create_table_as", "create_view", "create_materialized_view"})
"""The kinds of statements whose query decides the columns."""

PARTIAL, WHOLE, ROW_MAKER = range(3)
"""The share of a derivation in its dataset: some columns, all of it, or columns and rows of it."""
