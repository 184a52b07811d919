"""The files of a version of a table as they are: with other names of columns, and with rows that are deleted.

A leaf with such files has the format of its table, not ``parquet``: nothing may read its files as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from govtool.records.lake.leaf_options import DELETED, NAMES, table_of
from govtool.records.plan import types as t
from govtool.records.plan.nodes import Relation

Deletes = Sequence[tuple[Any, ...]]
"""``(file ordinal, "vector", path, offset, size)``, ``(file ordinal, "inline", text)``, ``(-1, "positions", path)``."""
Names = Mapping[str, str | None]
"""Names of columns in files by those of the table, where these differ; None: the files do not have the column."""
TABLES = ("delta", "iceberg")
"""Formats of leaves whose files have rows that are deleted, or other names of columns."""
_ABSENT = "govtool_absent_{}"
"""A name that no file has."""


def with_files(relation: Relation, deletes: Deletes, names: Mapping[int, Names]) -> Relation:
    """A version of a table with its deleted rows and renamed columns; as it is, if it has neither.

    Args:
        relation: The version.
        deletes: What deletes rows of its files.
        names: By the ordinal of a file, its names of columns.
    """
    table = table_of(relation)
    if table is None or not (deletes or any(names.values())):
        return relation
    options = [*relation.options]
    if deletes:
        options.append((DELETED, json.dumps(deletes)))
    if any(names.values()):
        alike: dict[str, list[int]] = {}
        for file in relation.files:
            alike.setdefault(json.dumps(names.get(file.ordinal, {}), sort_keys=True), []).append(file.ordinal)
        options.append((NAMES, json.dumps([(ordinals, json.loads(text)) for text, ordinals in alike.items()])))
    return replace(relation, format=table[0], options=tuple(options))


def plain_parts(relation: Relation) -> list[Relation]:
    """The files of a version as relations of Parquet: columns have the names that they have in these files."""
    plain = replace(relation, format="parquet")
    parts = []
    for ordinals, names in json.loads(dict(relation.options).get(NAMES, "[]")):
        own = frozenset(ordinals)
        files = tuple(file for file in relation.files if file.ordinal in own)
        if files:
            parts.append(_renamed(replace(plain, files=files), names))
    return parts or [plain]


def _renamed(relation: Relation, names: Names) -> Relation:
    own = {name: _ABSENT.format(i) if other is None else other for i, (name, other) in enumerate(names.items())}
    marks = dict(relation.metadata)

    def name_of(name: str) -> str:
        return own.get(name, name)

    return replace(
        relation,
        columns=tuple(c if c.id in marks else replace(c, name=name_of(c.name)) for c in relation.columns),
        schema=t.Struct(tuple(replace(field, name=name_of(field.name)) for field in relation.schema.fields)),
        partitioned=tuple(map(name_of, relation.partitioned)),
    )
