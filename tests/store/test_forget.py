"""Forgetting: what is removed is gone from every version, and readers, fsck, gc and copy know."""

from __future__ import annotations

import contextlib
from datetime import timedelta

import pytest
from store_doubles import At, Wrapped, speak, unreachable

from govtool import clock
from govtool.errors import StoreError, UsageError
from govtool.store import Changes, Fragment, Store, branches, tags
from govtool.store.backends.location import open_objects
from govtool.store.codec import digest
from govtool.store.names import FORGOTTEN
from govtool.store.revert import revert_commit
from govtool.store.upkeep.compact import compact
from govtool.store.upkeep.copy import copy_store
from govtool.store.upkeep.forget import Removal, StandIn, forget
from govtool.store.upkeep.fsck import anchor, fsck, parse_anchor
from govtool.store.upkeep.gc import collect

SECRET, CLEAN = b"select 's3cret'", b"select '***'"


def removed(store, *texts, stand_in=CLEAN, branch="main", sources=()):
    names = {("derivation", digest(text)): StandIn(stand_in, 1) if stand_in else None for text in texts}
    removal = Removal(names, frozenset(sources), "request 81")
    return forget(store, removal, branch, author="ann", message="forget")


@pytest.fixture
def told(store):
    """A secret in two sources, in the history only of a third, and on another branch."""
    speak(store, "a", SECRET, b"plain", batch="b1")
    speak(store, "old", SECRET, batch="b2")
    branches.create_branch(store, "next", store.resolve("2"), author="ann")
    speak(store, "old", b"new", batch="b3")
    speak(store, "b", b"other", batch="b4")
    return store


def stated(store, ref, source, branch="main"):
    commit = store.resolve(ref, branch)
    return {store.read(each) for each in store.fragments(commit) if each.source == source}


def blobs(store):
    return [data for info in store.objects.scan("") if (data := store.objects.get(info.key)) is not None]


def test_what_is_forgotten_is_gone_from_every_version(told):
    before = anchor(told)
    done = removed(told, SECRET)
    assert {commit.branch for commit in done.commits} == {"main", "next"}
    assert not any(SECRET in data for data in blobs(told))
    again = Store.open_objects(told.objects)
    for ref in ("HEAD", "4", "1"):
        assert stated(again, ref, "a") == {CLEAN, b"plain"}
    assert stated(again, "2", "old") == {CLEAN}
    assert stated(again, "HEAD", "old", "next") == {CLEAN}
    assert stated(again, "HEAD", "old") == {b"new"}
    assert fsck(again, against=before).problems == ()


def test_an_unchanged_ingest_does_not_bring_it_back(told):
    removed(told, SECRET)
    assert told.known("main", "a", "b1") is not None
    assert stated(told, "HEAD", "a") == {CLEAN, b"plain"}


def test_a_fragment_without_another_in_its_place_is_an_error_that_says_why(told):
    removed(told, SECRET, stand_in=None)
    assert stated(told, "HEAD", "a") == {b"plain"}
    with pytest.raises(StoreError, match="removed from the store") as caught:
        stated(told, "1", "a")
    assert caught.value.code == "store.forgotten"
    assert fsck(told).problems == ()


def test_a_source_goes_with_its_history_and_what_others_have_stays(told):
    removed(told, b"plain", stand_in=None, sources=("a",))
    assert stated(told, "HEAD", "a") == set()
    assert stated(told, "2", "old") == {SECRET}


def test_gc_and_compaction_keep_what_stands_in_its_place(told):
    removed(told, SECRET)
    compact(told, author="ann")
    far = lambda: clock.now() + timedelta(days=9)  # noqa: E731
    assert collect(told, now=far).removed == ()
    assert stated(told, "1", "a") == {CLEAN, b"plain"}


def test_a_copy_is_brought_up_to_date_and_never_brings_it_back(told, make_uri):
    target = open_objects(make_uri("memory"), create=True)
    copy_store(told, target)
    removed(told, SECRET)
    assert copy_store(told, target).removed == 1
    copied = Store.open_objects(target)
    assert not any(SECRET in data for data in blobs(copied))
    assert fsck(copied).problems == ()
    assert stated(copied, "1", "a") == {CLEAN, b"plain"}


def test_an_older_copy_does_not_bring_it_back(told, make_uri):
    older = open_objects(make_uri("memory"), create=True)
    copy_store(told, older)
    removed(told, SECRET)
    copy_store(Store.open_objects(older), told.objects)
    assert not any(SECRET in data for data in blobs(told))


def test_fsck_finds_what_came_back(told):
    removed(told, SECRET)
    key = f"frag/derivation/{digest(SECRET)}.parquet"
    told.objects.put(key, SECRET)
    assert [(p.code, p.key) for p in fsck(told).problems] == [("store.forgotten", key)]
    collect(told, grace=timedelta(0), now=lambda: clock.now() + timedelta(hours=1))
    assert fsck(told).problems == ()
    speak(told, "c", SECRET)
    assert [p.code for p in fsck(told).problems] == ["store.forgotten"]
    assert stated(told, "HEAD", "c") == {SECRET}
    removed(told, SECRET)
    assert stated(told, "HEAD", "c") == {CLEAN}
    assert not any(SECRET in data for data in blobs(told))


def test_a_tombstone_cannot_be_retracted_reverted_or_lost_in_a_merge(told):
    done = removed(told, SECRET)
    with pytest.raises(UsageError, match="not a source"):
        speak(told, FORGOTTEN)
    with pytest.raises(UsageError, match="cannot be undone"):
        revert_commit(told, done.commits[0], author="ann")
    removed(told, b"other", branch="next")
    branches.merge_branch(told, "next", author="ann")
    branches.delete_branch(told, "next", author="ann")
    assert fsck(told).problems == ()
    assert stated(told, "4", "b") == {CLEAN}


def test_a_revert_to_a_commit_before_shows_what_stands_in_its_place(told):
    speak(told, "a", b"later")
    later = told.head()
    removed(told, SECRET)
    revert_commit(told, later, author="ann")
    assert stated(told, "HEAD", "a") == {CLEAN, b"plain"}
    assert fsck(told).problems == ()


def test_an_anchor_shows_that_a_tag_was_deleted_or_moved(told):
    assert anchor(told).text.startswith("govtool-anchor:1:")
    tags.create_tag(told, "v1", told.resolve("1"), author="ann")
    tags.create_tag(told, "v2", told.resolve("2"), author="ann")
    kept = parse_anchor(anchor(told).text)
    assert kept == anchor(told)
    tags.create_tag(told, "v3", told.resolve("3"), author="ann")
    assert fsck(told, against=kept).problems == ()
    tags.delete_tag(told, "v1")
    tags.create_tag(told, "v2", told.resolve("3"), author="ann", replace=True)
    (problem,) = fsck(told, against=kept).problems
    assert (problem.code, problem.message[:1]) == ("store.anchor", "2")


def test_a_forged_tombstone_hides_nothing(told):
    """Who may write objects but no commits cannot name a stand-in."""
    done = removed(told, b"other")
    assert fsck(told).problems == ()
    entry = next(ref for ref in told.fragments(done.commits[0]) if ref.source == FORGOTTEN)
    told.objects.put(entry.key, told.objects.get(entry.key).replace(digest(b"other").encode(), b"0" * 64))
    assert any(p.code == "store.corrupt-fragment" for p in fsck(told).problems)


@pytest.mark.parametrize("k", range(1, 40))
def test_killed_at_any_write_the_same_again_completes_it(k):
    store = Store.init("memory://")
    speak(store, "a", SECRET, b"plain")
    branches.create_branch(store, "next", store.head(), author="ann")
    at = At(k, unreachable)
    writes = lambda op, key: at(op, key) if op in ("create", "put", "delete") else None  # noqa: E731
    killed = Store(Wrapped(store.objects, writes), store.store_id)
    with contextlib.suppress(StoreError):
        removed(killed, SECRET)
    for branch in ("main", "next"):
        assert stated(Store.open_objects(store.objects), "HEAD", "a", branch) in ({SECRET, b"plain"}, {CLEAN, b"plain"})
    removed(Store.open_objects(store.objects), SECRET)
    assert not any(SECRET in data for data in blobs(store))
    assert fsck(store).problems == ()


class Packing(Wrapped):
    """Objects in memory on which small fragments are packed, as on a server."""

    is_remote = True


def test_fragments_of_the_same_pack_stay(tmp_path, monkeypatch):
    store = Store.init("memory://")
    packing = Store(Packing(store.objects), store.store_id)
    add = tuple(Fragment("a", "derivation", text, 1) for text in (SECRET, b"plain", b"third"))
    packing.commit(Changes(("a",), add), message="m", author="ann", batch="b")
    assert any(ref.pack for ref in packing.fragments(packing.head()))
    speak(packing, "a", b"later", b"more")
    done = removed(packing, SECRET)
    assert [key.split("/")[0] for key in done.removed] == ["pack"]
    again = Store.open_objects(store.objects)
    assert stated(again, "1", "a") == {CLEAN, b"plain", b"third"}
    assert stated(again, "HEAD", "a") == {b"later", b"more"}
    assert fsck(again).problems == ()
    assert not any(SECRET in data for data in blobs(again))
