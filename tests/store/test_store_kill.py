"""kill -9 at any moment leaves the previous or the new version, never half of one, and nothing acknowledged is lost."""

from __future__ import annotations

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
    return subprocess.Popen([sys.executable, str(SCRIPT), *map(str, args)], stdout=subprocess.PIPE, text=True)


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
def test_killed_at_every_step(make_uri, backend, mode):
    k, survived = 0, False
    while not survived:
        k += 1
        uri = make_uri(backend) + f"/{k}"
        batch(Store.init(uri), 1)
        process = run(uri, mode, k)
        survived = "survived" in process.communicate(timeout=60)[0]
        assert survived or process.returncode == -signal.SIGKILL
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
        process.wait(timeout=60)
        done = [tuple(map(int, row.split())) for row in (line + rest).splitlines() if row.count(" ") == 1]
        acknowledged, n = max([(acknowledged, n), *done])
        store = Store.open(uri)
        head = store.head()
        assert head.seq in (acknowledged, acknowledged + 1)
        assert version(store) >= n
        acknowledged, n = head.seq, int(head.message)
    assert [commit.seq for commit in store.log()] == list(range(acknowledged, 0, -1))


def test_killed_while_it_is_made(tmp_path):
    for k in range(1, 12):
        uri = str(tmp_path / f"{k}")
        code = (
            f"import sys; sys.path[:0] = [{str(SCRIPT.parent)!r}, {str(SCRIPT.parents[2])!r}]\n"
            "from store_doubles import At, kill\nfrom govtool.store import Store; from govtool.store.backends import local\n"
            f"real, at = local.sync, At({k}, kill)\n"
            "local.sync = lambda path: (at('', ''), real(path))\n"
            f"Store.init({uri!r})\n"
        )
        subprocess.run([sys.executable, "-c", code], timeout=60)
        assert Store.init(uri, exist_ok=True).head() is None
        assert batch(Store.open(uri), 1).created
