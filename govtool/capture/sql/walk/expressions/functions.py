"""Names of functions, table functions of a dialect, and texts of types, from sqlglot's tree."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.functions.facts import ANY_DIALECT, NODE_NAMES, SERIES, TABLES

_BUILT_IN_PREFIXES: Final = {
    "duckdb": ("duckdb_", "pragma_", "read_"),
    "postgres": ("pg_", "st_"),
    "redshift": ("pg_", "st_"),
}
_BUILT_IN_SCHEMAS: Final = frozenset({"pg_catalog", "sys", "information_schema", "ml", "ai", "system", "snowflake"})


def is_built_in(name: str, schema: str, dialect: str) -> bool:
    """Return whether a table function is known to be one of the dialect's own."""
    schema, _, last = f"{schema}.{name}".lower().rpartition(".")
    if last in SERIES or last in TABLES or dialect == "clickhouse":
        return True
    if last == "nodes" and dialect in ("tsql", "fabric"):  # of an xml column
        return True
    if _BUILT_IN_SCHEMAS.intersection(schema.split(".")):
        return True
    return not schema.strip(".") and last.startswith(_BUILT_IN_PREFIXES.get(dialect, ("pg_",)))


_SELDOM: Final = ("kind", "values", "nested", "nullable", "collate")
"""What else a type may have: the name of one that is user-defined, ``NOT NULL`` of ClickHouse …"""
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
    if None in parameters or type(this) is not nodes.DType or any(args.get(name) for name in _SELDOM):
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
"""Starts of words in a name such as ``SHA2Digest``; sqlglot's own ``sql_name`` gives SH_A2_DIGEST."""

_RENAMED: Final[dict[type, dict[str, str]]] = {getattr(exp, node): names for node, names in NODE_NAMES.items()}
"""Names by dialect of the classes that stand for another function in the next dialect."""


def function_name(node: exp.Expr, dialect: str = "") -> str:
    """Return the lower-case name under which a call was written, as far as the tree tells, or is known."""
    cls = type(node)
    if cls in _RENAMED:
        return _digest_name(node, dialect)
    if isinstance(node, (nodes.Anonymous, nodes.AnonymousAggFunc)):
        name = node.args.get("this")
        text = name if isinstance(name, str) else getattr(name, "name", "") or ""
        return str(text).lower()
    return class_name(cls)


def _digest_name(node: exp.Expr, dialect: str) -> str:
    named = _RENAMED[type(node)]
    found = named.get(dialect) or named.get(ANY_DIALECT)
    if found is None and type(node) is nodes.SHA2Digest:  # PostgreSQL, Redshift, BigQuery, Trino: sha256, sha512 …
        length = node.args.get("length")
        found = f"sha{length.name}" if isinstance(length, nodes.Literal) else None
    return found or class_name(type(node))
