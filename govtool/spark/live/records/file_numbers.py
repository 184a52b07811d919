"""Numbers of files: bits of Spark's hash of a path, computed in the driver without a call of the JVM for each file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

ROW_BITS = 34
"""Bits of a row's number within its file, below the number of the file; as `govtool.model.token` has them."""
FILE_BITS = 64 - ROW_BITS
MAX_FILES = 50_000
"""Files of an input whose rows are numbered; among more, some share their number with every seed."""
_SEEDS = 16
_SPARK_SEED = 42
_MASK = (1 << 64) - 1
_PRIMES = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
)  # fmt: skip
_SEPARATOR = " "
"""A space: no URI has one."""
_EMPTY_AUTHORITY = re.compile(r"\A([A-Za-z][A-Za-z0-9+.-]*):///")


def file_expression(seed: int) -> str:
    """The SQL expression of a row's number: the number of its file, and its place there."""
    return f"shiftleft(xxhash64(_metadata.file_path, {seed}), {ROW_BITS}) | _metadata.row_index"


def numbers_of(paths: Iterable[str]) -> tuple[int, Mapping[int, str]] | None:
    """Paths by their numbers, and the seed with which no two share one; None: there is no such seed.

    Args:
        paths: In the spelling of ``_metadata.file_path``.
    """
    hashes = {path: xxhash64(path.encode(), _SPARK_SEED) for path in paths}
    for seed in range(_SEEDS):
        salt = seed.to_bytes(4, "little")
        found = {xxhash64(salt, value) & (1 << FILE_BITS) - 1: path for path, value in hashes.items()}
        if len(found) == len(hashes):
            return seed, found
    return None


def listed_paths(jvm: Any, files: Any) -> list[str]:
    """URIs of a Java array in the spelling of ``_metadata.file_path``, ``file:/`` for ``file:///``, by one call."""
    text = str(jvm.org.apache.hadoop.util.StringUtils.join(_SEPARATOR, files))
    return [_EMPTY_AUTHORITY.sub(r"\1:/", uri) for uri in text.split(_SEPARATOR)] if text else []


def xxhash64(data: bytes, seed: int) -> int:
    """XXH64 of some bytes, as an unsigned number.

    Source: Collet, "xxHash fast digest algorithm", version 0.1.1, "XXH64 algorithm description".

    Args:
        data: The bytes.
        seed: Unsigned.
    """
    one, two, three, four, five = _PRIMES
    at, end = 0, len(data)
    if end >= 32:
        value, at = _striped(data, seed)
    else:
        value = seed + five
    value = (value + end) & _MASK
    while at + 8 <= end:
        value ^= _round(0, int.from_bytes(data[at : at + 8], "little"))
        value = (_rotated(value, 27) * one + four) & _MASK
        at += 8
    if at + 4 <= end:
        value ^= int.from_bytes(data[at : at + 4], "little") * one & _MASK
        value = (_rotated(value, 23) * two + three) & _MASK
        at += 4
    for byte in data[at:]:
        value ^= byte * five & _MASK
        value = _rotated(value, 11) * one & _MASK
    value = (value ^ value >> 33) * two & _MASK
    value = (value ^ value >> 29) * three & _MASK
    return value ^ value >> 32


def _striped(data: bytes, seed: int) -> tuple[int, int]:
    """The hash of all whole stripes of 32 bytes, and how many bytes these are."""
    one, two, _, four, _ = _PRIMES
    lanes = [(seed + each) & _MASK for each in (one + two, two, 0, -one)]
    size = len(data) // 32 * 32
    for at in range(0, size, 8):
        lane = at // 8 % 4
        lanes[lane] = _round(lanes[lane], int.from_bytes(data[at : at + 8], "little"))
    value = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18))) & _MASK
    for lane in lanes:
        value = ((value ^ _round(0, lane)) * one + four) & _MASK
    return value, size


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _PRIMES[1]) & _MASK, 31) * _PRIMES[0] & _MASK


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK
