"""A record's plan: the query of a command, or what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from govtool.capture.spark import build
from govtool.capture.spark import plan as p
from govtool.capture.spark.analyzed.modify import MODIFYING, modification
from govtool.capture.spark.analyzed.relations import RelationReader
from govtool.capture.spark.analyzed.tree import CatalystTree, Json, is_tree, tree_of
from govtool.capture.spark.identity import DatasetPlace


@dataclass(frozen=True, slots=True)
class Analyzed:
    """The analyzed plan of a record."""

    root: p.Node
    """The query: of a command, what it reads and computes."""
    command: str
    """The class of the command; empty for a query."""
    tree: CatalystTree
    kind: str
    """``update``, ``delete`` or ``merge`` where rows are changed in place."""
    places: tuple[DatasetPlace, ...]
    """Datasets that are read, with their other names."""
    columns: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    """Paths and types of the columns of datasets that are read, as the session saw them."""

    @property
    def target(self) -> DatasetPlace | None:
        """The dataset whose rows are changed in place."""
        node: p.Node | None = self.root.target if isinstance(self.root, p.Modify) else None
        while node is not None and not isinstance(node, p.Scan):
            below = p.walked_children(node)
            node = below[0] if len(below) == 1 else None
        return next((place for place in self.places if node is not None and place.id == node.dataset), None)


def read_plan(
    record: Json,
    *,
    streams: Mapping[int, p.Node] | None = None,
    driver: frozenset[int] = frozenset(),
    variables: Mapping[str, p.Expression] | None = None,
    checkpoints: Mapping[int, p.Node] | None = None,
) -> Analyzed:
    """Return the plan of a record.

    Args:
        record: With ``plan``, ``leaves``, ``command``.
        streams: Plans of streams by the ids of the columns of their batches.
        driver: Ids of columns of data that the driver made.
        variables: What the variables of its session are set to, by name.
        checkpoints: Plans whose rows the job kept as RDDs, by their numbers.

    Raises:
        ValueError, KeyError, TypeError, IndexError: It is no plan.
    """
    reader = RelationReader(record.get("leaves") or {}, streams or {}, driver, variables, checkpoints)
    tree = tree_of(record["plan"])
    command, kind = "", ""
    command_text = record.get("command")
    facts = command_text if isinstance(command_text, Mapping) else {}
    if tree.name in MODIFYING:
        command = tree.name
        kind, root = modification(reader, tree, str(facts.get("operation") or ""))
    elif tree.name in COMMANDS or tree.name.endswith("Command") or facts.get("does"):
        command = tree.name
        query = query_of(tree) if not facts.get("does") else None
        root = reader.relation(query) if query is not None else p.Values(())
        if facts.get("table") and command in _FITTED:
            root = build.uncast(root)
    elif tree.name == "SetVariable":
        root = reader.relation(tree.children[0])
    else:
        root = reader.relation(tree)
    return Analyzed(root, command, tree, kind, tuple(reader.places.values()), tuple(reader.columns.items()))


_FITTED = frozenset(
    {"InsertIntoHadoopFsRelationCommand", "InsertIntoHiveTable", "AppendData", "OverwriteByExpression",
     "OverwritePartitionsDynamic", "InsertIntoDataSourceCommand"}
)  # fmt: skip
"""Commands whose query analysis fits to the table's types."""

COMMANDS = frozenset(
    {
        "InsertIntoHadoopFsRelationCommand", "CreateDataSourceTableAsSelectCommand", "SaveAsV1TableCommand",
        "InsertIntoHiveTable", "CreateHiveTableAsSelectCommand", "InsertIntoDataSourceDirCommand",
        "InsertIntoHiveDirCommand", "SaveIntoDataSourceCommand", "InsertIntoDataSourceCommand", "AppendData",
        "OverwriteByExpression", "OverwritePartitionsDynamic", "CreateTableAsSelect", "ReplaceTableAsSelect",
        "CreateViewCommand", "AlterViewAsCommand", "CreateIcebergView", "WriteToDataSourceV2",
        "WriteToMicroBatchDataSource", "WriteToMicroBatchDataSourceV1", "CreateNamespace", "DropNamespace",
        "CreateTable", "ReplaceTable", "DropTable", "DropView", "RenameTable", "TruncateTable", "TruncatePartition",
        "AddColumns",
        "RenameColumn", "DropColumns", "ReplaceColumns", "AlterColumns", "AlterColumn", "SetTableProperties",
        "UnsetTableProperties", "CommentOnTable", "CommentOnNamespace", "SetCatalogAndNamespace", "ShowTables",
        "ShowNamespaces", "DescribeRelation", "RefreshTable", "Call", "CreateOrReplaceBranch", "CreateOrReplaceTag",
        "DropBranch", "DropTag", "SetWriteDistributionAndOrdering", "AddPartitionField", "DropPartitionField",
        "ReplacePartitionField", "SetIdentifierFields", "DropIdentifierFields", "CreateVariable", "DropVariable",
    }
)  # fmt: skip
"""Roots that do something, rather than answer."""


def query_of(command: CatalystTree) -> CatalystTree | None:
    """The query of a command: its child, or the plan that one of its fields holds."""
    for key in ("query", "plan"):
        value: Any = command.fields.get(key)
        if is_tree(value):
            return tree_of(value)
        if isinstance(value, int) and not isinstance(value, bool) and value < len(command.children):
            return command.children[value]
    return None
