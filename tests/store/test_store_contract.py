"""What every backend must do."""

from __future__ import annotations

import pytest
from store_doubles import OTHERS, REMOTE

from govtool.errors import AmbiguousNameError, StoreError, UnknownNameError, UsageError
from govtool.store import Changes, Fragment, Store
from govtool.store import store as store_module
from govtool.store.backends.objects import ObjectInfo

_PROBED: set[str] = set()


@pytest.fixture(params=["memory", "local", *REMOTE, pytest.param("azurite", marks=pytest.mark.slow), *OTHERS])
def uri(request, make_uri, monkeypatch):
    """A new address on each backend, of which only the first store is probed: eight writers at once take seconds."""
    if request.param in _PROBED:
        monkeypatch.setattr(store_module, "_probe", lambda objects: None)
    _PROBED.add(request.param)
    return make_uri(request.param)


def test_the_example_in_the_documentation():
    import doctest

    from govtool.store import store

    assert doctest.testmod(store).failed == 0


def test_a_new_store_is_empty(store):
    assert store.head() is None
    assert list(store.log()) == []


def test_init_twice_is_refused_unless_allowed(store, uri):
    with pytest.raises(StoreError) as caught:
        Store.init(uri)
    assert caught.value.code == "store.exists"
    assert Store.init(uri, exist_ok=True).store_id == store.store_id


def test_open_finds_what_init_made(store, uri, say):
    say("etl", b"a")
    again = Store.open(uri)
    assert again.store_id == store.store_id
    assert again.head() == store.head()


def test_open_where_there_is_no_store(uri):
    with pytest.raises(StoreError) as caught:
        Store.open(uri)
    assert caught.value.code == "store.missing"
    assert "govtool init" in caught.value.hint


def test_a_commit_is_read_back(store, say, texts):
    result = say("etl", b"a", b"b", batch="b1")
    commit = result.commit
    assert result.created
    assert commit == store.head()
    assert (commit.seq, commit.parent, commit.batch, commit.author, commit.sources) == (1, None, "b1", "ann", ("etl",))
    assert commit.message == "etl speaks"
    assert texts(store) == {"etl": {b"a", b"b"}}


def test_the_summary_is_kept(store):
    summary = {"statements": 3, "coverage": 0.5, "names": ["ü", None, True], "deep": {"a": {}}}
    changes = Changes(add=(Fragment("etl", "derivation", b"a", 1),))
    store.commit(changes, message="naïve \ud800", author="ann", batch="b", summary=summary)
    assert store.head().summary == summary
    assert store.head().message == "naïve \ud800"


def test_retraction_replaces_what_the_source_said_before(store, say, texts):
    say("etl", b"a", b"b")
    say("logs", b"x")
    say("etl", b"b", b"c")
    assert texts(store) == {"etl": {b"b", b"c"}, "logs": {b"x"}}
    say("etl")
    assert texts(store) == {"logs": {b"x"}}


def test_without_retraction_a_source_accumulates(store, say, texts):
    say("logs", b"x", retract=False)
    say("logs", b"y", retract=False)
    assert texts(store) == {"logs": {b"x", b"y"}}


def test_two_sources_may_say_the_same(store, say, texts):
    say("one", b"a")
    say("two", b"a")
    say("one")
    assert texts(store) == {"two": {b"a"}}


def test_a_known_batch_is_not_committed_again(store, say):
    first = say("etl", b"a", batch="b1")
    say("logs", b"x", batch="b2")
    again = say("etl", b"a", batch="b1")
    assert not again.created
    assert again.commit == store.head()
    assert first.commit.seq == 1
    assert store.head().seq == 2


def test_a_batch_is_committed_again_once_its_source_says_something_else(store, say, texts):
    say("etl", b"a", batch="monday")
    say("etl", b"b", batch="tuesday")
    assert say("etl", b"a", batch="monday").created
    assert texts(store) == {"etl": {b"a"}}


def test_an_empty_batch_is_known_too(store, say):
    assert say("etl", batch="nothing").created
    assert not say("etl", batch="nothing").created
    assert say("etl", batch="nothing else").created


def test_a_batch_is_known_at_any_age(store, say):
    say("old", b"first", batch="b0", retract=False)
    for n in range(150):
        say(f"s{n % 20}", b"%d" % n, batch=f"b{n + 1}", retract=False)
    assert store.head().manifest.levels
    assert not say("old", b"first", batch="b0", retract=False).created
    assert not say("s7", b"7", batch="b8", retract=False).created
    assert say("old", b"first", batch="other", retract=False).created


def test_the_log_is_a_verified_chain(store, say):
    for n in range(5):
        say("etl", b"%d" % n)
    commits = list(store.log())
    assert [commit.seq for commit in commits] == [5, 4, 3, 2, 1]
    assert [commit.parent for commit in commits] == [commit.id for commit in commits[1:]] + [None]
    assert [commit.seq for commit in store.log(limit=2)] == [5, 4]
    assert list(store.log(limit=0)) == []


def test_every_version_stays_readable(store, say):
    for n in range(66):
        say("etl", b"%d" % n)
        say(f"other{n}", b"x")
    for n in (0, 1, 31, 32, 33, 64, 65):
        refs = [ref for ref in store.fragments(store.resolve(str(2 * n + 1))) if ref.source == "etl"]
        assert [store.read(ref) for ref in refs] == [b"%d" % n]


def test_refs(store, say, monkeypatch):
    from datetime import UTC, datetime, timedelta

    from govtool.store import writer

    start = datetime(2026, 11, 1, 12, tzinfo=UTC)
    for day in range(40):
        monkeypatch.setattr(writer.Writer, "timestamp", lambda self, base, d=day: at(start + timedelta(days=d)))
        say("etl", b"%d" % day)
    head = store.head()
    assert store.resolve("HEAD") == store.resolve("main") == store.resolve("40") == store.resolve(head.id) == head
    assert store.resolve("HEAD~").seq == store.resolve("HEAD~1").seq == 39
    assert store.resolve("HEAD~1~2").seq == 37
    assert store.resolve(store.resolve("7").id[:9]).seq == 7
    assert store.resolve("2026-11-20").seq == 20
    assert store.resolve("2026-11-20T11:59:59").seq == 19
    assert store.resolve("2026-11-20T12:00:00Z").seq == 20
    assert store.resolve("2026-11-20 14:00:00+02:00").seq == 20
    for day in range(1, 31):
        assert store.resolve(f"2026-11-{day:02d}").seq == day
    assert store.resolve("2999-01-01") == head


def at(moment):
    from govtool.clock import iso

    return iso(moment)


UNKNOWN_REFS = (
    *("", "nope", "0", "999", "-1", "HEAD~9", "HEAD~x", "2020-01-01", "2020-13-45", "ffffffff", "a b", "../x"),
    *("HEAD~99999999999", "é"),
)


def test_unknown_refs(store, say):
    say("etl", b"a")
    for ref in UNKNOWN_REFS:
        with pytest.raises(UnknownNameError) as caught:
            store.resolve(ref)
        assert (caught.value.code, caught.value.exit_code) == ("usage.unknown-ref", 2), ref


def test_a_near_miss_is_proposed(store, say):
    say("etl", b"a")
    with pytest.raises(UnknownNameError) as caught:
        store.resolve("mian")
    assert "main" in caught.value.nearest


def test_an_ambiguous_prefix_lists_its_candidates(store, say, monkeypatch):
    from govtool.store import log

    say("etl", b"a")
    say("etl", b"b")
    real = list(store.log())
    import dataclasses

    fake = [dataclasses.replace(c, id="abcd" + c.id[4:]) for c in real]
    monkeypatch.setattr(log, "walk", lambda objects, commit: iter(fake))
    with pytest.raises(AmbiguousNameError) as caught:
        store.resolve("abcd")
    assert len(caught.value.nearest) == 2


def test_bad_names(store, say):
    """Of sources, tables and branches."""
    for source in ("", "a\nb", "x" * 600):
        with pytest.raises(UsageError):
            say(source, b"a")
    for table in ("", "../x", "A", "a/b", "x" * 100):
        with pytest.raises(UsageError):
            store.commit(Changes(add=(Fragment("s", table, b"", 0),)), message="", author="", batch="")
    for branch in ("", "HEAD", "../x", "a//b", "/a", "a=b", "a b", "x" * 200, ".hidden", "a.lock", "é"):
        with pytest.raises(UsageError):
            say("etl", b"a", branch=branch)
        with pytest.raises(UsageError):
            store.head(branch)
    assert store.head() is None


def test_odd_sources_are_text(store, say, texts):
    for source in ("../../etc", "ü/ö", 'a"b', "-", "\ud800", " "):
        say(source, b"a")
    assert len(texts(store)) == 6


def test_a_commit_to_a_branch_that_does_not_exist(store, say):
    with pytest.raises(UnknownNameError) as caught:
        say("etl", b"a", branch="feature")
    assert caught.value.code == "usage.unknown-branch"


def test_bad_summaries(store):
    for value in (float("nan"), object(), "x" * 100_000):
        with pytest.raises(UsageError):
            store.commit(Changes(retract=("s",)), message="", author="", batch="", summary={"a": value})


def test_a_commit_must_touch_something(store):
    with pytest.raises(UsageError):
        store.commit(Changes(), message="", author="", batch="")


def test_empty_and_large_fragments(store, say, texts):
    large = bytes(range(256)) * 80_000
    say("etl", b"", large)
    assert texts(store) == {"etl": {b"", large}}


def test_objects(store):
    objects = store.objects
    assert objects.create("x/1", b"a")
    assert not objects.create("x/1", b"b")
    assert objects.get("x/1") == b"a"
    objects.put("x/1", b"c")
    objects.put("x/2", b"dd")
    assert objects.create_many([("x/3", b""), ("x/1", b"")]) == [True, False]
    assert objects.get_many(["x/1", "x/0", "x/2"]) == [b"c", None, b"dd"]
    infos = sorted(objects.scan("x"))
    assert all(isinstance(info, ObjectInfo) and info.modified.tzinfo for info in infos)
    assert [(info.key, info.size) for info in infos] == [("x/1", 1), ("x/2", 2), ("x/3", 0)]
    assert sorted(info.key for info in objects.scan("x", "x/1")) == ["x/2", "x/3"]
    assert list(objects.scan("y")) == []
    objects.delete("x/1")
    objects.delete("x/1")
    assert objects.get("x/1") is None
