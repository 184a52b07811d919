"""Damaged objects: is it found by fsck, and is anything of it read as data?"""

from __future__ import annotations

import os
import random
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.attacks.rows import Row, shown

FLIPS = 2000
DAMAGED = 100
"""Commits of the store whose objects are damaged in turn."""
_GOOD = "all found by fsck, none read as data"


class Remote:
    """Objects that take themselves for remote, so that readers ask the published index."""

    is_remote = True

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        """Everything is passed on."""
        return getattr(self._inner, name)


def sound_store(commits: int = 40) -> Any:
    """A small store in memory with every kind of object: branches, tags, nodes, tombstones, a pack, an index.

    Args:
        commits: That are made at last; at 40 a node of the manifest is written.
    """
    from bench.fuzz.targets import sound_store as objects
    from govtool.app.versions.index import built_index
    from govtool.app.versions.published import publish_index
    from govtool.store import Changes, Fragment, Store
    from govtool.store.backends.location import open_objects

    made = open_objects(f"memory://{uuid.uuid4().hex}", create=True)
    for key, data in objects().items():
        made.put(key, data)
    for number in range(commits):
        add: tuple[Fragment, ...] = (Fragment(f"more{number}", "numbers", b"more %d" % number, 1),)
        Store.open_objects(made).commit(Changes((add[0].source,), add), message="m", author="a", batch=f"m{number}")
    add = tuple(Fragment("packed", "numbers", b"packed %d" % n, 1) for n in range(3))
    Store.open_objects(Remote(made)).commit(Changes(("packed",), add), message="m", author="a", batch="p")
    store = Store.open_objects(made)
    head = store.resolve("HEAD")
    publish_index(store, head, built_index(store, head), author="a")
    return Store.open_objects(made)


def small_store() -> Any:
    """A store with every kind of object, of which little is live, so that much can be tried."""
    from govtool.app.ingest.sql import ingest_sql
    from govtool.app.ingest.sql_options import SqlRequest
    from govtool.app.versions.index import built_index
    from govtool.app.versions.published import publish_index
    from govtool.store import Changes, Fragment, Store, branches, tags

    store = Store.init(f"memory://{uuid.uuid4().hex}")
    with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
        path = Path(folder, "a.sql")
        path.write_text("create table a (x int);\ncreate view v as select x from a;\n")
        ingest_sql(store, SqlRequest(paths=(str(path),), dialect="postgres"))
    for number in range(40):
        add: tuple[Fragment, ...] = (Fragment("more", "numbers", b"more %d" % number, 1),)
        store.commit(Changes(("more",), add), message="m", author="a", batch=f"m{number}")
    branches.create_branch(store, "next", store.resolve("12"), author="a")
    tags.create_tag(store, "v1", store.resolve("3"), author="a")
    add = tuple(Fragment("packed", "numbers", b"packed %d" % n, 1) for n in range(3))
    Store.open_objects(Remote(store.objects)).commit(Changes(("packed",), add), message="m", author="a", batch="p")
    head = store.resolve("HEAD")
    publish_index(store, head, built_index(store, head), author="a")
    return store


def read_everything(store: Any) -> dict[str, object]:
    """The content of each version of a store, by its number; an error in place of what cannot be read."""
    from govtool.errors import GovtoolError
    from govtool.store import Store, branches, tags

    def attempt(ask: Callable[[], object]) -> object:
        try:
            return ask()
        except GovtoolError as error:
            return error

    def version(ref: str) -> object:
        commit = store.resolve(ref)
        return commit.id, [store.read(fragment) for fragment in store.fragments(commit)]

    def indexed() -> object:
        from govtool.app.versions.index import open_index

        remote = Store(Remote(store.objects), store.store_id)
        index = open_index(remote, remote.head())
        names = sorted(index.dataset_name(dataset) for dataset in range(index.dataset_count))
        return names, index.edge_count

    found: dict[str, object] = {ref: attempt(lambda ref=ref: version(ref)) for ref in ("HEAD", "next", "v1", "7", "20")}  # type: ignore[misc]
    found["log"] = attempt(lambda: [commit.id for commit in store.log()])
    found["tags"] = attempt(lambda: [tag.commit.id for tag in tags.list_tags(store)])
    found["branches"] = attempt(lambda: [branch.head.id for branch in branches.list_branches(store)])
    found["index"] = attempt(indexed)
    return found


def _spoilt(store: Any, changes: Iterator[tuple[str, bytes | None]]) -> tuple[int, Counter[str]]:
    """Put each changed object in place of the sound one (None: delete it), ask, check, and put the sound one back."""
    from govtool.store import Store
    from govtool.store.upkeep.fsck import anchor, fsck

    sound, kept = read_everything(store), anchor(store)
    outcome: Counter[str] = Counter()
    tries = 0
    for key, data in changes:
        before = store.objects.get(key)
        if data == before:
            continue
        store.objects.delete(key) if data is None else store.objects.put(key, data)
        tries += 1
        with tempfile.TemporaryDirectory(prefix="attacks-") as cache:
            os.environ["GOVTOOL_CACHE"] = cache
            asked = Store(store.objects, store.store_id)
            for ref, answer in read_everything(asked).items():
                if not isinstance(answer, Exception) and answer != sound[ref] and data is not None:
                    outcome[f"read as data ({key.split('/')[0]})"] += 1
            if not fsck(asked, against=kept).problems:
                outcome[f"not found by fsck ({key.split('/')[0]})"] += 1
        store.objects.put(key, before)
    return tries, outcome


def flips() -> Iterator[Row]:
    """Single bits, anywhere in the store."""
    rng = random.Random(1)
    store = sound_store()
    keys = [info.key for info in store.objects.scan("")]
    weights = [max(1, len(store.objects.get(key))) for key in keys]

    def changes() -> Iterator[tuple[str, bytes]]:
        for key in rng.choices(keys, weights, k=FLIPS):
            data = bytearray(store.objects.get(key))
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            yield key, bytes(data)

    tries, outcome = _spoilt(store, changes())
    yield Row("flips", "one bit, anywhere; index, tags and branches included", tries, shown(outcome, _GOOD))


def _kinds(store: Any) -> dict[str, str]:
    """The smallest object of every kind, by folder and ending; of fragments, of those that are Parquet."""
    kinds: dict[str, str] = {}
    large = (info for info in store.objects.scan("") if info.size > 100 or not info.key.startswith("frag/"))
    for info in sorted(large, key=lambda info: info.size):
        folder, _, rest = info.key.partition("/")
        kinds.setdefault(folder + (rest[rest.rindex(".") :] if folder == "index" else ""), info.key)
    return kinds


def node_store() -> Any:
    """A store with a node of a manifest and little else: each of a node's many lengths is tried."""
    from govtool.store import Changes, Fragment, Store
    from govtool.store.manifest import TAIL

    store = Store.init(f"memory://{uuid.uuid4().hex}")
    for count in (1, TAIL):  # the first commit of a store keeps twice as many entries in its slot
        add = tuple(Fragment(f"s{count + number}", "numbers", b"same", 1) for number in range(count))
        store.commit(Changes(add=add), message="m", author="a", batch=f"m{count}")
    return store


def truncations() -> Iterator[Row]:
    """Every length of one object of every kind."""
    small, node = small_store(), node_store()
    chosen = [(kind, small, key) for kind, key in _kinds(small).items()]  # the smallest first
    chosen += [(kind, node, key) for kind, key in _kinds(node).items() if kind == "manifest"]
    for kind, store, key in chosen:
        data = store.objects.get(key)
        tries, outcome = _spoilt(store, ((key, data[:length]) for length in range(len(data))))
        yield Row("truncations", f"`{kind}` cut to every length", tries, shown(outcome, _GOOD))


def damages() -> Iterator[Row]:
    """Objects that are emptied, overwritten, lengthened, deleted or exchanged, each of them in turn."""
    store = sound_store(DAMAGED)
    keys = sorted(info.key for info in store.objects.scan(""))
    sound = {key: store.objects.get(key) for key in keys}

    def neighbour(key: str) -> bytes:
        others = [each for each in keys if each != key and each.rpartition("/")[0] == key.rpartition("/")[0]]
        data: bytes = sound[others[0]] if others else sound[key]
        return data

    attacks: dict[str, Callable[[str], bytes | None]] = {
        "overwritten with zeros": lambda key: bytes(len(sound[key])),
        "a byte more": lambda key: sound[key] + b"\0",
        "deleted (hints and indexes aside)": lambda key: None,
        "replaced by another one of its folder": neighbour,
    }
    for name, change in attacks.items():
        chosen = [key for key in keys if not (name.startswith("deleted") and key.startswith(("hint/", "index/")))]
        tries, outcome = _spoilt(store, ((key, change(key)) for key in chosen))
        good = "all found by fsck with an anchor" if name.startswith("deleted") else _GOOD
        yield Row("damages", f"an object {name}, each in turn", tries, shown(outcome, good))
