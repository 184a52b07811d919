"""Typed values of some nodes of a graph, as columns."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.arrays.sets import Array
from govtool.arrays.texts import Texts

NULL, INTEGER, FLOAT, BOOLEAN, STRING, DECIMAL, LARGE, JSON = range(8)
"""Types: the last four are texts (a large integer is one that 64 bits do not hold; JSON a list or an object)."""

Value = Any
"""``None``, a bool, int, float, str, ``Decimal``, or a list or dict of these as JSON has them."""


@dataclass(frozen=True, slots=True)
class NodeValues:
    """The nodes that have a value, and the values.

    Attributes:
        nodes: int64[k], ascending.
        type: uint8[k].
        number: int64[k]: the integer, the bits of the float, 0 or 1, or the number of the text.
        texts: Texts of the values that are texts.
    """

    nodes: Array
    type: Array
    number: Array
    texts: Texts

    def __len__(self) -> int:
        return len(self.nodes)

    def places(self, nodes: Array) -> tuple[Array, Array]:
        """Return which of some nodes have a value (bool), and where (a place for those that have)."""
        if not len(self.nodes):
            return np.zeros(len(nodes), bool), np.empty(0, np.int64)
        at = np.minimum(np.searchsorted(self.nodes, nodes), len(self.nodes) - 1)
        has = self.nodes[at] == nodes
        return has, at[has]

    def get(self, node: int, default: Value = None) -> Value:
        """The value of one node, or a default."""
        place = bisect_left(self.nodes.data, node)
        return self.at(place) if place < len(self.nodes) and self.nodes[place] == node else default

    def at(self, place: int) -> Value:
        """The value at a place."""
        return _decoded(int(self.type[place]), int(self.number[place]), self.texts)

    def of(self, nodes: Array) -> dict[int, Value]:
        """Return the values of those of some nodes that have one."""
        has, places = self.places(nodes)
        return dict(zip(nodes[has].tolist(), (self.at(place) for place in places.tolist()), strict=True))

    def __iter__(self) -> Iterator[tuple[int, Value]]:
        for place, node in enumerate(self.nodes.tolist()):
            yield node, self.at(place)


def _decoded(type_: int, number: int, texts: Texts) -> Value:
    if type_ == NULL:
        return None
    if type_ == INTEGER:
        return number
    if type_ == FLOAT:
        return float(np.int64(number).view(np.float64))
    if type_ == BOOLEAN:
        return bool(number)
    text = texts[number]
    return {STRING: str, DECIMAL: Decimal, LARGE: int}.get(type_, json.loads)(text)


class ValueColumns:
    """Collects values in the order of their nodes."""

    def __init__(self) -> None:
        self._nodes: list[Array] = []
        self._types: list[Array] = []
        self._numbers: list[Array] = []
        self._texts: list[Texts] = []
        self._text_count = 0

    def add(self, nodes: Array, values: Sequence[Value] | Array) -> None:
        """Take in one value a node.

        Args:
            nodes: int64[k].
            values: A numpy array of integers, floats or bools, or Python values (``ABSENT`` for none).

        Raises:
            TypeError: A value is of no type that a graph holds.
        """
        if isinstance(values, np.ndarray) and values.dtype.kind in "iufb":
            self._add_numbers(nodes, values)
            return
        present = [
            (node, value) for node, value in zip(nodes.tolist(), _python(values), strict=True) if value is not ABSENT
        ]
        coded = [_encoded(value) for _, value in present]
        texts = [text for _, _, text in coded if text is not None]
        numbers, at = [], self._text_count
        for _, number, text in coded:
            numbers.append(number if text is None else at)
            at += text is not None
        self._append([node for node, _ in present], [type_ for type_, _, _ in coded], numbers)
        if texts:
            self._texts.append(Texts.of(texts))
        self._text_count = at

    def _add_numbers(self, nodes: Array, values: Array) -> None:
        type_ = {"i": INTEGER, "u": INTEGER, "f": FLOAT, "b": BOOLEAN}[values.dtype.kind]
        numbers = values.astype(np.float64).view(np.int64) if type_ == FLOAT else values.astype(np.int64)
        self._append(nodes, np.full(len(nodes), type_), numbers)

    def _append(self, nodes: Any, types: Any, numbers: Any) -> None:
        self._nodes.append(np.asarray(nodes, np.int64))
        self._types.append(np.asarray(types, np.uint8))
        self._numbers.append(np.asarray(numbers, np.int64))

    def build(self) -> NodeValues:
        """Return the values by node; of two for one node the last."""
        nodes, types, numbers = (
            np.concatenate([np.empty(0, dtype), *parts])
            for dtype, parts in ((np.int64, self._nodes), (np.uint8, self._types), (np.int64, self._numbers))
        )
        if len(nodes) > 1 and not (nodes[1:] > nodes[:-1]).all():
            order = np.argsort(nodes, kind="stable")
            last = np.ones(len(order), bool)
            last[:-1] = nodes[order][1:] != nodes[order][:-1]
            nodes, types, numbers = (column[order][last] for column in (nodes, types, numbers))
        return NodeValues(nodes, types, numbers, Texts.joined(self._texts))


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()
"""No value, where ``None`` is NULL."""


def _python(values: Any) -> Iterable[Value]:
    """The values of a sequence, of numpy or of Arrow as Python values."""
    for method in ("to_pylist", "tolist"):
        if hasattr(values, method):
            found: Iterable[Value] = getattr(values, method)()
            return found
    plain: Iterable[Value] = values
    return plain


def _encoded(value: Value) -> tuple[int, int, str | None]:
    """Type, number and text."""
    if value is None:
        return NULL, 0, None
    if isinstance(value, bool):
        return BOOLEAN, int(value), None
    if isinstance(value, int):
        return (INTEGER, value, None) if -(1 << 63) <= value < 1 << 63 else (LARGE, 0, str(value))
    if isinstance(value, float):
        return FLOAT, int(np.float64(value).view(np.int64)), None
    if isinstance(value, Decimal):
        return DECIMAL, 0, str(value)
    return _encoded_text(value)


def _encoded_text(value: Value) -> tuple[int, int, str]:
    if isinstance(value, str):
        return STRING, 0, value
    if isinstance(value, (date, datetime)):
        return STRING, 0, value.isoformat()
    if isinstance(value, (list, tuple, dict)):
        return JSON, 0, json.dumps(value, ensure_ascii=False, default=str)
    raise TypeError(f"a value of a node cannot be of type {type(value).__name__}")


def same(one: Value, other: Value) -> bool:
    """Return whether two values are equal: floats up to 1e-9 of their size, all others exactly."""
    if isinstance(one, bool) or isinstance(other, bool) or not (_is_number(one) and _is_number(other)):
        return type(one) is type(other) and bool(one == other)
    if isinstance(one, float) or isinstance(other, float):
        return (one != one and other != other) or math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float, Decimal))
