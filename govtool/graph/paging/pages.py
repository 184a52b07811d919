"""An index cut into pages: what lies together in the graph lies together in a page, so that a question reads few.

The arrays of an index (``govtool.graph.index``) that are about one dataset are far from each other in its file. Here
they are cut along the order of the nodes instead: a page holds some datasets with their columns, the edges that leave
them, the edges that enter them (a second copy, so that neither direction needs a page of the other end), the
derivations that make them, and the texts of all that. Numbers are those of the index. A node with very many edges
goes on in pages of its own.

    graph pages    datasets, nodes, edges out, edges in, derivations; found by number through the root
    detail pages   texts of statements and diagnostics, by place in ``maker_derivation``
    name pages     names of datasets, and column paths with their nodes, sorted by ``suffix_key``

The root is one small table: for each page its place, its digest and its first numbers; the first name of each page.
It is read whole. Every page is verified against it, and the root against its own name (``govtool.store.published``).
"""

from __future__ import annotations

import json
import struct
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from govtool.arrays.pages import CODES, DIGEST, WIDTH, in_order, inflated
from govtool.arrays.suffix import suffix_key
from govtool.errors import FormatError, IntegrityError

FORMAT = 6
"""Version of the pages' layout. It is part of the root's name: a reader looks for roots that it can read."""
NODES_OF_PATH = 128
"""Number of nodes of a column path on a name page: more than ``govtool.query.selection.select`` ever needs."""
AXES = ("dataset", "node", "edge", "back", "maker", "nested", "container", "unknown", "reference")
"""The axes of the arrays of graph pages; along each, pages follow one another."""

NESTED, HAS_FIELDS, IS_ROWS = 1, 2, 4
"""Marks of an incoming edge about its source, so that the source's page need not be read."""

_MAGIC = b"govtpgs\x01"

ARRAYS: Mapping[str, tuple[str, ...]] = {
    "dataset": ("dataset_name", "dataset_kind", "dataset_flags", "dataset_columns", "dataset_opaque"),
    "node": ("node_path", "node_dataset", "node_type", "node_declared"),
    "edge": ("edge_source", "edge_target", "edge_tag", "edge_label", "edge_arm", "edge_derivation"),
    "back": ("backward_edge",),
    "maker": ("maker_derivation",),
    "nested": ("nested", "nested_parent"),
    "container": ("container", "container_child"),
    "unknown": ("unknown",),
    "reference": ("reference", "reference_derivation", "reference_rows"),
}
"""The arrays that are cut along each axis."""
OFFSETS: Mapping[str, tuple[str, ...]] = {"dataset": ("dataset_base", "maker"), "node": ("forward", "backward")}
"""The same for arrays of offsets, of which a page also has the one after its last."""
BACK = ("edge_source", "edge_target", "edge_tag", "edge_label", "edge_arm", "edge_derivation")
"""Copies of an edge's attributes in incoming edges; the names in a page begin with ``back_``."""
DERIVATION_NUMBERS = ("statement", "target", "mode", "whole", "complete", "line", "count", "min_group")
DERIVATION_TEXTS = (
    "fingerprint", "kind", "dialect", "file", "source", "how", "session", "run", "principal", "first_seen",
    "last_seen", "status", "min_group_of", "places", "literals",
)  # fmt: skip
"""The arrays of derivations (``derivation_…``) that graph pages have, by place in ``maker_derivation``."""


@dataclass(frozen=True, slots=True)
class Root:
    """The table of pages. Pages are numbered: graph pages first, then detail pages, then name pages."""

    meta: Mapping[str, Any]
    """That of the index, and what the publisher adds."""
    counts: Mapping[str, int]
    """The length of each axis."""
    first: Mapping[str, Sequence[int]]
    """Axis to the first number of each graph page, and the length at the end; ``detail`` likewise."""
    offset: Sequence[int]
    """The start of each page, in bytes; one more than there are pages."""
    digests: bytes
    names: Sequence[str]
    """The name of the first dataset that begins in a graph page or after it."""
    keys: Mapping[str, Sequence[str]]
    """``datasets`` and ``paths``: the first suffix key of each name page."""

    @property
    def graph(self) -> int:
        """The number of graph pages."""
        return len(self.first["node"]) - 1

    @property
    def detail(self) -> int:
        """The number of detail pages."""
        return len(self.first["detail"]) - 1

    def name_page(self, kind: str, number: int) -> int:
        """The number of a name page among all pages."""
        return self.graph + self.detail + (len(self.keys["datasets"]) if kind == "paths" else 0) + number

    def digest(self, page: int) -> bytes:
        """Return the expected digest of a page."""
        return self.digests[page * DIGEST : (page + 1) * DIGEST]


def encode_root(root: Root) -> bytes:
    """The bytes of a root."""
    lists: dict[str, Any] = {"names": list(root.names), "meta": dict(root.meta), "counts": dict(root.counts)}
    lists["keys"] = {name: list(keys) for name, keys in root.keys.items()}
    numbers = {**{f"first.{axis}": values for axis, values in root.first.items()}, "offset": root.offset}
    packed = b""
    places = {}
    for name, values in numbers.items():
        # Differences are small and alike.
        steps = [b - a for a, b in zip([0, *values], values, strict=False)]
        code = next(code for code in CODES if max(steps, default=0) < 1 << (8 * WIDTH[code]))
        places[name] = (code, len(steps))
        packed += struct.pack(f"<{len(steps)}{code}", *steps)
    header = json.dumps({"format": FORMAT, "numbers": places, **lists}, ensure_ascii=False).encode("utf-8", "replace")
    return _MAGIC + zlib.compress(struct.pack("<I", len(header)) + header + packed, 6) + root.digests


def decode_root(data: bytes) -> Root:
    """Undo `encode_root`.

    Raises:
        IntegrityError: It is no root.
        FormatError: Of a newer version.
    """
    if data[:8] != _MAGIC:
        raise IntegrityError("this is not the root of an index", code="store.corrupt-index")
    try:
        whole, digests = inflated(data[8:])
        (length,) = struct.unpack_from("<I", whole)
        header = json.loads(whole[4 : 4 + length])
        if header["format"] != FORMAT:
            raise FormatError(f"the index has page format {header['format']}", code="store.format-index")
        at = 4 + length
        numbers: dict[str, list[int]] = {}
        for name, (code, count) in header["numbers"].items():
            total = 0
            numbers[name] = []
            for step in struct.unpack_from(f"<{count}{code}", whole, at):
                total += step
                numbers[name].append(total)
            at += count * WIDTH[code]
        offset = numbers.pop("offset")
        root = Root(
            meta=header["meta"],
            counts=header["counts"],
            first={name.removeprefix("first."): values for name, values in numbers.items()},
            offset=offset,
            digests=digests,
            names=header["names"],
            keys=header["keys"],
        )
        if len(root.digests) != DIGEST * (len(offset) - 1):
            raise ValueError("each page needs a digest")
    except (zlib.error, struct.error, ValueError, KeyError, TypeError, RecursionError) as error:
        raise IntegrityError(f"the root of the index is damaged: {error}", code="store.corrupt-index") from error
    return root


NameEntry = tuple[str, list[int], int]
"""A name, its numbers, and how many there are in all."""


def ending(
    keys: Sequence[str], parts: Sequence[str], entries: Callable[[int], Sequence[NameEntry]]
) -> Iterator[NameEntry]:
    """Entries of name pages whose names end in parts.

    Args:
        keys: The first key of each page.
        parts: The end of a name.
        entries: Gives those of a page; none where pages are not asked any more.
    """
    if not parts or not all(parts):
        return
    key = "".join(part + "\0" for part in reversed(parts))
    for number in range(max(0, bisect_left(keys, key) - 1), len(keys)):
        if keys[number] > key and not keys[number].startswith(key):
            return
        found = entries(number)
        at = bisect_left(found, key, key=lambda entry: suffix_key(entry[0]))
        for entry in found[at:]:
            if not suffix_key(entry[0]).startswith(key):
                return
            yield entry


def name_entries(arrays: Mapping[str, tuple[int, memoryview]], text: bytes) -> list[NameEntry]:
    """The entries of a name page."""
    (_, offsets), (_, parts), (low, numbers), (least, totals) = (
        arrays[name] for name in ("text", "part", "number", "total")
    )
    bounds, values = parts.tolist(), numbers.tolist()
    return [
        (name, [low + v for v in values[bounds[i] : bounds[i + 1]]], least + totals[i])
        for i, name in enumerate(in_order(offsets.tolist(), text))
    ]


def details(arrays: Mapping[str, tuple[int, memoryview]], text: bytes, at: int) -> list[str]:
    """The text of a derivation and its diagnostics, by its place in a detail page."""
    (least, parts), (_, offsets) = arrays["part"], arrays["text"]
    low, high = least + parts[at], least + parts[at + 1]
    return list(in_order(offsets[low : high + 1].tolist(), text))
