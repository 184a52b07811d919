"""What was read from a remote store is kept under its digest: verified, bounded, shared by processes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from govtool.errors import UsageError
from govtool.store import blobs, cache


def named(data):
    return hashlib.sha256(data).hexdigest()


def keep(*contents):
    blobs.put({named(data): data for data in contents})


def used(data, when):
    path = blobs.folder() / named(data)[:2] / named(data)
    os.utime(path, (when, when))


def here(*contents):
    return [data for data in contents if (blobs.folder() / named(data)[:2] / named(data)).exists()]


def test_kept_under_a_digest_or_the_beginning_of_one():
    keep(b"one")
    blobs.put({named(b"two")[:32]: b"two"})
    assert blobs.get(named(b"one")) == b"one"
    assert blobs.get(named(b"two")[:32]) == b"two"
    assert blobs.get(named(b"three")) is None
    for bad in ("../../etc/passwd", "abc", "X" * 64):
        with pytest.raises(UsageError):
            blobs.get(bad)


@pytest.mark.parametrize("damage", [b"", b"onf", b"one more", b"\0" * 3])
def test_what_is_damaged_is_fetched_again(damage):
    keep(b"one")
    (path,) = blobs.folder().glob("??/*")
    path.write_bytes(damage)
    requested = []

    def fetch(places):
        requested.append(places)
        return [b"one" for _ in places]

    assert blobs.through([named(b"one")], fetch) == [b"one"]
    assert blobs.through([named(b"one")], fetch) == [b"one"]
    assert requested == [[0]]


def test_what_was_fetched_and_is_not_what_it_is_called_is_not_kept():
    assert blobs.through([named(b"one"), named(b"two")], lambda _: [b"bad", None]) == [b"bad", None]
    assert here(b"bad", b"one") == []


def test_the_bound_is_for_all_and_what_was_used_longest_ago_goes(monkeypatch):
    monkeypatch.setenv(cache.SIZE_VARIABLE, "100K")
    contents = [bytes([n]) * 10_000 for n in range(9)]
    keep(*contents)
    for n, data in enumerate(contents):
        used(data, 1_000_000 + n)
    assert blobs.get(named(contents[0])) is not None  # now it is the newest
    cache.publish(cache.cache_dir("store", "0" * 64), lambda folder: (folder / "x").write_bytes(bytes(5_000)))
    assert here(*contents) == contents
    keep(b"new" * 4_000)
    assert cache.tree_size(cache.cache_root()) <= 100 * 1024
    assert here(contents[0], contents[1], contents[2], contents[8], b"new" * 4_000) == [
        contents[0],
        contents[8],
        b"new" * 4_000,
    ]


def test_an_index_that_is_published_makes_room_as_well(monkeypatch):
    monkeypatch.setenv(cache.SIZE_VARIABLE, "50K")
    keep(*(bytes([n]) * 10_000 for n in range(4)))
    cache.publish(cache.cache_dir("store", "1" * 64), lambda folder: (folder / "x").write_bytes(bytes(40_000)))
    assert cache.tree_size(cache.cache_root()) <= 51 * 1024
    assert cache.lookup(cache.cache_dir("store", "1" * 64))


def test_a_cache_that_cannot_be_written_harms_nobody(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "file"))
    assert blobs.through([named(b"one")], lambda _: [b"one"]) == [b"one"]
    assert blobs.get(named(b"one")) is None


def test_leftovers_of_killed_writers_go(monkeypatch):
    keep(b"one")
    left = blobs.folder() / "aa" / ".0123"
    left.parent.mkdir()
    left.write_bytes(b"half")
    os.utime(left, (1, 1))
    monkeypatch.setenv(cache.SIZE_VARIABLE, "1")
    keep(b"two")
    assert not left.exists()


WRITER = """
import hashlib, sys
from govtool.store import blobs
seed = int(sys.argv[1])
for n in range(60):
    contents = [bytes([(seed * 7 + n + k) % 50]) * 4000 for k in range(5)]
    names = [hashlib.sha256(data).hexdigest() for data in contents]
    assert blobs.through(names, lambda places: [contents[p] for p in places]) == contents
"""


def test_processes_share_it_and_keep_its_bound(monkeypatch):
    monkeypatch.setenv(cache.SIZE_VARIABLE, "60K")
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(n)]) for n in range(4)]
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    keep(b"last")
    assert cache.tree_size(cache.cache_root()) <= 60 * 1024
    for path in blobs.folder().glob("??/[!.]*"):
        assert named(path.read_bytes()).startswith(path.name)
