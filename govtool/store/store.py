"""The store: a log of immutable commits over objects; see docs/store.md.

>>> from govtool.store import Changes, Fragment, Store
>>> store = Store.init("memory://")
>>> changes = Changes(retract=("etl",), add=(Fragment("etl", "derivation", b"...", rows=1),))
>>> store.commit(changes, message="first", author="me", batch="b1").created
True
>>> store.commit(changes, message="again", author="me", batch="b1").created
False
>>> [store.read(ref) for ref in store.fragments(store.resolve("HEAD"))]
[b'...']
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping

from govtool import clock
from govtool.errors import ExistingStoreError, StoreError
from govtool.release import __version__
from govtool.store import log
from govtool.store.backends.files import LocalFiles
from govtool.store.backends.location import local_path, normalise, open_objects
from govtool.store.backends.objects import Objects, ObstoreObjects, in_parallel
from govtool.store.backends.times import check_clock
from govtool.store.codec import FORMAT, JsonValue, seal
from govtool.store.commit import Changes, Commit, CommitResult, Fragment, FragmentRef
from govtool.store.names import DEFAULT_BRANCH, check_branch
from govtool.store.reader import MARKER, Reader, no_store, read_marker
from govtool.store.writer import Writer

_WRITERS, _ROUNDS = 8, 3
"""Writers that the probe of a new place lets meet, and how often."""


class Store(Reader):
    """A store that was opened by `open` or `init`: everything a reader does, and commits."""

    objects: Objects

    def __init__(self, objects: Objects, store_id: str | None = None) -> None:
        """Use ``init`` or ``open``; this constructor checks nothing."""
        super().__init__(objects, store_id)
        self._seen: dict[str, log.Position] = {}
        self._checked: dict[str, Commit] = {}

    def base(self, branch: str = DEFAULT_BRANCH) -> Commit | None:
        """`head`, for who is about to commit: the next commit to the branch starts from there without looking again.

        What others commit in between is seen all the same, as it is when writers meet.

        Raises:
            IntegrityError: ``store.corrupt-chain`` if the history is broken; see docs/store.md for what is checked.
        """
        self._seen[branch] = position = self._position(branch)
        return None if position.head is None or position.head.closed else position.head

    def _position(self, branch: str) -> log.Position:
        """Return the head of a branch; of a local store, with a history whose newest links hang together."""
        position = log.read_position(self.objects, check_branch(branch), hasty=self.is_remote)
        head, checked = position.head, self._checked.get(branch)
        if head is None:
            return position
        log.check_newest(self.objects, head, 1 if checked is None else checked.seq)
        if checked is None or head.seq > checked.seq:
            self._checked[branch] = head
        return position

    def seen(self, branch: str = DEFAULT_BRANCH) -> Commit | None:
        """The commit that the next commit to the branch starts from: that of the last `base`, without a request."""
        position = self._seen.get(branch)
        if position is None:
            return self.base(branch)
        return None if position.head is None or position.head.closed else position.head

    def known(self, branch: str, source: str, batch: str) -> Commit | None:
        """The newest commit of a branch, if all that a source has there is of one batch; else None."""
        head = self.base(branch)
        while head is not None and self.batches(head, source) == {batch}:
            if self._seen[branch].sure:
                return head
            later = log.read_ahead(self.objects, branch, head.seq, head.id)
            head = later[-1] if later else head
            self._seen[branch] = log.Position(head, None)
        return None

    @classmethod
    def init(cls, uri: str, *, exist_ok: bool = False) -> Store:
        """Make an empty store.

        Args:
            uri: See `govtool.store.backends.location.open_object_store`.
            exist_ok: Open the store if there is one already.

        Raises:
            StoreError: ``store.exists``; ``store.no-conditional-put`` if the place ignores put-if-absent; or it cannot
                be written.
        """
        return cls.init_objects(open_objects(uri, create=True), exist_ok=exist_ok)

    @classmethod
    def init_objects(cls, objects: Objects, *, exist_ok: bool = False) -> Store:
        """`init` on objects that are open already."""
        if objects.get(MARKER) is None:
            _probe(objects)
            body = {
                "format": FORMAT,
                "store_id": uuid.uuid4().hex,
                "created": clock.iso(clock.now()),
                "tool": f"govtool {__version__}",
            }
            if objects.create(MARKER, seal(body)):
                return cls.open_objects(objects)
        if exist_ok:
            return cls.open_objects(objects)
        raise ExistingStoreError(
            f"there is a store at {objects.uri} already",
            location=objects.uri,
            hint="use it as it is, or give another place: --store",
        )

    @classmethod
    def open(cls, uri: str) -> Store:
        """Open a store.

        Raises:
            StoreError: ``store.missing`` if there is none, or it cannot be read.
            FormatError: ``store.format`` if a newer version made it.
            IntegrityError: ``store.corrupt`` if the marker is damaged.
        """
        path = local_path(uri)
        if path is not None and LocalFiles(path).get(MARKER) is None:
            raise no_store(normalise(uri))
        objects = open_objects(uri)
        if (
            isinstance(objects, ObstoreObjects)
            and objects.is_remote
            and objects.fetch_ahead(log.hint_key(DEFAULT_BRANCH))
        ):
            # Where there is a hint, there is a store, and whoever opens it wants the hint next: a request saved. The
            # slots say which format they have.
            return cls(objects)
        return cls.open_objects(objects)

    @classmethod
    def open_objects(cls, objects: Objects) -> Store:
        """`open` on objects that are open already."""
        return cls(objects, read_marker(objects))

    def upload(self, fragment: Fragment) -> FragmentRef:
        """Write a fragment now, for a later commit to add (``Changes.uploaded``), from this process or another one.

        Until then nobody sees it, and ``store gc`` removes it after its grace period. Writing it again is safe.

        Raises:
            StoreError: it cannot be written.
            UsageError: a bad source or table name.
        """
        return Writer(self.objects, DEFAULT_BRANCH).upload(fragment)

    def commit(
        self,
        changes: Changes,
        *,
        message: str,
        author: str,
        batch: str,
        summary: Mapping[str, JsonValue] | None = None,
        branch: str = DEFAULT_BRANCH,
    ) -> CommitResult:
        """Add a commit to a branch, unless its batch is already what the sources say.

        Concurrent writers all land: whoever loses a slot applies its changes to the winner's version. When this
        returns, the commit is durable.

        Args:
            changes: What to retract and to add.
            message: For people.
            author: For people.
            batch: Idempotence key; a digest of what was ingested. Empty: never the same.
            summary: JSON values to keep with the commit, such as coverage counts; small.
            branch: Where to commit. A branch other than the default one must exist.

        Raises:
            StoreError: ``store.full``, ``store.denied``, ``store.read-only``, ``store.clock``, … Nothing was committed,
                unless the message says that it cannot be known; running again is safe in every case.
            ConflictError: if other writers won for a minute.
            UsageError: for a summary that is not JSON or is too large, or a bad source, table or branch name.
        """
        check_branch(branch)
        result = Writer(self.objects, branch, nodes=self.nodes).commit(
            changes,
            message=message,
            author=author,
            batch=batch,
            summary=summary or {},
            must_exist=branch != DEFAULT_BRANCH,
            position=self._seen.pop(branch, None) or self._position(branch),
        )
        if result.created:
            from govtool.store.upkeep.compact import keep_compact

            entries = len(changes.add) + len(changes.uploaded) + 2 * len(changes.retract)
            keep_compact(self, result.commit, entries, author=author)
        return result


def _probe(objects: Objects) -> None:
    """Try put-if-absent: one after the other, then many at once, as a server may serialise neither.

    Raises:
        StoreError: ``store.no-conditional-put``; ``store.clock`` where this machine's clock is wrong.
    """
    if not _serialises(objects, 2, at_once=False):
        raise _no_conditional_put(objects, "ignores put-if-absent")
    if not all(_serialises(objects, _WRITERS, at_once=True) for _ in range(_ROUNDS)):
        raise _no_conditional_put(objects, "lets several writers create one object at the same time")
    check_clock(objects, clock.now())


def _serialises(objects: Objects, writers: int, *, at_once: bool) -> bool:
    """Return whether exactly one of several writers creates an object, and it holds that writer's bytes.

    Where the answer to the winner is lost, nobody knows of it: that is a network, and no race.
    """
    key = f"tmp/probe-{uuid.uuid4().hex}"
    texts = [b"%d" % number for number in range(writers)]

    def create(text: bytes) -> bool:
        return objects.create(key, text)

    won = in_parallel(create, texts) if at_once else [create(text) for text in texts]
    kept = objects.get(key)
    with contextlib.suppress(StoreError):  # Who may not delete may still commit; gc sweeps it some day.
        objects.delete(key)
    if not any(won):
        return kept in texts
    return won.count(True) == 1 and kept == texts[won.index(True)] and (at_once or won[0])


def _no_conditional_put(objects: Objects, problem: str) -> StoreError:
    return StoreError(
        f"{objects.uri} {problem}: two writers could overwrite each other's commits",
        code="store.no-conditional-put",
        location=objects.uri,
        hint="use a server that honours If-None-Match on PUT (AWS S3, MinIO, SeaweedFS, …) or a local folder",
    )
