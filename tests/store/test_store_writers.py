"""Many writers at once: all land, each batch once."""

from __future__ import annotations

import multiprocessing
import os
import threading
from itertools import pairwise

import pytest
from depth import LONG, examples
from store_doubles import Wrapped, write_many

from bench import servers
from govtool.errors import StoreError
from govtool.store import Changes, Fragment, Store, branches
from govtool.store.writer import LostSlotError, Writer

COMMITS = {"local": examples(50), "server": 50 if LONG else 6}
"""Of each writer. An emulator spends most of the test's time on its requests."""


@pytest.mark.parametrize("backend", ["local", "server"])
def test_eight_processes_at_once(make_uri, backend):
    uri = make_uri(backend if backend == "local" else "seaweedfs" if servers.weed() else "moto")
    store, count = Store.init(uri), COMMITS[backend]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["store_doubles", "govtool.store.backends.location"])
    processes = [context.Process(target=write_many, args=(uri, str(who), count, dict(os.environ))) for who in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=300)
    assert [process.exitcode for process in processes] == [0] * 8
    commits = list(store.log())
    assert len(commits) == 8 * count
    assert len({commit.batch for commit in commits}) == 8 * count
    assert len(store.fragments(store.head())) == 8 * count
    assert all(later.time >= earlier.time for later, earlier in pairwise(commits))


def together(*actions):
    threads = [threading.Thread(target=action) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_server_that_calls_every_slot_taken_is_named_soon(store):
    class Refusing(Wrapped):
        def create(self, key, data):
            return not key.startswith("log/") and self.inner.create(key, data)

    changes = Changes(("etl",), (Fragment("etl", "derivation", b"x", 1),))
    refusing = Refusing(store.objects)
    with pytest.raises(
        StoreError, match=r"40 times that log/main/000000000001.json exists, and has no such"
    ) as refused:
        Writer(refusing, "main", sleep=lambda seconds: None).commit(
            changes, message="", author="", batch="", summary={}
        )
    assert refused.value.code == "store.no-conditional-put"


class Empty(Wrapped):
    """Says so often that a slot is taken, while nothing is in it."""

    def __init__(self, objects, times):
        super().__init__(objects)
        self.left = times

    def create(self, key, data):
        if key.startswith("log/") and self.left:
            self.left -= 1
            return False
        return self.inner.create(key, data)


def test_an_empty_slot_that_is_called_taken_is_no_other_commit(store, say, monkeypatch):
    """S3 may refuse both of two writers who meet; who refuses for ever is named."""
    monkeypatch.setattr("govtool.store.writer._LONGEST_PAUSE", 0.0)
    say("etl", b"text")
    head = store.head()

    def land(times):
        writer = Writer(Empty(store.objects, times), "main")
        return writer.land(writer.draft(head, author="a", message="m"), head.manifest)

    head = land(3)
    assert store.head() == head
    with pytest.raises(StoreError, match=r"40 times that log/main/000000000003.json exists, and has no such") as lost:
        land(1000)
    assert lost.value.code == "store.no-conditional-put"
    with pytest.raises(StoreError, match="has no such object"):
        branches.create_branch(Store(Empty(store.objects, 1000), store.store_id), "next", head, author="ann")
    assert store.head() == head
    say("etl", b"other")
    with pytest.raises(LostSlotError, match="moved on meanwhile"):
        land(1)


def test_threads_with_the_same_batch_commit_it_once(store):
    changes = Changes(("etl",), (Fragment("etl", "derivation", b"same", 1),))
    results = []

    def commit():
        results.append(store.commit(changes, message="", author="", batch="same"))

    together(*[commit] * 8)
    assert sum(result.created for result in results) == 1
    assert store.head().seq == 1


def racing(store, *others):
    """A store in which the others commit just before the slot of each attempt is taken."""
    waiting = list(others)

    def before(op, key):
        if op == "create" and key.startswith("log/") and waiting:
            waiting.pop(0)()

    return Store(Wrapped(store.objects, before), store.store_id)


def test_a_loser_is_rebased(store, say, texts):
    say("etl", b"old")
    slow = racing(store, lambda: say("logs", b"x"), lambda: say("dbt", b"y"))
    assert say("etl", b"new", batch="b", into=slow).commit.seq == 4
    assert texts(store) == {"etl": {b"new"}, "logs": {b"x"}, "dbt": {b"y"}}


def test_the_last_one_to_speak_for_a_source_is_right(store, say, texts):
    slow = racing(store, lambda: say("etl", b"quick", b"one"))
    say("etl", b"slow", into=slow)
    assert texts(store) == {"etl": {b"slow"}}


def test_a_loser_whose_batch_went_by_commits_nothing(store, say):
    slow = racing(store, lambda: say("etl", b"a", batch="b"))
    assert not say("etl", b"a", batch="b", into=slow).created
    assert store.head().seq == 1


def test_a_loser_far_behind_whose_batch_went_by_commits_nothing(store, say):
    def many():
        say("etl", b"a", batch="b")
        for n in range(40):
            say("other", b"%d" % n)

    assert not say("etl", b"a", batch="b", into=racing(store, many)).created
    assert store.head().seq == 41


def test_a_base_that_is_out_of_date_costs_nothing_but_time(store, say, texts):
    say("etl", b"old")
    late = Store(store.objects, store.store_id)
    assert late.base().seq == 1
    for n in range(20):
        say("logs", b"%d" % n)
    assert say("etl", b"new", into=late).commit.seq == 22
    assert texts(store) == {"etl": {b"new"}, "logs": {b"19"}}
    late.base()
    say("etl", b"newest", batch="b")
    assert not say("etl", b"newest", batch="b", into=late).created
    assert say("dbt", b"x", into=late).created
