"""Canonical names of datasets and columns: one text form, used in the store, on the command line and in exports.

A name that a dialect's unquoted folding reaches is written in lower case in every dialect; any other keeps its case and
its quotes. A part is plain, and written bare, if it matches ``[a-z_][a-z0-9_$]*``.

    >>> fold("Users", quoted=False, dialect="snowflake"), fold("users", quoted=True, dialect="snowflake")
    ('users', '"users"')
    >>> split_name('"Crm"."Odd Name".email')
    ['"Crm"', '"Odd Name"', 'email']
"""

from __future__ import annotations

import re
from functools import lru_cache

DEFAULT_NAMESPACE = "default"

_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*\Z")

_UPPER = frozenset({"snowflake", "oracle", "db2"})
_INSENSITIVE = frozenset(
    {
        "spark",
        "spark2",
        "databricks",
        "hive",
        "duckdb",
        "trino",
        "presto",
        "athena",
        "tsql",
        "fabric",
        "sqlite",
        "redshift",
        "mysql",
        "doris",
        "starrocks",
        "teradata",
        "exasol",
        "drill",
        "druid",
        "dremio",
        "singlestore",
    }
)
_SENSITIVE = frozenset({"clickhouse"})
# BigQuery: tables keep their case, columns do not (its lexical-structure reference); handled by ``fold(...,
# table=True)``.


def quote(part: str) -> str:
    """Write one already folded part: bare if plain, else in double quotes with inner quotes doubled."""
    return part if _PLAIN.match(part) else '"' + part.replace('"', '""') + '"'


@lru_cache(maxsize=65536)
def fold(part: str, *, quoted: bool = False, dialect: str = "", table: bool = False) -> str:
    """Return the canonical text of one identifier part.

    Args:
        part: The identifier without its quotes.
        quoted: Whether it was written in quotes.
        dialect: A sqlglot dialect name; empty means sqlglot's base dialect (folds to lower case).
        table: Whether the part names a table, schema or catalog (BigQuery treats these as case-sensitive).
    """
    if dialect in _INSENSITIVE:
        return quote(part.lower())
    if dialect == "bigquery":
        return quote(part) if table else quote(part.lower())
    if dialect in _SENSITIVE:
        return quote(part)
    if dialect in _UPPER:
        if not quoted or part == part.upper():
            return quote(part.lower())
        return '"' + part.replace('"', '""') + '"'
    return quote(part) if quoted else quote(part.lower())


def split_name(text: str) -> list[str]:
    """Split canonical text at its dots, leaving dots inside double quotes and brackets alone."""
    parts: list[str] = []
    start = 0
    in_quotes = False
    in_literal = False
    depth = 0
    for i, ch in enumerate(text):
        if in_literal:
            in_literal = ch != "'"
        elif ch == '"':
            in_quotes = not in_quotes
        elif in_quotes:
            continue
        elif depth and ch == "'":
            in_literal = True
        elif ch == "[":
            depth += 1
        elif ch == "]":
            depth -= 1
        elif ch == "." and depth <= 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return parts


def join_name(parts: list[str] | tuple[str, ...]) -> str:
    """Join canonical parts into canonical text."""
    return ".".join(parts)


def fold_name(text: str, dialect: str = "") -> str:
    """Return the canonical text of a dotted name as someone wrote it, such as a default schema; idempotent.

    >>> fold_name('ANALYTICS."Odd Name"', "snowflake")
    'analytics."Odd Name"'
    """
    parts = []
    for part in split_name(text):
        quoted = len(part) > 1 and part[0] in '"`' and part[-1] == part[0]
        bare = unquote(part) if part.startswith('"') else part.strip("`") if quoted else part
        parts.append(fold(bare, quoted=quoted, dialect=dialect, table=True))
    return join_name(parts)


def dataset_id(name: str, namespace: str = DEFAULT_NAMESPACE) -> str:
    """The graph's id of a dataset: its name, prefixed by ``namespace/`` unless the namespace is the default one."""
    return name if namespace == DEFAULT_NAMESPACE else f"{namespace}/{name}"


def unquote(part: str) -> str:
    """The bare text of one canonical part."""
    if len(part) >= 2 and part[0] == '"' and part[-1] == '"':
        return part[1:-1].replace('""', '"')
    return part
