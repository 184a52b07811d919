"""An analyzed plan as JSON: what ``toJSON()`` says, without data, and what it leaves out.

``toJSON()`` is one call over py4j whatever the size of a plan, but it loses where files are, what a command writes and
how, and cuts lists of strings at 25: these are asked for, a few calls a table. Literals are data and are not kept, but
for those that say which part of a value is meant: names of struct fields, keys of maps, paths into JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from govtool.spark.live.definitions import definition_facts
from govtool.spark.live.scala import sequence

MAX_JSON = 64 << 20
"""Characters of a plan as Spark writes it; larger ones are not taken apart."""
MAX_LEAVES = 2000

_TEXTS = frozenset(
    {"class", "name", "object", "udfName", "table", "database", "catalog", "provider", "tableName", "functionName"}
)
"""Fields whose text is kept: names, never values."""
_DROPPED = frozenset(
    {
        "num-children", "metadata", "nullable", "jvmId", "qualifier", "nonInheritableMetadataKeys", "explicitMetadata",
        "product-class", "properties", "evalContext", "timeZoneId", "originalText", "viewText", "createTime", "owner",
        "lastAccessTime", "createVersion", "ignoredProperties", "unsupportedFeatures", "tracksPartitionsInCatalog",
        "schemaPreservesCase", "isStreaming", "resultId", "schema", "hint", "storage", "comment", "options",
    }
)  # fmt: skip
_SELECTING = {"CreateNamedStruct": 0, "GetJsonObject": 1, "GetMapValue": 1, "Stack": 2, "VariantGet": 1}
"""Expressions with literals that select: which of their arguments (for a struct every second, for stack the first)."""

Json = Any


def captured(plan: Any) -> dict[str, Json]:
    """Return ``{"plan": nodes, "leaves": facts, "command": facts}`` of a Catalyst plan behind py4j.

    Raises:
        ValueError: The plan is too large.
    """
    text = plan.toJSON()
    if len(text) > MAX_JSON:
        raise ValueError("plan-too-large")
    nodes = json.loads(text)
    found: dict[str, Json] = {"plan": trimmed(nodes), "leaves": {}}
    _supplement(plan, found["plan"], found["leaves"], [MAX_LEAVES])
    command = command_facts(plan) or definition_facts(plan)
    if command:
        found["command"] = command
    elif found["plan"] and found["plan"][0]["c"] == "Union":  # a multi-insert is a union of commands
        commands = [command_facts(child) for child in sequence(plan.children())]
        if all(commands):
            found["commands"] = commands
    return found


def trimmed(value: Json) -> Json:
    """Return a plan without what lineage does not need: a node has its class ``c`` and its number of children ``n``."""
    if isinstance(value, list):
        if value and isinstance(value[0], dict) and "class" in value[0]:
            return _trimmed_tree(value)
        return [trimmed(item) for item in value]
    if isinstance(value, dict):
        kind = value.get("product-class", "")
        if kind.endswith((".ExprId", ".CommonExpressionId")):
            return value.get("id")
        kept = {
            key: trimmed(item)
            for key, item in value.items()
            if key not in _DROPPED and item is not None and (key in _TEXTS or not isinstance(item, str))
        }
        if kind:
            kept["k"] = kind.rsplit(".", 1)[-1].rstrip("$")
        return kept
    return value


def _trimmed_tree(nodes: list[dict[str, Json]]) -> list[dict[str, Json]]:
    made = []
    parents: list[list[Any]] = []  # class, children left, position of the next child
    for node in nodes:
        while parents and not parents[-1][1]:
            parents.pop()
        name = str(node["class"]).rsplit(".", 1)[-1]
        around, position = "", 0
        if parents:
            around, position = parents[-1][0], parents[-1][2]
            parents[-1][1] -= 1
            parents[-1][2] += 1
        kept: dict[str, Json] = {"c": name, "n": node.get("num-children", 0)}
        if name == "Literal":
            if _selects(around, position):
                kept["value"] = node.get("value")
        else:
            for key, item in node.items():
                if key in _DROPPED or item is None or key == "class":
                    continue
                if (
                    key == "dataType"
                    and name != "AttributeReference"
                    and not (name == "Cast" and isinstance(item, dict))
                ):
                    continue
                if isinstance(item, str) and key not in _TEXTS and key not in ("dataType", "joinType"):
                    continue
                kept[key] = item if key == "dataType" else trimmed(item)
        made.append(kept)
        parents.append([name, kept["n"], 0])
    return made


def _selects(around: str, position: int) -> bool:
    wanted = _SELECTING.get(around)
    if wanted is None:
        return False
    return (
        position % 2 == 0
        if around == "CreateNamedStruct"
        else position == 0
        if around == "Stack"
        else position == wanted
    )


# ---- what the JSON leaves out ---------------------------------------------------------------------------------


def _supplement(plan: Any, nodes: list[dict[str, Json]], leaves: dict[str, Json], budget: list[int]) -> None:
    """Add what is known of the leaves of a plan, of the plans in its commands and of its subqueries.

    Leaves are counted in the order of the JSON, which is that of ``collectLeaves()``; they are marked ``leaf``.
    """
    own = [node for node in nodes if not node["n"]]
    wanted = [(i, node) for i, node in enumerate(own) if node["c"] in _LEAVES]
    if wanted:
        behind = sequence(plan.collectLeaves())
        if len(behind) == len(own):
            for i, node in wanted:
                if not budget[0]:
                    return
                budget[0] -= 1
                key = str(len(leaves))
                leaves[key] = _safely(partial(leaf_facts, behind[i]))
                node["leaf"] = key
    for path, node in _paths(nodes):
        if node["c"] == "Expand" and not isinstance(node.get("projections"), list) and budget[0]:
            budget[0] -= 1
            rows = _safely(partial(_projections_at, plan, path))
            if rows:
                node["projections"] = rows
    commands = [node for node in nodes if any(_is_tree(node.get(name)) for name in _PLANS)]
    if commands and commands[0] is nodes[0]:
        for name in _PLANS:
            inner: Json = nodes[0].get(name)
            if _is_tree(inner):
                behind_command = _safely(partial(_called, plan, name))
                if behind_command is not None:
                    _supplement(behind_command, inner, leaves, budget)
    subqueries = [inner for node in nodes for inner in _subqueries(node)]
    if subqueries:
        own_queries = _own_subqueries(plan, nodes)
        if len(own_queries) == len(subqueries):
            for query, inner in zip(own_queries, subqueries):
                _supplement(query, inner, leaves, budget)


def _paths(nodes: list[dict[str, Json]]) -> Iterator[Any]:
    """Nodes with the way to them: the position of each child from the root."""
    open_: list[list[Any]] = []  # path, children left, position of the next child
    for node in nodes:
        while open_ and not open_[-1][1]:
            open_.pop()
        path: list[int] = []
        if open_:
            path = open_[-1][0] + [open_[-1][2]] if len(open_) < 200 else []
            open_[-1][1] -= 1
            open_[-1][2] += 1
        yield path, node
        open_.append([path, node["n"], 0])


def _at(plan: Any, path: list[int]) -> Any:
    for position in path:
        plan = plan.children().apply(position)
    return plan


def _projections_at(plan: Any, path: list[int]) -> list[list[Json]]:
    expand = _at(plan, path)
    rows = expand.projections()
    if rows.size() * expand.output().size() > MAX_LEAVES:
        return []
    return [[trimmed(json.loads(item.toJSON())) for item in sequence(row)] for row in sequence(rows)]


_PLANS = ("query", "plan", "child", "source", "target")


def _is_tree(value: Json) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "c" in value[0]


def _subqueries(node: Json) -> Iterator[list[dict[str, Json]]]:
    """The plans of the subqueries in the expressions of a node of a plan, in order."""
    for key, value in node.items():
        if isinstance(value, list) and not (key in _PLANS and _is_tree(value)):
            for tree in _trees(value):
                for expression in tree:
                    inner: Json = expression.get("plan")
                    if _is_tree(inner):
                        yield inner


def _trees(value: list[Json]) -> Iterator[list[dict[str, Json]]]:
    if _is_tree(value):
        yield value
    else:
        for item in value:
            if isinstance(item, list):
                yield from _trees(item)


def _own_subqueries(plan: Any, nodes: list[dict[str, Json]]) -> list[Any]:
    """The subqueries of the nodes of a plan, those within subqueries left out, in the order of the JSON."""
    every = sequence(plan.subqueriesAll())
    direct = sum(1 for node in nodes for _ in _subqueries(node))
    # subqueriesAll: those of the plan's own nodes first, then those within each of them.
    return every[:direct]


_LEAVES = frozenset(
    {
        "LogicalRelation", "HiveTableRelation", "DataSourceV2Relation", "DataSourceV2ScanRelation", "StreamingRelation",
        "StreamingRelationV2", "StreamingExecutionRelation", "StreamingDataSourceV2Relation",
        "StreamingDataSourceV2ScanRelation", "InMemoryRelation", "LogicalRDD", "ResolvedTable",
    }
)  # fmt: skip


def leaf_facts(leaf: Any) -> dict[str, Json]:
    """What a leaf of a plan reads: ``table`` (parts of its name), ``paths``, ``format``, ``url``."""
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
        table = _safely(partial(_called, source, "catalogTable"))
        if table is not None and table.isDefined():
            facts["table"] = table_parts(table.get().identifier())
        facts["relation"] = source.className()
    elif name == "StreamingRelationV2":
        facts.update(_safely(partial(_catalogued, leaf)) or {})
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
    elif name.startswith(("DataSourceV2", "StreamingDataSourceV2")) or name == "ResolvedTable":
        relation = leaf.relation() if name.endswith("ScanRelation") else leaf
        facts.update(v2_facts(relation, name))
    return facts


def qualified(text: str, session: Any = None) -> str:
    """A path as Hadoop sees it: with its scheme, from the root."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context
    path = context._jvm.org.apache.hadoop.fs.Path(text)
    conf = session.sessionState().newHadoopConf() if session is not None else context._jsc.hadoopConfiguration()
    system = path.getFileSystem(conf)
    return str(system.makeQualified(path).toString())


def relation_facts(relation: Any) -> dict[str, Json]:
    """What a relation of the first data source API reads."""
    name = relation.getClass().getSimpleName()
    if name == "HadoopFsRelation" and "delta" not in relation.location().getClass().getName():
        paths = relation.location().rootPaths()
        return {
            "paths": [path.toString() for path in sequence(paths)],
            "format": relation.fileFormat().toString(),
        }
    if name == "JDBCRelation":
        options = relation.jdbcOptions()
        return {"url": clean_url(options.url()), "dbtable": plain_table(options.tableOrQuery()), "format": "jdbc"}
    facts: dict[str, Json] = {"relation": relation.getClass().getName()}
    location = _safely(partial(_called, relation, "location"))
    if location is not None:  # Delta's, which is a class without a name
        facts["paths"] = [path.toString() for path in sequence(location.rootPaths())]
        facts["relation"] = location.getClass().getName()
        version = _safely(lambda: int(location.snapshotAtAnalysis().version()))
        if isinstance(version, int):
            facts["version"] = str(version)
    return facts


def _catalogued(relation: Any) -> dict[str, Json]:
    """The table of a relation that a catalog knows."""
    identifier, catalog = relation.identifier(), relation.catalog()
    if not identifier.isDefined():
        return {}
    found = identifier.get()
    parts = [str(part) for part in found.namespace()] + [str(found.name())]
    return {"table": [catalog.get().name(), *parts] if catalog.isDefined() else parts}


def v2_facts(relation: Any, name: str) -> dict[str, Json]:
    """What a relation of the second data source API reads."""
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
    if "iceberg" in facts["relation"] and _safely(partial(_is_metadata, table)) is True:
        return facts  # of another table: its place is not this one's
    location = _safely(lambda: table.properties().get("location"))
    if isinstance(location, str):
        facts["paths"] = [location]
    paths = _safely(lambda: [path.toString() for path in sequence(table.fileIndex().rootPaths())])
    if isinstance(paths, list):
        facts["paths"] = paths
    version = _safely(lambda: _version(table))
    if isinstance(version, str):
        facts["version"] = version
    return facts


def _is_metadata(table: Any) -> bool:
    """Whether a table of Iceberg is one of those that describe another: its snapshots, its files."""
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
        chosen = _safely(partial(_called, table, "snapshotId"))  # time travel
        if chosen is not None:
            return str(chosen)
        branch = _safely(partial(_called, table, "branch"))
        snapshot = table.table().currentSnapshot() if branch is None else table.table().snapshot(branch)
        return str(snapshot.snapshotId()) if snapshot is not None else None
    return None


def command_facts(plan: Any) -> dict[str, Json]:
    """What a command writes and how, where it is one that writes."""
    name = plan.getClass().getSimpleName()
    read = _COMMANDS.get(name)
    facts = _safely(lambda: read(plan)) if read is not None else None
    return facts if isinstance(facts, dict) else {}


def _insert_into_files(plan: Any) -> dict[str, Json]:
    facts: dict[str, Json] = {
        "path": plan.outputPath().toString(),
        "mode": plan.mode().toString(),
        "format": plan.fileFormat().toString(),
        "columns": strings(plan.outputColumnNames()),
        "static": bool(plan.staticPartitions().nonEmpty()),
        "dynamic": bool(plan.dynamicPartitionOverwrite()),
        "partitioned": [a.name() for a in sequence(plan.partitionColumns())],
    }
    table = plan.catalogTable()
    if table.isDefined():
        facts["table"] = table_parts(table.get().identifier())
    return facts


def _table_as_select(plan: Any) -> dict[str, Json]:
    facts = _catalog_table(plan.table())
    facts.update(mode=plan.mode().toString(), columns=strings(plan.outputColumnNames()))
    return facts


def _catalog_table(table: Any) -> dict[str, Json]:
    facts: dict[str, Json] = {"table": table_parts(table.identifier())}
    location = table.storage().locationUri()
    if location.isDefined():
        facts["path"] = location.get().toString()
    provider = table.provider()
    if provider.isDefined():
        facts["format"] = provider.get()
    return facts


def _save_as_v1(plan: Any) -> dict[str, Json]:
    return dict(_catalog_table(plan.tableDesc()), mode=plan.mode().toString())


def _hive_table(plan: Any) -> dict[str, Json]:
    facts = _catalog_table(plan.table())
    facts.update(mode="Overwrite" if plan.overwrite() else "Append", columns=strings(plan.outputColumnNames()))
    facts["static"] = bool(plan.partition().nonEmpty())
    return facts


def _hive_as_select(plan: Any) -> dict[str, Json]:
    facts = _catalog_table(plan.tableDesc())
    facts.update(mode=plan.mode().toString(), columns=strings(plan.outputColumnNames()))
    return facts


def _directory(plan: Any) -> dict[str, Json]:
    location = plan.storage().locationUri()
    facts = {"mode": "Overwrite" if plan.overwrite() else "Append"}
    if location.isDefined():
        facts["path"] = location.get().toString()
    return facts


def _save_into_source(plan: Any) -> dict[str, Json]:
    options = plan.options()
    facts: dict[str, Json] = {"mode": plan.mode().toString(), "relation": plan.dataSource().getClass().getName()}
    for key in ("path", "url", "dbtable", "topic", "kafka.bootstrap.servers"):
        value = options.get(key)
        if value.isDefined():
            text = value.get()
            facts[key] = clean_url(text) if key == "url" else plain_table(text) if key == "dbtable" else text
            if key == "path":
                facts[key] = _safely(partial(qualified, text)) or text
    return facts


def _insert_into_source(plan: Any) -> dict[str, Json]:
    facts = leaf_facts(plan.logicalRelation())
    facts["mode"] = "Overwrite" if plan.overwrite() else "Append"
    return facts


def _v2_write(plan: Any) -> dict[str, Json]:
    relation = plan.table()
    name = relation.getClass().getSimpleName()
    facts = v2_facts(relation, name)
    if _safely(partial(_called, plan, "isByName")) is not True:  # else the columns are those that the query names
        facts["columns"] = [column.name() for column in sequence(relation.output())]
    return facts


def _v2_overwrite(plan: Any) -> dict[str, Json]:
    facts = _v2_write(plan)
    facts["condition"] = plan.deleteExpr().getClass().getSimpleName() not in ("Literal", "AlwaysTrue")
    return facts


def _v2_view(plan: Any) -> dict[str, Json]:
    resolved = plan.child()
    name = resolved.identifier()
    parts = [resolved.catalog().name(), *[str(part) for part in name.namespace()], str(name.name())]
    return {"table": parts, "kind": "PersistedView", "columns": strings(plan.columnAliases())}


def _v2_create(plan: Any) -> dict[str, Json]:
    name = plan.name()
    parts = [str(part) for part in name.identifier().namespace()] + [name.identifier().name()]
    return {"table": [name.catalog().name(), *parts]}


def _view(plan: Any) -> dict[str, Json]:
    facts: dict[str, Json] = {"table": table_parts(plan.name()), "kind": plan.viewType().toString()}
    facts["columns"] = [column._1() for column in sequence(plan.userSpecifiedColumns())]
    return facts


def _altered_view(plan: Any) -> dict[str, Json]:
    return {"table": table_parts(plan.name())}


def _v2_row_level(plan: Any) -> dict[str, Json]:
    facts = _v2_write(plan)
    original = plan.originalTable()
    facts["original"] = original.getClass().getSimpleName()
    return facts


_COMMANDS: dict[str, Callable[[Any], dict[str, Json]]] = {
    "InsertIntoHadoopFsRelationCommand": _insert_into_files,
    "CreateDataSourceTableAsSelectCommand": _table_as_select,
    "SaveAsV1TableCommand": _save_as_v1,
    "InsertIntoHiveTable": _hive_table,
    "CreateHiveTableAsSelectCommand": _hive_as_select,
    "InsertIntoDataSourceDirCommand": _directory,
    "InsertIntoHiveDirCommand": _directory,
    "SaveIntoDataSourceCommand": _save_into_source,
    "InsertIntoDataSourceCommand": _insert_into_source,
    "AppendData": _v2_write,
    "OverwriteByExpression": _v2_overwrite,
    "OverwritePartitionsDynamic": _v2_write,
    "CreateTableAsSelect": _v2_create,
    "ReplaceTableAsSelect": _v2_create,
    "DeltaDynamicPartitionOverwriteCommand": _v2_write,
    "CreateIcebergView": _v2_view,
    "ReplaceData": _v2_row_level,
    "WriteDelta": _v2_row_level,
    "CreateViewCommand": _view,
    "AlterViewAsCommand": _altered_view,
}


# ---- Scala behind py4j ---------------------------------------------------------------------------------------------


def strings(value: Any) -> list[str]:
    """The elements of a Scala Seq of strings, in one call."""
    if value.isEmpty():
        return []
    text: str = value.mkString("\x01")
    return text.split("\x01")


def table_parts(identifier: Any) -> list[str]:
    """Catalog, database and table of a ``TableIdentifier``, as many as it has."""
    parts = []
    for name in ("catalog", "database"):
        part = _safely(partial(_called, identifier, name))
        if part is not None and part.isDefined():
            parts.append(part.get())
    return [*parts, identifier.table()]


def _called(value: Any, name: str) -> Any:
    return getattr(value, name)()


def _safely(read: Callable[[], Any]) -> Any:
    """What a call says, or None: one Spark version or another lacks a method, and the rest is still worth having."""
    try:
        return read()
    except Exception:
        return None


_LOGIN = re.compile(r"(?<=//)[^/@]*@|(?<=thin:)[^@/]+/[^@]*(?=@)")
_PARAMETER = re.compile(
    r"([?&;]\s*(?:user|password|[\w.]*(?:secret|token|key|pwd|pass)[\w.]*)\s*=)[^&;]*", re.IGNORECASE
)
_PLAIN_TABLE = re.compile(r"[\w$.\"`\[\] -]+\Z")


def clean_url(url: str) -> str:
    """A JDBC URL without logins."""
    return _PARAMETER.sub(r"\1***", _LOGIN.sub("", url))


def plain_table(text: str) -> str:
    """A table's name; empty for a query, whose text may hold data."""
    return text if _PLAIN_TABLE.match(text) else ""
