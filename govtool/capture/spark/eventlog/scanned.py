"""Scans of a plan: their figures, by the accumulators that the event names, and their columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from govtool.capture.spark.eventlog.metrics import Figures, ScanKey, scan_ids
from govtool.capture.spark.plantext import lists
from govtool.capture.spark.plantext.tree import Operator

_METADATA = frozenset({"_metadata", "_file", "_pos", "_deleted", "_spec_id", "_partition", "_tmp_metadata_row_index"})
_READ_SCHEMA = re.compile(r"struct<(.*)>\Z", re.DOTALL)


def registered_by(operator: Operator, scans: Mapping[ScanKey, dict[str, set[int]]]) -> dict[str, set[int]] | None:
    """The accumulators of the scan with the name of this node, and with its first columns; None if there is none."""
    ids = scan_ids(operator.fields.get("Output", ""))
    name = operator.name.strip()
    for key, registered in scans.items():
        size = min(len(key.ids), len(ids))
        if key.name == name and key.ids[:size] == ids[:size] and (size or not ids or not key.ids):
            return registered
    return None


def largest(figures: list[Figures]) -> Figures:
    """Of several executions of one action that scan the same, the one that read most."""
    return max(figures, key=lambda f: (f.rows or 0, f.bytes or 0), default=Figures())


def columns_of(operator: Operator) -> dict[str, str | None]:
    """Columns of a scan with their types, where its read schema tells them whole."""
    found: dict[str, str | None] = {}
    for item in lists.split(operator.fields.get("Output", "")).items:
        attribute = lists.attribute(item)
        if attribute is not None and attribute[1] not in _METADATA:
            found[attribute[1]] = None
    schema = _READ_SCHEMA.match(operator.fields.get("ReadSchema", ""))
    for field_ in _fields(schema[1]) if schema is not None else ():
        name, separator, type_ = field_.partition(":")
        if separator and name in found and "..." not in type_:
            found[name] = type_
    return found


def _fields(text: str) -> Iterator[str]:
    depth = start = 0
    for position, char in enumerate(text):
        if char in "<(":
            depth += 1
        elif char in ">)":
            depth -= 1
        elif char == "," and not depth:
            yield text[start:position]
            start = position + 1
    if text[start:]:
        yield text[start:]
