"""kill -9 at any moment leaves the previous or the new version, never half of one, and nothing acknowledged is lost."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from killed_writer import batch

from govtool.store import Store
from govtool.store.quick import open_reader

SCRIPT = Path(__file__).with_name("killed_writer.py")


def run(*args):
    command = [sys.executable, str(SCRIPT), *map(str, args)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def end_of():
    """``end_of(uri, mode, k)``: how a writer ended, a process of its own; all start where the first one does."""
    started = []

    def end(*args):
        if not started:
            started.append(run())
        print(json.dumps(args), file=started[0].stdin, flush=True)
        return int(started[0].stdout.readline())

    yield end
    for process in started:
        process.communicate(timeout=60)


def version(store):
    """The one n of which the head consists."""
    head = store.head()
    stated = {ref.source: store.read(ref) for ref in store.fragments(head)}
    numbers = {data.split()[1] for data in stated.values()}
    assert len(numbers) == 1, "half a commit is visible"
    assert len(stated) == 10
    assert head.message == numbers.copy().pop().decode()
    return int(head.message)


@pytest.mark.parametrize(("backend", "mode"), [("local", "after"), ("local", "sync"), ("moto", "after")])
def test_killed_at_every_step(make_uri, end_of, backend, mode):
    k, survived = 0, False
    while not survived:
        k += 1
        uri = make_uri(backend) + f"/{k}"
        batch(Store.init(uri), 1)
        ended = end_of(uri, mode, k)
        survived = ended == 0
        assert survived or ended == -signal.SIGKILL
        store = Store.open(uri)
        found = version(store)
        assert found in ((2,) if survived else (1, 2))
        assert open_reader(uri).head() == store.head()
        # The repeated ingest applies once, whether or not the killed one had made it.
        assert batch(store, 2).created == (found == 1)
        assert version(store) == 2
        assert [commit.message for commit in store.log()] == ["2", "1"]
    assert k > 5


def test_killed_at_random_moments(tmp_path):
    uri = str(tmp_path / "store")
    batch(Store.init(uri), 1)
    acknowledged, n = 1, 1
    for _ in range(12):
        process = run(uri, "loop", n)
        line = process.stdout.readline()  # it has begun
        time.sleep(random.random() * 0.08)
        process.kill()
        with process.stdout as stdout:  # `communicate` loses lines that were read ahead
            rest = stdout.read()
        process.stdin.close()
        process.wait(timeout=60)
        done = [tuple(map(int, row.split())) for row in (line + rest).splitlines() if row.count(" ") == 1]
        acknowledged, n = max([(acknowledged, n), *done])
        store = Store.open(uri)
        head = store.head()
        assert head.seq in (acknowledged, acknowledged + 1)
        assert version(store) >= n
        acknowledged, n = head.seq, int(head.message)
    assert [commit.seq for commit in store.log()] == list(range(acknowledged, 0, -1))


def test_killed_while_it_is_made(tmp_path, end_of):
    for k in range(1, 12):
        uri = str(tmp_path / f"{k}")
        assert end_of(uri, "init", k) in (-signal.SIGKILL, 0)
        assert k > 1 or not Path(uri, "govtool.json").exists()
        assert Store.init(uri, exist_ok=True).head() is None
        assert batch(Store.open(uri), 1).created
