"""Clocks: a writer in the future is refused before it commits, and a branch with such a commit is repaired."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from store_doubles import Wrapped, speak

from govtool import clock
from govtool.errors import StoreError
from govtool.store import Store, branches
from govtool.store.backends import times
from govtool.store.resolve import resolve
from govtool.store.upkeep.fsck import anchor, fsck
from govtool.store.upkeep.repair_clock import repair_clock

FUTURE = timedelta(days=5 * 365)


def at(monkeypatch, offset):
    """Set this machine's clock, by an offset."""
    monkeypatch.setattr("govtool.clock.now", lambda: datetime.now(UTC) + offset)


def blind(monkeypatch):
    """A store whose clock is as wrong as the machine's, as on a local disk."""
    monkeypatch.setattr(times, "store_time", lambda objects: None)


@pytest.fixture
def clocked(tmp_path):
    store = Store.init(str(tmp_path / "store"))
    speak(store, "a", b"1")
    return store


@pytest.fixture(autouse=True)
def clock_of_the_module(monkeypatch):
    """Writers read the clock when they are asked, not when the class was made."""
    from govtool.store.writer import Writer

    original = Writer.__init__

    def init(self, objects, branch, **options):
        original(self, objects, branch, **{"now": lambda: clock.now(), **options})

    monkeypatch.setattr(Writer, "__init__", init)


@pytest.mark.parametrize("offset", [FUTURE, timedelta(hours=2), -FUTURE])
def test_a_wrong_clock_is_refused_before_anything_is_committed(clocked, monkeypatch, offset):
    at(monkeypatch, offset)
    with pytest.raises(StoreError, match="clock") as caught:
        speak(clocked, "a", b"2")
    assert caught.value.code == "store.clock"
    at(monkeypatch, timedelta(0))
    assert clocked.head().seq == 1
    assert speak(clocked, "a", b"3").created
    assert not list((times.LocalFiles(clocked.objects.root)).scan("tmp"))


@pytest.mark.parametrize("minutes", [4, 6, 30, 59])
def test_a_clock_that_is_an_hour_ahead_at_most_stops_nobody(clocked, monkeypatch, minutes):
    from govtool.store import Changes, Fragment

    with monkeypatch.context() as changed:
        at(changed, timedelta(minutes=minutes))
        ahead = speak(clocked, "a", b"ahead").commit
    honest = [speak(Store.open(clocked.uri), "b", b"%d" % number).commit for number in range(3)]
    assert [each.time for each in honest] == [ahead.time] * 3
    assert [each.seq for each in clocked.log()] == [5, 4, 3, 2, 1]
    assert clocked.resolve(clock.iso(clock.now() + timedelta(hours=1))).seq == 5
    branches.create_branch(clocked, "next", clocked.resolve("HEAD"), author="ann")
    add = (Fragment("c", "numbers", b"next", 1),)
    clocked.commit(Changes(("c",), add), message="m", author="a", batch="n", branch="next")
    assert branches.merge_branch(clocked, "next", author="ann").created
    problems = [problem.code for problem in fsck(clocked).problems]
    assert problems == ([] if minutes == 4 else ["store.clock", "store.clock"])
    if minutes != 4:
        assert repair_clock(clocked, author="ann", now=lambda: clock.now()).created
        assert speak(clocked, "d", b"later").commit.time < ahead.time


def test_who_follows_a_clock_that_is_ahead_must_have_the_right_one(clocked, monkeypatch):
    at(monkeypatch, timedelta(minutes=50))
    speak(clocked, "a", b"ahead")
    at(monkeypatch, timedelta(minutes=-10))
    with pytest.raises(StoreError, match="that of the store"):
        speak(clocked, "b", b"behind")
    assert clocked.head().seq == 2


def test_the_first_commit_of_a_store_is_not_of_a_wrong_clock(tmp_path, monkeypatch):
    store = Store.init(str(tmp_path / "store"))
    at(monkeypatch, FUTURE)
    with pytest.raises(StoreError, match="clock"):
        speak(store, "a", b"1")
    assert store.head() is None


def test_a_newest_commit_of_the_day_after_tomorrow_needs_the_repair(clocked, monkeypatch):
    with monkeypatch.context() as changed:
        blind(changed)
        at(changed, timedelta(hours=23))
        speak(clocked, "a", b"ahead")
    assert speak(clocked, "b", b"honest").created
    with monkeypatch.context() as changed:
        blind(changed)
        at(changed, timedelta(hours=25))
        speak(clocked, "a", b"far ahead")
    with pytest.raises(StoreError, match="newest commit") as caught:
        speak(clocked, "b", b"stopped")
    assert "repair-clock" in caught.value.hint


def test_a_new_store_is_not_made_by_a_wrong_clock(tmp_path, monkeypatch):
    at(monkeypatch, FUTURE)
    with pytest.raises(StoreError, match="clock"):
        Store.init(str(tmp_path / "store"))


@pytest.fixture
def ruined(clocked, monkeypatch):
    """Two commits of the future on top of two sound ones."""
    speak(clocked, "b", b"2")
    with monkeypatch.context() as changed:
        blind(changed)
        at(changed, FUTURE)
        speak(clocked, "a", b"future")
        speak(clocked, "c", b"more")
    return clocked


def test_a_branch_is_repaired_and_its_history_stays(ruined, monkeypatch):
    with pytest.raises(StoreError, match="newest commit"):
        speak(ruined, "a", b"now")
    assert [problem.code for problem in fsck(ruined).problems] == ["store.clock"]
    before, kept = ruined.head(), anchor(ruined)
    result = repair_clock(ruined, author="ann", now=lambda: clock.now())
    assert result.created
    assert ruined.fragments(result.commit) == ruined.fragments(before)
    assert (result.commit.seq, result.commit.summary["count"]) == (5, 2)
    assert [each["seq"] for each in result.commit.summary["repaired"]] == [3, 4]
    assert speak(ruined, "a", b"now").created
    assert [commit.seq for commit in ruined.log()] == [6, 5, 2, 1]
    assert [ruined.resolve(str(number)).seq for number in range(1, 7)] == [1, 2, 3, 4, 5, 6]
    assert ruined.resolve("4").id == before.id
    assert ruined.resolve(clock.iso(clock.now())).seq == 6
    assert fsck(ruined, against=kept).problems == ()
    assert not repair_clock(ruined, author="ann", now=lambda: clock.now()).created
    fresh = Store.open(ruined.uri)
    assert speak(fresh, "d", b"later").created
    branches.create_branch(fresh, "next", fresh.head(), author="ann")
    speak(fresh, "e", b"x", branch="next")
    assert branches.merge_branch(fresh, "next", author="ann").created
    assert fsck(fresh).problems == ()


def test_what_was_taken_over_is_found_by_its_number_in_a_bucket_too(ruined):
    head = ruined.head()
    assert repair_clock(ruined, author="ann").created
    speak(ruined, "a", b"now")
    bucket = Wrapped(ruined.objects)
    bucket.is_remote = True
    assert resolve(bucket, "4", "main").id == head.id
    assert [resolve(bucket, str(number), "main").seq for number in range(1, 7)] == [1, 2, 3, 4, 5, 6]


def test_a_first_commit_of_the_future_is_repaired(tmp_path, monkeypatch):
    store = Store.init(str(tmp_path / "store"))
    with monkeypatch.context() as changed:
        blind(changed)
        at(changed, FUTURE)
        speak(store, "a", b"1")
    assert repair_clock(store, author="ann", now=lambda: clock.now()).created
    assert speak(store, "a", b"2").created
    assert fsck(store).problems == ()
    assert store.resolve("1").seq == 1


def test_who_repairs_must_have_the_right_clock(ruined, monkeypatch):
    at(monkeypatch, -FUTURE)
    with pytest.raises(StoreError, match="clock"):
        repair_clock(ruined, author="ann", now=lambda: clock.now())
    at(monkeypatch, 2 * FUTURE)  # to such a clock, no commit is of the future
    with pytest.raises(StoreError, match="clock"):
        repair_clock(ruined, author="ann", now=lambda: clock.now())


class Racing(Wrapped):
    """A server that looks and then writes: of writers who come one by one it refuses the second, of many at once none."""

    def create(self, key, data):
        there = self.inner.get(key) is not None
        time.sleep(0.05)
        if not there:
            self.inner.put(key, data)
        return not there


def test_a_server_that_races_is_refused():
    racing = Racing(Store.init("memory://").objects)
    racing.delete("govtool.json")
    with pytest.raises(StoreError, match="at the same time") as caught:
        Store.init_objects(racing)
    assert caught.value.code == "store.no-conditional-put"
