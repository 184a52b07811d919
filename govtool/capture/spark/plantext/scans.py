"""Sources of a plan's leaves: files, tables, connections, or nothing that has a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from govtool.capture.openlineage.identity import DatasetName
from govtool.capture.spark.identity import DEFAULT_DATABASE, DatasetPlace, path_name, table_name, topic_name
from govtool.capture.spark.plantext import lists
from govtool.capture.spark.plantext.tree import Operator
from govtool.names import DEFAULT_NAMESPACE
from govtool.spark.live.job.cleaned import plain_table

RDD = "break.rdd"
EMPTY = "break.empty"
PATHS = "break.truncated"

_VALUES = ("Scan OneRowRelation", "OneRowRelation", "LocalTableScan", "LocalRelation", "Range", "Scan EmptyRelation")
_RDDS = ("Scan ExistingRDD", "LogicalRDD", "Scan RDD", "ExternalRDD", "Scan ExternalRDD", "Scan[obj#")
_PREFIX = re.compile(r"\A(?:Photon|Gpu|Columnar|Native)(?=[A-Z])|Transformer(?= )|Exec(?= )")
_LOCATION = re.compile(r"(\w+)(?:\((\d+) paths\))?\s*\[(.*)\]?\Z", re.DOTALL)
_ENTRIES = re.compile(r", \.\.\. (\d+) (?:entries|paths)\Z|(?:, )?\.\.\. (\d+) more fields\Z")
_QUOTED = re.compile(r"(?<!`)`(?:[^`]|``)++`(?:\.`(?:[^`]|``)++`)+|(?<=\[)`(?:[^`]|``)++`|(?<= )`(?:[^`]|``)++`")
_DOTTED = re.compile(r"[A-Za-z_][\w$-]*(?:\.[\w$-]+)+\Z")
_JDBC = re.compile(r"JDBCRelation\((.*)\)(?: \[numPartitions=\d+\]|\Z)(?:\s+([\w`.$-]+))?\s*\Z", re.DOTALL)
_JDBC_TABLE = re.compile(r"JDBCTable\(([^,]+),")
_JDBC_CATALOG = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
_TOPICS = re.compile(r"Subscribe\[([^\]]+)\]")
_DELTA = re.compile(r"Delta\[version=(\d+), ([^\]]+)\]")
_URI = re.compile(r"[A-Za-z][\w+.-]*:/\S*|/\S+")


@dataclass(frozen=True, slots=True)
class Names:
    """A reader of names."""

    database: str = DEFAULT_DATABASE
    namespace: str = DEFAULT_NAMESPACE
    """Of tables of the catalog."""
    case_sensitive: bool = False
    streams: frozenset[str] | None = frozenset()
    """Folders that the plan reads as streams, by id: the files that it reads there are the latest of many. None: it is
    of one batch of a stream, and the folders are not known."""
    catalogs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of catalogs by their class, as the application's settings have them."""

    def in_catalog(self, class_: str, table: str) -> DatasetName:
        """A table of the catalog of a class: plans print the class, and not the catalog's name."""
        known = self.catalogs.get(class_, ())
        if len(known) == 1 and not table.startswith(f"{known[0]}."):
            table = f"{known[0]}.{table}"
        return self.table(table)

    def table(self, text: str) -> DatasetName:
        """The dataset of a table as plans print it."""
        return table_name(text, database=self.database, namespace=self.namespace, case_sensitive=self.case_sensitive)


@dataclass(frozen=True, slots=True)
class ScannedSource:
    """The source of a leaf."""

    place: DatasetPlace
    places: tuple[DatasetPlace, ...] = ()
    """Further ones: of a scan of several paths."""
    nothing: bool = False
    """No dataset at all: rows of the query itself, or, with a reason, of who knows where."""
    reason: str = ""
    message: str = ""
    format: str = ""
    version: int | None = None
    """Of a Delta table."""


_SCAN_OF = re.compile(r"\w+Scan\(table=([\w.`$-]+)")
"""A connector's description of a scan below its columns, ``IcebergScan(table=lake.db.orders, …``."""

_NOWHERE = DatasetPlace(DatasetName(DEFAULT_NAMESPACE, ""), "query")


def source_of(operator: Operator, names: Names, metadata: dict[str, str] | None = None) -> ScannedSource | None:
    """Return the source of a leaf operator; None if its text does not have it.

    Args:
        operator: A leaf.
        names: How names are read.
        metadata: What the event of the execution says of the same operator; there paths are less often left out.
    """
    name = _PREFIX.sub("", operator.name.strip(), count=1)
    arguments = operator.fields.get("Arguments", "")
    found = _without_dataset(name, arguments) or _connected(name, arguments, names)
    if found is not None:
        return found
    words = name.split()
    table = _table_in(words, names)
    delta = _DELTA.search(arguments) or _DELTA.search(name)
    version = int(delta[1]) if delta is not None else None
    location = operator.fields.get("Location", "") or _inline_location(arguments)
    location_text = (metadata or {}).get("Location", "")
    if location or location_text:
        found = _files(location, location_text, table, words[1] if len(words) > 1 else "", names.streams)
        if found is not None:
            return found if version is None else _versioned(found, version)
    if delta is not None:
        return ScannedSource(_place([path_name(delta[2])], table), format="delta", version=version)
    table = table or _described_table(operator, words, arguments, names)
    if table is None and len(words) > 1 and _URI.match(words[-1]):
        return ScannedSource(DatasetPlace(path_name(words[-1]), "file"))
    return ScannedSource(DatasetPlace(table, "table")) if table is not None else None


def _without_dataset(name: str, arguments: str) -> ScannedSource | None:
    """The source of rows that no dataset holds."""
    if name.startswith(_RDDS):
        return _nothing(RDD, "an RDD: what it was made of is not in the plan")
    if not name.startswith(_VALUES):
        return None
    if "<empty>" in arguments or name.startswith("Scan EmptyRelation"):
        return _nothing(EMPTY, "the optimizer found that there are no rows, and left out where they would come from")
    return ScannedSource(_NOWHERE, nothing=True)


def _connected(name: str, arguments: str, names: Names) -> ScannedSource | None:
    """A relation of a database over JDBC, or topics of Kafka."""
    relation = _JDBC.search(name)
    if relation is not None:
        return _connection(relation[1], relation[2], names)
    behind = jdbc_table(arguments, names)
    if behind is not None:
        return ScannedSource(behind, format="jdbc")
    topics = _TOPICS.search(name) or _TOPICS.search(arguments)
    if topics is None or "afka" not in name + arguments:
        return None
    places = [DatasetPlace(topic_name("", topic.strip()), "table") for topic in topics[1].split(",")]
    return ScannedSource(places[0], tuple(places[1:]), format="kafka")


def _described_table(operator: Operator, words: list[str], arguments: str, names: Names) -> DatasetName | None:
    """A table that the arguments or a connector's description name."""
    quoted = _QUOTED.search(arguments)
    table = names.table(quoted[0]) if quoted is not None else None
    kind = words[0] if words else ""
    if table is None and kind in ("RelationV2", "DataSourceV2Relation", "DataSourceV2ScanRelation", "BatchScan"):
        firsts = (argument.split()[0] for argument in lists.arguments(arguments) if argument.split())
        table = next((names.table(first) for first in firsts if _DOTTED.match(first)), None)
    if table is None and kind in ("MicroBatchScan", "ContinuousScan"):
        described = _SCAN_OF.match(operator.fields.get("Text", ""))
        table = names.table(described[1]) if described is not None else None
    return table


def _nothing(reason: str, message: str) -> ScannedSource:
    return ScannedSource(_NOWHERE, nothing=True, reason=reason, message=message)


def _versioned(found: ScannedSource, version: int) -> ScannedSource:
    return ScannedSource(
        found.place, found.places, format=found.format, version=version, reason=found.reason, message=found.message
    )


def _table_in(words: list[str], names: Names) -> DatasetName | None:
    """``Scan parquet spark_catalog.default.t``, ``Scan hive default.t``, ``BatchScan lake.db.t``."""
    rest = (
        words[2:]
        if words and words[0] in ("Scan", "FileScan")
        else words[1:]
        if words and words[0] == "BatchScan"
        else []
    )
    for word in rest:
        if _URI.match(word) or word.startswith(("[", "(")):
            return None
        if _DOTTED.match(word) or _QUOTED.match(word):
            return names.table(word)
    if words and words[0] in ("Scan", "FileScan") and len(words) == 3 and re.fullmatch(r"[\w$-]+", words[2]):
        return names.table(words[2])  # Spark 2 names a table without its database
    return None


def _inline_location(arguments: str) -> str:
    """In one-line notation a location is one of many things: ``Location: InMemoryFileIndex[file:/a], Pushed…``."""
    found = re.search(r"Location: (\w+(?:\(\d+ paths\))?\s*\[[^\]]*\]?)", arguments)
    return found[1] if found is not None else ""


def _files(
    location: str, location_text: str, table: DatasetName | None, format_: str, streams: frozenset[str] | None
) -> ScannedSource | None:
    paths, hidden = _paths(location)
    if hidden:
        more, still = _paths(location_text)
        if len(more) >= len(paths):
            paths, hidden = more, still
    if not paths:
        return ScannedSource(DatasetPlace(table, "table"), format=format_) if table is not None else None
    found = list(dict.fromkeys(_stream_of(path, streams) or path_name(path) for path in paths))
    if len(found) == 1 and _stream_of(paths[0], streams) is not None:
        hidden = 0
    if table is not None:
        kept = found[0] if len(found) == 1 else _common(found)
        return ScannedSource(DatasetPlace(table, "table", (kept,) if kept is not None else ()), format=format_)
    # Of partitions that are listed one by one, the rest is of the same place.
    partitioned = (
        len(found) == 1 and path_name(paths[0]).name != paths[0].split(":", 1)[-1].rstrip("/") and "=" in paths[0]
    )
    places = tuple(DatasetPlace(name, "file") for name in found)
    if hidden and not partitioned:
        message = f"{hidden} more paths are read that the plan text leaves out"
        return ScannedSource(places[0], places[1:], reason=PATHS, message=message, format=format_)
    return ScannedSource(places[0], places[1:], format=format_)


def _stream_of(path: str, streams: frozenset[str] | None) -> DatasetName | None:
    """The folder of a stream that a file belongs to; None if it is no stream's."""
    if streams is None:
        return path_name(path.rstrip("/").rpartition("/")[0] or path)
    name = path_name(path)
    while streams and name.name.strip("/"):
        name = DatasetName(name.namespace, name.name.rstrip("/").rpartition("/")[0])
        if name.id in streams:
            return name
    return None


def _common(found: list[DatasetName]) -> DatasetName | None:
    """The folder that several paths of one table share."""
    if len({name.namespace for name in found}) != 1:
        return None
    parts = [name.name.split("/") for name in found]
    shared = []
    for level in zip(*parts, strict=False):
        if len(set(level)) != 1:
            break
        shared.append(level[0])
    text = "/".join(shared)
    return DatasetName(found[0].namespace, text) if text.strip("/") else None


def _paths(location: str) -> tuple[list[str], int]:
    """The paths of a location, and how many more there are."""
    found = _LOCATION.match(location.strip())
    if found is None:
        return [], 0
    text = found[3].removesuffix("]")
    cut = _ENTRIES.search(text)
    hidden = int(cut[1] or cut[2]) if cut is not None else 0
    if cut is not None:
        text = text[: cut.start()]
    paths = [part for part in re.split(r", (?=[A-Za-z][\w+.-]*:|/)", text) if part]
    whole = int(found[2]) if found[2] else len(paths) + hidden
    if text.endswith("..."):
        paths = paths[:-1]
    return paths, max(hidden, whole - len(paths))


def _place(paths: Iterable[DatasetName], table: DatasetName | None) -> DatasetPlace:
    found = tuple(paths)
    return DatasetPlace(table, "table", found) if table is not None else DatasetPlace(found[0], "file")


def jdbc_table(arguments: str, names: Names) -> DatasetPlace | None:
    """The table of a JDBC catalog that arguments begin with; the class of the catalog is all that they tell of it."""
    found = _JDBC_TABLE.match(arguments)
    return DatasetPlace(names.in_catalog(_JDBC_CATALOG, found[1].strip()), "table") if found is not None else None


def _connection(text: str, catalogued: str | None, names: Names) -> ScannedSource:
    """A table behind JDBC: the plan tells its name, and not where."""
    table = plain_table(text).replace('"', "").replace("`", "")
    place = DatasetName("jdbc", table)
    if catalogued:
        aliases = (place,) if table else ()
        return ScannedSource(DatasetPlace(names.table(catalogued), "table", aliases), format="jdbc")
    if not table:
        return _nothing("break.query", "a query that another database answers")
    return ScannedSource(DatasetPlace(place, "table"), format="jdbc")
