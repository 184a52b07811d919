"""Writes of plans: the commands of Spark's own sources, of Hive, of connectors, of Delta and Iceberg."""

from __future__ import annotations

import re

from govtool.capture.openlineage.identity import DatasetName
from govtool.capture.spark.identity import DatasetPlace, path_name, split_table, topic_name
from govtool.capture.spark.jdbc import table_behind
from govtool.capture.spark.plantext import lists
from govtool.capture.spark.plantext.plan_write import TABLE, PlanWrite, listed_columns, query_below
from govtool.capture.spark.plantext.scans import Names, source_of
from govtool.capture.spark.plantext.table_writes import overwritten_partitions, replaces_some, row_changes, table_v2
from govtool.capture.spark.plantext.tree import Operator, PlanTree
from govtool.capture.spark.plantext.view_writes import altered_view, created_view

_SAVE_MODES = {
    "overwrite": ("overwrite", "replace"),
    "append": ("append", "append"),
    "errorifexists": ("errorifexists", "replace"),
    "ignore": ("ignore", "replace"),
}
_INSERT = re.compile(r"(.*?), (true|false)(?=, )", re.DOTALL)
_OPTION = re.compile(r"\b(url|dbtable|path|topic|kafka\.bootstrap\.servers|query)=([^,\]]*)", re.IGNORECASE)
_RELATION = re.compile(r"(?=.*, (?:true|false)\Z)Relation \[.*?\] (\S.*), (true|false)\Z", re.DOTALL)
_DYNAMIC = re.compile(r"\bpartitionOverwriteMode=dynamic\b", re.IGNORECASE)
_STORAGE = re.compile(r"Location: ([^,)]+)")
_WRITER_OF = re.compile(r"\AMicroBatchWrite\[.*writer: \w+Write\(table=([\w.`$-]+)", re.DOTALL)
_DEFINITIONS = re.compile(
    r"(?:CacheTable|CacheTableAsSelect|UncacheTable|Create|Drop|Alter|Rename|Truncate|Set|Show|Describe|Refresh|Add|Use"
    r"|Replace(?:Table)?|Comment|Analyze|Reset|Declare|CommandResult$)\w*(?: |\Z)"
)


def _first_word(text: str) -> str:
    """The first word of an operator's name; empty where a damaged plan has none."""
    return next(iter(text.split()), "")


def write_of(tree: PlanTree, names: Names) -> PlanWrite | None:
    """Return the write of a plan; None if it only reads."""
    root = tree.root
    while _first_word(root.name) in ("AdaptiveSparkPlan", "CommandResult", "ResultQueryStage", "CommandResultExec"):
        if len(root.children) != 1:
            return None
        root = root.children[0]
    name = _first_word(root.name.removeprefix("Execute "))
    inner = root.children[0] if len(root.children) == 1 and _first_word(root.children[0].name) == name else root
    if root.name.startswith("Execute") and not inner.fields.get("Arguments") and root.fields.get("Arguments"):
        inner.fields["Arguments"] = root.fields["Arguments"]
    name = re.sub(r"^(?:Photon|Gpu|Optimized|Native)(?=[A-Z])", "", name)
    method = _COMMANDS.get(name.removesuffix("Exec")) or _SINKS.get(name)
    return None if method is None else method(inner, name, names)


def is_command(tree: PlanTree) -> bool:
    """Return whether a plan only does something to the catalog or the session, which says nothing of columns."""
    name = tree.root.name.strip()
    return name.startswith("Execute ") or bool(_DEFINITIONS.match(name))


def _files(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    """InsertIntoHadoopFsRelationCommand: path, static partitions, format, options, mode, table, columns."""
    text = operator.fields.get("Arguments", "")
    found = _INSERT.match(text)
    if found is None:
        return None
    place, _, static = found[1].partition(", [")
    path = path_name(place)
    parts = lists.arguments(text[found.end() + 2 :])
    if not parts:
        return None
    mode = next((part for part in parts if part.lower() in _SAVE_MODES), "")
    at = parts.index(mode) if mode else 0
    before = parts[:at]
    table = next((names.table(part) for part in parts[at + 1 :] if TABLE.fullmatch(part)), None)
    columns, hidden = listed_columns(parts[-1])
    save, change = _SAVE_MODES.get(mode.lower(), ("", "append"))
    partitions, format_ = _layout(before)
    static = static or next((part for part in before if part.startswith("Map(") and "->" in part), "")
    fixed = tuple(re.findall(r"(?<![\w$])([\w$]++)(?: -> |=)", static))
    dynamic = bool(partitions) and any(_DYNAMIC.search(part) for part in before)
    if change == "replace" and (fixed or dynamic):
        change = "append"  # only some partitions of it
    return PlanWrite(
        DatasetPlace(table, "table", (path,)) if table is not None else DatasetPlace(path, "file"),
        "insert", save, change, query_below(operator), columns, hidden, format_, partitions, fixed, alone=True,
    )  # fmt: skip


def _layout(arguments: list[str]) -> tuple[tuple[str, ...], str]:
    """The columns by which files are partitioned, and their format."""
    partitions: tuple[str, ...] = ()
    format_ = ""
    for part in arguments:
        if part.startswith("[") and "#" in part:
            partitions = tuple(item[1] for item in map(lists.attribute, lists.split(part).items) if item is not None)
        elif part and not part.startswith(("[", "Map(")) and "=" not in part:
            format_ = part
    return partitions, format_


def _create_as(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    """CREATE TABLE … AS and saveAsTable: table, mode, columns. The writing itself is an execution of its own."""
    text = operator.fields.get("Arguments", "")
    found = TABLE.search(text)
    listed = re.search(r"Database: ([^,\]]{1,1000}+), TableName: ([^,\]]+)", text)
    if found is None and listed is None:
        return None
    table = found[0] if found is not None else ".".join(listed.groups()) if listed is not None else ""
    parts = lists.arguments(text)
    mode = next((part for part in parts if part.lower() in _SAVE_MODES), "")
    save, change = _SAVE_MODES.get(mode.lower(), ("", "replace"))
    lists_ = [p for p in parts if p.startswith("[") and "#" not in p and not p.startswith("[Database: ")]
    columns, hidden = listed_columns(lists_[-1]) if lists_ else (None, 0)
    if name.startswith("SaveAsV1Table"):
        columns, hidden = None, 0
    return PlanWrite(
        DatasetPlace(names.table(table), "table"),
        "create_table_as",
        save,
        change,
        query_below(operator),
        columns,
        hidden,
        final=False,
        parts=len(split_table(table)),
    )


def _hive(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    """InsertIntoHiveTable: table, serde, partitions, overwrite, columns."""
    text = operator.fields.get("Arguments", "")
    found = TABLE.search(text)
    if found is None:
        return None
    parts = lists.arguments(text)
    overwrite = next((part for part in parts if part in ("true", "false")), "false") == "true"
    fixed = tuple(re.findall(r"(?<![\w$])([\w$]++)=Some\(", text))
    columns, hidden = next(
        ((listed_columns(p)) for p in reversed(parts) if p.startswith("[") and "=" not in p), (None, 0)
    )
    change = "replace" if overwrite and "=Some(" not in text and "=None" not in text else "append"
    return PlanWrite(
        DatasetPlace(names.table(found[0]), "table"), "insert", "overwrite" if overwrite else "append", change,
        query_below(operator), columns, hidden, "hive", fixed=fixed, alone=True,
    )  # fmt: skip


def _directory(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    text = operator.fields.get("Arguments", "")
    found = _STORAGE.search(text) or re.search(r"((?:[A-Za-z][\w+.-]{0,40}:)?/[^,)]+)", text)
    if found is None:
        return None
    overwrite = "true" in lists.arguments(text)[-2:]
    return PlanWrite(
        DatasetPlace(path_name(found[1].strip()), "file"), "insert", "overwrite" if overwrite else "append",
        "replace" if overwrite else "append", query_below(operator), final=False,
    )  # fmt: skip


def _source(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    """SaveIntoDataSourceCommand: provider, options, mode."""
    text = operator.fields.get("Arguments", "")
    options = {key.lower(): value.strip() for key, value in _OPTION.findall(text)}
    mode = next((word for word in re.findall(r"\b(Overwrite|Append|ErrorIfExists|Ignore)\b", text)), "Append")
    save, change = _SAVE_MODES[mode.lower()]
    change = "append" if change == "replace" and replaces_some(text) else change
    if "dbtable" in options and "url" in options and "redacted" not in options["url"]:
        place = DatasetPlace(table_behind(options["url"], options["dbtable"]), "table")
    elif "dbtable" in options:
        place = DatasetPlace(DatasetName("jdbc", options["dbtable"]), "table")
    elif "topic" in options:
        place = DatasetPlace(topic_name(options.get("kafka.bootstrap.servers", ""), options["topic"]), "table")
    elif "path" in options:
        place = DatasetPlace(path_name(options["path"]), "file")
    else:
        return None
    return PlanWrite(
        place,
        "insert",
        save,
        change,
        query_below(operator),
        format=text.split(",", 1)[0].rsplit(".", 1)[-1].split("@")[0],
    )


def _relation(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    """InsertIntoDataSourceCommand: ``Relation [a#1] JDBCRelation(items) [numPartitions=1], false``."""
    found = _RELATION.match(operator.fields.get("Arguments", ""))
    source = source_of(Operator(-1, found[1]), names) if found is not None else None
    if found is None or source is None or source.nothing:
        return None
    save, change = _SAVE_MODES["overwrite" if found[2] == "true" else "append"]
    return PlanWrite(source.place, "insert", save, change, query_below(operator), final=False, format=source.format)


def _stream(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    """A batch of a stream into a table that its writer names: ``MicroBatchWrite[… IcebergStreamingWrite(table=…``.
    Whether it adds rows or replaces them all is not told: what is not known to be gone stays.
    """
    writer = _WRITER_OF.search(operator.fields.get("Arguments", ""))
    if writer is None:
        return None
    return PlanWrite(DatasetPlace(names.table(writer[1]), "table"), "insert", "append", "append", query_below(operator))


def has_target(tree: PlanTree) -> bool:
    """Return whether a plan writes, be it that its text does not tell where to."""
    name = tree.root.name.strip().removeprefix("Execute ").split(" ", 1)[0]
    return name in _COMMANDS or name.removesuffix("Exec") in _COMMANDS


_COMMANDS = {
    "InsertIntoHadoopFsRelationCommand": _files,
    "CreateDataSourceTableAsSelectCommand": _create_as,
    "CreateHiveTableAsSelectCommand": _create_as,
    "OptimizedCreateHiveTableAsSelectCommand": _create_as,
    "SaveAsV1TableCommand": _create_as,
    "InsertIntoHiveTable": _hive,
    "InsertIntoDataSourceDirCommand": _directory,
    "InsertIntoHiveDirCommand": _directory,
    "SaveIntoDataSourceCommand": _source,
    "InsertIntoDataSourceCommand": _relation,
    "AppendData": table_v2,
    "AppendDataExecV1": table_v2,
    "AppendDataV1": table_v2,
    "OverwriteByExpression": table_v2,
    "OverwriteByExpressionExecV1": table_v2,
    "OverwriteByExpressionV1": table_v2,
    "OverwritePartitionsDynamic": table_v2,
    "ReplaceData": table_v2,
    "WriteDelta": table_v2,
    "CreateTableAsSelect": table_v2,
    "AtomicCreateTableAsSelect": table_v2,
    "ReplaceTableAsSelect": table_v2,
    "AtomicReplaceTableAsSelect": table_v2,
    "DeltaDynamicPartitionOverwriteCommand": overwritten_partitions,
    "CreateViewCommand": created_view,
    "AlterViewAsCommand": altered_view,
    "MergeIntoCommand": row_changes,
    "MergeIntoCommandEdge": row_changes,
    "UpdateCommand": row_changes,
    "UpdateCommandEdge": row_changes,
    "DeleteCommand": row_changes,
    "DeleteCommandEdge": row_changes,
    "DeleteFromTable": row_changes,
}
_SINKS = {"WriteToDataSourceV2": _stream}
"""Writers of a stream's batches; an unknown sink is `break.streaming-sink`."""
