"""Inputs of fuzzing: pieces of sound ones, spoiled."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_TOKENS = [
    b"\0", b"\r", b"\n", b"\r\n", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b[31m", b"'", b'"', b"`", b"$$", b"/*", b"--",
    b"{{", b"}}", b"{%", b"%}", b"{#", b"[", b"]", b"{", b"}", b"(", b")", b",", b":", b";", b"\\", b"\\u0000",
    b"\\ud800", b"null", b"true", b"NaN", b"Infinity", b"-1", b"0", b"1e999", b"99999999999999999999",
    b"9223372036854775808",
    b"1970-01-01T00:00:00Z", b"9999-12-31", b"0000-00-00", b"&a", b"*a", b"<<: *a", b"!!python/object:os.system", b"? ",
    b"select ", b" from ", b" union all ", b" where ", b" with recursive ", b"\xf0\x9f\x92\xa9",
    b"\xc3", b"\xe2\x80\xae",
    b"for i in range(99999999)", b"namespace(d={})", b"include 'x'", b"/(a+)+$/", b"**", b"a" * 300, b"?" * 40,
]  # fmt: skip


def mutated(corpus: Sequence[bytes], rng: random.Random, most: int = 1 << 20) -> bytes:
    """An input: one of the corpus, changed a few times."""
    data = rng.choice(corpus)
    if len(data) > 20_000:  # most of what goes wrong does so early, and short inputs are tried more often
        start = rng.choice((0, 0, rng.randrange(len(data))))
        data = data[start : start + rng.randrange(200, 20_000)]
    for _ in range(rng.choice((1, 1, 2, 3, 5, 12))):
        data = rng.choice(_CHANGES)(data, corpus, rng)
    return data[:most]


def _place(data: bytes, rng: random.Random) -> int:
    return rng.randrange(len(data) + 1)


def _flip(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    if not data:
        return b"\0"
    changed = bytearray(data)
    for _bit in range(rng.choice((1, 1, 4, 32))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    return data[: _place(data, rng)]


def _remove(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    start = _place(data, rng)
    return data[:start] + data[start + rng.choice((1, 2, 8, 64, 512)) :]


def _insert(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    start = _place(data, rng)
    return data[:start] + rng.choice(_TOKENS) * rng.choice((1, 1, 1, 3, 50)) + data[start:]


def _replace(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    start = _place(data, rng)
    token = rng.choice(_TOKENS)
    return data[:start] + token + data[start + len(token) :]


def _repeat(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    start = _place(data, rng)
    piece = data[start : start + rng.choice((1, 4, 40, 400))]
    return data[:start] + piece * rng.choice((2, 10, 200)) + data[start:]


def _splice(data: bytes, corpus: Sequence[bytes], rng: random.Random) -> bytes:
    other = rng.choice(corpus)
    start = _place(other, rng)
    return data[: _place(data, rng)] + other[start : start + rng.choice((20, 400, 4000))]


def _nest(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    opened, closed = rng.choice(((b"[", b"]"), (b"(", b")"), (b'{"a":', b"}"), (b"{", b"}"), (b"((select ", b"))")))
    depth = rng.choice((3, 60, 1200, 6000))
    start = _place(data, rng)
    return data[:start] + opened * depth + data[start : start + 20] + closed * depth + data[start + 20 :]


def _swap_lines(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines)


_Change = Callable[[bytes, Sequence[bytes], random.Random], bytes]
_CHANGES: tuple[_Change, ...] = (
    _flip, _flip, _cut, _remove, _insert, _insert, _replace, _repeat, _splice, _nest, _swap_lines
)  # fmt: skip


# ---- values of JSON -------------------------------------------------------------------------------------------------

_ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 1e300, 2**63, 10**40, "", "x" * 5_000, "\0", "\ud800", "<b>", "\x1b[2J", [], {}, ["r", 0],
    ["r", 10**9], ["l"], ["t", "long"], ["t", ["array"]], ["d", "1e9999999"], ["b", "zz"], ["f", "nan"], ["hole", -1],
    "file:///dev/zero", "../../etc/passwd", "s3://b/x", "'; drop table x; --",
)  # fmt: skip
"""Values that stand in the place of others."""


def spoiled_json(text: str, sound: str, seed: bytes) -> str:
    """A text that is JSON as it is; in the place of any other the sound one with some values changed, or, one time in
    eight, as it is: most spoiled text is no JSON, and would be refused at once.

    Args:
        text: The spoiled text.
        sound: What it was made of, which is JSON.
        seed: Says which values are changed.
    """
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        number = int.from_bytes(hashlib.sha256(seed).digest()[:8], "big")
        return _changed(sound, random.Random(number)) if number % 8 else text
    return text


def _changed(text: str, rng: random.Random) -> str:
    """A text of JSON with some of its values changed."""
    value = json.loads(text)
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = [place for place in _places(value) if place[0]]
        if not places:
            return json.dumps(rng.choice(_ODD))
        holder, key = rng.choice(places)
        other_holder, other_key = rng.choice(places)
        holder[key] = rng.choice((rng.choice(_ODD), other_holder[other_key]))
    with contextlib.suppress(ValueError, RecursionError):  # of a list that now holds itself
        return json.dumps(value)
    return text


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    waiting = [value]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if not isinstance(each, (list, dict)) or id(each) in seen:
            continue
        seen.add(id(each))
        for key in each if isinstance(each, dict) else range(len(each)):
            yield each, key
            waiting.append(each[key])
