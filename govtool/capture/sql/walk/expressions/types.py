"""Fields of struct columns, from the types that a schema gives."""

from __future__ import annotations

import re
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from govtool.capture.sql.syntax import nodes
from govtool.names import fold

_STEP = re.compile(r'\[\]|\.?("(?:[^"]|"")*"|[^.\[\]"]+)')


@lru_cache(maxsize=4096)
def fields_of(type_: str, path: str, dialect: str) -> tuple[str, tuple[str, ...]]:
    """Return the fields of a struct inside a column.

    Args:
        type_: The column's type as the schema has it: ``struct<a:int,b:array<struct<c:string>>>``.
        path: What lies between the column and the struct: ``.b[]``, or nothing.
        dialect: Of the type.

    Returns:
        ``[]`` where the path leads to an array of structs, and the canonical names of the fields; none where the type
        has none or cannot be read.
    """
    if not re.search(r"struct|row|record|object", type_, re.IGNORECASE):
        return "", ()
    try:
        found: exp.Expr | None = exp.DataType.build(type_, dialect=dialect or None)
    except (SqlglotError, ValueError):
        return "", ()
    for step in _STEP.finditer(path):
        if not isinstance(found, nodes.DataType):
            return "", ()
        found = found.expressions[0] if step[1] is None and found.expressions else _field(found, step[1], dialect)
    inside = ""
    if isinstance(found, nodes.DataType) and found.this == nodes.DType.ARRAY and found.expressions:
        inside, found = "[]", found.expressions[0]
    if not isinstance(found, nodes.DataType) or found.this == nodes.DType.ARRAY:
        return "", ()
    return inside, tuple(_name(item, dialect) for item in found.expressions if isinstance(item, nodes.ColumnDef))


def _field(type_: exp.Expr, name: str | None, dialect: str) -> exp.Expr | None:
    for item in type_.expressions:
        if isinstance(item, nodes.ColumnDef) and _name(item, dialect) == name:
            kind = item.args.get("kind")
            return kind if isinstance(kind, nodes.Expr) else None
    return None


def _name(item: exp.Expr, dialect: str) -> str:
    identifier = item.this
    return fold(identifier.name, quoted=bool(identifier.args.get("quoted")), dialect=dialect)
