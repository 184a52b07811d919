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
    if None in parameters or args.get("values") or this.__class__ is not nodes.DType:
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
    if found is None and node.__class__ is nodes.SHA2Digest:  # PostgreSQL, Redshift, BigQuery, Trino: sha256, sha512 …
        length = node.args.get("length")
        found = f"sha{length.name}" if isinstance(length, nodes.Literal) else None
    return found or class_name(node.__class__)
