"""Forgetting several texts, one after the other: whatever stood in the place of a fragment is gone, too."""

from __future__ import annotations

import contextlib
import io
import uuid
from datetime import timedelta
from itertools import permutations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from store_doubles import At, Wrapped

from govtool import clock
from govtool.app.upkeep.forget import ForgetRequest, forget_text
from govtool.model.records import PRIVATE_VALUES, PrivateValues, RecordRun, encode_private, encode_record_runs
from govtool.store import Changes, Fragment, Store, branches
from govtool.store.backends.location import open_objects
from govtool.store.names import FORGOTTEN
from govtool.store.upkeep.copy import copy_store
from govtool.store.upkeep.forget import Removal, StandIn, forget, fragments_in_history
from govtool.store.upkeep.fsck import fsck
from govtool.store.upkeep.gc import collect

ONE, TWO, THREE = "SECRET-ONE", "SECRET-TWO", "SECRET-THREE"


def parquet(*values):
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": list(values)}), sink, compression="zstd")
    return sink.getvalue()


def decoded(data):
    """All values in a Parquet file, or in several one after the other; other bytes as they are."""
    pieces = data.replace(b"PAR1PAR1", b"PAR1\0CUT\0PAR1").split(b"\0CUT\0")
    shown = []
    for piece in pieces:
        try:
            shown.append(str(pq.read_table(io.BytesIO(piece)).to_pylist()))
        except pa.ArrowException:
            shown.append(piece.decode("utf-8", "replace"))
    return " ".join(shown)


def holding(store, *texts):
    """The objects that hold one of the texts, whoever refers to them."""
    found = {info.key: decoded(store.objects.get(info.key)) for info in store.objects.scan("")}
    return sorted(key for key, shown in found.items() if any(text in shown for text in texts))


def speak(store, source, *contents, batch=""):
    add = tuple(Fragment(source, "notes", data, 1) for data in contents)
    return store.commit(Changes((source,), add), message="m", author="ann", batch=batch)


def stated(store, ref, source="etl"):
    commit = store.resolve(ref)
    read = [store.read(each) for each in store.fragments(commit) if each.source == source]
    return sorted(value for data in read for value in pq.read_table(io.BytesIO(data))["text"].to_pylist())


def forgotten(store, *texts, **options):
    return forget_text(store, ForgetRequest(texts=texts, author="ann", **options))


class Packing(Wrapped):
    """Objects in memory on which small fragments are packed, as on a server."""

    is_remote = True


@pytest.fixture(params=["memory", "packs", "local"])
def leaked(request, tmp_path):
    """All three texts in one fragment of version 1, two in another; a branch still has them, the newest version not."""
    store = Store.init(str(tmp_path / "store") if request.param == "local" else "memory://")
    if request.param == "packs":
        store = Store(Packing(store.objects), store.store_id)
    speak(store, "etl", parquet(f"{ONE} {TWO} {THREE}", "x"), parquet(f"{TWO} {THREE}"), parquet("clean"), batch="b1")
    branches.create_branch(store, "next", store.head(), author="ann")
    speak(store, "etl", parquet("later"), parquet("more"))
    return store


def sound(store):
    """Every version can be read, and fsck finds nothing."""
    again = Store.open_objects(store.objects)
    assert stated(again, "HEAD") == ["later", "more"]
    assert fsck(again).problems == ()
    return again


@pytest.mark.parametrize("order", list(permutations((ONE, TWO, THREE))))
def test_texts_are_forgotten_one_after_the_other(leaked, order):
    left = [ONE, TWO, THREE]
    for text in order:
        answer = forgotten(leaked, text)
        left.remove(text)
        assert (answer.held, holding(leaked, text)) == ((), [])
        assert all(holding(leaked, other) for other in left)
        sound(leaked)
    assert stated(leaked, "1") == ["*** ***", "*** *** ***", "clean", "x"]
    assert stated(leaked, "next") == stated(leaked, "1")
    assert forgotten(leaked, ONE, TWO, THREE).fragments == ()


def test_two_texts_at_once_then_the_third(leaked):
    forgotten(leaked, ONE, THREE)
    forgotten(leaked, TWO)
    assert holding(leaked, ONE, TWO, THREE) == []
    assert stated(sound(leaked), "1") == ["*** ***", "*** *** ***", "clean", "x"]


def test_a_text_after_garbage_collection_and_a_copy(leaked):
    older, newer = (open_objects(f"memory://copy-{name}-{uuid.uuid4()}", create=True) for name in ("a", "b"))
    forgotten(leaked, ONE)
    copy_store(leaked, older)
    later = clock.now() + timedelta(days=9)
    collect(leaked, now=lambda: later)
    forgotten(leaked, TWO)
    collect(leaked, now=lambda: later)
    for target in (older, newer):
        copy_store(leaked, target)
        copied = sound(Store.open_objects(target))
        assert holding(copied, ONE, TWO) == []
        assert stated(copied, "1") == ["*** *** SECRET-THREE", "*** SECRET-THREE", "clean", "x"]
    copy_store(Store.open_objects(older), leaked.objects)
    assert holding(leaked, ONE, TWO) == []


def test_what_came_back_is_forgotten_again_and_earlier_versions_stay_clean(leaked):
    forgotten(leaked, ONE)
    speak(leaked, "other", parquet(f"{ONE} {TWO} {THREE}", "x"), batch="again")
    assert [problem.code for problem in fsck(leaked).problems] == ["store.forgotten"]
    forgotten(leaked, TWO)
    assert stated(leaked, "1") == ["*** *** SECRET-THREE", "*** SECRET-THREE", "clean", "x"]
    assert stated(leaked, "HEAD", "other") == ["SECRET-ONE *** SECRET-THREE", "x"]
    assert holding(leaked, TWO) == []
    forgotten(leaked, ONE)
    assert holding(leaked, ONE) == []
    assert stated(sound(leaked), "HEAD", "other") == ["*** *** SECRET-THREE", "x"]


def test_a_run_then_a_text_then_the_source(leaked):
    runs = [RecordRun(run, "p", "out", (), "") for run in ("app-1/0", "app-2/0", "app-3/0")]
    values = [PrivateValues(run.run, f'["{run.run} {ONE}"]') for run in runs]
    add = (
        Fragment("job", "record_runs", encode_record_runs(runs), 3),
        Fragment("job", PRIVATE_VALUES, encode_private(values), 3),
    )
    leaked.commit(Changes(("job",), add), message="m", author="ann", batch="b")
    speak(leaked, "job", parquet("nothing"))
    for run in ("app-1", "app-2"):
        forget_text(leaked, ForgetRequest(runs=(run,), author="ann"))
    forgotten(leaked, ONE)
    assert holding(leaked, ONE, "app-1/0 ", "app-2/0 ") == []
    assert holding(leaked, "app-3/0 ***")
    sound(leaked)
    forget_text(leaked, ForgetRequest(sources=("job",), author="ann"))
    assert holding(leaked, "app-3/0 ***", "nothing") == []
    sound(leaked)


def test_neighbours_of_a_pack_that_were_removed_for_good_stay_away():
    store = Store.init("memory://")
    packing = Store(Packing(store.objects), store.store_id)
    contents = {name: parquet(name) for name in ("one", "two", "three", "four")}
    speak(packing, "etl", *contents.values())
    names = {name: next(n for n, r in fragments_in_history(store).items() if store.read(r[0]) == data)
             for name, data in contents.items()}  # fmt: skip
    for name in ("one", "two", "three"):
        forget(packing, Removal({names[name]: None}), "main", author="ann", message="m")
        assert holding(store, f"'{name}'") == []
    assert stated(store, "HEAD") == ["four"]
    assert fsck(store).problems == ()


def test_an_interrupted_removal_is_not_undone_by_the_next_one():
    """The pack is still there; forgetting its neighbour neither keeps nor moves what was forgotten."""
    store = Store.init("memory://")
    packing = Store(Packing(store.objects), store.store_id)
    speak(packing, "etl", parquet(ONE), parquet(TWO), parquet("clean"))
    pack = next(info.key for info in store.objects.scan("pack"))
    data = store.objects.get(pack)
    forgotten(packing, ONE)
    store.objects.put(pack, data)
    forgotten(Store(packing.objects, store.store_id), TWO)
    assert holding(store, ONE, TWO) == []
    assert stated(store, "1") == ["***", "***", "clean"]
    assert fsck(store).problems == ()


class KilledError(BaseException):
    """The end of the process."""


def _killed():
    raise KilledError


@pytest.mark.parametrize("packs", [False, True])
def test_killed_at_a_write_of_two_removals_the_same_again_completes_it(packs):
    """Every third write; ``bench.attacks`` kills at all of them."""
    k, survived = packs, False
    while not survived:
        k += 3
        store = Store.init("memory://")
        store = Store(Packing(store.objects), store.store_id) if packs else store
        speak(store, "etl", parquet(f"{ONE} {TWO}"), parquet(f"{TWO} {THREE}"), parquet("clean"), batch="b1")
        branches.create_branch(store, "next", store.head(), author="ann")
        speak(store, "etl", parquet("later"), parquet("more"))
        at = At(k, _killed)
        writes = lambda op, key, at=at: at(op, key) if op in ("create", "put", "delete") else None  # noqa: E731
        wrapped = Packing if packs else Wrapped
        with contextlib.suppress(KilledError):
            for text in (ONE, TWO):
                forgotten(Store(wrapped(store.objects, writes), store.store_id), text)
            survived = True
        for ref in ("1", "HEAD", "next"):
            assert len(stated(Store.open_objects(store.objects), ref)) in (2, 3)
        copied = open_objects(f"memory://copied-{packs}-{k}", create=True)
        copy_store(Store.open_objects(store.objects), copied)
        for text in (ONE, TWO):
            answer = forgotten(store, text)
            assert holding(store, text) == sorted(held.place for held in answer.held)
        collect(store, grace=timedelta(0), now=lambda: clock.now() + timedelta(days=1))
        assert holding(store, ONE, TWO) == []
        assert stated(sound(store), "1") == ["*** ***", "*** SECRET-THREE", "clean"]
    assert k > 10


@pytest.mark.parametrize("k", [1, 8, 15, 22])
def test_what_another_one_forgets_meanwhile_is_gone_too(leaked, k):
    """Each would put back what the other removes: after both, neither text is in any object."""
    other = Store.open_objects(leaked.objects)
    at = At(k, lambda: forgotten(other, TWO))
    counted = Wrapped(leaked.objects, before=lambda op, key: at(op, key) if op in ("create", "put", "get") else None)
    counted.is_remote = leaked.is_remote
    forgotten(Store(counted, leaked.store_id), ONE)
    assert at.fired
    assert holding(leaked, ONE, TWO) == []
    assert stated(sound(leaked), "1") == sorted([f"*** *** {THREE}", "x", f"*** {THREE}", "clean"])


def test_what_is_ingested_while_it_is_forgotten_is_gone_too(leaked):
    changed = At(1, lambda: speak(Store.open_objects(leaked.objects), "new", parquet(f"new {ONE}")))
    counted = Wrapped(leaked.objects, before=lambda op, key: changed(op, key) if op == "create" else None)
    counted.is_remote = leaked.is_remote
    done = forgotten(Store(counted, leaked.store_id), ONE)
    assert {source for each in done.fragments for source in each.sources} == {"etl", "new"}
    assert holding(leaked, ONE) == []


def test_what_nothing_refers_to_is_listed(leaked):
    key = next(ref.key for refs in fragments_in_history(leaked).values() for ref in refs)
    data = leaked.objects.get(key)
    leaked.objects.put("pack/" + "0" * 64 + ".pack", data + parquet("ZEBRA") + parquet("end"))
    answer = forgotten(leaked, "ZEBRA")
    assert [(held.place, "store gc" in held.reason) for held in answer.held] == [("pack/" + "0" * 64 + ".pack", True)]


def test_the_reason_of_an_earlier_removal_is_looked_through(leaked):
    forgotten(leaked, ONE, reason=f"next is {TWO}")
    answer = forgotten(leaked, TWO)
    assert [held.reason for held in answer.held] == ["in the reason of an earlier removal, which cannot be changed"]
    assert holding(leaked, TWO) == [held.place for held in answer.held]


def test_the_stand_in_alone_is_removed_by_its_own_name(leaked):
    first = forgotten(leaked, ONE).fragments
    second = forgotten(leaked, TWO).fragments
    assert not {each.sha256 for each in first} & {each.sha256 for each in second}
    known = {ref.source for refs in fragments_in_history(leaked).values() for ref in refs}
    assert known == {"etl", FORGOTTEN}


def test_an_index_of_a_version_with_a_stand_in_goes_with_it(leaked):
    from govtool.store import published

    name = next(n for n, refs in fragments_in_history(leaked).items() if b"clean" in leaked.read(refs[0]))
    stand_in = parquet("cleaner")
    forget(leaked, Removal({name: StandIn(stand_in, 1)}), "main", author="ann", message="m")
    commit = leaked.resolve("1")
    leaked.objects.put(f"{published.FOLDER}/{commit.id}/x.root", b"")
    between = next(n for n, refs in fragments_in_history(leaked).items() if leaked.read(refs[0]) == stand_in)
    done = forget(leaked, Removal({between: None}), "main", author="ann", message="m")
    assert done.indexes == (commit.id,)


def test_the_history_is_read_once(tmp_path):
    """A removal looks through it several times; a request each would cost minutes in a bucket."""
    asked = []
    store = Store.init(f"memory://{uuid.uuid4().hex}")
    for n in range(60):
        speak(store, f"s{n % 45}", parquet(f"{n}", ONE if n == 30 else ""), batch=f"b{n}")
    branches.create_branch(store, "next", store.resolve("40"), author="ann")
    there = {info.key for info in store.objects.scan("log")} | {info.key for info in store.objects.scan("manifest")}
    assert any(key.startswith("manifest/") for key in there)
    counted = Store(Counted(store.objects, asked), store.store_id)
    assert forget_text(counted, ForgetRequest(texts=(ONE,), author="ann")).held == ()
    assert holding(store, ONE) == []
    assert sorted(key for key in asked if key in there) == sorted(there)


class Counted(Wrapped):
    """Notes every object that is read."""

    def __init__(self, inner, asked):
        super().__init__(inner)
        self.asked = asked

    def get(self, key):
        self.asked.append(key)
        return self.inner.get(key)

    def get_many(self, keys):
        self.asked += keys
        return self.inner.get_many(keys)
