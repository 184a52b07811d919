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
        # PostgreSQL, "Trigger Functions": the statement and its table, none of its values
        "tg_op",
        "tg_name",
        "tg_when",
        "tg_level",
        "tg_relid",
        "tg_relname",
        "tg_table_name",
        "tg_table_schema",
        "tg_nargs",
        "tg_argv",
    ]
)
"""Names that some dialect defines itself; unqualified and in no source, of which all columns are known, they depend on
nothing."""

_STANDARD: Final = frozenset({"current_user", "session_user", "current_date", "current_timestamp", "current_time"})
_POSTGRES: Final = _STANDARD | {"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid", "user", "localtimestamp"}
_ORACLE: Final = _STANDARD | {
    "rowid", "rownum", "level", "sysdate", "systimestamp", "user", "uid", "localtimestamp",
    "connect_by_isleaf", "connect_by_iscycle",
}  # fmt: skip
_SPARK: Final = _STANDARD | {"_metadata"}
_OWN: Final = {
    "bigquery": _STANDARD | {"_partitiontime", "_partitiondate", "_table_suffix", "_file_name"},
    "databricks": _SPARK,
    "duckdb": _STANDARD | {"rowid", "user", "localtimestamp"},
    "exasol": _ORACLE,
    "fabric": _STANDARD | {"user"},
    "materialize": _POSTGRES,
    "oracle": _ORACLE,
    "postgres": _POSTGRES,
    "redshift": _STANDARD | {"user", "sysdate"},
    "risingwave": _POSTGRES,
    "spark": _SPARK,
    "spark2": _SPARK,
    "sqlite": _STANDARD | {"rowid", "_rowid_", "oid"},
    "teradata": _STANDARD | {"user", "rowid"},
    "tsql": _STANDARD | {"user"},
}


def own_names(dialect: str) -> frozenset[str]:
    """The names that a dialect defines itself: a table whose columns are not all known has no column of that name.

    Of other dialects they are names like others: a ``uid`` is a column but in Oracle. Source: the reserved words and
    pseudo-columns in the manuals of the databases.
    """
    return _OWN.get(dialect, _STANDARD)


SYSTEM_COLUMNS: Final = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid", "rowid", "rownum"})
"""Those of them that hold the place of a row, and none of its values."""

GRAPH_COLUMNS: Final = frozenset({"$node_id", "$edge_id", "$from_id", "$to_id"})
"""Columns that T-SQL's tables of nodes and of edges have without listing them ("Graph processing")."""
