"""Sources of the relations of a plan: names of tables, places, versions."""

from __future__ import annotations

from functools import partial
from typing import Any

from govtool.spark.live.job.cleaned import clean_url, plain_table
from govtool.spark.live.job.digest_key import Digests, read_key
from govtool.spark.live.jvm.hadoop import place_of, qualified
from govtool.spark.live.jvm.scala import called, safely, sequence, table_parts
from govtool.spark.live.plans.files import read_files, read_options

Json = Any

LEAVES = frozenset(
    {
        "LogicalRelation", "HiveTableRelation", "DataSourceV2Relation", "DataSourceV2ScanRelation", "StreamingRelation",
        "StreamingRelationV2", "StreamingExecutionRelation", "StreamingDataSourceV2Relation",
        "StreamingDataSourceV2ScanRelation", "InMemoryRelation", "LogicalRDD", "ResolvedTable",
    }
)  # fmt: skip
"""Classes of leaves that read something which outlives the query."""


def leaf_facts(leaf: Any) -> dict[str, Json]:
    """Return the source of a plan's leaf: ``table`` (parts of its name), ``paths``, ``format``, ``url``, ``rdd``."""
    name = leaf.getClass().getSimpleName()
    facts: dict[str, Json] = {}
    if name == "LogicalRelation":
        table = leaf.catalogTable()
        if table.isDefined():
            facts["table"] = table_parts(table.get().identifier())
            facts["view"] = table.get().tableType().name() == "VIEW"
        facts.update(relation_facts(leaf.relation()))
    elif name == "StreamingRelation":
        source = leaf.dataSource()
        path = source.options().get("path")
        given = [path.get()] if path.isDefined() else list(sequence(source.paths()))
        facts["paths"] = [qualified(text, source.sparkSession()) for text in given]
        table = safely(partial(called, source, "catalogTable"))
        if table is not None and table.isDefined():
            facts["table"] = table_parts(table.get().identifier())
        facts["relation"] = source.className()
    elif name == "StreamingRelationV2":
        facts.update(safely(partial(_catalogued, leaf)) or {})
        topic = leaf.extraOptions().get("subscribe")
        servers = leaf.extraOptions().get("kafka.bootstrap.servers")
        if topic:
            facts.update({"topic": topic, "kafka.bootstrap.servers": servers or ""})
        facts["relation"] = leaf.sourceName()
    elif name == "HiveTableRelation":
        facts["table"] = table_parts(leaf.tableMeta().identifier())
        location = leaf.tableMeta().storage().locationUri()
        if location.isDefined():
            facts["paths"] = [location.get().toString()]
        facts["format"] = "hive"
    elif name == "LogicalRDD":
        facts["rdd"] = int(leaf.rdd().id())
    elif name.startswith(("DataSourceV2", "StreamingDataSourceV2")) or name == "ResolvedTable":
        relation = leaf.relation() if name.endswith("ScanRelation") else leaf
        facts.update(v2_facts(relation, name))
    return facts


def relation_facts(relation: Any) -> dict[str, Json]:
    """Return the source of a relation of the first data source API."""
    name = relation.getClass().getSimpleName()
    if name == "HadoopFsRelation" and "delta" not in relation.location().getClass().getName():
        paths = relation.location().rootPaths()
        return {
            "paths": [place_of(path) for path in sequence(paths)],
            "format": relation.fileFormat().toString(),
            **_listed(relation),
        }
    if name == "JDBCRelation":
        return _of_database(relation.jdbcOptions())
    facts: dict[str, Json] = {"relation": relation.getClass().getName()}
    location = safely(partial(called, relation, "location"))
    if location is not None:  # Delta's, which is a class without a name
        facts["paths"] = [path.toString() for path in sequence(location.rootPaths())]
        facts["relation"] = location.getClass().getName()
        version = safely(lambda: int(location.snapshotAtAnalysis().version()))
        if isinstance(version, int):
            facts["version"] = str(version)
    return facts


def _of_database(options: Any) -> dict[str, Json]:
    """A table behind JDBC; of a query, whose text may hold data, a digest under the owner's key."""
    text = options.prepareQuery() + options.tableOrQuery()
    table = plain_table(text)
    facts = {"url": clean_url(options.url()), "dbtable": table, "format": "jdbc"}
    return facts if table else {**facts, "query": Digests(read_key()).of(text)}


def _listed(relation: Any) -> dict[str, Json]:
    """The files that a relation is to read, as its index listed them, and the options of their reader."""
    facts = {"listing": safely(partial(read_files, relation)), "options": safely(partial(read_options, relation))}
    return {name: value for name, value in facts.items() if value}


def _catalogued(relation: Any) -> dict[str, Json]:
    """The table of a relation that a catalog knows."""
    identifier, catalog = relation.identifier(), relation.catalog()
    if not identifier.isDefined():
        return {}
    found = identifier.get()
    parts = [str(part) for part in found.namespace()] + [str(found.name())]
    return {"table": [catalog.get().name(), *parts] if catalog.isDefined() else parts}


def v2_facts(relation: Any, name: str) -> dict[str, Json]:
    """Return the source of a relation of the second data source API."""
    facts: dict[str, Json] = {}
    table = relation.table()
    facts["relation"] = table.getClass().getName()
    if facts["relation"].endswith(".RowLevelOperationTable"):
        facts["operation"] = str(table.operation().command().toString())
        table = table.table()
    identifier = relation.identifier()
    known = identifier.isDefined() if name != "ResolvedTable" else True
    if known:
        found = identifier.get() if name != "ResolvedTable" else identifier
        parts = [str(part) for part in found.namespace()] + [str(found.name())]
        catalog = relation.catalog()
        owner = catalog if name == "ResolvedTable" else catalog.get() if catalog.isDefined() else None
        if owner is not None:
            parts.insert(0, owner.name())
        facts["table"] = parts
    else:
        facts["name"] = table.name()
    if "iceberg" in facts["relation"] and safely(partial(_is_metadata, table)) is True:
        return facts  # of another table: its place is not this one's
    location = safely(lambda: table.properties().get("location"))
    if isinstance(location, str):
        facts["paths"] = [location]
    paths = safely(lambda: [path.toString() for path in sequence(table.fileIndex().rootPaths())])
    if isinstance(paths, list):
        facts["paths"] = paths
    if facts["relation"].endswith(".JDBCTable"):
        facts.update(safely(lambda: {"url": clean_url(table.jdbcOptions().url()), "dbtable": table.name()}) or {})
    version = safely(lambda: _version(table))
    if isinstance(version, str):
        facts["version"] = version
    return facts


def _is_metadata(table: Any) -> bool:
    """Return whether a table of Iceberg is one of those that describe another: its snapshots, its files."""
    kind = table.table().getClass()
    while kind is not None:
        if kind.getSimpleName() == "BaseMetadataTable":
            return True
        kind = kind.getSuperclass()
    return False


def _version(table: Any) -> str | None:
    kind = table.getClass().getName()
    if "delta" in kind:
        return str(table.initialSnapshot().version())
    if "iceberg" in kind:
        chosen = safely(partial(called, table, "snapshotId"))  # time travel
        if chosen is not None:
            return str(chosen)
        branch = safely(partial(called, table, "branch"))
        snapshot = table.table().currentSnapshot() if branch is None else table.table().snapshot(branch)
        return str(snapshot.snapshotId()) if snapshot is not None else None
    return None
