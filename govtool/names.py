"""Canonical names of datasets and columns: one text form, used in the store, on the command line and in exports.

The id of a dataset in a file system is its URI: ``dataset_id`` writes it, ``place_of_id`` takes it apart. Stores
of 0.1.0 have ``file//data/x`` for ``file:///data/x``: ``current_id`` renames it wherever a fragment is read,
and ``written_id`` whatever a user writes. Below ``[paths] root`` a local path has a ``relative_id``.

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

ROOTED = frozenset({"file", "hdfs", "viewfs", "dbfs", "adl"})
"""File systems whose paths begin with a slash."""
OBJECT_STORES = frozenset({"s3", "gs", "abfss", "abfs", "wasbs", "wasb", "oss", "cos", "obs"})
"""Object stores, whose keys begin with none. Those that govtool itself opens are in ``store.backends.location``."""

_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*\Z")

_SCHEMES = "|".join(sorted(ROOTED))
FORMER = rf"(?:{_SCHEMES})(?:/|://[^/,]+//)"
"""A regular expression that finds something in every id of an earlier version whose id is another today."""
_FORMER = re.compile(rf"(?:(?<=,)|\A)({_SCHEMES})(?:(://[^/,]+)//|/(/?))")
_FORMER_WITHIN = re.compile(rf"(?<![A-Za-z0-9_./-])({_SCHEMES})(?:(://[^/,\s]+)//|/(/))")
_PLACE_WITHIN = re.compile(rf"(?<![A-Za-z0-9_./-])({_SCHEMES})://([^/,\s]*)/")
_PLACE_FIRST = re.compile(rf"(?:(?<=,)|(?<= \+ )|\A)({_SCHEMES}):(?://([^/,]*)/|(?!/))")
_HADOOP = re.compile(r"(file|hdfs|viewfs|dbfs|adl|s3a|s3n)(?=:)", re.IGNORECASE)

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
    if '"' not in text and "[" not in text:
        return text.split(".")
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
    """The graph's id of a dataset: its name, prefixed by ``namespace/`` unless the namespace is the default one.

    The id of a path in a file system is its URI; a relative path follows the scheme. ``place_of_id`` is the inverse.

    >>> dataset_id("/data/x", "file"), dataset_id("data/x", "file"), dataset_id("/data/x", "hdfs://nn:8020")
    ('file:///data/x', 'file:data/x', 'hdfs://nn:8020/data/x')
    """
    if namespace == DEFAULT_NAMESPACE:
        return name
    scheme, separator, _ = namespace.partition("://")
    if scheme not in ROOTED:
        return f"{namespace}/{name}"
    if separator:
        return f"{namespace}/{name.removeprefix('/')}"
    return f"{namespace}://{name}" if name.startswith("/") else f"{namespace}:{name}"


def place_of_id(text: str) -> tuple[str, str] | None:
    """The namespace and the path of a dataset in a file system; None of any other id.

    >>> place_of_id("file:///data/x"), place_of_id("file:data/x"), place_of_id("hdfs://nn/x"), place_of_id("crm.users")
    (('file', '/data/x'), ('file', 'data/x'), ('hdfs://nn', '/x'), None)
    """
    scheme, colon, rest = text.partition(":")
    if not colon or scheme not in ROOTED:
        return None
    if not rest.startswith("//"):
        return scheme, rest
    host, slash, path = rest[2:].partition("/")
    return (f"{scheme}://{host}" if host else scheme), f"{slash}{path}"


def current_id(text: str) -> str:
    """The id of a dataset whose id, or text that begins with one, may be of an earlier version: ``file//data/x``.

    Ids that stand together, with commas between them, are taken one by one.

    >>> current_id("file//data/a,file//data/b"), current_id("file/x"), current_id("hdfs://nn//data"), current_id("a.b")
    ('file:///data/a,file:///data/b', 'file:x', 'hdfs://nn/data', 'a.b')
    """
    return _FORMER.sub(_renewed, text) if "/" in text else text


def renewed_text(text: str) -> str:
    """A text with ids within, such as the name of a job, under the ids of today.

    >>> renewed_text("job.py:file//data/x"), renewed_text("read file//data/x [a]")
    ('job.py:file:///data/x', 'read file:///data/x [a]')
    """
    return _FORMER_WITHIN.sub(_renewed, text) if "//" in text else text


def former_text(text: str) -> str:
    """The inverse of ``renewed_text``, for digests that must be those of earlier versions.

    >>> former_text("read file:///data/x, hdfs://nn/x [a]")
    'read file//data/x, hdfs://nn//x [a]'
    """
    return _PLACE_WITHIN.sub(lambda found: f"{found[1]}://{found[2]}//" if found[2] else f"{found[1]}//", text)


def former_id(text: str) -> str:
    """The inverse of ``current_id``: what versions before called a dataset, or what a text that begins with one was.

    Ids that stand together, with commas or `` + `` between them, are taken one by one.

    >>> former_id("file:///data/x.id"), former_id("file:x"), former_id("hdfs://nn/x"), former_id("a.b")
    ('file//data/x.id', 'file/x', 'hdfs://nn//x', 'a.b')
    """
    return _PLACE_FIRST.sub(_former, text) if ":" in text else text


def relative_id(text: str, root: str) -> str:
    """The id of a local path, or a text that begins with one, relative to a folder if it lies below.

    >>> relative_id("file:///srv/etl/data/x", "/srv/etl"), relative_id("file:///data/x", "/srv/etl")
    ('file:data/x', 'file:///data/x')
    """
    whole = f"file://{root.rstrip('/')}/"
    return f"file:{text.removeprefix(whole)}" if text.startswith(whole) else text


def absolute_id(text: str, root: str) -> str:
    """The inverse of ``relative_id``.

    >>> absolute_id("file:data/x", "/srv/etl"), absolute_id("file:///data/x", "/srv/etl")
    ('file:///srv/etl/data/x', 'file:///data/x')
    """
    is_relative = text.startswith("file:") and not text.startswith("file:/")
    return f"file://{root.rstrip('/')}/{text.removeprefix('file:')}" if is_relative else text


def written_id(text: str) -> str:
    """The id that a user may mean: as the graph writes it, as an earlier version did, or as Hadoop writes a path.

    >>> written_id("file:/data/x"), written_id("file//data/x.id"), written_id("s3a://lake/x"), written_id("crm.users")
    ('file:///data/x', 'file:///data/x.id', 's3://lake/x', 'crm.users')
    """
    text = current_id(text)
    found = _HADOOP.match(text)
    if found is None:
        return text
    scheme = found[1].lower()
    rest = text[found.end(1) + 1 :]
    if scheme in ("s3a", "s3n"):
        return f"s3:{rest}"
    return f"{scheme}:{rest}" if rest.startswith("//") or not rest.startswith("/") else f"{scheme}://{rest}"


def _renewed(found: re.Match[str]) -> str:
    if found[2]:
        return f"{found[1]}{found[2]}/"
    return f"{found[1]}:///" if found[3] else f"{found[1]}:"


def _former(found: re.Match[str]) -> str:
    if found[2]:
        return f"{found[1]}://{found[2]}//"
    return f"{found[1]}/" if found[2] is None else f"{found[1]}//"


def unquote(part: str) -> str:
    """The bare text of one canonical part."""
    if len(part) >= 2 and part[0] == '"' and part[-1] == '"':
        return part[1:-1].replace('""', '"')
    return part
