"""Writes of plans: the commands of Spark's own sources, of Hive, of connectors, of Delta and Iceberg."""

from __future__ import annotations

import re

from govtool.capture.openlineage.identity import DatasetName
from govtool.capture.spark.identity import DatasetPlace, jdbc_name, path_name, split_table, topic_name
from govtool.capture.spark.plantext import lists
from govtool.capture.spark.plantext.plan_write import TABLE, PlanWrite, query_below
from govtool.capture.spark.plantext.rewritten import rewriting
from govtool.capture.spark.plantext.scans import Names
from govtool.capture.spark.plantext.tree import Operator, PlanTree
from govtool.capture.spark.plantext.view_writes import altered_view, created_view

_SAVE_MODES = {
    "overwrite": ("overwrite", "replace"),
    "append": ("append", "append"),
    "errorifexists": ("errorifexists", "replace"),
    "ignore": ("ignore", "replace"),
}
_PATHS = re.compile(r"[A-Za-z][\w+.-]*:/|/")
_INSERT = re.compile(r"(.*?), (true|false)(?=, )", re.DOTALL)
_OPTION = re.compile(r"\b(url|dbtable|path|topic|kafka\.bootstrap\.servers|query)=([^,\]]*)", re.IGNORECASE)
_DYNAMIC = re.compile(r"\bpartitionOverwriteMode=dynamic\b", re.IGNORECASE)
_STORAGE = re.compile(r"Location: ([^,)]+)")
_DELTA_TABLE = re.compile(r"(?:Delta\[version=(\d+), ([^\]]+)\]|DeltaTableV2\(.*?,((?:\w+:)?/[^,]+),)")
_JDBC_TABLE = re.compile(r"JDBCTable\(([^,]+),")
_JDBC_CATALOG = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
_WRITE_OF = re.compile(r"\w+Write\(table=([\w.`$-]+)")
_WRITER_OF = re.compile(r"\AMicroBatchWrite\[.*writer: \w+Write\(table=([\w.`$-]+)", re.DOTALL)
_RELATION_OF = re.compile(r"RelationV2(\[.*?\]) ")
_PLACES = frozenset({"_file", "_pos", "_spec_id", "_partition"})
"""Positions of rows, in Iceberg: what is read of a table so that rows of it can be marked as deleted."""
_DESCRIBED = re.compile(r"(?:Catalog: (\S+)\s+)?Database: (\S+)\s+Table: (\S+)")
_QUALIFIED = re.compile(r"`(?:[^`]|``)+`(?:\.`(?:[^`]|``)+`)+")
_LOGICAL = re.compile(r"\b(?:Project|Aggregate|Relation\w*|Union|Join|Filter|Sort|Window|Generate)\b")
_DEFINITIONS = re.compile(
    r"(?:CacheTable|CacheTableAsSelect|UncacheTable|Create|Drop|Alter|Rename|Truncate|Set|Show|Describe|Refresh|Add|Use"
    r"|Replace(?:Table)?|Comment|Analyze|Reset|Declare|CommandResult$)\w*(?: |\Z)"
)
_DOTTED = re.compile(r"[A-Za-z_][\w$-]*(?:\.[\w$-]+)+\Z")


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
    columns, hidden = _columns(parts[-1])
    save, change = _SAVE_MODES.get(mode.lower(), ("", "append"))
    partitions, format_ = _layout(before)
    static = static or next((part for part in before if part.startswith("Map(") and "->" in part), "")
    fixed = tuple(re.findall(r"([\w$]+)(?: -> |=)", static))
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


def _columns(text: str) -> tuple[tuple[str, ...] | None, int]:
    if not text.startswith("["):
        return None, 0
    elements = lists.split(text)
    return tuple(elements.items), elements.more


def _create_as(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    """CREATE TABLE … AS and saveAsTable: table, mode, columns. The writing itself is an execution of its own."""
    text = operator.fields.get("Arguments", "")
    found = TABLE.search(text)
    listed = re.search(r"Database: ([^,\]]+), TableName: ([^,\]]+)", text)
    if found is None and listed is None:
        return None
    table = found[0] if found is not None else ".".join(listed.groups()) if listed is not None else ""
    parts = lists.arguments(text)
    mode = next((part for part in parts if part.lower() in _SAVE_MODES), "")
    save, change = _SAVE_MODES.get(mode.lower(), ("", "replace"))
    lists_ = [p for p in parts if p.startswith("[") and "#" not in p and not p.startswith("[Database: ")]
    columns, hidden = _columns(lists_[-1]) if lists_ else (None, 0)
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
    fixed = tuple(re.findall(r"([\w$]+)=Some\(", text))
    columns, hidden = next(((_columns(p)) for p in reversed(parts) if p.startswith("[") and "=" not in p), (None, 0))
    change = "replace" if overwrite and "=Some(" not in text and "=None" not in text else "append"
    return PlanWrite(
        DatasetPlace(names.table(found[0]), "table"), "insert", "overwrite" if overwrite else "append", change,
        query_below(operator), columns, hidden, "hive", fixed=fixed, alone=True,
    )  # fmt: skip


def _directory(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    text = operator.fields.get("Arguments", "")
    found = _STORAGE.search(text) or re.search(r"((?:[A-Za-z][\w+.-]*:)?/[^,)]+)", text)
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
    if "dbtable" in options and "url" in options and "redacted" not in options["url"]:
        place = DatasetPlace(jdbc_name(options["url"], options["dbtable"]), "table")
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


def _table_v2(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    """AppendData and its neighbours of data source V2; CREATE and REPLACE TABLE AS of other catalogs."""
    text = operator.fields.get("Arguments", "")
    create = "AsSelect" in name
    place = table_of(text, names, create=create)
    query = operator.children[-1] if operator.children else None
    if place is None and operator.children:
        for child in operator.children:
            place = place or (table_of(child.fields.get("Arguments", ""), names) if not child.children else None)
    if place is None and name.startswith("WriteDelta"):
        place = _changed_table(operator, names)
    if place is None:
        return None
    if create:
        replace = name.startswith(("Replace", "AtomicReplace"))
        save = "overwrite" if replace else "errorifexists"
        expects = _expected(text)
        return PlanWrite(
            place,
            "create_table_as",
            save,
            "replace",
            query,
            final=query is not None,
            expects=expects,
            columns=tuple(name for _, name in expects) or None,
        )
    if name.startswith("Append"):
        return PlanWrite(place, "insert", "append", "append", query, final=query is not None, expects=_expected(text))
    if name.startswith(("ReplaceData", "WriteDelta")):
        kind = rewriting(query)
        return PlanWrite(place, kind, kind, "delete" if kind == "delete" else "update", query)
    # Which rows go, some or all, is seldom told; what is not known to be gone stays.
    whole = name.startswith("OverwriteByExpression") and (re.search(r"\btrue\b|AlwaysTrue", text) is not None)
    return PlanWrite(
        place,
        "insert",
        "overwrite",
        "replace" if whole else "append",
        query,
        final=query is not None,
        expects=_expected(text),
    )


def _changed_table(operator: Operator, names: Names) -> DatasetPlace | None:
    """The table of which rows are marked as deleted: the one whose rows' places are read. The write has no name."""
    found = set()
    for leaf in operator.walk():
        if not leaf.children and leaf.name.startswith("BatchScan "):
            read = {own[1] for own in map(lists.attribute, lists.split(leaf.fields.get("Output", "")).items) if own}
            if read >= _PLACES:
                found.add(leaf.name.split()[1])
    return DatasetPlace(names.table(found.pop()), "table") if len(found) == 1 else None


def _stream(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    """A batch of a stream into a table that its writer names: ``MicroBatchWrite[… IcebergStreamingWrite(table=…``.
    Whether it adds rows or replaces them all is not told: what is not known to be gone stays.
    """
    writer = _WRITER_OF.search(operator.fields.get("Arguments", ""))
    if writer is None:
        return None
    return PlanWrite(DatasetPlace(names.table(writer[1]), "table"), "insert", "append", "append", query_below(operator))


def _overwrite_partitions(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    """Of Delta: the table with its columns, itself, whether it goes by name, the query."""
    text = operator.fields.get("Arguments", "")
    place = table_of(text, names)
    if place is None:
        return None
    by_name = "true" in lists.arguments(text)
    listed = _RELATION_OF.match(text)
    columns, hidden = (None, 0) if by_name or listed is None else _columns(listed[1])
    if columns is not None:
        columns = tuple(own[1] for own in map(lists.attribute, columns) if own is not None)
    return PlanWrite(place, "insert", "overwrite", "append", query_below(operator), columns, hidden)


def _expected(text: str) -> tuple[tuple[int, str], ...]:
    """The columns of a logical plan that stands, by its first line, among the arguments."""
    listed = [part for part in lists.arguments(text) if re.search(r"#\d+", part)]
    if not listed or not (_LOGICAL.match(listed[0].strip()) or listed[0].startswith("[")):
        return ()
    last = listed[-1]
    start, end = last.find("["), last.rfind("]")
    if start < 0 or end < start:
        return ()
    body = last[start + 1 : end]
    elements = lists.split(body if ", " in body or "," not in body else body.replace(",", ", "))
    named = [lists.alias(item) for item in elements.items]
    plain = [lists.attribute(item) for item in elements.items]
    found = [
        (made[1], made[2]) if made is not None else own if own is not None else (0, "")
        for made, own in zip(named, plain, strict=True)
    ]
    return () if elements.more or not all(name for _, name in found) else tuple(found)


def table_of(text: str, names: Names, *, create: bool = False) -> DatasetPlace | None:
    """The table of data source V2, or of Delta Lake, that the arguments of a command name; None if they name none.

    Args:
        text: The arguments.
        names: How names are read.
        create: The command makes the table: it is named by its catalog's class and its name.
    """
    delta = _delta_table(text, names)
    if delta is not None:
        return delta
    parts = lists.arguments(text)
    for part in parts:
        if _QUALIFIED.fullmatch(part.strip()) or (create and TABLE.fullmatch(part.strip())):
            return DatasetPlace(names.table(part.strip()), "table")
    written = _WRITE_OF.search(text)
    if written is not None:
        return DatasetPlace(names.table(written[1]), "table")
    behind = _JDBC_TABLE.match(text)
    if behind is not None:
        return DatasetPlace(names.in_catalog(_JDBC_CATALOG, behind[1].strip()), "table")
    if create and len(parts) > 1 and "@" in parts[0]:
        return DatasetPlace(names.in_catalog(parts[0].split("@", 1)[0].strip(), parts[1].strip()), "table")
    words = (word for part in parts for word in re.findall(r"[^\s(),\[\]@]+", part))
    dotted = next((w for w in words if _DOTTED.match(w) and not w.startswith(("org.", "com.", "io.", "java."))), None)
    if dotted is not None:
        return DatasetPlace(names.table(dotted), "table")
    path = next((part for part in parts if _PATHS.match(part)), None)
    return DatasetPlace(path_name(path), "file") if path is not None else None


def _delta_table(text: str, names: Names) -> DatasetPlace | None:
    """A table of Delta Lake by its name where the text has it, else by its path; None if the text names none."""
    found = _DELTA_TABLE.search(text)
    if found is None:
        return None
    path = path_name(found[2] or found[3])
    described = _DESCRIBED.search(text)
    if described is not None:
        name = ".".join(f"`{part}`" for part in described.groups() if part)
        return DatasetPlace(names.table(name), "table", (path,))
    quoted = _QUALIFIED.search(text)
    return DatasetPlace(path, "file") if quoted is None else DatasetPlace(names.table(quoted[0]), "table", (path,))


def _dml(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    """MERGE, UPDATE and DELETE of Delta: the command names the table; jobs of its own do the work."""
    place = table_of(operator.fields.get("Arguments", ""), names)
    if place is None:
        for below in operator.walk():
            delta = _DELTA_TABLE.search(below.fields.get("Arguments", ""))
            if delta is not None:
                place = DatasetPlace(path_name(delta[2] or delta[3]), "file")
                break
    if place is None:
        return None
    kind = "merge" if "Merge" in name else "update" if "Update" in name else "delete"
    version = _DELTA_TABLE.search(operator.fields.get("Arguments", ""))
    return PlanWrite(
        place, kind, kind, "delete" if kind == "delete" else "update", query_below(operator), final=False,
        command=operator, version=int(version[1]) if version is not None and version[1] else None,
    )  # fmt: skip


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
    "InsertIntoDataSourceCommand": _source,
    "AppendData": _table_v2,
    "AppendDataExecV1": _table_v2,
    "AppendDataV1": _table_v2,
    "OverwriteByExpression": _table_v2,
    "OverwriteByExpressionExecV1": _table_v2,
    "OverwriteByExpressionV1": _table_v2,
    "OverwritePartitionsDynamic": _table_v2,
    "ReplaceData": _table_v2,
    "WriteDelta": _table_v2,
    "CreateTableAsSelect": _table_v2,
    "AtomicCreateTableAsSelect": _table_v2,
    "ReplaceTableAsSelect": _table_v2,
    "AtomicReplaceTableAsSelect": _table_v2,
    "DeltaDynamicPartitionOverwriteCommand": _overwrite_partitions,
    "CreateViewCommand": created_view,
    "AlterViewAsCommand": altered_view,
    "MergeIntoCommand": _dml,
    "MergeIntoCommandEdge": _dml,
    "UpdateCommand": _dml,
    "UpdateCommandEdge": _dml,
    "DeleteCommand": _dml,
    "DeleteCommandEdge": _dml,
    "DeleteFromTable": _dml,
}
_SINKS = {"WriteToDataSourceV2": _stream}
"""Writers of a stream's batches; an unknown sink is `break.streaming-sink`."""
