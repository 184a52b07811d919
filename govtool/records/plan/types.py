"""Types of Spark SQL, as data.

The JSON forms are those of Spark's ``DataType.json()``, so that a schema can be handed to Spark and to Parquet readers
as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SCALARS = frozenset(
    {
        "boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date", "timestamp",
        "timestamp_ntz", "void", "variant", "interval",
    }
)  # fmt: skip
"""Names of types without parameters, as Spark's JSON spells them."""
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)\Z")
_INTERVAL = re.compile(r"interval (year|month|day|hour|minute|second)(?: to (month|hour|minute|second))?\Z")
_TIME = re.compile(r"time\((\d)\)\Z")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without parameters (``SCALARS``), or an interval (``interval day to second``), or ``time(6)``."""

    name: str


@dataclass(frozen=True, slots=True)
class Decimal:
    """``decimal(precision, scale)``."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class Text:
    """A string with a collation other than the binary one, or ``char``/``varchar`` of a length."""

    kind: str
    """``string``, ``char`` or ``varchar``."""
    collation: str = ""
    length: int = 0


@dataclass(frozen=True, slots=True)
class Array:
    """``array<element>``."""

    element: Type
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Map:
    """``map<key, value>``."""

    key: Type
    value: Type
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct, or a column of a schema."""

    name: str
    type: Type
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Struct:
    """``struct<…>``: fields in order; names may repeat."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A type that the plan form does not cover (user-defined types, new types): no executor is exact on it."""

    text: str


Type = Scalar | Decimal | Text | Array | Map | Struct | Unknown

BOOLEAN, BYTE, SHORT, INTEGER, LONG = (Scalar(n) for n in ("boolean", "byte", "short", "integer", "long"))
FLOAT, DOUBLE, STRING, BINARY = (Scalar(n) for n in ("float", "double", "string", "binary"))
DATE, TIMESTAMP, TIMESTAMP_NTZ, VOID = (Scalar(n) for n in ("date", "timestamp", "timestamp_ntz", "void"))
INTEGRAL = (BYTE, SHORT, INTEGER, LONG)
FLOATS = (FLOAT, DOUBLE)


_FIELDS_SHOWN = 5


@dataclass(slots=True)
class _Counter:
    left: int = field(default=100_000)


def from_json(value: Any) -> Type:
    """Read a type from Spark's JSON.

    Raises:
        ValueError: The JSON is no type, or names more fields than any schema has.
    """
    try:
        return _read(value, 0, _Counter())
    except (KeyError, TypeError) as error:
        raise ValueError(f"no type: a part of it is missing ({error})") from error


def _read(value: Any, depth: int, budget: _Counter) -> Type:
    budget.left -= 1
    if depth > 100 or budget.left < 0:
        raise ValueError("a type nests too deep or is too large")
    if isinstance(value, str):
        return _named(value)
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "array":
        return Array(_read(value["elementType"], depth + 1, budget), bool(value.get("containsNull", True)))
    if kind == "map":
        key, item = (_read(value[name], depth + 1, budget) for name in ("keyType", "valueType"))
        return Map(key, item, bool(value.get("valueContainsNull", True)))
    if kind == "struct":
        return Struct(tuple(_field(item, depth, budget) for item in value["fields"]))
    if kind == "udt":
        return Unknown(str(value.get("class") or value.get("pyClass") or "udt"))
    raise ValueError(f"no type: {str(value)[:80]}")


def _field(value: Any, depth: int, budget: _Counter) -> Field:
    found = _read(value["type"], depth + 1, budget)
    metadata = value.get("metadata")
    collations = metadata.get("__COLLATIONS") if isinstance(metadata, dict) else None
    if isinstance(collations, dict):  # Spark writes the collation of a string beside it
        found = _collated(found, str(value["name"]), collations)
    return Field(str(value["name"]), found, bool(value.get("nullable", True)))


def _collated(kind: Type, path: str, collations: dict[str, str]) -> Type:
    if kind == STRING and path in collations:
        return Text("string", str(collations[path]))
    if isinstance(kind, Array):
        return Array(_collated(kind.element, f"{path}.element", collations), kind.nullable)
    if isinstance(kind, Map):
        key = _collated(kind.key, f"{path}.key", collations)
        return Map(key, _collated(kind.value, f"{path}.value", collations), kind.nullable)
    return kind


def _named(text: str) -> Type:
    if text in SCALARS:
        return Scalar(text)
    if found := _DECIMAL.match(text):
        return Decimal(int(found[1]), int(found[2]))
    if _INTERVAL.match(text) or _TIME.match(text):
        return Scalar(text)
    if found := re.match(r"(char|varchar)\((\d+)\)\Z", text):
        return Text(found[1], length=int(found[2]))
    if found := re.match(r"string collate (\S+)\Z", text, re.IGNORECASE):
        return Text("string", found[1])
    return Unknown(text)


def to_json(kind: Type) -> Any:
    """Write a type as Spark's JSON does (a collation as ``string collate NAME``)."""
    if isinstance(kind, Scalar):
        return kind.name
    if isinstance(kind, Decimal):
        return f"decimal({kind.precision},{kind.scale})"
    if isinstance(kind, Text):
        return f"string collate {kind.collation}" if kind.kind == "string" else f"{kind.kind}({kind.length})"
    if isinstance(kind, Array):
        return {"type": "array", "elementType": to_json(kind.element), "containsNull": kind.nullable}
    if isinstance(kind, Map):
        key, value = to_json(kind.key), to_json(kind.value)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": kind.nullable}
    if isinstance(kind, Struct):
        return {"type": "struct", "fields": [_field_json(each) for each in kind.fields]}
    return {"type": "udt", "class": kind.text}


def _field_json(each: Field) -> Any:
    return {"name": each.name, "type": to_json(each.type), "nullable": each.nullable, "metadata": {}}


def as_text(kind: Type) -> str:
    """Write a type for readers: ``array<struct<id: long>>``."""
    if isinstance(kind, Array):
        return f"array<{as_text(kind.element)}>"
    if isinstance(kind, Map):
        return f"map<{as_text(kind.key)}, {as_text(kind.value)}>"
    if isinstance(kind, Struct):
        shown = [f"{each.name}: {as_text(each.type)}" for each in kind.fields[:_FIELDS_SHOWN]]
        return f"struct<{', '.join(shown)}{', …' if len(kind.fields) > _FIELDS_SHOWN else ''}>"
    return kind.text if isinstance(kind, Unknown) else str(to_json(kind))


def comparable(kind: Type) -> bool:
    """Return whether values of a type can be compared: maps cannot, nor what holds one."""
    if isinstance(kind, Array):
        return comparable(kind.element)
    if isinstance(kind, Struct):
        return all(comparable(each.type) for each in kind.fields)
    return not isinstance(kind, Map)


def same(left: Type, right: Type) -> bool:
    """Return True if two types are equal but for the nullability of their parts."""
    return bare(left) == bare(right)


def bare(kind: Type, plain: Callable[[Type], Type] | None = None) -> Type:
    """A type with every part nullable: what two sources of the same rows agree on.

    Args:
        kind: The type.
        plain: Is called for parts that have none of their own, and gives what stands for them.
    """
    if isinstance(kind, Array):
        return Array(bare(kind.element, plain))
    if isinstance(kind, Map):
        return Map(bare(kind.key, plain), bare(kind.value, plain))
    if isinstance(kind, Struct):
        return Struct(tuple(Field(each.name, bare(each.type, plain)) for each in kind.fields))
    return kind if plain is None else plain(kind)
