"""Effects of commands on the catalog: tables that are made, renamed, emptied and dropped, columns that come and go.

Of Spark's own catalog, of others, and of Delta Lake and Iceberg. A command is asked for a few names, never for data.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from govtool.spark.live.jvm.scala import sequence, table_parts

Json = Any
_TABLE = re.compile(r"[\w`]+(\.[\w`]+){0,3}\Z")


def definition_facts(plan: Any) -> dict[str, Json] | None:
    """The definition by a command: ``does`` and what that needs; None if it is no such command, or does not tell."""
    name = plan.getClass().getSimpleName()
    read = _DEFINITIONS.get(name)
    if read is None:
        return None
    try:
        return read(plan)
    except Exception:
        return None


def _identified(resolved: Any) -> list[str]:
    """The name of a resolved identifier, table or view: catalog, namespace, name."""
    identifier = resolved.identifier()
    return [resolved.catalog().name(), *[str(part) for part in identifier.namespace()], str(identifier.name())]


def _fields(schema: Any) -> list[list[str]]:
    """Names and types of a schema, or of what has names and types like one."""
    return [[field.name(), field.dataType().catalogString()] for field in sequence(schema)]


def _location(table: Any) -> dict[str, Json]:
    location = table.storage().locationUri()
    return {"path": location.get().toString()} if location.isDefined() else {}


def _drop_v1(plan: Any) -> dict[str, Json]:
    return {"does": "drop", "table": table_parts(plan.tableName()), "view": bool(plan.isView())}


def _drop(plan: Any) -> dict[str, Json]:
    return {"does": "drop", "table": _identified(plan.child())}


def _drop_view(plan: Any) -> dict[str, Json]:
    return {"does": "drop", "table": _identified(plan.child()), "view": True}


def _rename_v1(plan: Any) -> dict[str, Json]:
    old, new = table_parts(plan.oldName()), table_parts(plan.newName())
    return {"does": "rename", "table": old, "to": [*old[: len(old) - len(new)], *new], "view": bool(plan.isView())}


def _rename(plan: Any) -> dict[str, Json]:
    old, new = _identified(plan.child()), [str(part) for part in sequence(plan.newName())]
    facts: dict[str, Json] = {"does": "rename", "table": old, "to": [*old[: max(0, len(old) - len(new))], *new]}
    try:
        facts["columns"] = _fields(plan.child().table().schema())
    except Exception:  # a view, or a table of which no more is known
        return facts
    return facts


def _truncate_v1(plan: Any) -> dict[str, Json]:
    return {"does": "truncate", "table": table_parts(plan.tableName()), "part": bool(plan.partitionSpec().isDefined())}


def _truncate(plan: Any) -> dict[str, Json]:
    return {"does": "truncate", "table": _identified(plan.table())}


def _truncate_child(plan: Any) -> dict[str, Json]:
    return {"does": "truncate", "table": _identified(plan.child())}


def _truncate_part(plan: Any) -> dict[str, Json]:
    return {"does": "truncate", "table": _identified(plan.table()), "part": True}


def _create_v1(plan: Any) -> dict[str, Json]:
    table = plan.table()
    return {
        "does": "create",
        "table": table_parts(table.identifier()),
        "columns": _fields(table.schema()),
        **_location(table),
    }


def _create_delta(plan: Any) -> dict[str, Json] | None:
    query = plan.query()
    if not query.isDefined():
        return _create_v1(plan)
    clone = query.get()
    if clone.getClass().getSimpleName() != "CloneTableCommand":
        return None
    source = clone.sourceTable()
    facts = {"does": "clone", "table": table_parts(plan.table().identifier()), "columns": _fields(source.schema())}
    facts["from"] = _named(source.name())
    return facts


def _clone(plan: Any) -> dict[str, Json]:
    source = plan.sourceTable()
    facts = {"does": "clone", "table": table_parts(plan.targetIdent()), "columns": _fields(source.schema())}
    facts["from"] = _named(source.name())
    return facts


def _named(text: str) -> list[str]:
    return [part.strip("`") for part in text.split(".")] if "/" not in text else [text.strip("`")]


def _create(plan: Any) -> dict[str, Json]:
    name = plan.name()
    columns = [[column.name(), column.dataType().catalogString()] for column in sequence(plan.columns())]
    return {"does": "create", "table": _identified(name), "columns": columns}


def _create_schema(plan: Any) -> dict[str, Json]:
    """Before Spark 4, and of REPLACE TABLE: the schema is the table's."""
    try:
        return _create(plan)
    except Exception:
        return {"does": "create", "table": _identified(plan.name()), "columns": _fields(plan.tableSchema())}


def _like(plan: Any) -> dict[str, Json]:
    return {"does": "create", "table": table_parts(plan.targetTable()), "columns": []}


def _add_v1(plan: Any) -> dict[str, Json]:
    return {"does": "add", "table": table_parts(plan.table()), "columns": _fields(plan.colsToAdd())}


def _add(plan: Any) -> dict[str, Json]:
    columns = [
        [".".join(str(part) for part in sequence(column.name())), column.dataType().catalogString()]
        for column in sequence(plan.columnsToAdd())
    ]
    return {"does": "add", "table": _identified(plan.table()), "columns": columns}


def _rename_column(plan: Any) -> dict[str, Json]:
    column = [str(part) for part in sequence(plan.column().name())]
    return {"does": "rename_column", "table": _identified(plan.table()), "column": column, "to": str(plan.newName())}


def _restore(plan: Any) -> dict[str, Json]:
    table = plan.sourceTable()
    catalog = table.catalogTable()
    if catalog.isDefined():
        return {"does": "restore", "table": table_parts(catalog.get().identifier())}
    return {"does": "restore", "path": str(table.path().toString())}


def _call(plan: Any) -> dict[str, Json]:
    """A stored procedure: its name, and its first argument where that is the name of a table."""
    procedure = plan.procedure()
    try:  # Spark 4 has the procedure behind a resolved name
        owner, name = procedure.catalog().name(), str(procedure.ident().name())
    except Exception:
        owner, name = "", str(procedure.getClass().getSimpleName())
    facts: dict[str, Json] = {"does": "call", "procedure": name}
    arguments = sequence(plan.args())
    if arguments and arguments[0].getClass().getSimpleName() == "Literal":
        text = str(arguments[0].value().toString())
        if _TABLE.match(text):
            parts = text.replace("`", "").split(".")
            facts["table"] = parts if not owner or parts[0] == owner else [owner, *parts]
    return facts


_DEFINITIONS: dict[str, Callable[[Any], dict[str, Json] | None]] = {
    "DropTableCommand": _drop_v1,
    "DropTable": _drop,
    "DropView": _drop_view,
    "DropIcebergView": _drop_view,
    "AlterTableRenameCommand": _rename_v1,
    "RenameTable": _rename,
    "TruncateTableCommand": _truncate_v1,
    "TruncateTable": _truncate,
    "TruncatePartition": _truncate_part,
    "TruncateDeltaTableCommand": _truncate_child,
    "CreateTableCommand": _create_v1,
    "CreateDataSourceTableCommand": _create_v1,
    "CreateDeltaTableCommand": _create_delta,
    "CloneTableCommand": _clone,
    "CreateTable": _create,
    "ReplaceTable": _create_schema,
    "CreateV2Table": _create_schema,
    "CreateTableLikeCommand": _like,
    "AlterTableAddColumnsCommand": _add_v1,
    "AddColumns": _add,
    "RenameColumn": _rename_column,
    "RestoreTableCommand": _restore,
    "Call": _call,
}
