"""Bodies of requests: expanded piece by piece, within what all requests may hold."""

from __future__ import annotations

import gzip
import os
import zlib

import pytest

from govtool.app.serve.bounds import MAX_BODY, MAX_HELD, BodySize, HeldBytes, RefusedError, inflated


def counted(body: bytes, held: HeldBytes | None = None) -> BodySize:
    size = BodySize(held or HeldBytes())
    size.grow(len(body))
    return size


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress], ids=["gzip", "zlib"])
@pytest.mark.parametrize("length", [0, 1, 1 << 18, (1 << 18) + 1, MAX_BODY])
def test_a_body_is_expanded_whole(length, compress):
    raw = (os.urandom(1 << 10) * (length // (1 << 10) + 1))[:length]
    body = compress(raw)
    assert inflated(body, counted(body)) == raw


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (gzip.compress(b" " * (MAX_BODY + 1)), 413),
        (gzip.compress(b" " * 99)[:-9], 400),
        (b"", 400),
        (b"plain", 400),
        (gzip.compress(b"{}") * 2, 400),
    ],
    ids=["too large", "cut off", "empty", "not packed", "two"],  # gzip writes the time: no two processes name it alike
)
def test_what_is_too_large_or_damaged_is_refused(body, status):
    with pytest.raises(RefusedError) as refused:
        inflated(body, counted(body))
    assert refused.value.status == status


def test_what_requests_expand_to_counts_before_it_is_held():
    held, body = HeldBytes(), gzip.compress(b" " * MAX_BODY)
    for _ in range(MAX_HELD // MAX_BODY - 1):
        inflated(body, counted(body, held))
    size = counted(body, held)
    held.take(MAX_BODY // 2)
    with pytest.raises(RefusedError) as refused:
        inflated(body, size)
    assert (refused.value.status, size.size < MAX_BODY) == (503, True)
