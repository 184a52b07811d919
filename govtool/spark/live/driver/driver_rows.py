"""Rows that the driver turned into DataFrames, in the form of ``PlanWalker``: a plan has no rows of them."""

from __future__ import annotations

import decimal
import struct
import threading
from functools import wraps
from typing import Any

from govtool.spark.live.jvm.scala import sequence

MAX_ROWS = 100_000
"""Values of the driver's rows that are kept of one DataFrame."""


class DriverRows:
    """Rows that the driver turned into DataFrames: a plan has no rows of them."""

    def __init__(self) -> None:
        self._here = threading.local()
        self._fresh: list[dict[str, Any]] = []
        self.known: set[int] = set()
        """Ids of the first columns of DataFrames whose rows are kept."""
        self._lock = threading.Lock()

    def fresh(self) -> list[dict[str, Any]]:
        """Return what was not handed out before: ids of columns, with rows of Catalyst's values."""
        with self._lock:
            found, self._fresh = self._fresh, []
        return found

    def waiting(self) -> list[dict[str, Any]]:
        """What was not handed out yet."""
        with self._lock:
            return list(self._fresh)

    def patch(self, session_class: Any) -> None:
        """Hear of rows when they are made into DataFrames."""
        local, create = session_class._createFromLocal, session_class.createDataFrame

        @wraps(local)
        def created_from(own: Any, data: Any, schema: Any) -> Any:
            data = data if isinstance(data, list) else list(data)
            made = local(own, data, schema)
            try:
                self._here.rows = rows_of(data, made[1])
            except Exception:
                self._here.rows = None
            return made

        @wraps(create)
        def created(own: Any, *args: Any, **kwargs: Any) -> Any:
            self._here.rows = None
            made = create(own, *args, **kwargs)
            rows = getattr(self._here, "rows", None)
            self._here.rows = None
            if rows is not None:
                self._note(made, rows)
            return made

        session_class._createFromLocal = created_from
        session_class.createDataFrame = created

    def _note(self, frame: Any, rows: list[Any]) -> None:
        try:
            plan = frame._jdf.queryExecution().analyzed()
            ids = [each.exprId().id() for each in sequence(plan.output())]
            rdd = int(plan.rdd().id()) if plan.getClass().getSimpleName() == "LogicalRDD" else None
        except Exception:
            return
        with self._lock:
            self._fresh.append({"ids": ids, "rows": rows, "rdd": rdd})
            self.known.update(ids[:1])


def rows_of(data: list[Any], schema: Any) -> list[Any] | None:
    """Rows as Catalyst's values, in the form of ``PlanWalker``; None if there are too many.

    Raises:
        TypeError: A value is not of its column's type: what Spark makes of it is not known here.
    """
    from pyspark.sql.types import _create_converter

    if len(data) * max(1, len(schema.fields)) > MAX_ROWS:
        return None
    convert = _create_converter(schema)
    rows = [schema.toInternal(convert(row)) for row in data]
    return [[value_of(value, each.dataType) for value, each in zip(row, schema.fields)] for row in rows]


_PLAIN = {
    "boolean": bool, "byte": int, "short": int, "integer": int, "long": int, "date": int, "timestamp": int,
    "timestamp_ntz": int, "string": str,
}  # fmt: skip


def value_of(value: Any, kind: Any) -> Any:
    """A value of the driver, as ``PlanWalker`` writes those of Catalyst.

    Raises:
        TypeError: It is not of its type.
    """
    name = kind.typeName()
    if value is None:
        return None
    if name in _PLAIN and type(value) is _PLAIN[name]:
        return value
    if name in ("double", "float") and type(value) is float:
        if name == "float":
            value = struct.unpack("f", struct.pack("f", value))[0]
        return {"$f": repr(value).replace("inf", "Infinity").replace("nan", "NaN")}
    if name == "decimal" and isinstance(value, decimal.Decimal):
        scaled = value.quantize(decimal.Decimal(1).scaleb(-kind.scale), rounding=decimal.ROUND_HALF_UP)
        return {"$d": f"{scaled:f}"}
    if name == "binary" and isinstance(value, (bytes, bytearray)):
        return {"$b": bytes(value).hex()}
    return _nested_value(value, kind, name)


def _nested_value(value: Any, kind: Any, name: str) -> Any:
    if name == "array" and isinstance(value, (list, tuple)):
        return {"$v": [value_of(item, kind.elementType) for item in value]}
    if name == "map" and isinstance(value, dict):
        keys = [value_of(key, kind.keyType) for key in value]
        return {"$m": [keys, [value_of(item, kind.valueType) for item in value.values()]]}
    if name == "struct" and isinstance(value, (list, tuple)) and len(value) == len(kind.fields):
        return {"$v": [value_of(item, each.dataType) for item, each in zip(value, kind.fields)]}
    raise TypeError(f"{type(value).__name__} in a column of {name}")
