"""Figures of an execution: rows, bytes and files of its write and of its scans, from the plan that really ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from govtool.spark.live.jvm.hadoop import place_of
from govtool.spark.live.jvm.scala import sequence

MAX_SCANS = 200
_WRITTEN = {"numOutputRows": "rows", "numOutputBytes": "bytes", "numFiles": "files"}
_READ = {"numOutputRows": "rows", "filesSize": "bytes", "numFiles": "files"}


def measured(executed: Any) -> dict[str, Any]:
    """Return ``{"write": {rows, bytes, files}, "scans": [{paths, table, rows, bytes, files}]}``, as far as known."""
    found: dict[str, Any] = {}
    root = unwrapped(executed)
    write = _values(root.metrics(), _WRITTEN)
    if write:
        found["write"] = write
    scans: list[dict[str, Any]] = []
    for leaf in leaves_of(root):
        if len(scans) == MAX_SCANS:
            found["left_off"] = True
            break
        try:
            scan = _scan(leaf)
        except Exception:
            continue
        if scan:
            scans.append(scan)
    if scans:
        found["scans"] = scans
    return found


def dynamic_overwrites(executed: Any) -> list[bool]:
    """Return for each write of files whether it replaced only the partitions that it has rows for.

    The command that ran fixed this when it began. The analyzed plan holds the same command a second time, which would
    ask its session now, when the setting may be another one.
    """
    root = unwrapped(executed)
    several = root.getClass().getSimpleName() == "UnionExec"  # a multi-insert is a union of commands
    found = []
    for operator in sequence(root.children()) if several else [root]:
        if operator.getClass().getSimpleName() != "DataWritingCommandExec":
            return []
        command = operator.cmd()
        files = command.getClass().getSimpleName() == "InsertIntoHadoopFsRelationCommand"
        found.append(files and bool(command.dynamicPartitionOverwrite()))
    return found


def settle_overwrites(line: dict[str, Any], executed: Any) -> None:
    """Have the writes of an execution say how they overwrote partitions, as the commands that ran did."""
    writes = line.get("commands") or [line.get("command") or {}]
    if any("dynamic" in write for write in writes):
        for write, dynamic in zip(writes, dynamic_overwrites(executed)):
            write["dynamic"] = dynamic


def unwrapped(plan: Any) -> Any:
    """The operator that does the work, below those of adaptive execution."""
    for _ in range(8):
        name = plan.getClass().getSimpleName()
        if name == "CommandResultExec":
            plan = plan.commandPhysicalPlan()
        elif name == "AdaptiveSparkPlanExec":
            plan = plan.executedPlan()
        elif name.endswith("QueryStageExec"):
            plan = plan.plan()
        else:
            break
    return plan


def leaves_of(plan: Any) -> Iterator[Any]:
    """The leaves of a physical plan, those behind adaptive execution too."""
    stack = [plan]
    while stack:
        node = stack.pop()
        for leaf in sequence(node.collectLeaves()):
            name = leaf.getClass().getSimpleName()
            if name == "AdaptiveSparkPlanExec":
                stack.append(leaf.executedPlan())
            elif name.endswith("QueryStageExec"):
                stack.append(leaf.plan())
            elif name == "CommandResultExec":
                stack.append(leaf.commandPhysicalPlan())
            else:
                yield leaf


def _scan(leaf: Any) -> dict[str, Any]:
    name = leaf.getClass().getSimpleName()
    scan: dict[str, Any] = {}
    if name == "FileSourceScanExec":
        scan["paths"] = [place_of(path) for path in sequence(leaf.relation().location().rootPaths())]
        table = leaf.tableIdentifier()
        if table.isDefined():
            scan["table"] = table.get().unquotedString()
    elif name == "BatchScanExec":
        scan["name"] = leaf.table().name()
    elif name == "HiveTableScanExec":
        scan["table"] = leaf.relation().tableMeta().identifier().unquotedString()
    elif name == "RowDataSourceScanExec":
        table = leaf.tableIdentifier()
        scan["table"] = table.get().unquotedString() if table.isDefined() else ""
    else:
        return {}
    scan.update(_values(leaf.metrics(), _READ))
    return scan


def _values(metrics: Any, names: dict[str, str]) -> dict[str, int]:
    values = {}
    for name, short in names.items():
        metric = metrics.get(name)
        if metric.isDefined():
            value = int(metric.get().value())
            if value >= 0:
                values[short] = value
    return values
