"""Compaction, garbage collection, fsck with an anchor, copies."""

from __future__ import annotations

import uuid
from datetime import timedelta
from functools import cache, partial
from pathlib import Path

import pytest
from store_doubles import At, Wrapped, speak, unreachable

from govtool import clock
from govtool.errors import ConflictError, IntegrityError, StoreError, UsageError
from govtool.store import Changes, Fragment, Store, branches, log, tags
from govtool.store.backends.location import open_objects
from govtool.store.codec import seal, unseal
from govtool.store.upkeep.compact import compact, compaction_due
from govtool.store.upkeep.copy import copy_store
from govtool.store.upkeep.fsck import anchor, fsck, parse_anchor
from govtool.store.upkeep.gc import collect


def later(hours=48):
    return lambda: clock.now() + timedelta(hours=hours)


@pytest.fixture(scope="module")
def history():
    """The objects of a store with a long history, two branches and a tag."""
    store = Store.init(f"memory://{uuid.uuid4().hex}")
    for n in range(80):
        speak(store, f"s{n % 45}", b"%d" % n, batch=f"b{n}")
    branches.create_branch(store, "next", store.resolve("50"), author="ann")
    speak(store, "feature", b"f", branch="next")
    branches.merge_branch(store, "next", author="ann")
    tags.create_tag(store, "v1", store.resolve("77"), author="ann")
    return {info.key: store.objects.get(info.key) for info in store.objects.scan("")}


@pytest.fixture
def busy(store, history):
    """A store with this history."""
    for key, data in history.items():
        if store.is_remote or "://" in store.uri:
            store.objects.put(key, data)
        else:
            path = Path(store.uri, key)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.write_bytes(data)
    return Store.open_objects(store.objects)


@pytest.fixture
def in_memory(history):
    """A store in memory with this history."""
    objects = open_objects(f"memory://{uuid.uuid4().hex}", create=True)
    for key, data in history.items():
        objects.put(key, data)
    return Store.open_objects(objects)


def everything(store):
    read = cache(store.read)
    return {
        (branch.name, commit.id): [read(ref) for ref in store.fragments(commit)]
        for branch in branches.list_branches(store)
        for commit in store.log(branch.name)
    }


# compact


def test_compaction_changes_nothing_that_is_said(busy):
    before = busy.head()
    assert before.manifest.stored > 46
    result = compact(busy, author="ann")
    after = result.commit
    assert result.created
    assert after.parent == before.id
    assert busy.fragments(after) == busy.fragments(before)
    assert after.manifest.stored == len(busy.fragments(after)) == 46
    assert after.summary == {"compacted": {"before": before.manifest.stored, "after": 46}}
    assert not compact(busy, author="ann").created
    assert not speak(busy, "s34", b"79", batch="b79").created
    assert compaction_due(before, 46) is False


def test_commits_compact_when_it_is_due(monkeypatch):
    """The manifest of a store that is written for ever stays in proportion to what is live."""
    monkeypatch.setattr("govtool.store.upkeep.compact._WORTH", 64)
    store = Store.init("memory://")
    stored = []
    for n in range(200):
        # Nine sources a commit, so that nodes mention many and none is dropped whole.
        names = tuple(f"job{(n + k) % 90}" for k in range(9))
        add = tuple(Fragment(name, "numbers", b"%d %s" % (n, name.encode()), 1) for name in names)
        store.commit(Changes(names, add), message="m", author="ann", batch=f"b{n}")
        stored.append(store.head().manifest.stored)
    assert any(commit.message == "compact" for commit in store.log())
    assert max(stored) < 600
    head = store.head()
    assert len({ref.source for ref in store.fragments(head)}) == 90
    assert fsck(store).problems == ()
    batches = [commit.batch for commit in store.log()]
    assert len(set(batches)) == len(batches)


def test_a_commit_stands_where_compaction_fails(monkeypatch):
    def fail(*_, **__):
        raise StoreError("the server is gone", code="store.unreachable")

    monkeypatch.setattr("govtool.store.upkeep.compact._WORTH", 1)
    monkeypatch.setattr("govtool.store.upkeep.compact.compact", fail)
    monkeypatch.setattr("govtool.store.upkeep.compact.compaction_due", lambda *_: True)
    store = Store.init("memory://")
    assert speak(store, "a", b"1").created
    assert store.head().seq == 1


# gc


def failing_at_the_slot(store):
    def before(op, key):
        if op == "create" and key.startswith("log/"):
            unreachable()

    return Store(Wrapped(store.objects, before), store.store_id)


def test_nothing_that_any_version_refers_to_is_collected(busy):
    before = everything(busy)
    result = collect(busy, now=later(), grace=timedelta(0))
    assert result.removed == ()
    assert everything(busy) == before


def test_garbage_is_collected_after_the_grace_period(busy):
    with pytest.raises(StoreError):
        speak(failing_at_the_slot(busy), "etl", b"garbage")
    busy.objects.create("manifest/" + "0" * 64 + ".json", b"left behind")
    assert collect(busy).removed == ()
    assert collect(busy).young == 2
    dry = collect(busy, now=later(), dry_run=True)
    assert len(dry.removed) == 2
    assert dry.size == len(b"garbage" + b"left behind")
    assert collect(busy, now=later()) == dry
    assert collect(busy, now=later()).removed == ()
    assert not fsck(busy).problems


def test_staging_files_of_killed_writers_are_swept(tmp_path):
    store = Store.init(str(tmp_path / "store"))
    speak(store, "etl", b"a")
    root = Path(store.uri)
    for name in ("tmp/abc", "tmp/abc#1", "frag/derivation/x.parquet#1"):
        (root / name).write_bytes(b"half")
    assert [info.key for info in collect(store, now=later()).removed] == [
        "frag/derivation/x.parquet#1", "tmp/abc", "tmp/abc#1"
    ]  # fmt: skip
    assert sorted(path.name for path in (root / "tmp").iterdir()) == []


def test_garbage_that_is_wanted_again_is_young_again(store):
    speak(store, "etl", b"a")
    with pytest.raises(StoreError):
        speak(failing_at_the_slot(store), "logs", b"x")
    key = next(info.key for info in collect(store, now=later(), dry_run=True).removed)
    puts = []
    watched = Wrapped(store.objects, before=lambda op, key: puts.append(key) if op == "put" else None)
    speak(Store(watched, store.store_id), "logs", b"x")
    assert key in puts


def test_gc_removes_nothing_from_a_damaged_store(busy):
    busy.objects.create("frag/derivation/x.parquet", b"")
    busy.objects.put(log.slot_key("main", 3), b"")
    with pytest.raises(IntegrityError):
        collect(busy, now=later())
    assert busy.objects.get("frag/derivation/x.parquet") == b""


@pytest.mark.parametrize("seq", [1, 3, None])
def test_gc_and_copy_refuse_a_history_with_a_slot_less(in_memory, seq):
    """What the slot referred to is not known, and would be taken for garbage."""
    key = log.slot_key("main", seq or in_memory.head().seq)
    in_memory.objects.delete(key)
    before = {info.key for info in in_memory.objects.scan("")}
    for upkeep in (
        partial(collect, now=later()),
        lambda store: copy_store(store, open_objects("memory://", create=True)),
    ):
        with pytest.raises(IntegrityError) as caught:
            upkeep(in_memory)
        assert caught.value.location == key
    assert {info.key for info in in_memory.objects.scan("")} == before


def test_a_negative_grace_period(store):
    with pytest.raises(UsageError):
        collect(store, grace=timedelta(seconds=-1))


# fsck


def test_a_sound_store(busy):
    seen = []
    check = fsck(busy, progress=lambda done, all_: seen.append((done, all_)))
    assert check.problems == ()
    assert check.commits == 83
    assert check.fragments == 81
    assert check.bytes_read > 0
    assert seen[-1] == (81, 81)
    assert fsck(busy, contents=False).bytes_read == 0
    assert fsck(busy, against=anchor(busy)).problems == ()


def codes(store, **options):
    return {(problem.code, problem.key) for problem in fsck(store, **options).problems}


def test_fsck_finds_every_damage_at_once(busy):
    objects = busy.objects
    refs = busy.fragments(busy.resolve("10"))
    objects.delete(refs[0].key)
    size = len(objects.get(refs[1].key))
    objects.put(refs[1].key, b"!" * size)
    objects.put(refs[2].key, b"another length")
    objects.put(log.slot_key("main", 20), b"{")
    objects.delete(log.slot_key("main", 30))
    node = busy.head().manifest.refs[0]
    objects.put(node.key, b"{}")
    objects.put("tags/v1", b"")
    found = codes(busy)
    assert {
        ("store.corrupt-fragment", refs[0].key),
        ("store.corrupt-fragment", refs[1].key),
        ("store.corrupt-fragment", refs[2].key),
        ("store.corrupt", log.slot_key("main", 20)),
        ("store.corrupt-chain", log.slot_key("main", 30)),
        ("store.corrupt-manifest", node.key),
        ("store.corrupt", "tags/v1"),
    } <= found
    assert ("store.corrupt-fragment", refs[1].key) not in codes(busy, contents=False)


def test_fsck_finds_an_edited_slot(busy):
    edit(busy, 40)
    assert codes(busy) == {("store.corrupt-chain", log.slot_key("main", 40))}


def edit(store, seq, parent=None):
    key = log.slot_key("main", seq)
    body = unseal(store.objects.get(key), key)
    body["author"] = "mallory"
    if parent:
        body["parent"] = parent
    store.objects.put(key, seal(body))
    return log.read_slot(store.objects, "main", seq)


@pytest.mark.parametrize("key", ["tags/v1", log.slot_key("main", 3), "govtool.json"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.replace(b'"format":', b'"format":0,"format":', 1),
        lambda data: data + b"\n",
        lambda data: data.replace(b":", b": ", 1),
    ],
    ids=["a key twice", "a line end", "a blank"],
)
def test_bytes_that_mean_the_same_are_damage(store, key, spoil):
    for n in range(3):
        speak(store, "etl", b"%d" % n)
    tags.create_tag(store, "v1", store.resolve("2"), author="ann")
    data = store.objects.get(key)
    store.objects.put(key, spoil(data))
    assert codes(store) == {("store.corrupt", key)}


def test_only_an_anchor_shows_a_history_that_was_rewritten_from_there_on(store):
    for n in range(5):
        speak(store, "etl", b"%d" % n)
    remembered = parse_anchor(anchor(store).text)
    assert remembered == anchor(store)
    forged = edit(store, 3)
    for seq in (4, 5):
        forged = edit(store, seq, parent=forged.id)
    store.objects.put("hint/main", log.encode_hint(log.Hint(5, forged.id)))
    assert codes(store) == set()
    assert codes(store, against=remembered) == {("store.anchor", log.slot_key("main", 5))}


def test_only_an_anchor_shows_a_rollback(store):
    for n in range(5):
        speak(store, "etl", b"%d" % n)
    remembered = anchor(store)
    store.objects.delete(log.slot_key("main", 5))
    assert codes(store) == {("store.corrupt-chain", "hint/main")}
    store.objects.delete("hint/main")
    assert codes(store) == set()
    assert codes(store, against=remembered) == {("store.anchor", log.slot_key("main", 5))}


def test_an_anchor_of_another_store(store):
    speak(store, "etl", b"a")
    other = Store.init("memory://")
    speak(other, "etl", b"a")
    assert codes(store, against=anchor(other)) == {("store.anchor", "govtool.json")}


def test_an_empty_store_has_no_anchor(store):
    assert fsck(store).problems == ()
    with pytest.raises(StoreError) as caught:
        anchor(store)
    assert caught.value.code == "store.empty"


@pytest.mark.parametrize("text", ["", "x", "govtool-anchor:1:a:main:x:y", "govtool-anchor:2:a:main:1:" + "0" * 64])
def test_not_an_anchor(text):
    with pytest.raises(UsageError):
        parse_anchor(text)


# copy


@pytest.fixture(params=["memory", "local"])
def target(request, tmp_path):
    uri = f"memory://{uuid.uuid4().hex}" if request.param == "memory" else str(tmp_path / "copy")
    return open_objects(uri, create=True)


def test_a_copy_is_the_store(busy, target):
    busy.objects.create("records/run/part.parquet", b"kept too")
    copied = copy_store(busy, target)
    twin = Store.open_objects(target)
    assert twin.store_id == busy.store_id
    assert everything(twin) == everything(busy)
    assert twin.resolve("v1") == busy.resolve("v1")
    assert target.get("records/run/part.parquet") == b"kept too"
    assert copied.present == 0
    assert copy_store(busy, target).objects == 3  # two hints and a tag, which may have moved
    speak(busy, "etl", b"more")
    copy_store(busy, target)
    assert twin.head() == busy.head()
    assert fsck(twin, against=anchor(busy)).problems == ()


def test_an_interrupted_copy_is_no_store_and_can_be_completed(in_memory, target):
    failing = Wrapped(target, At(100, unreachable))
    with pytest.raises(StoreError):
        copy_store(in_memory, failing)
    with pytest.raises(StoreError) as caught:
        Store.open_objects(target)
    assert caught.value.code == "store.missing"
    copy_store(in_memory, target)
    assert everything(Store.open_objects(target)) == everything(in_memory)


class Going(Wrapped):
    """Objects of a store on which another one commits, to two branches, whenever objects are listed or a hint is read."""

    def __init__(self, objects):
        super().__init__(objects, before=self.commit, after=self.commit)
        self.is_remote = True
        self.number, self.other = 0, Store.open_objects(objects)

    def commit(self, op, key):
        if (op == "scan" or key.startswith("hint/")) and self.number < 40:
            self.number += 1
            speak(self.other, f"w{self.number % 5}", b"%d" % self.number)
            branch = f"{'az'[self.number % 2]}-{uuid.uuid4().hex}"
            branches.create_branch(self.other, branch, self.other.head(), author="ann")
            tags.create_tag(self.other, "moved", self.other.head(branch), author="ann", replace=True)


def test_upkeep_raises_no_false_alarm_while_others_commit(target):
    store = Store.init(f"memory://{uuid.uuid4().hex}")
    speak(store, "etl", b"a", batch="a")
    for upkeep in (fsck, partial(collect, now=later()), partial(copy_store, target=target)):
        going = Going(store.objects)
        result = upkeep(Store(going, store.store_id))
        assert going.number > 2
        assert getattr(result, "problems", ()) == ()
    assert fsck(Store.open_objects(target)).problems == ()
    assert fsck(store).problems == ()


def test_another_store_is_not_overwritten(busy, target):
    other = Store.init_objects(target)
    with pytest.raises(StoreError) as caught:
        copy_store(busy, target)
    assert caught.value.code == "store.exists"
    assert other.head() is None


def test_a_copy_that_went_its_own_way(in_memory, target):
    copy_store(in_memory, target)
    speak(Store.open_objects(target), "etl", b"theirs")
    speak(in_memory, "etl", b"ours")
    with pytest.raises(ConflictError):
        copy_store(in_memory, target)


@pytest.mark.parametrize("data", [b"damaged", b"", None])
def test_damage_is_not_copied(in_memory, data):
    target = open_objects(f"memory://{uuid.uuid4().hex}", create=True)
    (ref, *_) = in_memory.fragments(in_memory.head())
    for key in (ref.key, log.slot_key("main", 3), "tags/v1"):
        sound = in_memory.objects.get(key)
        in_memory.objects.delete(key) if data is None else in_memory.objects.put(key, data)
        if data is None and key.startswith("tags/"):
            continue  # only an anchor shows it
        with pytest.raises(IntegrityError) as caught:
            copy_store(in_memory, target)
        assert caught.value.location == key
        in_memory.objects.put(key, sound)


def test_a_damaged_hint_is_left_out_of_a_copy(in_memory):
    target = open_objects(f"memory://{uuid.uuid4().hex}", create=True)
    in_memory.objects.put("hint/main", b"damaged")
    copy_store(in_memory, target)
    assert Store.open_objects(target).head() == in_memory.head()
    assert target.get("hint/main") is None


def test_a_pack_that_was_cut_short_is_damaged(tmp_path):
    for uri in ("memory://", str(tmp_path)):
        objects = open_objects(uri, create=True)
        objects.put("pack/x.pack", b"0123456789")
        assert [objects.get_range("pack/x.pack", *span) for span in ((2, 4), (8, 12), (12, 14))] == [b"23", b"89", b""]
