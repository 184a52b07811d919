"""kill -9 at any moment leaves the previous or the new version, never half of one, and nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from functools import cached_property
from pathlib import Path

import pytest
from killed_writer import batch

from bench import servers
from govtool.store import Store
from govtool.store.quick import open_reader

SCRIPT = Path(__file__).with_name("killed_writer.py")


class Writers:
    """Writers that are killed: processes that a first one forks, which starts with the environment that there is then."""

    @cached_property
    def _first(self):
        return subprocess.Popen([sys.executable, str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self, *args):
        """Start one: store, mode, k and n. Its process id."""
        print(json.dumps(args), file=self._first.stdin, flush=True)
        return int(self._line())

    def lines(self):
        """What it prints, and at last how it ended, alone on a line."""
        while True:
            yield (line := self._line())
            if " " not in line:
                return

    def end_of(self, *args):
        """Start one that kills itself, and say how it ended."""
        self.start(*args)
        (line,) = self.lines()
        return int(line)

    def close(self):
        self._first.communicate(timeout=60)

    def _line(self):
        return self._first.stdout.readline().strip()


@pytest.fixture
def writers():
    made = Writers()
    yield made
    made.close()


def version(store):
    """The one n of which the head consists."""
    head = store.head()
    stated = {ref.source: store.read(ref) for ref in store.fragments(head)}
    numbers = {data.split()[1] for data in stated.values()}
    assert len(numbers) == 1, "half a commit is visible"
    assert len(stated) == 10
    assert head.message == numbers.copy().pop().decode()
    return int(head.message)


@pytest.mark.parametrize(
    ("backend", "mode"),
    [
        ("local", "after"),
        ("local", "sync"),
        ("local", "packed"),
        pytest.param("server", "after", marks=pytest.mark.long),
    ],
)
def test_killed_at_every_step(make_uri, writers, backend, mode):
    """Each commit is killed a step later than the one before; ``packed`` makes the requests that a server gets."""
    uri = make_uri(backend if backend == "local" else "seaweedfs" if servers.weed() else "moto")
    store = Store.init(uri)
    batch(store, 1)
    k, survived = 0, False
    while not survived:
        k += 1
        ended = writers.end_of(uri, mode, k, k + 1)
        survived = ended == 0
        assert survived or ended == -signal.SIGKILL
        store = Store.open(uri)
        found = version(store)
        assert found in ((k + 1,) if survived else (k, k + 1))
        assert open_reader(uri).head() == store.head()
        # The repeated ingest applies once, whether or not the killed one had made it.
        assert batch(store, k + 1).created == (found == k)
        assert version(store) == k + 1
        assert store.head().seq == k + 1
    assert [commit.message for commit in store.log()] == [str(n) for n in range(k + 1, 0, -1)]
    assert k > 5


def test_killed_at_random_moments(tmp_path, writers):
    uri = str(tmp_path / "store")
    batch(Store.init(uri), 1)
    acknowledged, n = 1, 1
    for _ in range(12):
        process = writers.start(uri, "loop", n)
        lines = writers.lines()
        begun = next(lines)
        time.sleep(random.random() * 0.08)
        os.kill(process, signal.SIGKILL)
        *done, ended = [begun, *lines]
        assert int(ended) == -signal.SIGKILL
        acknowledged, n = max([(acknowledged, n), *(tuple(map(int, line.split())) for line in done)])
        store = Store.open(uri)
        head = store.head()
        assert head.seq in (acknowledged, acknowledged + 1)
        assert version(store) >= n
        acknowledged, n = head.seq, int(head.message)
    assert [commit.seq for commit in store.log()] == list(range(acknowledged, 0, -1))


def test_killed_while_it_is_made(tmp_path, writers):
    for k in range(1, 12):
        uri = str(tmp_path / f"{k}")
        assert writers.end_of(uri, "init", k) in (-signal.SIGKILL, 0)
        assert k > 1 or not Path(uri, "govtool.json").exists()
        assert Store.init(uri, exist_ok=True).head() is None
        assert batch(Store.open(uri), 1).created
