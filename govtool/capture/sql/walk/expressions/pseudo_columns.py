"""Columns that a dialect defines itself: no schema lists them."""

from __future__ import annotations

from typing import Final

PSEUDO_COLUMNS: Final = frozenset(
    [
        "rowid",
        "_rowid_",
        "ctid",
        "xmin",
        "xmax",
        "oid",
        "tableoid",
        "_partitiontime",
        "_partitiondate",
        "_table_suffix",
        "_file_name",
        "_metadata",
        "rownum",
        "level",
        "sysdate",
        "systimestamp",
        "user",
        "uid",
        "current_user",
        "session_user",
        "connect_by_isleaf",
        "connect_by_iscycle",
        "current_date",
        "current_timestamp",
        "localtimestamp",
        "current_time",
        "input_file_name",
    ]
)
"""Names that a dialect defines itself; unqualified and unknown to every source, they depend on nothing."""

SYSTEM_COLUMNS: Final = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid", "rowid", "rownum"})
"""Those of them that hold the place of a row, and none of its values."""

GRAPH_COLUMNS: Final = frozenset({"$node_id", "$edge_id", "$from_id", "$to_id"})
"""Columns that T-SQL's tables of nodes and of edges have without listing them ("Graph processing")."""
