"""The store: a log of immutable commits over objects; see docs/architecture.md, "The store".

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

import uuid
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from govtool import __version__, clock
from govtool.errors import IntegrityError, StoreError, UsageError
from govtool.store import log, resolve
from govtool.store.codec import FORMAT, JsonValue, digest, seal, unseal
from govtool.store.commit import Changes, Commit, CommitResult, FragmentRef
from govtool.store.location import local_path, normalise, open_objects
from govtool.store.names import check_branch
from govtool.store.objects import Objects
from govtool.store.writer import Writer

MARKER = "govtool.json"
"""The object that makes a place a store: its format and its id."""
DEFAULT_BRANCH = "main"


class Store:
    """A store that was opened by `open` or `init`.

    Attributes:
        uri: The address, as it is shown.
        store_id: Random, made by `init`; copies of a store share it.
        objects: The place that holds the bytes.
    """

    def __init__(self, objects: Objects, store_id: str) -> None:
        """Use `open` or `init`; this constructor checks nothing."""
        self.objects = objects
        self.uri = objects.uri
        self.store_id = store_id

    @classmethod
    def init(cls, uri: str, *, exist_ok: bool = False) -> Store:
        """Make an empty store.

        Args:
            uri: See `govtool.store.location.open_object_store`.
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
        raise StoreError(
            f"there is a store at {objects.uri} already",
            code="store.exists",
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
        if path is not None and not (path / MARKER).exists():
            raise _no_store(normalise(uri))
        return cls.open_objects(open_objects(uri))

    @classmethod
    def open_objects(cls, objects: Objects) -> Store:
        """`open` on objects that are open already."""
        data = objects.get(MARKER)
        if data is None:
            raise _no_store(objects.uri)
        store_id = unseal(data, MARKER).get("store_id")
        if not isinstance(store_id, str):
            raise IntegrityError(f"{MARKER} names no store", location=objects.uri, hint="run govtool store fsck")
        return cls(objects, store_id)

    def head(self, branch: str = DEFAULT_BRANCH) -> Commit | None:
        """The newest commit of a branch, or ``None`` if it has none."""
        head = log.read_position(self.objects, check_branch(branch)).head
        return None if head is None or head.closed else head

    def resolve(self, ref: str, branch: str = DEFAULT_BRANCH) -> Commit:
        """The commit that ``ref`` names.

        Args:
            ref: ``HEAD``, a branch, a tag, a sequence number, the first hex digits (4 or more) of an id, or an ISO
            date or
                datetime (the newest commit at or before it; a date means the end of that day in UTC). ``~N`` after any
                of these goes N commits back.
            branch: Where ``HEAD``, numbers and dates are looked up.

        Raises:
            UnknownNameError: ``usage.unknown-ref``.
            AmbiguousNameError: ``usage.ambiguous-ref`` for an id prefix that several commits share.
        """
        return resolve.resolve(self.objects, ref, check_branch(branch))

    def log(self, branch: str = DEFAULT_BRANCH, limit: int | None = None) -> Iterator[Commit]:
        """The commits of a branch, newest first, each verified against its successor."""
        if limit is not None and limit < 0:
            raise UsageError(f"the limit is negative: {limit}", code="usage.limit")
        return islice(log.walk(self.objects, self.head(branch)), limit)

    def fragments(self, commit: Commit) -> tuple[FragmentRef, ...]:
        """The fragments that are live at a commit, sorted."""
        live = log.read_live(self.objects, commit)
        return tuple(
            sorted(FragmentRef(e.source, e.table, e.sha256, e.size, e.rows) for e in live.entries() if e.op == "+")
        )

    def read(self, ref: FragmentRef) -> bytes:
        """The bytes of a fragment, verified.

        Raises:
            IntegrityError: ``store.corrupt-fragment`` if they are missing or not what was written.
        """
        return self.read_many((ref,))[0]

    def read_many(self, refs: Sequence[FragmentRef]) -> list[bytes]:
        """`read` for several fragments, in parallel where that helps."""
        result: list[bytes] = []
        for ref, data in zip(refs, self.objects.get_many([ref.key for ref in refs]), strict=True):
            if data is None or digest(data) != ref.sha256:
                state = "missing" if data is None else "damaged"
                raise IntegrityError(
                    f"fragment {ref.sha256[:12]} of source {ref.source!r} is {state}",
                    code="store.corrupt-fragment",
                    location=ref.key,
                    hint="run govtool store fsck; restore the object from a backup, or remove it and ingest again",
                )
            result.append(data)
        return result

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
        return Writer(self.objects, branch).commit(
            changes,
            message=message,
            author=author,
            batch=batch,
            summary=summary or {},
            must_exist=branch != DEFAULT_BRANCH,
        )


def _no_store(uri: str) -> StoreError:
    return StoreError(
        f"there is no store at {uri}",
        code="store.missing",
        location=uri,
        hint="run govtool init, or give the address of a store: --store",
    )


def _probe(objects: Objects) -> None:
    key = f"tmp/probe-{uuid.uuid4().hex}"
    first, second = objects.create(key, b"1"), objects.create(key, b"2")
    kept = objects.get(key)
    objects.delete(key)
    if not first or second or kept != b"1":
        raise StoreError(
            f"{objects.uri} ignores put-if-absent: two writers could overwrite each other's commits",
            code="store.no-conditional-put",
            location=objects.uri,
            hint="use a server that honours If-None-Match on PUT (AWS S3, MinIO, SeaweedFS, …) or a local folder",
        )
