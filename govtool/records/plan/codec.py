"""Plans as JSON: one flat list of objects, each referring only to earlier ones.

Equal parts are written once. Reading builds only the classes in :data:`CLASSES`, checks every field against its
annotation and is bounded: nothing that a file holds is run, imported or looked up by name.

    {"format": "plan/1", "objects": [["Attribute", 1, "id", ["t", "long"], true], …], "root": 41, "session": 42}

A field is a JSON scalar, or a list whose first item says what follows: ``["r", 3]`` object 3, ``["l", …]`` a tuple,
``["t", …]`` a type in Spark's JSON, ``["d", "1.50"]`` a decimal, ``["b", "af00"]`` bytes, ``["f", "nan"]`` a float that
JSON has no number for.
"""

from __future__ import annotations

import dataclasses
import decimal
import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any

from govtool.errors import FormatError
from govtool.records.plan import expressions as e
from govtool.records.plan import fields
from govtool.records.plan import nodes as n
from govtool.records.plan import types as t
from govtool.records.plan.tree import PLAIN, Node, field_names

FORMAT = "plan/1"
MAX_OBJECTS = 2_000_000
MAX_VALUES = 20_000_000
"""Values in a plan file, those of local rows included."""
MAX_UNFOLDED = 20_000_000
"""Objects in a plan, shared ones counted as often as they are used."""
MAX_DEPTH = 200
"""Lists within lists in one field."""

CLASSES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        e.Literal, e.Attribute, e.Outer, e.Call, e.Cast, e.Case, e.Variable, e.Lambda, e.SortKey, e.AggregateCall,
        e.Frame, e.WindowCall, e.UdfReference, e.Udf, e.ScalarSubquery, e.Exists, e.InSubquery, e.Opaque, e.Named,
        n.File, n.Relation, n.LocalRows, n.Range, n.Project, n.Filter, n.Join, n.LateralJoin, n.Aggregate, n.Distinct,
        n.Deduplicate, n.Union, n.SetOperation, n.Window, n.Sort, n.Limit, n.Tail, n.Sample, n.Generate, n.Expand,
        n.Definition, n.With, n.Reference, n.Repartition, n.Write, n.Break, n.Session,
    )
}  # fmt: skip
"""Everything that a plan is made of."""
_PLAIN = PLAIN - {"Session", "tuple[File, ...]"}
"""Types of fields that hold nothing that is written as an object of its own."""
_PART_FIELDS: dict[type, tuple[str, ...]] = {}
_TYPES = (t.Scalar, t.Decimal, t.Text, t.Array, t.Map, t.Struct, t.Unknown)
_KINDS = frozenset(CLASSES.values())
_SCALARS = frozenset({str, int, bool, type(None)})


def encode(plan: n.Plan) -> dict[str, Any]:
    """Write a plan."""
    writer = _Writer()
    root = writer.add(plan.root)
    return {"format": FORMAT, "objects": writer.objects, "root": root, "session": writer.add(plan.session)}


def dumps(plan: n.Plan) -> str:
    """Write a plan as text: the same text for the same plan."""
    return json.dumps(encode(plan), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(plan: n.Plan) -> str:
    """SHA-256 of a plan: equal plans have equal digests."""
    return hashlib.sha256(dumps(plan).encode("utf-8", "surrogatepass")).hexdigest()


class _Writer:
    def __init__(self) -> None:
        self.objects: list[list[Any]] = []
        self._known: dict[str, int] = {}
        self._seen: dict[int, int] = {}
        self._types: dict[t.Type, Any] = {}

    def add(self, root: Any) -> int:
        """Write an object after everything it refers to; return its number."""
        waiting: list[tuple[Any, bool]] = [(root, False)]
        while waiting:
            tree, ready = waiting.pop()
            if id(tree) in self._seen:
                continue
            if not ready:
                waiting.append((tree, True))
                waiting.extend((part, False) for part in _parts(tree))
            else:
                self._seen[id(tree)] = self._written(tree)
        return self._seen[id(root)]

    def _written(self, tree: Any) -> int:
        kind = type(tree)
        value = self._value
        fields = [getattr(tree, name) for name in field_names(kind)]
        row = [kind.__name__, *[each if type(each) in _SCALARS else value(each) for each in fields]]
        key = repr(row)
        if key not in self._known:
            self._known[key] = len(self.objects)
            self.objects.append(row)
        return self._known[key]

    def _value(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if type(value) in _KINDS:
            return ["r", self._seen[id(value)]]
        if isinstance(value, float):
            return value if math.isfinite(value) and (value or not str(value).startswith("-")) else ["f", str(value)]
        if isinstance(value, decimal.Decimal):
            return ["d", str(value)]
        if isinstance(value, bytes):
            return ["b", value.hex()]
        if isinstance(value, tuple):
            return ["l", *[self._value(item) for item in value]]
        if isinstance(value, _TYPES):
            if value not in self._types:
                self._types[value] = ["t", t.to_json(value)]
            return self._types[value]
        return ["r", self._seen[id(value)]]


def _parts(tree: Any) -> list[Any]:
    kind = type(tree)
    if kind not in _PART_FIELDS:
        _PART_FIELDS[kind] = tuple(each.name for each in dataclasses.fields(kind) if each.type not in _PLAIN)
    found: list[Any] = []
    _look([getattr(tree, name) for name in _PART_FIELDS[kind]], found)
    return found


def _look(values: Sequence[Any], found: list[Any]) -> None:
    for value in values:
        if isinstance(value, tuple):
            _look(value, found)
        elif type(value) in _KINDS:
            found.append(value)


def loads(text: str | bytes) -> n.Plan:
    """Read a plan from text.

    Raises:
        FormatError: It is no plan, a newer one, or larger than any plan.
    """
    try:
        return decode(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise _refused("is not valid JSON") from error


def decode(value: Any) -> n.Plan:
    """Read a plan.

    Raises:
        FormatError: It is no plan, a newer one, or larger than any plan.
    """
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise _refused(f"is not of format {FORMAT}")
    rows, root, session = value.get("objects"), value.get("root"), value.get("session")
    if not isinstance(rows, list) or len(rows) > MAX_OBJECTS:
        raise _refused("has no list of objects, or a longer one than any plan")
    try:
        reader = _Reader()
        for row in rows:
            reader.read(row)
        made, around = reader.objects[_number(root)], reader.objects[_number(session)]
    except (ValueError, TypeError, IndexError, KeyError, RecursionError, ArithmeticError) as error:
        raise _refused(str(error) or type(error).__name__) from error
    if not isinstance(made, Node) or not isinstance(around, n.Session):
        raise _refused("has no operator as its root")
    return n.Plan(made, around)


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("a number of an object is expected")
    return value


def _refused(why: str) -> FormatError:
    return FormatError(f"a stored plan cannot be read: it {why}", code="store.format-plan")


class _Reader:
    def __init__(self) -> None:
        self.objects: list[Any] = []
        self._unfolded: list[int] = []
        """Number of objects in each, shared parts counted as often as they are used."""
        self._size = 0
        self._left = MAX_VALUES
        self._types: dict[str, t.Type] = {}

    def read(self, row: Any) -> None:
        """Read the next object."""
        if not isinstance(row, list) or not row or not isinstance(row[0], str) or row[0] not in CLASSES:
            raise ValueError(f"holds an unknown object: {str(row)[:60]}")
        kind = CLASSES[row[0]]
        names = field_names(kind)
        if len(row) != len(names) + 1:
            raise ValueError(f"holds a {row[0]} with {len(row) - 1} fields instead of {len(names)}")
        self._size = 1
        values = [self._value(item, 0) for item in row[1:]]
        if self._size > MAX_UNFOLDED:
            raise ValueError(f"has more than {MAX_UNFOLDED:,} objects, counted as often as they are used")
        checks = fields.of(kind)
        for name, value in zip(names, values, strict=True):
            if not checks[name](value):
                raise ValueError(f"holds a {row[0]} whose {name} is {type(value).__name__}")
        self.objects.append(kind(*values))
        self._unfolded.append(self._size)

    def _value(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise ValueError(f"holds more than {MAX_VALUES:,} values")
        if depth > MAX_DEPTH:
            raise ValueError(f"nests lists deeper than {MAX_DEPTH}")
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if not isinstance(value, list) or not value:
            raise ValueError("holds a field that is no value")
        kind, rest = value[0], value[1:]
        if kind == "l":
            return tuple(self._value(item, depth + 1) for item in rest)
        if len(rest) != 1:
            raise ValueError("holds a field that is no value")
        return self._tagged(kind, rest[0])

    def _tagged(self, kind: Any, value: Any) -> Any:
        if kind == "r":
            self._size += self._unfolded[_number(value)]
            return self.objects[value]
        if kind == "t":
            key = json.dumps(value)
            if key not in self._types:
                self._types[key] = t.from_json(value)
            return self._types[key]
        if kind == "d":
            return decimal.Decimal(str(value))
        if kind == "b":
            return bytes.fromhex(str(value))
        if kind == "f" and value in ("nan", "inf", "-inf", "-0.0"):
            return float(value)
        raise ValueError("holds a field of an unknown kind")
