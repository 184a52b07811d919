"""Small fragments of one commit in one object, so that a commit needs one request for all of them.

A pack is fragments one after the other, named by the sha256 of the whole: ``pack/<sha256>.pack``. The manifest says of
each fragment where it is; a fragment keeps its own digest, so that it is the same wherever it lies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from govtool.store.codec import digest

SMALL = 512 * 1024
"""Bytes up to which a fragment goes into a pack."""
MOST = 8 * 1024**2
"""Bytes of a pack, about."""


class PackPlace(NamedTuple):
    """The place of a fragment: its pack, and the first byte in it; no pack means an object of its own."""

    pack: str = ""
    offset: int = 0


def pack_key(sha256: str) -> str:
    """The key of a pack."""
    return f"pack/{sha256}.pack"


def arrange(contents: Mapping[str, bytes]) -> tuple[dict[str, bytes], dict[str, PackPlace]]:
    """Put small contents together.

    Args:
        contents: By their digests.

    Returns:
        The packs by their keys, and the places of the contents that are in one. What is large, or alone, is in none.
    """
    packs: dict[str, bytes] = {}
    places: dict[str, PackPlace] = {}
    for group in _groups([(name, data) for name, data in contents.items() if 0 < len(data) <= SMALL]):
        if len(group) < 2:
            continue
        whole = b"".join(data for _, data in group)
        name = digest(whole)
        packs[pack_key(name)] = whole
        offset = 0
        for sha256, data in group:
            places[sha256] = PackPlace(name, offset)
            offset += len(data)
    return packs, places


def _groups(small: Sequence[tuple[str, bytes]]) -> list[list[tuple[str, bytes]]]:
    groups: list[list[tuple[str, bytes]]] = []
    size = 0
    for item in small:
        if not groups or size + len(item[1]) > MOST:
            groups.append([])
            size = 0
        groups[-1].append(item)
        size += len(item[1])
    return groups
