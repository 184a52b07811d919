"""Records of an Avro object container file, as Iceberg's manifests are; after the Avro 1.11 specification.

Input may be hostile: lengths are checked against what is there, depth and the number of values are bounded.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any

_MAGIC = b"Obj\x01"
_DEPTH = 32
_BLOCK = 256 * 1024 * 1024
"""Bytes of a block that is decompressed at most."""
_FIXED = {"float": ("<f", 4), "double": ("<d", 8)}


class AvroError(ValueError):
    """The bytes are not an Avro file that can be read."""


def avro_records(data: bytes) -> Iterator[Any]:
    """The records of a file.

    Raises:
        AvroError: It is damaged, or compressed in a way that is not known.
    """
    if data[:4] != _MAGIC:
        raise AvroError("not an Avro file")
    reader = _Decoder(data, 4)
    head = reader.value({"type": "map", "values": "bytes"})
    try:
        schema = json.loads(head["avro.schema"])
    except (KeyError, ValueError, RecursionError) as error:
        raise AvroError("no schema") from error
    codec = head.get("avro.codec", b"null").decode("ascii", "replace")
    sync = reader.take(16)
    while reader.at < len(data):
        count, size = reader.long(), reader.long()
        block = _Decoder(_inflated(reader.take(size), codec), 0)
        if not 0 <= count <= len(block.data):
            raise AvroError("a block holds fewer records than its header announces")
        for _ in range(count):
            yield block.value(schema)
        if reader.take(16) != sync:
            raise AvroError("a block does not end where it should")


def _inflated(data: bytes, codec: str) -> bytes:
    if codec == "null":
        return data
    if codec == "deflate":
        inflater = zlib.decompressobj(-15)
        try:
            found = inflater.decompress(data, _BLOCK)
        except zlib.error as error:
            raise AvroError("a damaged block") from error
        if inflater.unconsumed_tail:
            raise AvroError("a block is too large")
        return found
    raise AvroError(f"compressed with {codec[:20]}")


class _Decoder:
    """Decodes values by their schema; named types are remembered."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self._named: dict[str, Any] = {}

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if size < 0 or self.at + size > len(self.data):
            raise AvroError("the file ends early")
        self.at += size
        return self.data[self.at - size : self.at]

    def long(self) -> int:
        """A zigzag varint."""
        number = shift = 0
        while True:
            byte = self.take(1)[0]
            number |= (byte & 127) << shift
            if byte < 128:
                return (number >> 1) ^ -(number & 1)
            shift += 7
            if shift > 63:
                raise AvroError("a number is too long")

    def value(self, schema: Any, depth: int = 0) -> Any:
        """The next value."""
        if depth > _DEPTH:
            raise AvroError("nested too deeply")
        if isinstance(schema, list):
            branch = self.long()
            if not 0 <= branch < len(schema):
                raise AvroError("no such branch of a union")
            return self.value(schema[branch], depth + 1)
        if isinstance(schema, str):
            return self.value(self._named[schema], depth + 1) if schema in self._named else self._simple(schema)
        return self._complex(schema, depth) if isinstance(schema, dict) else self._simple(str(schema))

    def _simple(self, kind: str) -> Any:
        if kind == "null":
            return None
        if kind == "boolean":
            return self.take(1) == b"\x01"
        if kind in ("int", "long"):
            return self.long()
        if kind in ("bytes", "string"):
            found = self.take(self.long())
            return found if kind == "bytes" else found.decode("utf-8", "replace")
        if kind in _FIXED:
            form, size = _FIXED[kind]
            return struct.unpack(form, self.take(size))[0]
        raise AvroError(f"no type {kind[:40]}")

    def _complex(self, schema: dict[str, Any], depth: int) -> Any:
        kind = schema.get("type")
        if isinstance(schema.get("name"), str):
            self._named[schema["name"]] = schema
        if kind == "record":
            listed = schema.get("fields")
            fields = [f for f in listed if isinstance(f, dict)] if isinstance(listed, list) else []
            return {str(f.get("name")): self.value(f.get("type"), depth + 1) for f in fields}
        if kind == "array":
            return list(self._items(schema.get("items"), depth))
        if kind == "map":
            fields = [{"name": "key", "type": "string"}, {"name": "value", "type": schema.get("values")}]
            return {i["key"]: i["value"] for i in self._items({"type": "record", "fields": fields}, depth)}
        if kind == "fixed":
            size = schema.get("size")
            return self.take(size if isinstance(size, int) else -1)
        if kind == "enum":
            return self.long()
        return self.value(kind, depth + 1)

    def _items(self, schema: Any, depth: int) -> Iterator[Any]:
        while count := self.long():
            if count < 0:
                count = -count
                self.long()
            if count > len(self.data) - self.at:  # no item of a manifest takes less than a byte
                raise AvroError("the file ends early")
            for _ in range(count):
                yield self.value(schema, depth + 1)
