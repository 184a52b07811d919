"""Requests to a store of some age, counted at its objects, which are in memory and take themselves for remote."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from govtool.store import Changes, Fragment, Store

SOURCES = 90
"""Sources that take turns, so that what one said last lies deep in the manifest."""


class Counted:
    """Objects whose requests are counted; each key of several at once is one."""

    is_remote = True

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.uri = inner.uri
        self.requests: list[str] = []

    def _count(self, name: str, key: str, *rest: Any) -> Any:
        self.requests.append(f"{name} {key.split('/')[0]}")
        return getattr(self.inner, name)(key, *rest)

    def get(self, key: str) -> bytes | None:
        """Count and pass on."""
        found: bytes | None = self._count("get", key)
        return found

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Count and pass on."""
        return [self.get(key) for key in keys]

    def get_range(self, key: str, start: int, end: int) -> bytes | None:
        """Count and pass on."""
        found: bytes | None = self._count("get_range", key, start, end)
        return found

    def scan(self, prefix: str, after: str = "") -> Iterator[Any]:
        """Count and pass on."""
        return iter(list(self._count("scan", prefix, after)))

    def create(self, key: str, data: bytes) -> bool:
        """Count and pass on."""
        return bool(self._count("create", key, data))

    def create_many(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Count and pass on."""
        return [self.create(key, data) for key, data in items]

    def put(self, key: str, data: bytes) -> None:
        """Count and pass on."""
        self._count("put", key, data)

    def delete(self, key: str) -> None:
        """Count and pass on."""
        self._count("delete", key)


def _ingest(store: Store, file: Path) -> bool:
    from govtool.app.ingest.sql import ingest_sql
    from govtool.app.ingest.sql_options import SqlRequest

    return ingest_sql(store, SqlRequest(paths=(str(file),), dialect="postgres", source="etl")).created


def aged(age: int, file: Path) -> Counted:
    """A store of so many commits, the first of which is the ingest of a file."""
    objects = Counted(Store.init("memory://").objects)
    _ingest(Store(objects), file)
    store = Store(objects)
    for number in range(age - 1):
        name = f"job{number % SOURCES}"
        store.commit(
            Changes((name,), (Fragment(name, "numbers", b"%d" % number, 1),)),
            message="",
            author="a",
            batch=f"b{number}",
        )
    return objects


def figures(age: int) -> tuple[int, int, int]:
    """Requests of a changed ingest, of an unchanged one right after and of one on an old source, of a cold opening.

    Returns:
        A small commit; an ingest of what the store holds since its first commit; opening a published index.
    """
    from govtool.app.versions.index import built_index, open_index
    from govtool.app.versions.published import publish_index

    with tempfile.TemporaryDirectory(prefix="ages-") as folder:
        file = Path(folder, "a.sql")
        file.write_text("create table a (x int);\ncreate view v as select x from a;\nselect nonsense from;\n")
        objects = aged(age, file)

        def counted(act: Any) -> int:
            os.environ["GOVTOOL_CACHE"] = f"{folder}/{uuid.uuid4().hex}"  # as in CI: a new machine each time
            objects.requests.clear()
            act(Store(objects))
            return len(objects.requests)

        unchanged = counted(lambda store: _ingest(store, file))
        file.write_text("create table a (x int, y int);\ncreate view v as select x from a;\n")
        commit = counted(lambda store: _ingest(store, file))
        store = Store(objects)
        publish_index(store, store.resolve("HEAD"), built_index(store, store.resolve("HEAD")), author="a")
        return commit, unchanged, counted(lambda store: open_index(store, store.head()))
