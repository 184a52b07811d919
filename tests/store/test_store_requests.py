"""What a commit costs at any age of the store: at most six requests, however much is beside what changed."""

from __future__ import annotations

import pytest

from bench.proxy import Proxy
from govtool.app.ingest.sql import ingest_sql
from govtool.app.ingest.sql_options import SqlRequest
from govtool.store import Changes, Fragment, Store
from govtool.store.upkeep.fsck import fsck

SIX = 6


@pytest.fixture(params=["moto", "seaweedfs"])
def behind(request, start_server, use_server):
    server = start_server(request.param)
    with Proxy((server.host, server.port)) as running:
        yield running, use_server(request.param, running.url)


def stated(folder, number, change=0):
    """A folder of views, some of which nobody understands, so that every table has something."""
    folder.mkdir(exist_ok=True)
    for n in range(number):
        extra = f", {change} AS c{change}" if n == 0 else ""
        (folder / f"v{n}.sql").write_text(
            f"CREATE VIEW mart.v{n} AS SELECT a.id, b.x{extra} FROM crm.a{n} a JOIN crm.b b ON a.id = b.id;\n"
            f"CREATE VIEW mart.w{n} AS SELECT y FROM p{n}, q{n};\nCREATE VIEW mart.broken{n} AS SELEC 1 FORM;\n"
        )
    return str(folder)


def ingest(uri, folder, source):
    store = Store.open(uri)
    return ingest_sql(store, SqlRequest(paths=(folder,), dialect="postgres", source=source))


def others(uri, count, start):
    """Many commits of other sources, so that what was said before lies deep in the manifest."""
    store = Store.open(uri)
    for n in range(start, start + count):
        store.commit(
            Changes((f"job{n % 90}",), (Fragment(f"job{n % 90}", "numbers", b"%d" % n, 1),)),
            message="",
            author="",
            batch=f"b{n}",
        )


def test_a_small_change_takes_six_requests_at_any_age(behind, tmp_path, monkeypatch):
    proxy, uri = behind
    Store.init(uri)
    folder = tmp_path / "etl"
    ingest(uri, stated(folder, 3), "etl")
    tables = {ref.table for ref in Store.open(uri).fragments(Store.open(uri).head())}
    assert tables == {"derivations", "coverage", "diagnostics", "reach", "reasons"}
    counts = []
    for age in range(6):
        others(uri, 37, 37 * age)
        stated(folder, 3, change=age + 1)
        monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / f"machine{age}"))  # as in CI: a new machine each time
        proxy.reset()
        assert ingest(uri, str(folder), "etl").created
        counts.append([f"{e.method} {e.path.split('/')[3]}" for e in proxy.exchanges])
    assert max(map(len, counts)) <= SIX, counts
    store = Store.open(uri)
    assert store.head().manifest.levels
    assert not ingest(uri, str(folder), "etl").created
    assert fsck(store).problems == ()
    (view,) = {ref.rows for ref in store.fragments(store.head()) if ref.table == "derivations" and ref.source == "etl"}
    assert view == 9


def test_a_small_change_of_a_large_source_writes_what_changed(behind, tmp_path, monkeypatch):
    from govtool.app.ingest import sql_lineage as module

    monkeypatch.setattr(module, "DERIVATIONS_PER_FRAGMENT", 8)
    proxy, uri = behind
    Store.init(uri)
    folder = tmp_path / "etl"
    ingest(uri, stated(folder, 60), "etl")
    first = Store.open(uri)
    before = {ref[:5]: ref for ref in first.fragments(first.head()) if ref.table == "derivations"}
    assert len(before) >= 16
    for age in range(3):
        others(uri, 40, 40 * age)
        stated(folder, 60, change=age + 1)
        proxy.reset()
        assert ingest(uri, str(folder), "etl").created
        # One more: the fragment of the changed file is read, for the files beside it that are not extracted again.
        assert len(proxy.exchanges) <= SIX + 1, [f"{e.method} {e.path}" for e in proxy.exchanges]
    store = Store.open(uri)
    after = {ref[:5]: ref for ref in store.fragments(store.head()) if ref.table == "derivations"}
    kept = before.keys() & after.keys()
    assert len(kept) == len(before) - 1
    assert all(before[stated].pack == after[stated].pack for stated in kept)


def test_fragments_in_packs_are_read_checked_copied_and_collected(behind, tmp_path):
    _, uri = behind
    Store.init(uri)
    folder = tmp_path / "etl"
    for change in range(3):
        ingest(uri, stated(folder, 3, change), "etl")
    store = Store.open(uri)
    head = store.head()
    refs = store.fragments(head)
    assert sum(bool(ref.pack) for ref in refs) >= 2
    copied = Store.init(str(tmp_path / "unused"))
    from govtool.store.backends.location import open_objects
    from govtool.store.upkeep.copy import copy_store

    copy_store(store, open_objects(str(tmp_path / "copy"), create=True))
    copy = Store.open(str(tmp_path / "copy"))
    assert copy.read_many(refs) == store.read_many(refs)
    assert fsck(copy).problems == ()
    assert copied.head() is None
    # A commit that is made on the local copy names the packs that are there, and makes none.
    assert ingest_sql(copy, SqlRequest(paths=(stated(folder, 3, 9),), dialect="postgres", source="etl")).created
    assert {bool(ref.pack) for ref in copy.fragments(copy.head())} == {True, False}
    assert fsck(copy).problems == ()
    (path,) = [p for p in (tmp_path / "copy" / "pack").iterdir() if p.stem in {ref.pack for ref in refs}][:1]
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert [problem.code for problem in fsck(copy).problems] == ["store.corrupt-fragment"]
    path.write_bytes(path.read_bytes()[:-9])
    assert {problem.code for problem in fsck(copy).problems} == {"store.corrupt-fragment"}
