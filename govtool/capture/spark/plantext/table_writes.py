"""Writes of tables of data source V2 and of Delta Lake: which table a command changes, and how."""

from __future__ import annotations

import re

from govtool.capture.spark.identity import DatasetPlace, path_name
from govtool.capture.spark.plantext import lists
from govtool.capture.spark.plantext.plan_write import TABLE, PlanWrite, listed_columns, query_below
from govtool.capture.spark.plantext.rewritten import rewriting
from govtool.capture.spark.plantext.scans import Names, jdbc_table
from govtool.capture.spark.plantext.tree import Operator

_PATHS = re.compile(r"[A-Za-z][\w+.-]*:/|/")
_SOME_ROWS = re.compile(
    r"\b(?:replaceWhere|replaceOn|replaceUsing)(?:=| -> )|\bpartitionOverwriteMode(?:=| -> )dynamic\b", re.IGNORECASE
)
_DELTA_TABLE = re.compile(r"(?:Delta\[version=(\d+), ([^\]]+)\]|DeltaTableV2\(.{0,2000}?,((?:\w+:)?/[^,]+),)")
_WRITE_OF = re.compile(r"(?<=\w)Write\(table=([\w.`$-]+)")
_RELATION_OF = re.compile(r"RelationV2(\[.*?\]) ")
_PLACES = frozenset({"_file", "_pos", "_spec_id", "_partition"})
"""Positions of rows, in Iceberg: what is read of a table so that rows of it can be marked as deleted."""
_DESCRIBED = re.compile(r"(?:Catalog: (\S+)\s+)?Database: (\S+)\s+Table: (\S+)")
_QUALIFIED = re.compile(r"(?<!`)`(?:[^`]|``)++`(?:\.`(?:[^`]|``)++`)+")
_LOGICAL = re.compile(r"\b(?:Project|Aggregate|Relation\w*|Union|Join|Filter|Sort|Window|Generate)\b")
_CREATES = "AsSelect"
"""A part of the names of operators that create the table which they write."""
_DOTTED = re.compile(r"[A-Za-z_][\w$-]*(?:\.[\w$-]+)+\Z")


def replaces_some(text: str) -> bool:
    """Whether options of a writer make an overwrite one of some rows or partitions."""
    return _SOME_ROWS.search(text) is not None


def table_v2(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    """AppendData and its neighbours of data source V2; CREATE and REPLACE TABLE AS of other catalogs."""
    text = operator.fields.get("Arguments", "")
    query = operator.children[-1] if operator.children else None
    place = _written_table(operator, name, names)
    if place is None:
        return None
    if _CREATES in name:
        return _created(place, name, text, query)
    if name.startswith("Append"):
        return PlanWrite(place, "insert", "append", "append", query, final=query is not None, expects=_expected(text))
    if name.startswith(("ReplaceData", "WriteDelta")):
        kind = rewriting(query)
        return PlanWrite(place, kind, kind, "delete" if kind == "delete" else "update", query)
    # Which rows go, some or all, is seldom told; what is not known to be gone stays.
    whole = name.startswith("OverwriteByExpression") and (re.search(r"\btrue\b|AlwaysTrue", text) is not None)
    whole = whole and not replaces_some(text)
    return PlanWrite(
        place,
        "insert",
        "overwrite",
        "replace" if whole else "append",
        query,
        final=query is not None,
        expects=_expected(text),
    )


def _written_table(operator: Operator, name: str, names: Names) -> DatasetPlace | None:
    """The table that a write of data source V2 names, itself or in a leaf below it."""
    place = table_of(operator.fields.get("Arguments", ""), names, create=_CREATES in name)
    for child in operator.children if place is None else ():
        place = place or (table_of(child.fields.get("Arguments", ""), names) if not child.children else None)
    if place is None and name.startswith("WriteDelta"):
        place = _changed_table(operator, names)
    return place


def _created(place: DatasetPlace, name: str, text: str, query: Operator | None) -> PlanWrite:
    """CREATE and REPLACE TABLE AS."""
    replace = name.startswith(("Replace", "AtomicReplace"))
    expects = _expected(text)
    return PlanWrite(
        place,
        "create_table_as",
        "overwrite" if replace else "errorifexists",
        "append" if replace and replaces_some(text) else "replace",
        query,
        final=query is not None,
        expects=expects,
        columns=tuple(name for _, name in expects) or None,
        format="delta" if "Some(delta)" in text else "",
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


def overwritten_partitions(operator: Operator, name: str, names: Names) -> PlanWrite | None:
    """Of Delta: the table with its columns, itself, whether it goes by name, the query."""
    text = operator.fields.get("Arguments", "")
    place = table_of(text, names)
    if place is None:
        return None
    by_name = "true" in lists.arguments(text)
    listed = _RELATION_OF.match(text)
    columns, hidden = (None, 0) if by_name or listed is None else listed_columns(listed[1])
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
    behind = jdbc_table(text, names)
    if behind is not None:
        return behind
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


def row_changes(operator: Operator, name: str, names: Names) -> PlanWrite | None:
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
