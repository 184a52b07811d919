"""Facts about SQL functions that lineage needs: which aggregate, which make series."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes

AGGREGATE_NAMES: Final = frozenset(
    [
        "listagg",
        "string_agg",
        "group_concat",
        "collect_list",
        "collect_set",
        "array_agg",
        "json_agg",
        "jsonb_agg",
        "json_object_agg",
        "jsonb_object_agg",
        "xmlagg",
        "object_agg",
        "bitmap_union",
        "hll_union_agg",
        "hll_count.init",
        "approx_top_k",
        "approx_percentile",
        "percentile",
        "percentile_approx",
        "median",
        "mode",
        "regr_slope",
        "regr_r2",
        "corr",
        "every",
        "bool_and",
        "bool_or",
        "bit_and",
        "bit_or",
        "bit_xor",
        "kurtosis",
        "skewness",
        "count_if",
        "countif",
        "sum_if",
        "sumif",
        "avgif",
        "min_by",
        "max_by",
        "histogram",
        "array_concat_agg",
        "hll_sketch_agg",
        "uniq",
        "uniqexact",
        "grouparray",
        "anylast",
        "checksum_agg",
        "product",
        "array_unique_agg",
    ]
)
"""Aggregates that the parser may leave as anonymous functions."""

SERIES: Final = frozenset(
    [
        "generate_series",
        "range",
        "generate_subscripts",
        "regexp_split_to_table",
        "string_to_table",
        "json_object_keys",
        "jsonb_object_keys",
    ]
)
"""Set-returning functions of one column, which is named after the function or its alias."""


_BUILT_IN: Final = frozenset(
    [
        "json_each",
        "jsonb_each",
        "json_each_text",
        "jsonb_each_text",
        "json_array_elements",
        "jsonb_array_elements",
        "json_array_elements_text",
        "jsonb_array_elements_text",
        "json_to_record",
        "json_to_recordset",
        "jsonb_to_record",
        "jsonb_to_recordset",
        "json_populate_record",
        "json_populate_recordset",
        "jsonb_populate_record",
        "jsonb_populate_recordset",
        "jsonb_path_query",
        "json_path_query",
        "regexp_matches",
        "unnest",
        "ts_stat",
        "ts_parse",
        "ts_token_type",
        "ts_debug",
        "each",
        "skeys",
        "svals",
        "string_split",
        "openjson",
        "openxml",
        "split_to_table",
        "strtok_split_to_table",
        "flatten",
        "generator",
        "infer_schema",
        "split",
        "explode",
        "explode_outer",
        "posexplode",
        "posexplode_outer",
        "inline",
        "inline_outer",
        "stack",
        "json_tuple",
        "parse_url_tuple",
        "sequence",
        "numbers",
        "zeros",
        "values",
        "glob",
        "summary",
        "repeat_row",
        "variant_explode",
        "variant_explode_outer",
        "tumble",
        "hop",
        "session",
        "cumulate",
        "exclude_columns",
        "json_table",
        "xmltable",
        "table",
        "xmlsequence",
        "aclexplode",
        "to_tsquery",
        "plainto_tsquery",
        "phraseto_tsquery",
        "websearch_to_tsquery",
        "fn_my_permissions",
        "fn_dblog",
        "fn_listextendedproperty",
        "fn_trace_gettable",
        "txid_snapshot_xip",
    ]
)
"""Table functions that dialects bring along: what they return comes from their arguments."""

_BUILT_IN_PREFIXES: Final = {
    "duckdb": ("duckdb_", "pragma_", "read_"),
    "postgres": ("pg_", "st_"),
    "redshift": ("pg_", "st_"),
}
_BUILT_IN_SCHEMAS: Final = frozenset({"pg_catalog", "sys", "information_schema", "ml", "ai", "system", "snowflake"})


def is_built_in(name: str, schema: str, dialect: str) -> bool:
    """Whether a table function is known to be one of the dialect's own."""
    schema, _, last = f"{schema}.{name}".lower().rpartition(".")
    if last in SERIES or last in _BUILT_IN or dialect == "clickhouse":
        return True
    if last == "nodes" and dialect in ("tsql", "fabric"):  # of an xml column
        return True
    if _BUILT_IN_SCHEMAS.intersection(schema.split(".")):
        return True
    return not schema.strip(".") and last.startswith(_BUILT_IN_PREFIXES.get(dialect, ("pg_",)))


_type_texts: Final[dict[tuple[object, ...], str]] = {}


def type_text(node: exp.Expr | None, dialect: str) -> str | None:
    """Return a column's type as it is written in ``dialect``; None where there is none."""
    if node is None or not isinstance(node, nodes.DataType):
        return None
    args = node.args
    parameters: tuple[str | None, ...] = ()
    if args.get("expressions"):
        parameters = tuple(
            [getattr(p.this, "name", None) if isinstance(p, nodes.DataTypeParam) else None for p in args["expressions"]]
        )
    this = args["this"]
    if None in parameters or args.get("values") or type(this) is not nodes.DType:
        return node.sql(dialect=dialect or None)
    # Generating text takes longer than walking most statements; the types of a warehouse are few. A member of an
    # enumeration is there once, and its own hash is slow.
    key = (id(this), parameters, dialect)
    found = _type_texts.get(key)
    if found is None:
        found = _type_texts[key] = node.sql(dialect=dialect or None)
    return found


_class_names: Final[dict[type, str]] = {}


def class_name(cls: type[exp.Expr]) -> str:
    """Return the lower-case SQL name of a function class of sqlglot's tree."""
    found = _class_names.get(cls)
    if found is None:
        found = _class_names[cls] = _class_name(cls)
    return found


def _class_name(cls: type[exp.Expr]) -> str:
    if cls is nodes.ExplodingGenerateSeries:  # the parser's own name for PostgreSQL's function in FROM
        return "generate_series"
    if not issubclass(cls, nodes.Func):
        return cls.__name__.lower()
    if "_sql_names" in cls.__dict__:
        return str(cls.sql_name()).lower()
    return _WORD.sub("_", cls.__name__).lower()


_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Where a word begins in a name such as ``SHA2Digest``; sqlglot's own ``sql_name`` says SH_A2_DIGEST."""

_DIGESTS: Final[dict[type, dict[str, str]]] = {
    exp.MD5: {"tsql": "hashbytes", "fabric": "hashbytes"},
    exp.MD5Digest: {"snowflake": "md5_binary", "": "md5"},
    exp.SHA: {"tsql": "hashbytes", "fabric": "hashbytes", "": "sha1"},
    exp.SHA1Digest: {"snowflake": "sha1_binary", "": "sha1"},
    exp.SHA2: {"tsql": "hashbytes", "fabric": "hashbytes", "duckdb": "sha256"},
    exp.SHA2Digest: {"snowflake": "sha2_binary"},
}
"""Classes that stand for one function in one dialect and for another in the next: what it is called there, or
elsewhere.
"""


def function_name(node: exp.Expr, dialect: str = "") -> str:
    """Return the lower-case name under which a call was written, as far as the tree tells, or is known."""
    cls = node.__class__
    if cls in _DIGESTS:
        return _digest_name(node, dialect)
    if isinstance(node, (nodes.Anonymous, nodes.AnonymousAggFunc)):
        name = node.args.get("this")
        text = name if isinstance(name, str) else getattr(name, "name", "") or ""
        return str(text).lower()
    return class_name(cls)


def _digest_name(node: exp.Expr, dialect: str) -> str:
    named = _DIGESTS[node.__class__]
    found = named.get(dialect) or named.get("")
    if found is None and type(node) is nodes.SHA2Digest:  # PostgreSQL, Redshift, BigQuery, Trino: sha256, sha512 …
        length = node.args.get("length")
        found = f"sha{length.name}" if isinstance(length, nodes.Literal) else None
    return found or class_name(node.__class__)
