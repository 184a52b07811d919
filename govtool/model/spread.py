"""Spreads what a source says over fragments, by name: what changes later rewrites few of them."""

from __future__ import annotations

import hashlib


def buckets_for(size: int, target: int) -> int:
    """Return the number of fragments, if each is to hold ``target``: the power of two next above."""
    return 1 << max(0, -(-size // target) - 1).bit_length()


def number_of(name: str) -> int:
    """A number that spreads things evenly by name, the same on every machine."""
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:4], "big")
