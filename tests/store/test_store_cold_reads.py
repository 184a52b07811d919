"""Questions to a store on S3 from a machine that has nothing yet: page by page from a published index."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

import govtool
from bench.graph import generate
from bench.proxy import Fault, Proxy, at
from govtool import clock
from govtool.app.questions.facts import dataset_owners
from govtool.app.versions import published as app_published
from govtool.app.versions.index import open_index
from govtool.app.versions.published import publish_index
from govtool.errors import EXIT_STORE, IntegrityError, StoreError
from govtool.graph.index import Index
from govtool.graph.paging import pages
from govtool.graph.paging.paged import PagedIndex
from govtool.model.columnar import DERIVATIONS, write_table
from govtool.model.fact import FACTS, Fact, encode_facts
from govtool.query.changes.change import Change
from govtool.query.changes.impact import impact
from govtool.query.explain import explain
from govtool.query.path import paths
from govtool.store import Changes, Fragment, Store, blobs, published
from govtool.store.codec import digest
from govtool.store.commit import PublishedName
from govtool.store.quick import open_reader
from govtool.store.upkeep.fsck import fsck
from govtool.store.upkeep.gc import collect

OPENING = 4
"""Requests before the first page: hint, the slot after it, its slot, which names the root, and the root."""


@pytest.fixture(scope="module")
def warehouse():
    made = generate(120_000)
    return tuple(Fragment("bench", DERIVATIONS, write_table(table), len(table)) for table in made.tables)


@pytest.fixture(params=["moto", "seaweedfs"])
def behind(request, start_server, use_server):
    """A proxy before a server, and the address of a store behind it."""
    server = start_server(request.param)
    with Proxy((server.host, server.port)) as running:
        yield running, use_server(request.param, running.url)


@pytest.fixture
def moto_only(start_server, use_server):
    server = start_server("moto")
    with Proxy((server.host, server.port)) as running:
        yield running, use_server("moto", running.url)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """``elsewhere()``: from now on we are on a machine without any cache."""
    count = iter(range(10_000))

    def move():
        monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / f"machine{next(count)}"))

    return move


@pytest.fixture(autouse=True)
def never_small(monkeypatch):
    """The graphs of these tests would be fetched whole: they are small."""
    monkeypatch.setattr(app_published, "SMALL", 0)
    monkeypatch.setattr(app_published, "A_REQUEST", 4096)


def fill(uri, warehouse):
    """A store with the warehouse in it, and its index published; returns the whole index."""
    store = Store.init(uri)
    commit = store.commit(Changes(add=warehouse), message="", author="", batch="b").commit
    index = open_index(store, commit)
    assert publish_index(store, commit, index).created
    assert not publish_index(store, commit, index).created
    return index


def head_index(uri):
    store = open_reader(uri)
    return open_index(store, store.head())


def names(index, count, low=1, high=30):
    """Columns all over the graph, whose closures have so many entries."""
    found = []
    for node in range(1, index.node_count, 251):
        if index.is_rows(node) or index.is_unknown(node):
            continue
        if low <= impact(index, index.name(node)).summary.entries <= high:
            found.append(index.name(node))
        if len(found) == count:
            return found
    raise AssertionError("too few columns")


def test_a_cold_question_takes_few_requests_and_little_of_the_index(behind, warehouse, elsewhere):
    proxy, uri = behind
    whole = fill(uri, warehouse)
    size = len(whole.buffer)
    for name in names(whole, 6):
        expected = impact(whole, name, limit=20)
        elsewhere()
        proxy.reset()
        index = head_index(uri)
        assert impact(index, name, limit=20) == expected
        assert isinstance(index, PagedIndex)
        assert not index.is_whole
        requested = [e for e in proxy.exchanges if e.path.endswith(".part")]
        assert len(proxy.exchanges) == OPENING + len(requested)
        assert len(requested) <= 35
        assert sum(e.received for e in proxy.exchanges) < size / 5
        # The same again: what was read is here.
        proxy.reset()
        assert impact(head_index(uri), name, limit=20) == expected
        assert len(proxy.exchanges) == OPENING - 1


def test_owners_come_with_the_published_index(moto_only, warehouse, elsewhere):
    proxy, uri = moto_only
    store = Store.init(uri)
    fact = Fact("mart.sales", None, "owner", "finance", "dbt", "schema.yml", "dbt")
    facts = Fragment("dbt", FACTS, encode_facts([fact]), 1)
    commit = store.commit(Changes(add=(*warehouse, facts)), message="", author="", batch="b").commit
    assert publish_index(store, commit, open_index(store, commit)).created
    elsewhere()
    reader = open_reader(uri)
    open_index(reader, reader.head())
    proxy.reset()
    assert dataset_owners(reader, reader.head()) == {"mart.sales": "finance"}
    assert [e.path for e in proxy.exchanges if "/frag/" in e.path or ".part" in e.path] == []
    # Sixteen threads share one graph, of which pages are read as they are needed.
    graph = govtool.open(uri)
    index = graph.snapshot().index
    assert isinstance(index, PagedIndex)
    whole = open_index(store, commit).resident()
    wanted = names(whole, 8)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda name: graph.impact(name, limit=20).result, wanted * 4))
    assert found == [impact(whole, name, limit=20) for name in wanted * 4]


def test_every_kind_of_question_is_answered_as_from_the_whole(moto_only, warehouse, elsewhere):
    _, uri = moto_only
    whole = fill(uri, warehouse)
    for name in names(whole, 2):
        end = impact(whole, name).columns[-1].column
        elsewhere()
        for question in (
            lambda index, name=name: impact(index, name, change=Change.parse("drop"), limit=20),
            lambda index, name=name: impact(index, name.partition(".")[2], limit=5),
            lambda index, end=end: impact(index, end, direction="up", depth=2),
            lambda index, name=name: explain(index, name),
            lambda index, name=name, end=end: paths(index, name, end),
        ):
            assert question(head_index(uri)) == question(whole)


def test_where_much_is_asked_the_whole_is_fetched_and_kept(moto_only, warehouse, elsewhere):
    proxy, uri = moto_only
    whole = fill(uri, warehouse)
    elsewhere()
    index = head_index(uri)
    assert [index.dataset_name(d) for d in index.datasets()] == [whole.dataset_name(d) for d in whole.datasets()]
    proxy.reset()
    assert type(head_index(uri)) is Index
    assert not [e for e in proxy.exchanges if "/index" in e.path]


def test_a_small_index_is_fetched_whole_at_once(moto_only, warehouse, elsewhere, monkeypatch):
    proxy, uri = moto_only
    fill(uri, warehouse)
    monkeypatch.setattr(app_published, "SMALL", 10**9)
    elsewhere()
    proxy.reset()
    assert type(head_index(uri)) is Index
    assert len(proxy.exchanges) == OPENING + 1


def test_without_a_published_index_fragments_are_read_as_ever(moto_only, warehouse, elsewhere):
    _, uri = moto_only
    store = Store.init(uri)
    store.commit(Changes(add=warehouse), message="", author="", batch="b")
    elsewhere()
    assert type(head_index(uri)) is Index


FAULTS = [
    Fault("drop"),
    Fault("status", status=503, error="SlowDown"),
    Fault("truncate"),
    Fault("status", status=404, error="NoSuchKey"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.kind}-{fault.error}")
def test_a_fault_at_each_request_costs_a_repetition_and_never_the_answer(moto_only, warehouse, elsewhere, fault):
    proxy, uri = moto_only
    whole = fill(uri, warehouse)
    (name,) = names(whole, 1, 2, 4)
    expected = impact(whole, name)
    k, hit = 0, True
    while hit:
        k += 1
        elsewhere()
        proxy.reset(at(k, fault))
        assert impact(head_index(uri), name) == expected
        hit = proxy.hits > 0
    assert k > OPENING + 2


def test_when_the_server_is_gone_it_is_said(moto_only, warehouse, elsewhere, monkeypatch):
    proxy, uri = moto_only
    whole = fill(uri, warehouse)
    (name,) = names(whole, 1)
    elsewhere()
    index = head_index(uri)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    index = head_index(uri)
    proxy.reset(lambda request: Fault("drop"))
    with pytest.raises(StoreError) as caught:
        impact(index, name)
    assert (caught.value.code, caught.value.exit_code) == ("store.unreachable", EXIT_STORE)


@pytest.mark.parametrize("what", ["pages", "whole", "root", "all"])
def test_a_published_index_that_is_damaged_or_gone_is_never_believed(moto_only, warehouse, elsewhere, what):
    _, uri = moto_only
    whole = fill(uri, warehouse)
    (name,) = names(whole, 1)
    expected = impact(whole, name)
    store = Store.open(uri)
    for info in list(store.objects.scan("index")):
        data = store.objects.get(info.key)
        kind = "root" if info.key.endswith(".root") else "pages" if info.size != _whole_size(store) else "whole"
        if what == "all":
            store.objects.delete(info.key)
        elif kind == what:
            spoilt = bytearray(data)
            for place in range(len(spoilt) // 20, len(spoilt), 97):
                spoilt[place] ^= 1
            store.objects.put(info.key, bytes(spoilt))
    elsewhere()
    assert impact(head_index(uri), name) == expected
    elsewhere()
    index = head_index(uri)
    assert index.resident().edge_count == whole.edge_count
    assert impact(index, name) == expected


def _whole_size(store):
    found = app_published.find_published(store, store.head())
    return found.root.meta["parts"]["whole"][0][1] if found else -1


def test_pages_that_are_damaged_in_the_cache_are_fetched_again(moto_only, warehouse, elsewhere):
    proxy, uri = moto_only
    whole = fill(uri, warehouse)
    (name,) = names(whole, 1)
    expected = impact(whole, name)
    elsewhere()
    assert impact(head_index(uri), name) == expected
    files = sorted(blobs.folder().glob("??/*"))
    assert len(files) >= 3
    for path in files:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 16
        path.write_bytes(bytes(data))
    proxy.reset()
    index = head_index(uri)
    assert impact(index, name) == expected
    assert not index.is_whole
    assert len([e for e in proxy.exchanges if e.path.endswith(".part")]) >= 1


def test_gc_keeps_the_indexes_of_commits_with_a_name(moto_only, warehouse):
    from govtool.store.tags import create_tag

    _, uri = moto_only
    fill(uri, warehouse)
    store = Store.open(uri)
    store.objects.create(f"index/{store.head().id}/{'0' * 64}.part", b"left by a publisher that was killed")
    first = {info.key for info in store.objects.scan("index")}
    create_tag(store, "release", store.head(), author="me")
    store.commit(Changes(add=(Fragment("x", "t", b"x", 1),)), message="", author="", batch="c")
    collected = collect(store, grace=timedelta(0))
    assert [info.key for info in collected.removed] == [k for k in first if k.endswith(f"{'0' * 64}.part")]
    assert not collect(store, grace=timedelta(0)).removed
    store.objects.delete("tags/release")
    assert not collect(store).removed  # they are young
    assert {info.key for info in collect(store, grace=timedelta(0)).removed} == first - {
        info.key for info in collected.removed
    }
    assert not list(store.objects.scan("index"))


@pytest.fixture(scope="module")
def shop():
    (table,) = generate(20_000).tables[:1]
    return (Fragment("shop", DERIVATIONS, write_table(table), len(table)),)


def two_versions(uri, warehouse, shop):
    """A store with two commits, each with its index published: the second has more edges."""
    store = Store.init(uri)
    first = store.commit(Changes(add=shop), message="", author="", batch="a").commit
    assert publish_index(store, first, open_index(store, first)).created
    second = store.commit(Changes(add=warehouse), message="", author="", batch="b").commit
    assert publish_index(store, second, open_index(store, second)).created
    return store, first, second


def put_in_place(store, first, second):
    """The objects of the first commit's index in the place of those of the second."""
    for info in list(store.objects.scan(f"index/{second.id}")):
        store.objects.delete(info.key)
    for info in list(store.objects.scan(f"index/{first.id}")):
        store.objects.put(info.key.replace(first.id, second.id), store.objects.get(info.key))


def test_the_index_of_another_commit_answers_for_none(moto_only, warehouse, shop, elsewhere):
    _, uri = moto_only
    store, first, second = two_versions(uri, warehouse, shop)
    expected = open_index(store, second).edge_count
    assert open_index(store, first).edge_count < expected
    put_in_place(store, first, second)
    elsewhere()
    assert app_published.find_published(store, second) is None
    assert head_index(uri).edge_count == expected
    assert {problem.code for problem in fsck(store).problems} == {"store.corrupt-index"}
    assert publish_index(store, second, open_index(store, second)).created  # beside it, and found
    assert app_published.find_published(store, second) is not None


def test_a_forged_index_is_found_by_building_it_again(moto_only, warehouse, shop, elsewhere):
    """Whoever may write objects can name any commit in a root; only the fragments tell."""
    from dataclasses import replace

    from govtool.app.upkeep.store import check, check_published_index

    _, uri = moto_only
    store, first, second = two_versions(uri, warehouse, shop)
    sound = {"anchor": None, "contents": True, "deep": True, "progress": lambda _done, _all: None}
    assert not check(store, **sound).problems
    put_in_place(store, first, second)
    (old,) = [info.key for info in store.objects.scan(f"index/{second.id}") if info.key.endswith(".root")]
    root = pages.decode_root(store.objects.get(old))
    store.objects.delete(old)
    forged = pages.encode_root(replace(root, meta={**root.meta, "commit": second.id}))
    published.put_root(store.objects, second.id, app_published.FORMATS, forged)
    # Who may write objects, but no slots: readers take no root that no slot names.
    elsewhere()
    assert app_published.find_published(store, store.head()) is None
    assert head_index(uri).edge_count > open_index(store, first).edge_count
    assert [problem.code for problem in fsck(store).problems] == ["store.corrupt-index"]
    # Who may write slots, too: only the fragments tell.
    name = PublishedName(second.id, digest(forged))
    published.land_name(store.objects, store.head(), name, "mallory")
    assert app_published.find_published(store, store.head()) is not None
    problems = {(problem.code, problem.key) for problem in check(store, **sound).problems}
    assert ("store.corrupt-index", f"index/{second.id}") in problems
    with pytest.raises(IntegrityError, match="the published index is not that of commit"):
        check_published_index(store, store.head())


def test_a_forged_index_beside_the_sound_one_is_found(moto_only, warehouse, shop):
    """The sound root stays where it is; a later slot names another one for the same content."""
    from dataclasses import replace

    from govtool.app.upkeep.store import check

    _, uri = moto_only
    store, first, second = two_versions(uri, warehouse, shop)
    (info,) = [info for info in store.objects.scan(f"index/{first.id}") if info.key.endswith(".root")]
    for part in list(store.objects.scan(f"index/{first.id}")):
        store.objects.create(part.key.replace(first.id, second.id), store.objects.get(part.key))
    root = pages.decode_root(store.objects.get(info.key))
    forged = pages.encode_root(replace(root, meta={**root.meta, "commit": second.id}))
    published.put_root(store.objects, second.id, app_published.FORMATS, forged)
    published.land_name(store.objects, store.head(), PublishedName(second.id, digest(forged)), "mallory")
    found = check(store, anchor=None, contents=False, deep=True, progress=lambda _done, _all: None)
    assert ("store.corrupt-index", f"index/{second.id}") in {(each.code, each.key) for each in found.problems}


def test_an_ingest_publishes_its_index_where_the_settings_ask_for_it(moto_only, tmp_path, elsewhere, monkeypatch):
    """`[store] publish`: the next slot names it, later commits have none until they publish theirs."""
    _, uri = moto_only
    Store.init(uri)
    (tmp_path / "govtool.toml").write_text(f'[store]\nuri = "{uri}"\npublish = true\n')
    (tmp_path / "a.sql").write_text("create view v as select x from a;\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GOVTOOL_STORE", uri)
    first = govtool.ingest_sql("a.sql", dialect="postgres")
    store = Store.open(uri)
    head = store.head()
    assert (first.commit.seq, head.seq, head.parent, head.content_id) == (1, 2, first.commit.id, first.commit.id)
    assert store.fragments(head) == store.fragments(first.commit)
    elsewhere()
    assert app_published.find_published(store, head) is not None
    assert app_published.find_published(store, first.commit) is not None  # by the slot after it
    assert not govtool.ingest_sql("a.sql", dialect="postgres").created
    (tmp_path / "a.sql").write_text("create view v as select x, y from a;\n")
    govtool.ingest_sql("a.sql", dialect="postgres")
    assert [commit.seq for commit in store.log()] == [4, 3, 2, 1]
    diff = govtool.open(uri).diff()  # from the commit before the last that changed something
    assert (diff.old.content_id, diff.new.seq) == (first.commit.id, 4)
    assert any(row[1] == "column" for row in diff.rows())
    collect(store, grace=timedelta(0), now=lambda: clock.now() + timedelta(hours=1))
    assert app_published.find_published(store, store.head()) is not None
    elsewhere()
    assert app_published.find_published(store, first.commit) is None
    assert not fsck(store).problems


def test_a_commit_stands_where_its_index_cannot_be_published(moto_only, tmp_path, monkeypatch):
    _, uri = moto_only
    Store.init(uri)
    (tmp_path / "govtool.toml").write_text(f'[store]\nuri = "{uri}"\npublish = true\n')
    (tmp_path / "a.sql").write_text("create view v as select x from a;\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GOVTOOL_STORE", uri)

    def refuse(*_, **__):
        raise StoreError("the disk is full", code="store.io")

    monkeypatch.setattr(app_published, "publish_index", refuse)
    result = govtool.ingest_sql("a.sql", dialect="postgres")
    assert result.created
    assert [note.code for note in result.diagnostics] == ["store.not-published"]
    assert Store.open(uri).head().id == result.commit.id


def test_every_damage_of_a_published_index_is_found(moto_only, shop):
    _, uri = moto_only
    fill(uri, shop)
    store = Store.open(uri)
    assert not fsck(store).problems
    for info in list(store.objects.scan("index")):
        data = store.objects.get(info.key)
        for spoilt in (
            data[:-1],
            data + b"x",
            b"",
            bytes([data[0] ^ 1]) + data[1:],
            data[:-1] + bytes([data[-1] ^ 128]),
        ):
            store.objects.put(info.key, spoilt)
            assert {problem.code for problem in fsck(store).problems} == {"store.corrupt-index"}, info.key
        store.objects.delete(info.key)
        gone = fsck(store).problems
        assert bool(gone) == info.key.endswith(".part"), info.key  # no root: nothing is published
        store.objects.put(info.key, data)
    assert not fsck(store).problems
