"""Values of ``PlanWalker`` as values of the plan form."""

from __future__ import annotations

import decimal
from typing import Any

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Value
from govtool.records.plan.term_pieces import Unread

Json = Any


def read_value(value: Json, kind: t.Type) -> Value:
    """Read a value of ``PlanWalker``.

    Raises:
        Unread: A value of a type that the plan form does not cover.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value
    if not isinstance(value, dict):
        raise Unread("a value of an unknown form")
    if "$f" in value:
        return float(value["$f"].replace("Infinity", "inf"))
    if "$d" in value:
        return decimal.Decimal(value["$d"])
    if "$b" in value:
        return bytes.fromhex(value["$b"])
    return _read_nested(value, kind)


def _read_nested(value: Json, kind: t.Type) -> Value:
    if "$m" in value and isinstance(kind, t.Map):
        keys, items = value["$m"]
        pairs = zip(keys, items, strict=True)
        return tuple((read_value(key, kind.key), read_value(item, kind.value)) for key, item in pairs)
    if "$v" in value:
        if isinstance(kind, t.Array):
            return tuple(read_value(item, kind.element) for item in value["$v"])
        if isinstance(kind, t.Struct):
            fields = zip(value["$v"], kind.fields, strict=True)
            return tuple(read_value(item, each.type) for item, each in fields)
        return tuple(value["$v"])
    raise Unread(f"a value of {value.get('$object', 'an unknown form')}")
