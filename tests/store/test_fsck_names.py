"""fsck reads what only helps, too: hints, and the roots of published indexes."""

from __future__ import annotations

import pytest
from store_doubles import Wrapped, speak

from govtool.app.versions.index import built_index
from govtool.app.versions.published import publish_index
from govtool.store import Store, branches, published
from govtool.store.upkeep.fsck import fsck


@pytest.fixture
def store():
    made = Store.init("memory://")
    speak(made, "etl", b"one")
    branches.create_branch(made, "next", made.head(), author="ann")
    return made


@pytest.mark.parametrize("data", [b"", b"{", b'{"sex":1,"id":"x"}', b'{"seq":"1","id":"x"}', b'{"seq":0,"id":"x"}'])
def test_a_hint_that_is_none_is_reported_and_read_past(store, data):
    store.objects.put("hint/main", data)
    (problem,) = fsck(store).problems
    assert (problem.code, problem.key) == ("store.corrupt", "hint/main")
    assert "remove it" in problem.remedy
    assert store.head().seq == 1
    store.objects.delete("hint/main")
    assert fsck(store).problems == ()


def test_a_branch_of_which_only_the_hint_is_left_is_reported(store):
    (slot,) = [info.key for info in store.objects.scan("log/next")]
    store.objects.delete(slot)
    (problem,) = fsck(store).problems
    assert (problem.code, problem.key) == ("store.corrupt-chain", "hint/next")
    assert "rolled back" in problem.message


def test_roots_of_many_indexes_are_listed_once_and_each_is_read_once(store):
    for number in range(5):
        speak(store, "etl", b"%d" % number)
        commit = store.head()
        publish_index(store, commit, built_index(store, commit), author="ann")
    keys = [info.key for info in store.objects.scan(published.FOLDER)]
    requests = []
    counted = Store(Wrapped(store.objects, lambda op, key: requests.append((op, key))), store.store_id)
    assert fsck(counted).problems == ()
    assert requests.count(("scan", published.FOLDER)) == 1
    assert sorted(key for op, key in requests if op == "get" and key.startswith("index/")) == sorted(keys)


def test_another_root_beside_the_named_one_is_no_damage_and_alone_it_is(store):
    speak(store, "etl", b"two")
    commit = store.head()
    publish_index(store, commit, built_index(store, commit), author="ann")
    (root,) = [info.key for info in store.objects.scan(published.FOLDER) if info.key.endswith(".root")]
    data = store.objects.get(root)
    speak(store, "etl", b"three")
    later = store.head()
    publish_index(store, later, built_index(store, later), author="ann")
    (named,) = [i.key for i in store.objects.scan(published.folder(later.id)) if i.key.endswith(".root")]
    beside = f"{published.folder(later.id)}/{root.rsplit('/', 1)[1]}"
    store.objects.put(beside, data)
    assert {problem.key for problem in fsck(store).problems} == {beside}  # of another commit, and no more
    store.objects.delete(named)
    assert {problem.key for problem in fsck(store).problems} >= {beside, published.folder(later.id)}


@pytest.mark.parametrize("change", [{"names": []}, {"keys": {"datasets": ["z"], "paths": []}}, {"counts": {}}])
def test_a_forged_table_of_pages_is_found(monkeypatch, tmp_path, change):
    """The pages are right, but a reader would look for a name on none of them."""
    from dataclasses import replace

    from bench.attacks.damage import Remote
    from govtool.app.upkeep.store import check
    from govtool.app.versions.published import FORMATS
    from govtool.graph.paging import pages
    from govtool.store.codec import digest
    from govtool.store.commit import PublishedName

    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    made = Store.init("memory://")
    store = Store(Remote(made.objects), made.store_id)
    head = speak(store, "etl", b"one").commit
    publish_index(store, head, built_index(store, head), author="ann")
    (key,) = [info.key for info in store.objects.scan(published.folder(head.id)) if info.key.endswith(".root")]
    forged = pages.encode_root(replace(pages.decode_root(store.objects.get(key)), **change))
    published.put_root(store.objects, head.id, FORMATS, forged)
    published.land_name(store.objects, store.head(), PublishedName(head.id, digest(forged)), "mallory")
    found = check(store, anchor=None, contents=False, deep=True, progress=None).problems
    assert [problem.message for problem in found] == ["its table of pages is not that of the commit"]


def test_a_forged_index_is_found_and_can_be_replaced(monkeypatch, tmp_path):
    """Of somebody who may write slots: who took it asks the store again, and fsck is content with the right one."""
    from bench.attacks.damage import Remote
    from govtool.app.ingest.sql import ingest_sql
    from govtool.app.ingest.sql_options import SqlRequest
    from govtool.app.upkeep.store import check, check_published_index
    from govtool.app.versions.index import open_index
    from govtool.errors import IntegrityError

    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    made = Store.init("memory://")
    store = Store(Remote(made.objects), made.store_id)
    for text in (
        "create view v as select x from a",
        "create view v as select x from a; create view w as select x from a",
    ):
        (tmp_path / "a.sql").write_text(text)
        ingest_sql(store, SqlRequest(paths=(str(tmp_path / "a.sql"),), dialect="postgres"))
    commit = store.head()
    publish_index(store, commit, built_index(store, store.resolve("1")), author="mallory")
    head = store.head()
    assert open_index(store, head).dataset_count == 2  # wrong, as a writer of slots can have it
    assert fsck(store).problems == ()

    def deep():
        return [p.key for p in check(store, anchor=None, contents=True, deep=True, progress=None).problems]

    assert deep() == [published.folder(commit.id)]
    with pytest.raises(IntegrityError, match="published index") as caught:
        check_published_index(store, head)
    assert f"remove {published.folder(commit.id)}/" in caught.value.hint
    for info in list(store.objects.scan(published.folder(commit.id))):
        store.objects.delete(info.key)
    assert publish_index(store, head, open_index(store, head), author="ann").created
    assert deep() == []
    check_published_index(store, store.head())
    assert open_index(store, store.head()).dataset_count == 3
