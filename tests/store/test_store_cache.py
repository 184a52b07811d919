"""The cache: complete or absent, bounded, harmless to readers and to other builders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from govtool.errors import StoreError, UsageError
from govtool.store import cache


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(cache.SIZE_VARIABLE, raising=False)
    return tmp_path / "cache"


def place(n):
    return cache.cache_dir("store", f"{n:064x}")


def writes(text="x", name="index.bin"):
    return lambda folder: (folder / name).write_text(text)


def names(root):
    return sorted(path.name for path in (root / "commits").iterdir())


def test_where_the_cache_is(monkeypatch, tmp_path):
    assert cache.cache_root() == tmp_path / "cache"
    monkeypatch.delenv("GOVTOOL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_root() == tmp_path / "xdg" / "govtool"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.cache_root() == tmp_path / "home" / ".cache" / "govtool"


def test_published_is_there(root):
    assert not cache.lookup(place(1))
    cache.publish(place(1), writes("hello"))
    assert cache.lookup(place(1))
    assert (place(1) / "index.bin").read_text() == "hello"
    assert names(root) == [place(1).name]


def test_a_builder_that_fails_leaves_nothing(root):
    def fail(folder):
        writes()(folder)
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        cache.publish(place(1), fail)
    assert names(root) == []


def test_a_builder_that_is_killed_is_never_seen(root):
    code = (
        "import os, signal; from govtool.store import cache\n"
        "def write(folder):\n    (folder / 'a').write_text('half'); os.kill(os.getpid(), signal.SIGKILL)\n"
        f"cache.publish(cache.cache_dir('store', '{1:064x}'), write)"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], timeout=60)
    assert result.returncode == -signal.SIGKILL
    assert not cache.lookup(place(1))
    (left,) = (root / "commits").iterdir()
    cache.publish(place(1), writes())
    assert left.exists()  # it might still be at work
    os.utime(left, (1, 1))
    cache.evict(root / "commits", 10**9)
    assert names(root) == [place(1).name]


def test_builders_at_the_same_time(root):
    barrier = threading.Barrier(6)

    def build():
        def write(folder):
            writes("same")(folder)
            barrier.wait(timeout=30)

        cache.publish(place(1), write)

    threads = [threading.Thread(target=build) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names(root) == [place(1).name]
    assert (place(1) / "index.bin").read_text() == "same"


def test_what_was_used_longest_ago_goes_first(root):
    for n in range(4):
        cache.publish(place(n), writes("x" * 100), limit=10**6)
        os.utime(place(n), (1000 + n, 1000 + n))
    assert cache.lookup(place(0))  # used now
    cache.publish(place(9), writes("x" * 100), limit=300)
    assert names(root) == sorted(place(n).name for n in (0, 3, 9))


def test_what_was_just_published_stays_even_if_it_is_too_large():
    cache.publish(place(1), writes("x" * 1000), limit=10)
    assert cache.lookup(place(1))


def test_an_open_file_survives_eviction():
    cache.publish(place(1), writes("kept"))
    with (place(1) / "index.bin").open() as file:
        assert cache.evict(place(1).parent, 0) == 1
        assert not cache.lookup(place(1))
        assert file.read() == "kept"


@pytest.mark.parametrize(
    ("text", "size"), [("", 4 << 30), ("0", 0), ("123", 123), ("5k", 5 << 10), ("2 GiB", 2 << 30), ("1TB", 1 << 40)]
)
def test_the_bound(monkeypatch, text, size):
    monkeypatch.setenv(cache.SIZE_VARIABLE, text)
    assert cache.size_limit() == size


@pytest.mark.parametrize("text", ["x", "-1", "1.5G", "9" * 30])
def test_a_bound_that_makes_no_sense(monkeypatch, text):
    monkeypatch.setenv(cache.SIZE_VARIABLE, text)
    with pytest.raises(UsageError):
        cache.publish(place(1), writes())


def test_a_cache_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "file"))
    assert not cache.lookup(place(1)) or True
    with pytest.raises(StoreError) as caught:
        cache.publish(place(1), writes())
    assert "GOVTOOL_CACHE" in caught.value.hint


@pytest.mark.parametrize("bad", ["", "../x", "a/b", "x" * 200])
def test_ids_are_not_paths(bad):
    with pytest.raises(UsageError):
        cache.cache_dir("store", bad)


def test_looking_up_counts_as_use():
    cache.publish(place(1), writes())
    os.utime(place(1), (1, 1))
    assert cache.lookup(place(1))
    assert place(1).stat().st_mtime > time.time() - 60
