"""Effects of commands in plan text on the catalog: tables that are renamed, dropped, cloned, put
back to an earlier version, columns that are renamed. The facts are those of a live session
(``govtool/capture/spark/live/plans/definitions.py``); what the text leaves out is a break with a reason.

The columns of a table that is renamed are not in the text, nor is the source of Delta's CLONE; what a column is renamed
to is told since Spark 4.2, before it ``TableChange$RenameColumn@372955`` was all.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from govtool.capture.spark.definitions import RESTORED, Defined
from govtool.capture.spark.identity import DatasetPlace, column_path, path_name, split_table
from govtool.capture.spark.plantext import lists
from govtool.capture.spark.plantext.scans import Names
from govtool.capture.spark.plantext.table_writes import table_of
from govtool.capture.spark.plantext.tree import Operator, PlanTree

DEFINITION = "break.definition"
"""A command changed a table or its columns, and its text does not tell what into, or what from."""

_RENAMED = re.compile(r"RENAME COLUMN (\w+) TO (\w+)\Z")
_RENAMING = re.compile(r"RENAME COLUMN |\$RenameColumn@|more fields")
_SESSION_CATALOG = "V2SessionCatalog"
_TABLE = re.compile(r"(?<!`)`(?:[^`]|``)++`(?:\.`(?:[^`]|``)++`)+")


def defined_in(tree: PlanTree, names: Names) -> Defined | None:
    """Return the effects of a plan's command on the catalog; None if it has none on columns.

    Args:
        tree: The plan.
        names: How names are read.
    """
    root = tree.root  # not below a CommandResult: that shows what an earlier execution did
    name = root.name.strip().removeprefix("Execute ").split(" ", 1)[0]
    read = _READERS.get(name.removesuffix("Exec"))
    if read is None:
        return None
    inner = next((child for child in root.children if child.name.split(" ", 1)[0] == name), root)
    return read(lists.arguments(inner.fields.get("Arguments", "")), inner, names)


def _unknown_definition(does: str, kind: str, place: DatasetPlace | None, message: str) -> Defined:
    what = place.name.name if place is not None else "a table"
    return Defined(does, place, kind, "", breaks=((DEFINITION, f"{what}: {message}"),))


def _in_catalog(parts: list[str], names: Names) -> DatasetPlace | None:
    """The table of a catalog that prints its class, ``SparkCatalog@1a2b, db.orders``; None if the settings do not tell
    which catalog of that class it is.
    """
    if len(parts) < 2 or "@" not in parts[0]:
        return None
    class_ = parts[0].split("@", 1)[0].strip()
    if len(names.catalogs.get(class_, ())) != 1 and not class_.endswith(_SESSION_CATALOG):
        return None
    return DatasetPlace(names.in_catalog(class_, parts[1].strip()), "table")


def _session_table(text: str, names: Names, kind: str = "table") -> DatasetPlace | None:
    """A table in backquotes, ``delta.`/lake/orders` `` being its path."""
    parts = split_table(text.strip())
    if not parts or not text.strip():
        return None
    return (
        DatasetPlace(path_name(parts[-1]), "file")
        if "/" in parts[-1]
        else DatasetPlace(names.table(text.strip()), kind)
    )


def _rename(parts: list[str], operator: Operator, names: Names) -> Defined:
    """``RenameTable``: catalog, old name, new name; without a namespace it stays in that of the old one."""
    old = _in_catalog(parts, names)
    if old is None or len(parts) < 3:
        return _unknown_definition("rename", "rename", None, "it is renamed, and its catalog is not known")
    before, after = split_table(old.name.name), split_table(parts[2].strip())
    new = names.table(".".join(_quoted(part) for part in (*before[: max(0, len(before) - len(after))], *after)))
    return Defined("rename", DatasetPlace(new, "table"), "rename", "rename", source=old)


def _rename_v1(parts: list[str], operator: Operator, names: Names) -> Defined:
    """``AlterTableRenameCommand``: old name, new name, whether it is a view."""
    kind = "view" if parts[2:3] == ["true"] else "table"
    old = _session_table(parts[0], names, kind) if parts else None
    if old is None or len(parts) < 2:
        return _unknown_definition("rename", "rename", None, "it is renamed, and the new name is not in the text")
    before, after = split_table(parts[0].strip()), split_table(parts[1].strip())
    new = names.table(".".join(_quoted(part) for part in (*before[: max(0, len(before) - len(after))], *after)))
    return Defined("rename", DatasetPlace(new, kind), "rename", "rename", source=old)


def _quoted(part: str) -> str:
    return "`" + part.replace("`", "``") + "`"


def _drop(parts: list[str], operator: Operator, names: Names) -> Defined:
    place = _in_catalog(parts, names)
    if place is None:
        return _unknown_definition("drop", "drop", None, "it is dropped, and its catalog is not known")
    return Defined("drop", place, "drop", "drop")


def _drop_v1(parts: list[str], operator: Operator, names: Names) -> Defined | None:
    """``DropTableCommand``: name, whether it may be missing, whether it is a view."""
    place = _session_table(parts[0], names, "view" if parts[2:3] == ["true"] else "table") if parts else None
    return Defined("drop", place, "drop", "drop") if place is not None else None


def _alter(parts: list[str], operator: Operator, names: Names) -> Defined | None:
    """``AlterTable``: catalog, table, changes. Of these only a new name of a column says something of data."""
    changes = lists.split(parts[2]).items if len(parts) > 2 else ()
    if not any(_RENAMING.search(change) for change in changes) and "more fields" not in ", ".join(parts[2:]):
        return None
    place = _in_catalog(parts, names)
    renamed = _RENAMED.match(changes[0]) if len(changes) == 1 else None
    if place is None or renamed is None:
        return _unknown_definition(
            "rename_column", "alter", place, "a column is renamed, and its names are not in the text"
        )
    old, new = (column_path(renamed[n], case_sensitive=names.case_sensitive) for n in (1, 2))
    return Defined("rename_column", place, "alter", "update", ((new, None),), place, ((old, new),))


def _clone(parts: list[str], operator: Operator, names: Names) -> Defined | None:
    """``CreateDeltaTableCommand`` and ``CloneTableCommand``: of the source there is a class and no name."""
    text = operator.fields.get("Arguments", "")
    if "CloneTableCommand" not in (*operator.name.split(), *text.split()):
        return None
    quoted = _TABLE.search(text)
    place = _session_table(quoted[0], names) if quoted is not None else None
    if place is None:
        return _unknown_definition(
            "clone", "create_table_as", None, "it is cloned from a source that is not in the text"
        )
    message = f"{place.name.name}: it is cloned from a source that is not in the text"
    return Defined("clone", place, "create_table_as", "replace", breaks=((DEFINITION, message),))


def _restore(parts: list[str], operator: Operator, names: Names) -> Defined:
    place = table_of(operator.fields.get("Arguments", ""), names)
    what = place.name.name if place is not None else "a table"
    return Defined(
        "restore", place, "restore", "", breaks=((RESTORED, f"{what} is what it was in an earlier version"),)
    )


_READERS: dict[str, Callable[[list[str], Operator, Names], Defined | None]] = {
    "RenameTable": _rename,
    "AlterTableRenameCommand": _rename_v1,
    "DropTable": _drop,
    "DropTableCommand": _drop_v1,
    "AlterTable": _alter,
    "CreateDeltaTableCommand": _clone,
    "CloneTableCommand": _clone,
    "RestoreTableCommand": _restore,
}
