"""Datasets of Spark plans: paths, tables and connections as the names that SQL text and OpenLineage give them.

A table of the catalog is named as SQL names it, ``shop.orders`` in the default namespace (``spark_catalog`` is not
written), so that what ran meets what scripts say. A path is named as OpenLineage names it. Where a plan tells both, the
table is the dataset and its place an alias.

    >>> path_name("s3a://lake/shop/orders/day=2026-11-20/*.parquet").id
    's3://lake/shop/orders'
    >>> table_name("`spark_catalog`.`shop`.`Orders`").id
    'shop.orders'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from govtool.capture.openlineage.identity import DatasetName, normalise
from govtool.model import Derivation, OutputColumn, Statement
from govtool.model.copies import copied
from govtool.names import DEFAULT_NAMESPACE, fold, quote

SESSION_CATALOG = "spark_catalog"
"""Spark's name of its own catalog; a table in it is named by database and table."""
DEFAULT_DATABASE = "default"
ALIAS = "alias"
"""The statement kind of derivations that say that two names are one dataset."""

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(.*)\Z", re.DOTALL)
_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


@dataclass(frozen=True, slots=True)
class DatasetPlace:
    """A dataset of a plan and its other names."""

    name: DatasetName
    kind: str
    """``table``, ``view``, ``temporary``, ``file``."""
    aliases: tuple[DatasetName, ...] = ()
    """Other names of the same data: the path of a table."""

    @property
    def id(self) -> str:
        """The graph's id."""
        return self.name.id


def joined(known: DatasetPlace | None, place: DatasetPlace) -> DatasetPlace:
    """A place, with the aliases that were known of it before."""
    if known is None:
        return place
    return replace(place, aliases=tuple(dict.fromkeys((*known.aliases, *place.aliases))))


def path_name(uri: str) -> DatasetName:
    """The dataset of a path as Hadoop prints it: with any scheme, or none, which is the local file system's."""
    found = _URI.match(uri.strip())
    if found is None or len(found[1]) == 1:  # no scheme, or a drive letter
        return normalise("file", uri)
    scheme, host, path = found[1].lower(), found[2], found[3]
    if scheme == "file" or not host:
        return normalise(scheme, "/" + path.lstrip("/"))
    return normalise(f"{scheme}://{host}", path)


@lru_cache(maxsize=65536)
def table_name(
    table: str | tuple[str, ...],
    *,
    database: str = DEFAULT_DATABASE,
    namespace: str = DEFAULT_NAMESPACE,
    case_sensitive: bool = False,
) -> DatasetName:
    """The dataset of a table.

    Args:
        table: Its name as plans print it, dotted and maybe in backquotes, or its parts.
        database: Of a name without one.
        namespace: The namespace of the catalog; needed only to keep two metastores apart.
        case_sensitive: ``spark.sql.caseSensitive``.
    """
    parts = list(split_table(table) if isinstance(table, str) else table)
    if len(parts) > 1 and parts[0].lower() == SESSION_CATALOG:
        parts = parts[1:]
    if len(parts) == 1 and database:
        parts = [database, *parts]
    if case_sensitive:
        return DatasetName(namespace, ".".join(parts))
    return DatasetName(namespace, ".".join(part.lower() for part in parts))


def split_table(text: str) -> tuple[str, ...]:
    """The parts of a dotted name in Spark's notation."""
    return tuple(m[1].replace("``", "`") if m[1] is not None else m[2].strip() for m in _PART.finditer(text))


def column_path(column: str, *, case_sensitive: bool = False) -> str:
    """The path of a column: Spark's names have no case unless it is told so."""
    return quote(column) if case_sensitive else fold(column, dialect="spark")


def output_paths(names: Iterable[str]) -> list[str]:
    """Paths of output columns by their names: folded, and ``_c0``, ``_c1`` … by position where there is none."""
    return [column_path(name) if name else f"_c{position}" for position, name in enumerate(names)]


def field_path(parts: Sequence[str]) -> str:
    """The path of a field below a column: ``("address", "zip")`` is ``address.zip``."""
    return ".".join(column_path(part) for part in parts)


def topic_name(servers: str, topic: str) -> DatasetName:
    """The dataset of a Kafka topic."""
    return normalise(f"kafka://{servers.split(',')[0].strip()}" if servers.strip() else "kafka", topic)


def alias_derivations(
    places: Iterable[DatasetPlace], columns: Mapping[str, Iterable[str]], *, how: str, source: str
) -> list[Derivation]:
    """That two names are one dataset: each is a copy of the other, column by column.

    Args:
        places: Datasets with their aliases.
        columns: Column paths that are known of a dataset, by any of its names.
        how: The kind of evidence.
        source: The name of the ingest.
    """
    kinds: dict[DatasetName, str] = {}
    pairs: dict[tuple[DatasetName, DatasetName], None] = {}
    for place in places:
        kinds.setdefault(place.name, place.kind)
        for alias in place.aliases:
            if alias != place.name:
                kinds.setdefault(alias, "file" if alias.is_path else place.kind)
                pairs[place.name, alias] = None
    made: list[Derivation] = []
    for name, alias in sorted(pairs):
        paths = sorted({path for one in (name, alias) for path in columns.get(one.id, ())})
        for target, of, text in ((alias, name, f"{name.id} is {alias.id}"), (name, alias, "")):
            statement = Statement(
                fingerprint=ALIAS, kind=ALIAS, dialect="", file=name.id, source=source, how=how, text=text
            )
            made.append(
                Derivation(
                    target.id,
                    kinds[target],
                    "update",
                    statement,
                    edges=copied(of.id, paths, complete=bool(paths)),
                    columns_complete=False,
                    namespace=target.namespace,
                )
            )
    return made


def declarations(
    names: Mapping[str, DatasetPlace],
    columns: Mapping[str, Sequence[tuple[str, str | None]]],
    *,
    how: str,
    source: str,
) -> list[Derivation]:
    """Every dataset that is named, with the columns that its readers and writers saw: its namespace is not lost.

    Args:
        names: Datasets by id.
        columns: Paths and types of columns by dataset id, complete or not: plans prune what nobody needs.
        how: The kind of evidence.
        source: The name of the ingest.
    """
    made = []
    for identity, place in sorted(names.items()):
        found = tuple(OutputColumn(*column) for column in columns.get(identity, ()))
        statement = Statement("dataset", "dataset", "", identity, source=source, how=how)
        made.append(
            Derivation(
                identity,
                place.kind,
                "declare",
                statement,
                found,
                columns_complete=False,
                namespace=place.name.namespace,
            )
        )
    return made


def job_name(script: str, target: str) -> str:
    """A job's name, stable over its runs: the script, and what it wrote; never the name of an action.

    Args:
        script: The script's file name, a main class, or the application's name.
        target: The id of the dataset that was written; empty: nothing was.
    """
    return f"{script or 'spark'}:{target}" if target else script or "spark"
