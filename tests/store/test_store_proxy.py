"""A fault at every request of a commit, on a real socket between obstore and a server."""

from __future__ import annotations

import random
import threading
from itertools import pairwise

import pytest

from bench.proxy import Fault, at
from govtool.errors import EXIT_STORE, StoreError
from govtool.store import Changes, Fragment, Store

FAULTS = {
    "dropped before it was applied": Fault("drop"),
    "dropped after it was applied": Fault("drop", applied=True),
    "500 before": Fault("status", status=500),
    "500 after": Fault("status", status=500, applied=True),
    "503 before": Fault("status", status=503, error="SlowDown"),
    "503 after": Fault("status", status=503, error="SlowDown", applied=True),
    "delayed": Fault("delay", seconds=0.05),
    "truncated": Fault("truncate"),
}
SOURCES = ("etl", "logs", "dbt")


def batch(store, n):
    """Three sources speak at once, so that half a commit would show."""
    fragments = tuple(Fragment(source, "derivation", b"%d %s" % (n, source.encode()), 1) for source in SOURCES)
    return store.commit(Changes(SOURCES, fragments), message=str(n), author="ann", batch=f"b{n}")


def version(store):
    """The one n of which the head consists."""
    head = store.head()
    stated = [store.read(ref).split() for ref in store.fragments(head)]
    assert sorted(source.decode() for _, source in stated) == sorted(SOURCES)
    (number,) = {int(number) for number, _ in stated}
    assert head.message == str(number)
    return number


def check_chain(store):
    commits = list(store.log())  # walks and verifies it
    assert [commit.seq for commit in commits] == list(range(len(commits), 0, -1))
    assert all(later.time >= earlier.time for later, earlier in pairwise(commits))
    return commits


@pytest.mark.parametrize("attempts", ["1", "3"])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_every_request_of_a_commit_meets_a_fault_in_turn(proxy, through, monkeypatch, fault, attempts):
    plain = Store.init(through)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", attempts)
    store = Store.open(through)
    n, k, hit = 1, 0, True
    batch(plain, n)
    while hit:
        k, n = k + 1, n + 1
        proxy.reset(at(k, fault))
        try:
            acknowledged = batch(store, n).created
        except StoreError as error:
            assert error.exit_code == EXIT_STORE  # noqa: PT017
            acknowledged = False
        hit = proxy.hits > 0
        proxy.reset()
        found = version(plain)
        assert found in ((n,) if acknowledged else (n - 1, n))
        assert acknowledged or attempts == "1", "one fault should not be noticed by who tries three times"
        assert batch(plain, n).created == (found != n)
        assert version(plain) == n
    assert k >= 6
    assert [commit.message for commit in check_chain(plain)] == [str(m) for m in range(n, 0, -1)]


def test_one_answer_in_seven_is_lost(proxy, through, monkeypatch):
    """Four writers at once, 15% of all answers lost: what was acknowledged is there, everything exactly once."""
    Store.init(through)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")  # so that many a loss reaches the protocol itself
    chance = random.Random(7)
    lost = [Fault("drop", applied=True), Fault("status", status=500, applied=True)]
    proxy.reset(lambda request: chance.choice(lost) if chance.random() < 0.15 else None)
    acknowledged = []

    def write(who):
        for n in range(12):
            fragment = Fragment(f"job{who}", "derivation", b"%d %d" % (who, n), 1)
            for _ in range(50):
                try:
                    store = Store.open(through)
                    result = store.commit(Changes(add=(fragment,)), message="m", author=str(who), batch=f"{who}-{n}")
                except StoreError:
                    continue  # As a user does: run it again.
                acknowledged.append(result.commit.id if result.created else None)
                break

    threads = [threading.Thread(target=write, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert proxy.hits > 20
    proxy.reset()
    store = Store.open(through)
    commits = check_chain(store)
    assert len(acknowledged) == 48
    assert sorted(commit.batch for commit in commits) == sorted(f"{who}-{n}" for who in range(4) for n in range(12))
    assert {commit_id for commit_id in acknowledged if commit_id} <= {commit.id for commit in commits}
    assert len(store.fragments(store.head())) == 48


def test_a_commit_is_six_requests_at_any_age(proxy, through):
    Store.init(through)
    counts = []
    for n in range(110):
        proxy.reset()
        store = Store.open(through)  # as every run of the command line does
        fragment = Fragment(f"s{n % 40}", "derivation", b"%d" % n, 1)
        changes = Changes(retract=(fragment.source,), add=(fragment,))
        store.commit(changes, message="m", author="ann", batch=str(n))
        counts.append(len(proxy.exchanges))
    assert max(counts[1:]) <= 6  # The very first one also has to see that there is a store.
    proxy.reset()
    Store.open(through).head()
    assert len(proxy.exchanges) <= 3
