"""Writes of commands in Catalyst's analyzed plan, as live sessions record them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from govtool.capture.spark.analyzed.place_names import place_of
from govtool.capture.spark.analyzed.read import Analyzed
from govtool.capture.spark.execution import WrittenDataset
from govtool.capture.spark.identity import DatasetPlace
from govtool.model import Diagnostic
from govtool.redaction import clean_location

SAVE_MODES = {
    "overwrite": ("overwrite", "replace"),
    "append": ("append", "append"),
    "errorifexists": ("errorifexists", "replace"),
    "ignore": ("ignore", "replace"),
}
"""Spark's save modes: as an output's mode, and as a derivation's."""

_KINDS = {
    "InsertIntoHadoopFsRelationCommand": "insert",
    "InsertIntoHiveTable": "insert",
    "InsertIntoDataSourceDirCommand": "insert",
    "InsertIntoHiveDirCommand": "insert",
    "InsertIntoDataSourceCommand": "insert",
    "SaveIntoDataSourceCommand": "insert",
    "CreateDataSourceTableAsSelectCommand": "create_table_as",
    "CreateHiveTableAsSelectCommand": "create_table_as",
    "SaveAsV1TableCommand": "create_table_as",
    "CreateTableAsSelect": "create_table_as",
    "ReplaceTableAsSelect": "create_table_as",
    "AppendData": "insert",
    "OverwriteByExpression": "insert",
    "OverwritePartitionsDynamic": "insert",
    "CreateViewCommand": "create_view",
    "AlterViewAsCommand": "create_view",
    "CreateIcebergView": "create_view",
    "DeltaDynamicPartitionOverwriteCommand": "insert",
}
_V2_MODES = {
    "AppendData": ("append", "append"),
    "OverwriteByExpression": ("overwrite", "replace"),
    "OverwritePartitionsDynamic": ("overwrite", "append"),
    "CreateTableAsSelect": ("errorifexists", "replace"),
    "ReplaceTableAsSelect": ("overwrite", "replace"),
    "CreateViewCommand": ("overwrite", "replace"),
    "AlterViewAsCommand": ("overwrite", "replace"),
    "CreateIcebergView": ("overwrite", "replace"),
    "DeltaDynamicPartitionOverwriteCommand": ("overwrite", "append"),
}
_ALONE = frozenset({"InsertIntoHadoopFsRelationCommand", "InsertIntoHiveTable"})
"""Commands that start no execution that writes."""
_NESTED = frozenset({"SaveAsV1TableCommand", "CreateDataSourceTableAsSelectCommand", "CreateHiveTableAsSelectCommand"})
"""Commands whose writing is an execution of its own."""
_NOOP = "org.apache.spark.sql.execution.datasources.noop."
_OF_DELTA = frozenset({"SaveIntoDataSourceCommand", "ReplaceTableAsSelect"})
"""Commands by which Delta overwrites; with partitions, as the session's mode of overwrites has it."""
_TEMPORARY = frozenset({"LocalTempView", "GlobalTempView"})


def written_by(record: Mapping[str, Any], plan: Analyzed, *, dynamic: bool = False) -> WrittenDataset | None:
    """Return the write of a record's command; None if it writes no data, or a view of the session.

    Args:
        record: With the facts ``command``.
        plan: What it says.
        dynamic: An overwrite of the session replaces only the partitions that it has rows for. Commands of Spark's
            own say so themselves.
    """
    command = plan.command
    facts = record.get("command")
    if plan.kind:
        place = plan.target or (place_of(facts) if isinstance(facts, Mapping) else None)
        mode = "delete" if plan.kind == "delete" else "update"
        return WrittenDataset(place, plan.kind, plan.kind, mode) if place is not None else None
    # Views of the session hold no data: whoever reads them reads what is below.
    if not isinstance(facts, Mapping) or facts.get("kind") in _TEMPORARY:
        return None
    kind = "insert" if facts.get("stream") else _KINDS.get(command)
    if kind is None:
        return None
    place = place_of(facts)
    if place is None:
        return None
    if kind == "create_view":
        place = DatasetPlace(place.name, "view", place.aliases)
    save, mode = _modes(command, facts, dynamic=dynamic)
    names = facts.get("columns")
    columns = tuple(str(name) for name in names) if isinstance(names, list) and names else None
    parts = len(facts.get("table") or ())
    nested = command in _NESTED and record.get("execution") is not None
    return WrittenDataset(place, kind, save, mode, columns, parts=parts, alone=command in _ALONE, nested=nested)


def unplaced(record: Mapping[str, Any], plan: Analyzed) -> Diagnostic | None:
    """The break of a record's command that writes data, and names no place that anybody could read it from.

    None where it names one, writes no data, or nobody can read it: a view of the session, what ends in the driver
    or is thrown away.
    """
    facts = record.get("command")
    known = facts if isinstance(facts, Mapping) else {}
    kind = plan.kind or ("insert" if known.get("stream") else _KINDS.get(plan.command, ""))
    if not kind or kind == "create_view" or ends_here(record):
        return None
    if known.get("sink") == "function":
        text = "foreach of a stream: a function of the job got the rows, and where it put them is not known"
        return Diagnostic("break.rdd", "warning", text)
    through = clean_location(str(known.get("name") or known.get("relation") or ""))
    what = f"the data source {through}" if through else f"the command {plan.command}"
    return Diagnostic("break.target", "warning", f"{what} writes rows, and does not say where to")


def ends_here(record: Mapping[str, Any]) -> bool:
    """Whether the rows of a record's command end in the driver's memory or on its console, or are thrown away."""
    facts = record.get("command")
    known = facts if isinstance(facts, Mapping) else {}
    return known.get("sink") in ("driver", "none") or str(known.get("relation", "")).startswith(_NOOP)


def _modes(command: str, facts: Mapping[str, Any], *, dynamic: bool) -> tuple[str, str]:
    """The mode in which a command saves, and what that does to the rows that are there."""
    save, mode = _V2_MODES.get(command) or SAVE_MODES.get(str(facts.get("mode", "")).lower(), ("", "append"))
    partial = facts.get("static") or facts.get("dynamic") or facts.get("condition")
    if dynamic and command in _OF_DELTA:
        partial = partial or "delta" in f"{facts.get('relation', '')} {facts.get('provider', '')}".lower()
    return save, "append" if mode == "replace" and partial else mode
