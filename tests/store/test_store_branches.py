"""Branches, merges, tags."""

from __future__ import annotations

import pytest
from store_doubles import Wrapped

from govtool.errors import ConflictError, UnknownNameError, UsageError
from govtool.store import Store, branches, log, tags
from govtool.store.quick import open_reader


@pytest.fixture
def fork(store):
    def create(name, ref="HEAD", branch="main"):
        return branches.create_branch(store, name, store.resolve(ref, branch), author="ann")

    return create


def merge(store, source, into="main", **options):
    return branches.merge_branch(store, source, into, author="ann", **options)


def names(store):
    return [branch.name for branch in branches.list_branches(store)]


def test_a_branch_begins_where_it_was_forked_off(store, say, texts, fork):
    say("etl", b"a")
    say("etl", b"b")
    fork("feature/x", "1")
    assert names(store) == ["feature/x", "main"]
    assert texts(store, "feature/x") == {"etl": {b"a"}}
    say("logs", b"x", branch="feature/x")
    assert texts(store, "feature/x") == {"etl": {b"a"}, "logs": {b"x"}}
    assert texts(store) == {"etl": {b"b"}}
    assert [(commit.branch, commit.seq) for commit in store.log("feature/x")] == [
        ("feature/x", 3), ("feature/x", 2), ("main", 1)
    ]  # fmt: skip
    assert store.resolve("feature/x") == store.head("feature/x") == store.resolve("HEAD", "feature/x")
    assert store.resolve("1", "feature/x") == store.resolve("1")
    assert store.resolve("2", "feature/x") != store.resolve("2")
    assert store.resolve("feature/x~2") == store.resolve("1")


def test_a_known_batch_is_known_on_the_branch_too(store, say, fork):
    say("etl", b"a", batch="b")
    fork("next")
    assert not say("etl", b"a", batch="b", branch="next").created


def test_names_are_used_once(store, say, fork):
    say("etl", b"a")
    fork("next")
    tags.create_tag(store, "v1", store.head(), author="ann")
    for taken in ("next", "v1", "main"):
        with pytest.raises(UsageError) as caught:
            fork(taken)
        assert caught.value.code == "usage.branch-exists"
    with pytest.raises(UsageError) as caught:
        tags.create_tag(store, "next", store.head(), author="ann")
    assert caught.value.code == "usage.tag-exists"


def test_a_deleted_branch_is_gone_but_nothing_is_lost(store, say, texts, fork):
    say("etl", b"a")
    fork("next")
    kept = say("etl", b"b", branch="next").commit
    tags.create_tag(store, "kept", kept, author="ann")
    branches.delete_branch(store, "next", author="ann")
    assert names(store) == ["main"]
    assert store.head("next") is None
    assert list(store.log("next")) == []
    with pytest.raises(UnknownNameError):
        say("etl", b"c", branch="next")
    with pytest.raises(UnknownNameError):
        store.resolve("next")
    assert store.resolve("kept") == kept
    again = fork("next")
    assert again.seq == kept.seq + 2
    assert texts(store, "next") == {"etl": {b"a"}}
    say("etl", b"d", branch="next")
    assert [commit.seq for commit in store.log("next")] == [6, 5, 1]
    assert store.resolve("2030-01-01", "next") == store.head("next")
    assert store.resolve("1", "next").branch == "main"


def test_the_default_branch_stays(store, say):
    say("etl", b"a")
    with pytest.raises(UsageError):
        branches.delete_branch(store, "main", author="ann")
    with pytest.raises(UnknownNameError) as caught:
        branches.delete_branch(store, "nope", author="ann")
    assert "main" in caught.value.nearest


def test_a_merge_takes_what_the_branch_changed(store, say, texts, fork):
    say("etl", b"a")
    say("old", b"o")
    fork("next")
    say("etl", b"b", branch="next")
    say("new", b"n", branch="next")
    say("old", branch="next")
    say("logs", b"x")
    result = merge(store, "next")
    assert result.created
    assert texts(store) == {"etl": {b"b"}, "new": {b"n"}, "logs": {b"x"}}
    assert result.commit.merged.branch == "next"
    assert result.commit.sources == ("etl", "new", "old")
    assert not merge(store, "next").created


def test_merging_a_branch_on_which_nothing_was_done(store, say, fork):
    say("etl", b"a")
    fork("next")
    say("etl", b"b")
    assert not merge(store, "next").created


def test_a_conflict_names_the_sources(store, say, texts, fork):
    say("etl", b"a")
    say("same", b"a")
    fork("next")
    for branch, text in (("next", b"theirs"), ("main", b"ours")):
        say("etl", text, branch=branch)
        say("same", b"b", branch=branch)
    with pytest.raises(ConflictError) as caught:
        merge(store, "next")
    assert caught.value.nearest == ("etl",)
    merge(store, "next", prefer="target")
    assert texts(store)["etl"] == {b"ours"}


def test_a_conflict_may_be_decided(store, say, texts, fork):
    say("etl", b"a")
    fork("next")
    say("etl", b"theirs", branch="next")
    say("etl", b"ours")
    merge(store, "next", prefer="source")
    assert texts(store) == {"etl": {b"theirs"}}


def test_merges_in_both_directions(store, say, texts, fork):
    say("etl", b"1")
    fork("next")
    say("etl", b"2")
    merge(store, "main", "next")
    assert texts(store, "next") == {"etl": {b"2"}}
    say("etl", b"3")  # after the branch took over 2: no conflict, for both descend from it
    say("logs", b"x", branch="next")
    merge(store, "next")
    assert texts(store) == {"etl": {b"3"}, "logs": {b"x"}}
    say("logs", b"y", branch="next")
    merge(store, "next")
    assert texts(store) == {"etl": {b"3"}, "logs": {b"y"}}


def test_branches_off_branches(store, say, texts, fork):
    say("etl", b"1")
    fork("a")
    say("x", b"1", branch="a")
    fork("b", branch="a")
    say("y", b"1", branch="b")
    merge(store, "b")
    assert texts(store) == {"etl": {b"1"}, "x": {b"1"}, "y": {b"1"}}
    base = branches.common_ancestor(store.objects, store.head("a"), store.head("main"))
    assert base.id == store.head("a").id


def test_merge_is_a_commit_like_any_other_writers_(store, say, texts, fork):
    """Somebody commits just before the merge does: the merge looks again."""
    say("etl", b"a")
    fork("next")
    say("etl", b"b", branch="next")
    waiting = [lambda: say("logs", b"x")]

    def before(op, key):
        if op == "create" and key.startswith("log/main") and waiting:
            waiting.pop()()

    merge(Store(Wrapped(store.objects, before), store.store_id), "next")
    assert texts(store) == {"etl": {b"b"}, "logs": {b"x"}}
    assert [commit.seq for commit in store.log()] == [3, 2, 1]


def test_a_merge_that_makes_no_sense(store, say):
    say("etl", b"a")
    with pytest.raises(UsageError):
        merge(store, "main")
    with pytest.raises(UnknownNameError):
        merge(store, "nope")


def test_tags(store, uri, say):
    first = say("etl", b"a").commit
    say("etl", b"b")
    tags.create_tag(store, "v1.0", first, author="ann")
    assert store.resolve("v1.0") == first
    assert open_reader(uri).resolve("v1.0~0") == first
    assert [(tag.name, tag.commit.seq) for tag in tags.list_tags(store)] == [("v1.0", 1)]
    with pytest.raises(UsageError):
        tags.create_tag(store, "v1.0", store.head(), author="ann")
    tags.create_tag(store, "v1.0", store.head(), author="ann", replace=True)
    assert store.resolve("v1.0").seq == 2
    tags.delete_tag(store, "v1.0")
    assert tags.list_tags(store) == ()
    with pytest.raises(UnknownNameError):
        tags.delete_tag(store, "v1.0")
    with pytest.raises(UnknownNameError):
        store.resolve("v1.0")


@pytest.mark.parametrize(
    "name", ["2", "000000000001", "2026-11-20", "1a2b", "1a2b3c4", "0" * 64, "HEAD", "../x", "a\nb", ""]
)
def test_names_that_would_name_another_commit(store, say, name):
    """``--at 2`` is the second commit, whatever somebody else calls a tag."""
    first = say("etl", b"a").commit
    for create in (tags.create_tag, branches.create_branch):
        with pytest.raises(UsageError, match="cannot be the name of a"):
            create(store, name, first, author="ann")
    assert tags.create_tag(store, "y2026-11-20", first, author="ann").commit == first
    assert tags.create_tag(store, "defaced", first, author="ann").commit == first


def test_a_tag_whose_commit_was_replaced_is_seen(store, say):
    tags.create_tag(store, "v1", say("etl", b"a").commit, author="ann")
    key = log.slot_key("main", 1)
    store.objects.delete(key)
    with pytest.raises(Exception, match="tag 'v1' names commit"):
        tags.list_tags(store)
