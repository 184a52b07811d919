"""The properties of provenance on cloud storage, one test each.

They are those of Muniswamy-Reddy, Macko and Seltzer, "Making a Cloud Provenance-Aware" (TaPP 2009), section 3: read
correctness (atomicity and consistency), causal ordering, efficient query; and what their protocols need: idempotence
of every step, and that leftovers of what never committed are reclaimed. Data is a fragment of one table, its
provenance one of another.
"""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

import pytest

from bench.proxy import Fault, at
from govtool.errors import IntegrityError, StoreError
from govtool.store import Changes, Fragment, Store
from govtool.store.codec import digest
from govtool.store.upkeep import gc
from govtool.store.upkeep.reachable import reachable_keys


def write(store, name, data, provenance, batch=""):
    """One object and its provenance, in one commit."""
    changes = Changes((name,), (Fragment(name, "data", data, 1), Fragment(name, "provenance", provenance, 1)))
    return store.commit(changes, message=name, author="pass", batch=batch)


def read(store):
    """What a reader sees, as {object: (data, provenance)}; a missing half is None."""
    head = store.head()
    seen = {}
    for ref in store.fragments(head) if head else ():
        seen.setdefault(ref.source, {})[ref.table] = store.read(ref)
    return {name: (parts.get("data"), parts.get("provenance")) for name, parts in seen.items()}


@pytest.mark.parametrize("fault", [Fault("drop"), Fault("drop", applied=True)], ids=["before", "after"])
def test_read_correctness_atomicity(proxy, through, fault):
    """Data and its provenance are both recorded or neither is, wherever the writer is cut off."""
    store = Store.init(through)
    write(store, "file", b"v1", b"made by cc")
    hit, k = True, 0
    while hit:
        k += 1
        proxy.reset(lambda request, k=k: fault if request.number >= k else None)  # Cut off, it stays cut off.
        with contextlib.suppress(StoreError):
            write(store, "file", b"v%d" % (k + 1), b"made by cc, take %d" % k)
        hit = proxy.hits > 0
        proxy.reset()
        data, provenance = read(store)["file"]
        version = int(data[1:])
        assert provenance == (b"made by cc, take %d" % (version - 1) if version > 1 else b"made by cc")
    assert k >= 6


def test_read_correctness_consistency(proxy, through, monkeypatch, tmp_path):
    """What is read together matches: a reader stays at one commit, and bytes that are not those recorded are refused.

    The paper ties the two by an MD5 of the data with a nonce, because the same bytes may be written again with other
    provenance; here each writing is a commit of its own.
    """
    store = Store.init(through)
    first = write(store, "file", b"same bytes", b"made by cc").commit
    second = write(store, "file", b"same bytes", b"copied by hand").commit
    assert first.id != second.id
    for commit, provenance in ((first, b"made by cc"), (second, b"copied by hand")):
        assert {ref.table: store.read(ref) for ref in store.fragments(commit)} == {
            "data": b"same bytes",
            "provenance": provenance,
        }
    ref = next(ref for ref in store.fragments(second) if ref.table == "data")
    store.objects.put(ref.key, b"other bytes")
    assert store.read(ref) == b"same bytes"  # what was read before is still at hand
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "another machine"))
    with pytest.raises(IntegrityError):
        store.read(ref)


def test_causal_ordering(proxy, through):
    """Whatever a reader can see refers only to what is recorded, after every single request of every writer."""
    store = Store.init(through)
    write(store, "in", b"data", b"given")
    watcher = Store.open(through)
    for cut in range(1, 9):
        proxy.reset(lambda request, cut=cut: Fault("drop") if request.number >= cut else None)
        with contextlib.suppress(StoreError):
            write(store, "out", b"out %d" % cut, b"cat in > out (%d)" % cut)
        proxy.reset()
        for commit in watcher.log():  # an ancestor that is not there would be an error
            keys = sorted(reachable_keys(watcher.objects, [commit]))
            assert all(data is not None for data in watcher.objects.get_many(keys))
    assert set(read(watcher)) == {"in", "out"}


def test_causal_ordering_of_concurrent_writers(proxy, through):
    """Who writes on top of a version names it as the parent, even if others were quicker."""
    store = Store.init(through)
    write(store, "a", b"1", b"given")

    def overtake(request):
        if request.method == "PUT" and "/log/" in request.path:
            proxy.reset()
            raced.append(write(Store.open(through), "b", b"1", b"made of a").commit)

    raced = []
    proxy.reset(overtake)
    late = write(store, "c", b"1", b"made of a, too").commit
    proxy.reset()
    assert late.parent == raced[0].id
    assert set(read(store)) == {"a", "b", "c"}


def test_efficient_query(proxy, through):
    """The provenance of one object is found without looking at the others, however many there are."""
    store = Store.init(through)
    costs = {}
    for n in range(1, 101):
        write(store, f"file{n}", b"%d" % n, b"made by cc %d" % n)
        if n in (20, 100):
            proxy.reset()
            refs = [ref for ref in store.fragments(store.head()) if (ref.source, ref.table) == ("file7", "provenance")]
            assert [store.read(ref) for ref in refs] == [b"made by cc 7"]
            costs[n] = len(proxy.exchanges)
    assert costs[100] <= 20  # a few nodes of the manifest, and one of 200 objects


def test_idempotence(proxy, through):
    """Every step may be repeated after a crash: the same writing applies once."""
    store = Store.init(through)
    hit, k = True, 0
    while hit:
        k += 1
        for fault in (Fault("drop"), Fault("drop", applied=True)):
            proxy.reset(at(k, fault))
            with contextlib.suppress(StoreError):
                write(store, "file", b"v%d" % k, b"made by cc", batch=f"batch {k} {fault.applied}")
            hit = proxy.hits > 0
            proxy.reset()
            for _ in range(2):
                write(store, "file", b"v%d" % k, b"made by cc", batch=f"batch {k} {fault.applied}")
            assert read(store) == {"file": (b"v%d" % k, b"made by cc")}
    batches = [commit.batch for commit in store.log()]
    assert len(batches) == len(set(batches)) == 2 * k


def test_leftovers_of_what_never_committed_are_reclaimed(proxy, through):
    """The paper's cleaner daemon: what no commit refers to goes, and nothing else does."""
    store = Store.init(through)
    write(store, "file", b"v1", b"made by cc")
    proxy.reset(lambda request: Fault("drop") if request.method == "PUT" and "/log/" in request.path else None)
    with pytest.raises(StoreError):
        write(store, "file", b"orphan", b"made by nobody")
    proxy.reset()
    later = lambda: datetime.now(UTC) + timedelta(days=2)  # noqa: E731
    assert gc.collect(store).removed == ()
    removed = {info.key for info in gc.collect(store, now=later).removed}
    assert removed == {f"pack/{digest(b'orphanmade by nobody')}.pack"}
    assert read(store) == {"file": (b"v1", b"made by cc")}
    assert write(store, "file", b"orphan", b"made by nobody").created
