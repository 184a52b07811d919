"""Parquet's hybrid of runs and bit-packed groups: the numbers between two places, and numbers written in it.

Source: Apache Parquet, "Encodings" (Encodings.md): RLE/bit-packing hybrid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from govtool.records.parquet import footer as f
from govtool.records.parquet.thrift import varint

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

_MAX_BITS, _BYTE = 32, 8


class WholePageError(Exception):
    """Rows cannot be taken out of a page: it is copied as a whole."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A part of a hybrid: its bytes, how many of its numbers are left out first, and how many count."""

    data: bytes
    skipped: int
    count: int
    is_packed: bool


def hybrid(data: bytes, width: int, start: int, end: int) -> Numbers:
    """Numbers of a hybrid of runs and bit-packed groups, from one place to another; only these are decoded.

    Raises:
        NoPageIndexError: There are fewer.
    """
    import numpy as np

    if not width or start >= end:
        return np.zeros(max(0, end - start), np.int64)
    if width > _MAX_BITS:
        raise WholePageError("numbers of more bits than there are")
    parts: list[Numbers] = []
    groups: list[bytes] = []
    for run in _runs(data, width, start, end):
        if run.is_packed and not run.skipped and not run.count % 8:
            groups.append(run.data)  # with those that follow, at once
            continue
        if groups:
            parts.append(_unpacked(b"".join(groups), width))
            groups = []
        if run.is_packed:
            parts.append(_unpacked(run.data, width)[run.skipped : run.skipped + run.count])
        else:
            parts.append(np.full(run.count, int.from_bytes(run.data, "little"), np.int64))
    if groups:
        parts.append(_unpacked(b"".join(groups), width))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def constant(data: bytes, width: int, end: int) -> int | None:
    """The number that a hybrid has everywhere up to a place, if it is written as one run; None: it may be any."""
    if not width:
        return 0
    head, position = _head(data, 0)
    wide = (width + 7) // 8
    if head & 1 or head >> 1 < end or position + wide > len(data):
        return None
    return int.from_bytes(data[position : position + wide], "little")


def bits_at(data: bytes, places: Sequence[int]) -> list[tuple[int, int]]:
    """Of a hybrid of single bits: at each of some places, ascending, how many are 1 before it, and the bit there.

    Nothing is decoded: where NULLs are scattered there are thousands of runs.

    Raises:
        NoPageIndexError: There are fewer bits.
    """
    found: list[tuple[int, int]] = []
    position = end = ones = at = 0
    most, size = len(places), len(data)
    while at < most:
        if position >= size:
            raise f.NoPageIndexError("a page that ends early")
        head = data[position]
        position += 1
        if head > 127:
            head, position = _head(data, position - 1)
        count, start = head >> 1, end
        if head & 1:
            bits = int.from_bytes(data[position : position + count], "little")
            position += count
            end += 8 * count
            while at < most and places[at] < end:
                place = places[at] - start
                found.append((ones + (bits & (1 << place) - 1).bit_count(), bits >> place & 1))
                at += 1
            ones += bits.bit_count()
        else:
            bit = data[position] & 1
            position += 1
            end += count
            while at < most and places[at] < end:
                found.append((ones + bit * (places[at] - start), bit))
                at += 1
            ones += bit * count
    if position > size:
        raise f.NoPageIndexError("a page that ends early")
    return found


def _unpacked(data: bytes, width: int) -> Numbers:
    """The numbers of bit-packed groups, the last of which may be cut short."""
    import numpy as np

    kind: Any = np.uint8 if width <= _BYTE else np.int64
    whole = data.ljust(-(-len(data) // width) * width, b"\0")
    bits = np.unpackbits(np.frombuffer(whole, np.uint8), bitorder="little")
    found: Numbers = bits[::width].astype(kind)
    for place in range(1, width):
        found |= bits[place::width].astype(kind) << place
    return found


def _runs(data: bytes, width: int, start: int, end: int) -> Iterator[_Run]:
    """The runs that hold numbers between two places, cut to these.

    Raises:
        NoPageIndexError: There are fewer.
    """
    position = place = 0
    wide = (width + 7) // 8
    while place < end:
        head, position = _head(data, position)
        is_packed, count, size = head & 1, head >> 1, wide
        if is_packed:
            count, size = count * 8, count * width
            before = (start - place) // count if count else 0
            alike = before or (end - place) // count if count and place >= start else before
            if alike > 1 and head < 128:
                # Writers cut a long run into hundreds of the same length.
                alike = _alike(data, position - 1, size + 1, alike)
                if not before:
                    yield _Run(_joined(data, position - 1, size + 1, alike), 0, alike * count, True)
                position += alike * (size + 1) - 1
                place += alike * count
                continue
        if place + count > start:
            first, last = max(start - place, 0), min(end - place, count)
            group = first // 8 if is_packed else 0
            begin, used = position + group * width, -(-last * width // 8) if is_packed else size
            if last <= first or position + used > len(data):
                raise f.NoPageIndexError("a page that ends early")
            stop = position + (-(-last // 8) * width if is_packed else size)
            yield _Run(data[begin:stop], first - group * 8, last - first, bool(is_packed))
        position += size
        place += count


def _alike(data: bytes, position: int, stride: int, most: int) -> int:
    """How many runs, from one on, have its head of one byte, and so its length."""
    heads = data[position : position + most * stride : stride]
    return len(heads) - len(heads.lstrip(heads[:1]))


def _joined(data: bytes, position: int, stride: int, count: int) -> bytes:
    """Runs of the same length, without their heads."""
    import numpy as np

    block = data[position : position + count * stride]
    if len(block) < count * stride:
        raise f.NoPageIndexError("a page that ends early")
    return np.frombuffer(block, np.uint8).reshape(count, stride)[:, 1:].tobytes()


def _head(data: bytes, position: int) -> tuple[int, int]:
    """The head of a run, and where what follows it begins."""
    head = data[position]
    if head < 128:
        return head, position + 1
    found = shift = 0
    while True:
        byte = data[position]
        position += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, position
        shift += 7


def packed(numbers: Numbers, width: int) -> bytes:
    """Numbers as one run of bit-packed groups."""
    import numpy as np

    groups = -(-len(numbers) // 8)
    if not width:
        return varint(len(numbers) << 1)
    padded = np.zeros(groups * 8, np.int64)
    padded[: len(numbers)] = numbers
    bits = (padded[:, None] >> np.arange(width)) & 1
    return varint(groups << 1 | 1) + np.packbits(bits.astype(np.uint8).ravel(), bitorder="little").tobytes()
