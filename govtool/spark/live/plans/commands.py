"""Writes of commands: class by class."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from govtool.spark.live.job.cleaned import clean_url, plain_table
from govtool.spark.live.jvm.hadoop import qualified
from govtool.spark.live.jvm.scala import called, safely, sequence, strings, table_parts
from govtool.spark.live.plans.relations import leaf_facts, v2_facts

Json = Any

_SOME_ROWS = frozenset(["replacewhere", "replaceon", "replaceusing"])
"""Options of Delta's writer, in lower case, by which an overwrite replaces the rows that it names."""


def command_facts(plan: Any) -> dict[str, Json]:
    """Return the target and the mode of a command that writes."""
    name = plan.getClass().getSimpleName()
    read = _COMMANDS.get(name)
    facts = safely(lambda: read(plan)) if read is not None else None
    return facts if isinstance(facts, dict) else {}


def _insert_into_files(plan: Any) -> dict[str, Json]:
    facts: dict[str, Json] = {
        "path": plan.outputPath().toString(),
        "mode": plan.mode().toString(),
        "format": plan.fileFormat().toString(),
        "columns": strings(plan.outputColumnNames()),
        "static": bool(plan.staticPartitions().nonEmpty()),
        "dynamic": bool(plan.dynamicPartitionOverwrite()),
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
        facts["path"] = _qualified(location.get().toString())
    return facts


def _qualified(path: str) -> str:
    found: str | None = safely(partial(qualified, path))
    return found or path


def _replaces_some(options: Any) -> dict[str, Json]:
    """``condition``, where options of a writer make an overwrite one of some rows or partitions."""
    pairs = (part.partition(" -> ") for part in options.mkString("\x01").split("\x01"))
    given = {name.lower(): value for name, _, value in pairs}
    some = given.keys() & _SOME_ROWS or given.get("partitionoverwritemode", "").lower() == "dynamic"
    return {"condition": True} if some else {}


def _save_into_source(plan: Any) -> dict[str, Json]:
    options = plan.options()
    facts: dict[str, Json] = {"mode": plan.mode().toString(), "relation": plan.dataSource().getClass().getName()}
    facts.update(_replaces_some(options))
    for key in ("path", "url", "dbtable", "topic", "kafka.bootstrap.servers"):
        value = options.get(key)
        if value.isDefined():
            text = value.get()
            facts[key] = clean_url(text) if key == "url" else plain_table(text) if key == "dbtable" else text
            if key == "path":
                facts[key] = _qualified(text)
    return facts


def _insert_into_source(plan: Any) -> dict[str, Json]:
    facts = leaf_facts(plan.logicalRelation())
    facts["mode"] = "Overwrite" if plan.overwrite() else "Append"
    return facts


def _v2_write(plan: Any) -> dict[str, Json]:
    relation = plan.table()
    name = relation.getClass().getSimpleName()
    facts = v2_facts(relation, name)
    if safely(partial(called, plan, "isByName")) is not True:  # else the columns are those that the query names
        facts["columns"] = [column.name() for column in sequence(relation.output())]
    return facts


def _v2_overwrite(plan: Any) -> dict[str, Json]:
    facts = _v2_write(plan)
    facts["condition"] = plan.deleteExpr().getClass().getSimpleName() not in ("Literal", "AlwaysTrue")
    return {**facts, **_replaces_some(plan.writeOptions())}


def _v2_view(plan: Any) -> dict[str, Json]:
    resolved = plan.child()
    name = resolved.identifier()
    parts = [resolved.catalog().name(), *[str(part) for part in name.namespace()], str(name.name())]
    return {"table": parts, "kind": "PersistedView", "columns": strings(plan.columnAliases())}


def _v2_create(plan: Any) -> dict[str, Json]:
    name = plan.name()
    parts = [str(part) for part in name.identifier().namespace()] + [name.identifier().name()]
    facts: dict[str, Json] = {"table": [name.catalog().name(), *parts], **_replaces_some(plan.writeOptions())}
    provider = safely(lambda: plan.tableSpec().provider())
    if provider is not None and provider.isDefined():
        facts["provider"] = provider.get()
    return facts


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
