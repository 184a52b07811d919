"""Thrift's compact protocol, as far as Parquet's metadata uses it: read into plain data, and written again.

A struct is a dict: by the number of a field its type and its value. A list is a pair: its elements' type, and they.
What is not known is carried along as it is.

Source: Apache Thrift, ``thrift-compact-protocol.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

Struct = dict[int, tuple[int, Any]]
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_INTEGERS = frozenset({I16, I32, I64})
_MAX_DEPTH = 64
_MAX_VARINT = 9
"""Bytes of a number of 63 bits."""


class ThriftReader:
    """Reads one buffer.

    Args:
        data: The bytes.
        position: Where to start; afterwards, where the last value ended.
    """

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def struct(self, depth: int = 0) -> Struct:
        """Read a struct.

        Raises:
            ValueError: The bytes are none.
            IndexError: They end early.
        """
        if depth > _MAX_DEPTH:
            raise ValueError("structs within each other without end")
        found: Struct = {}
        number = 0
        while head := self._byte():
            kind, step = head & 15, head >> 4
            number = number + step if step else self.integer()
            found[number] = (kind, self.integer() if kind in _INTEGERS else self._value(kind, depth))
        return found

    def integer(self) -> int:
        """Read a zigzag varint."""
        plain = self.data[self.position]
        if plain > 127:
            plain = self._varint()
        else:
            self.position += 1
        return (plain >> 1) ^ -(plain & 1)

    def list_head(self) -> tuple[int, int]:
        """Read the head of a list: its elements' type, and how many there are."""
        head = self._byte()
        size = head >> 4
        return head & 15, self._varint() if size == 15 else size

    def _byte(self) -> int:
        found = self.data[self.position]
        self.position += 1
        return found

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7

    def _bytes(self, size: int) -> bytes:
        start, self.position = self.position, self.position + size
        if self.position > len(self.data):
            raise IndexError("the bytes end early")
        return self.data[start : self.position]

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind in _INTEGERS:
            return self.integer()
        if kind == BINARY:
            return self._bytes(self._varint())
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in (LIST, SET):
            element, size = self.list_head()
            if element in (TRUE, FALSE):
                return element, list(self._bytes(size))
            return element, [self._value(element, depth + 1) for _ in range(size)]
        if kind in (BYTE, DOUBLE):
            return self._bytes(1 if kind == BYTE else 8)
        raise ValueError(f"a value of type {kind}")


def written(struct: Struct) -> bytes:
    """The bytes of a struct that ``ThriftReader`` read, or of one like it."""
    parts = bytearray()
    _write_struct(parts, struct)
    return bytes(parts)


def _write_struct(parts: bytearray, struct: Struct) -> None:
    last = 0
    for number in sorted(struct):
        kind, value = struct[number]
        if kind in (TRUE, FALSE):
            kind = TRUE if value else FALSE
        if number - last < 16:
            parts.append((number - last) << 4 | kind)
        else:
            parts.append(kind)
            _write_integer(parts, number)
        last = number
        _write_value(parts, kind, value)
    parts.append(0)


def _write_value(parts: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _write_integer(parts, value)
    elif kind == BINARY:
        _write_varint(parts, len(value))
        parts += value
    elif kind == STRUCT:
        _write_struct(parts, value)
    elif kind in (LIST, SET):
        element, values = value
        if len(values) < 15:
            parts.append(len(values) << 4 | element)
        else:
            parts.append(0xF0 | element)
            _write_varint(parts, len(values))
        if element in (TRUE, FALSE):
            parts += bytes(values)
        else:
            for each in values:
                _write_value(parts, element, each)
    elif kind in (BYTE, DOUBLE):
        parts += value


def _write_integer(parts: bytearray, value: int) -> None:
    _write_varint(parts, value << 1 if value >= 0 else (-value << 1) - 1)


def _write_varint(parts: bytearray, value: int) -> None:
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)


def varints(data: bytes, count: int) -> np.ndarray[Any, Any]:
    """The first whole numbers of a buffer that has nothing else, ``[count] int64``.

    Raises:
        ValueError: It has fewer, or larger ones.
    """
    import numpy as np

    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw < 128)[:count]
    sizes = np.diff(ends, prepend=-1)
    if len(ends) < count or (sizes > _MAX_VARINT).any():
        raise ValueError("numbers that are not there, or too large")
    found = np.zeros(count, np.int64)
    for place in range(int(sizes.max(initial=0))):
        has = sizes > place
        found[has] |= (raw[ends[has] - sizes[has] + 1 + place].astype(np.int64) & 127) << 7 * place
    return found


def varint(value: int) -> bytes:
    """The bytes of a whole number that is not negative, seven bits each, the lowest first."""
    parts = bytearray()
    _write_varint(parts, value)
    return bytes(parts)
