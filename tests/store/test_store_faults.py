"""Requests that fail, answers that get lost, disks that are full, objects that were tampered with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from store_doubles import At, Wrapped, full, speak, unreachable

from govtool import clock
from govtool.errors import EXIT_STORE, FormatError, IntegrityError, StoreError
from govtool.store import Store, log, writer
from govtool.store.backends.failures import translate
from govtool.store.codec import seal
from govtool.store.quick import open_reader


def test_every_request_of_a_commit_fails_in_turn(uri, say, texts):
    """A commit whose k-th request fails, before or after it was applied, is made wholly or not at all."""
    plain = Store.init(uri)
    n, fired = 0, True
    for when in ("before", "after"):
        k, fired = 0, True
        while fired:
            k, n = k + 1, n + 1
            before = texts(plain)
            at = At(k, unreachable)
            failing = Store(Wrapped(plain.objects, **{when: at}), plain.store_id)
            try:
                say("etl", b"%d" % n, batch=f"b{n}", into=failing)
                acknowledged = True
            except StoreError as error:
                assert error.exit_code == EXIT_STORE  # noqa: PT017
                acknowledged = False
            fired = at.fired is not None
            after = texts(plain)
            new = {"etl": {b"%d" % n}}
            assert after == new if acknowledged else after in (before, new)
            assert say("etl", b"%d" % n, batch=f"b{n}", into=plain).created == (after != new)
            assert texts(plain) == new
        assert k > 5
    assert len(list(plain.log())) == n


def test_a_lost_answer_to_the_commit_is_recognised(store, say):
    def lose(op, key):
        if op == "create" and key.startswith("log/"):
            unreachable()

    losing = Store(Wrapped(store.objects, after=lose), store.store_id)
    assert say("etl", b"a", batch="b1", into=losing).created
    assert store.head().seq == 1


def test_a_request_that_was_sent_twice_is_recognised(store, say):
    class Twice(Wrapped):
        def create(self, key, data):
            self.inner.create(key, data)
            return self.inner.create(key, data)

    result = say("etl", b"a", batch="b1", into=Store(Twice(store.objects), store.store_id))
    assert result.created
    assert result.commit == store.head()


def test_when_it_cannot_be_known_it_is_said(store, say):
    state = {"down": False}

    def before(op, key):
        if state["down"]:
            unreachable()

    def after(op, key):
        if op == "create" and key.startswith("log/"):
            state["down"] = True
            unreachable()

    with pytest.raises(StoreError, match="cannot be known") as caught:
        say("etl", b"a", batch="b1", into=Store(Wrapped(store.objects, before, after), store.store_id))
    assert "run the command again" in caught.value.hint
    assert not say("etl", b"a", batch="b1").created


def test_a_full_disk_loses_nothing(uri, say, texts):
    store = Store.init(uri)
    say("etl", b"a", into=store)
    for k in range(1, 20):
        at = At(k, full)
        only_writes = lambda op, key, at=at: at(op, key) if op in ("create", "put") else None  # noqa: E731
        try:
            say("etl", b"b%d" % k, into=Store(Wrapped(store.objects, only_writes), store.store_id))
        except StoreError as error:
            assert error.code == "store.full"  # noqa: PT017
            assert texts(store) == {"etl": {b"a"}}
        else:
            break
    assert k == 3  # the fragment, the slot; a hint that cannot be written costs nothing


@pytest.mark.skipif(not sys.platform.startswith("linux") or os.geteuid() != 0, reason="mounts a small file system")
def test_a_disk_that_is_really_full(tmp_path):
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        store = Store.init(str(tmp_path / "store"))
        speak(store, "etl", b"a" * 1000)
        with pytest.raises(StoreError) as caught:
            speak(store, "etl", b"b" * 1_000_000)
        assert caught.value.code == "store.full"
        assert "no space left" in caught.value.message
        filler = tmp_path / "filler"
        filler.write_bytes(b"x" * 4096 * (shutil.disk_usage(tmp_path).free // 4096))
        with pytest.raises(StoreError) as caught:
            speak(store, "etl", b"c" * 8000)
        assert caught.value.code == "store.full"
        head = store.head()
        assert [store.read(ref) for ref in store.fragments(head)] == [b"a" * 1000]
        filler.unlink()
        assert speak(store, "etl", b"c" * 8000).commit.seq == 2
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(28, "No space left on device"), "store.full"),
        (OSError(122, "Disk quota exceeded"), "store.full"),
        (OSError(27, "File too large"), "store.full"),
        (OSError(30, "Read-only file system"), "store.read-only"),
        (PermissionError(13, "Permission denied"), "store.denied"),
        (FileNotFoundError(2, "No such file"), "store.missing"),
        (OSError(5, "Input/output error"), "store.io"),
        (Exception("Generic LocalFileSystem error: Unable to x: No space left (os error 28)\n\nDebug"), "store.full"),
        (Exception("connection reset by peer"), "store.unreachable"),
        (Exception("Server returned non-2xx status code: 412 Precondition Failed: <secret>"), "store.unreachable"),
    ],
)
def test_errors_are_told_apart(error, code):
    reported = translate(error, "write x", "here")
    assert reported.code == code
    assert reported.exit_code == EXIT_STORE
    assert "\n" not in reported.message
    assert "non-2xx" not in reported.message
    assert reported.hint


NOBODY = """
import os, sys
sys.path.insert(0, {root!r})
import obstore, uuid
import govtool.store.backends.local
from govtool.errors import StoreError
from govtool.store.store import Changes, Store
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)
store = Store.open({uri!r})
print(store.head().seq)
try:
    store.commit(Changes(retract=("etl",)), message="", author="", batch="")
except StoreError as error:
    print(error.code)
"""


def test_permission_denied(tmp_path):
    uri = str(tmp_path / "store")
    store = Store.init(uri)
    speak(store, "etl", b"a")
    folders = [Path(folder) for folder, _, _ in os.walk(uri)]
    for folder in folders:
        folder.chmod(0o555)
    # Root may write anything, so the child is somebody else and must get there: through the folders of pytest and,
    # where tests run side by side, of its worker.
    for parent in [tmp_path, *tmp_path.parents]:
        if parent == tmp_path or parent.name.startswith(("pytest-", "popen-")):
            parent.chmod(0o755)
    code = NOBODY.format(root=str(Path(__file__).parents[2]), uri=uri)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    for folder in folders:
        folder.chmod(0o755)
    assert result.stdout.split() == ["1", "store.denied"], result.stderr
    assert store.head().seq == 1


def test_init_where_nothing_can_be_made(tmp_path):
    (tmp_path / "file").write_text("x")
    for uri in (str(tmp_path / "file"), str(tmp_path / "file" / "below"), "/proc/nope/store"):
        with pytest.raises(StoreError):
            Store.init(uri)
        with pytest.raises(StoreError):
            Store.open(uri)
        with pytest.raises(StoreError):
            open_reader(uri)


def test_init_refuses_a_place_that_ignores_put_if_absent(store):
    class Ignoring(Wrapped):
        def create(self, key, data):
            self.inner.put(key, data)
            return True

    from govtool.store.backends.location import open_objects

    with pytest.raises(StoreError) as caught:
        Store.init_objects(Ignoring(open_objects("memory://")))
    assert caught.value.code == "store.no-conditional-put"


# Tampering


def slots(store, seq):
    key = log.slot_key("main", seq)
    return key, json.loads(store.objects.get(key))


DAMAGE = [b"", b"{", b"[]", b"null", b"\xff\xfe", b"{}", b"[" * 100_000, b'{"format":1}', b'{"format":"x"}']


@pytest.mark.parametrize("data", DAMAGE)
@pytest.mark.parametrize("key", ["log/main/000000000002.json", "govtool.json"])
def test_a_damaged_object_is_an_integrity_error(store, uri, say, key, data):
    say("etl", b"a")
    say("etl", b"b")
    store.objects.put(key, data)
    with pytest.raises(IntegrityError) as caught:
        Store.open(uri).head()
    assert caught.value.location
    assert caught.value.hint


def test_every_flipped_bit_of_a_slot_is_seen(store, say):
    say("etl", b"a")
    key = log.slot_key("main", 1)
    data = store.objects.get(key)
    for position in range(0, len(data), 7):
        broken = bytearray(data)
        broken[position] ^= 1
        store.objects.put(key, bytes(broken))
        with pytest.raises(StoreError):
            store.head()


def test_an_edited_slot_is_seen(store, say):
    """Even one that was sealed again: its successor, or the hint, names another."""
    for text in (b"a", b"b", b"c"):
        say("etl", text)
    for seq in (1, 2, 3):
        key, body = slots(store, seq)
        original = store.objects.get(key)
        body.pop("digest")
        body["author"] = "mallory"
        store.objects.put(key, seal(body))
        with pytest.raises(IntegrityError) as caught:
            list(store.log())
        assert caught.value.code == "store.corrupt-chain"
        assert caught.value.location == key
        store.objects.put(key, original)
    assert len(list(store.log())) == 3


def test_a_hole_is_seen(store, say):
    for text in (b"a", b"b", b"c"):
        say("etl", text)
    store.objects.delete(log.slot_key("main", 2))
    with pytest.raises(IntegrityError, match="missing"):
        list(store.log())


def test_a_slot_in_the_wrong_place_is_seen(store, say):
    say("etl", b"a")
    say("etl", b"b")
    store.objects.put(log.slot_key("main", 3), store.objects.get(log.slot_key("main", 1)))
    with pytest.raises(IntegrityError):
        store.head()


@pytest.mark.parametrize("damage", [b"", b"x", None])
def test_a_damaged_fragment_is_seen(store, say, damage):
    say("etl", b"abc")
    (ref,) = store.fragments(store.head())
    if damage is None:
        store.objects.delete(ref.key)
    else:
        store.objects.put(ref.key, damage)
    with pytest.raises(IntegrityError) as caught:
        store.read(ref)
    assert caught.value.code == "store.corrupt-fragment"


def test_a_damaged_manifest_node_is_seen(store, say):
    for n in range(80):
        say(f"s{n}", b"x")
    head = store.head()
    node = head.manifest.refs[0]
    store.objects.put(node.key, store.objects.get(head.manifest.refs[1].key) if len(head.manifest.refs) > 1 else b"{}")
    with pytest.raises(IntegrityError) as caught:
        store.fragments(head)
    assert caught.value.code == "store.corrupt-manifest"


@pytest.mark.parametrize("key", ["govtool.json", "log/main/000000000001.json"])
def test_a_newer_format_is_refused(store, uri, say, key):
    say("etl", b"a")
    body = json.loads(store.objects.get(key))
    body["format"] = 3
    store.objects.put(key, json.dumps(body).encode())
    with pytest.raises(FormatError) as caught:
        Store.open(uri).head()
    assert caught.value.code == "store.format"
    assert "upgrade" in caught.value.hint


def test_unknown_fields_of_the_same_format_are_ignored(store, say):
    say("etl", b"a")
    key, body = slots(store, 1)
    body.pop("digest")
    body["invented_later"] = {"x": 1}
    store.objects.put(key, seal(body))
    store.objects.delete("hint/main")
    assert store.head().seq == 1


# Hints are only hints


@pytest.mark.parametrize(
    "hint",
    [
        None,
        b"",
        b"garbage",
        b"[]",
        b'{"seq":-1,"id":"x"}',
        b'{"seq":true,"id":"x"}',
        b'{"seq":999,"id":"x"}',
        b'{"seq":"3","id":"x"}',
        b'{"seq":1e99,"id":"x"}',
    ],
)
def test_a_hint_that_is_gone_or_wrong(store, say, hint):
    for n in range(5):
        say("etl", b"%d" % n)
    if hint is None:
        store.objects.delete("hint/main")
    else:
        store.objects.put("hint/main", hint)
    assert store.head().seq == 5
    assert say("etl", b"new").commit.seq == 6
    assert store.head().seq == 6


def test_a_hint_that_is_far_behind(store, say):
    say("etl", b"first")
    old = store.objects.get("hint/main")
    for n in range(50):
        say("etl", b"%d" % n)
    store.objects.put("hint/main", old)
    assert store.head().seq == 51


# The clock


def test_time_never_goes_back(store, say, monkeypatch):
    say("etl", b"a")
    first = store.head()
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) - timedelta(minutes=2))
    behind = writer.Writer(store.objects, "main", now=clock.now)
    assert behind.timestamp(first.time) == first.time


def test_a_clock_that_is_far_behind_is_refused(store):
    from govtool.store import Changes

    def commit(now, batch):
        return writer.Writer(store.objects, "main", now=lambda: now).commit(
            Changes(retract=("etl",)), message="", author="", batch=batch, summary={}
        )

    now = datetime.now(UTC)
    commit(now, "1")
    with pytest.raises(StoreError) as caught:
        commit(now - timedelta(days=300), "2")
    assert caught.value.code == "store.clock"
    assert "clock" in caught.value.hint
    assert store.head().seq == 1
    assert commit(now + timedelta(seconds=1), "2").created
