"""Dataset versions: the content that a dataset had when a run made it, tied to its provenance in one commit.

This is the read correctness of Muniswamy-Reddy, Macko and Seltzer, "Making a Cloud Provenance-Aware" (TaPP 2009): data
and its provenance can be seen to belong together.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from govtool.model.parquet import of_format, read_parquet, refusing_damage, write_parquet
from govtool.names import current_id

VERSIONS = "versions"
"""The store table of dataset versions: one fragment a dataset."""
VERSION_TABLES = frozenset({VERSIONS, "records"})
"""Its names: that of today, and the one that stores have from before ``govtool snapshot``; see docs/store.md."""
CONTENT = frozenset({"listing", "delta", "iceberg"})
"""Kinds of identities that can be computed again from the data."""
FORMAT = 1
"""Version of the layout, in the Parquet metadata."""
_FORMAT_KEY = b"govtool.versions"
_OLD_FORMAT_KEY = b"govtool.records"

_DELTA = re.compile(r"_delta_log/(\d{20})\.json")
_ICEBERG = re.compile(r"metadata/(?:v(\d+)|(\d+)-[0-9a-f-]+)(?:\.gz)?\.metadata\.json")


class DataFile(NamedTuple):
    """One file of a dataset. ``tag`` identifies its content: a sha256, or the object store's ETag."""

    path: str
    size: int
    tag: str


@dataclass(frozen=True, slots=True)
class ContentIdentity:
    """The content of a dataset, without the content."""

    kind: str
    """``listing``, ``delta`` or ``iceberg``; ``stated``: what a run says, whatever that is made of; ``files``: names,
    sizes and times, as a plan listed them; ``content``: folders and content, whatever the names of the files."""
    version: int | None
    """Of a Delta table its version, of an Iceberg table its current snapshot, or its metadata file's number."""
    digest: str
    """sha256 over the files that decide: all of them, or those of the table's log; what is stated is any text."""
    files: int
    size: int
    """Bytes of the files that decide."""

    def same_content(self, other: ContentIdentity) -> bool:
        """Return whether both are the same content; Iceberg's versions were numbers of metadata files once."""
        versions = self.version == other.version or self.kind == "iceberg"
        return versions and (self.kind, self.digest, self.files, self.size) == (
            other.kind,
            other.digest,
            other.files,
            other.size,
        )

    @property
    def short(self) -> str:
        """Enough of the digest to tell it: its beginning, or the last part of a name that somebody stated."""
        if self.kind == "stated":
            return re.split(r"[#/]", self.digest.rstrip("#/"))[-1] or self.digest
        return self.digest[:12]


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A source of a dataset. ``commit`` recorded exactly this content; ``None``: nothing did."""

    dataset: str
    digest: str | None
    """``None`` if there was no data to look at."""
    commit: str | None


@dataclass(frozen=True, slots=True)
class DatasetVersion:
    """A version of a dataset: its content and the run that made it."""

    dataset: str
    identity: ContentIdentity
    run: str
    ancestors: tuple[Ancestor, ...]
    rows: str = ""
    """A digest of its rows, whatever their order and files; empty: nobody asked for it."""


def identify(files: Iterable[DataFile]) -> ContentIdentity | None:
    """The identity of a dataset from its files; ``None`` if there are none.

    A Delta or Iceberg table is what its log says: files that no version refers to, checkpoints and vacuums change
    nothing. Anything else is its listing, hidden and temporary files of writers left out.
    """
    listed = sorted(files)
    delta = [(int(found[1]), file) for file in listed if (found := _DELTA.fullmatch(file.path))]
    if delta:
        version = max(number for number, _ in delta)
        return _identity("delta", version, [max(delta)[1]])
    iceberg = [(int(found[1] or found[2]), file) for file in listed if (found := _ICEBERG.fullmatch(file.path))]
    if iceberg:
        return _identity("iceberg", max(iceberg)[0], [max(iceberg)[1]])
    plain = [file for file in listed if not _is_hidden(file.path)]
    return _identity("listing", None, plain) if plain else None


def content_identity(files: Iterable[DataFile]) -> ContentIdentity:
    """The identity of some files by folder and content, not by name.

    Writers such as Spark put a random id into the name of each file; equal data under other names is equal here.
    """
    return _identity("content", None, sorted(DataFile(file.path.rpartition("/")[0], *file[1:]) for file in files))


def needed(paths: Iterable[str]) -> list[str]:
    """Of all paths of a dataset, those whose content decides: so that no others need to be read."""
    return [path for path in paths if not _is_hidden(path) or _DELTA.fullmatch(path)]


@lru_cache(maxsize=1)
def schema() -> Any:
    """The Arrow schema of the table: one row per dataset."""
    import pyarrow as pa

    text, number = pa.string(), pa.int64()
    ancestor = pa.struct([("dataset", text), ("digest", text), ("commit", text)])
    fields = [("dataset", text), ("run", text), ("kind", text), ("version", number), ("digest", text)]
    fields += [("files", number), ("size", number), ("ancestors", pa.list_(ancestor))]
    return pa.schema(fields, metadata={_FORMAT_KEY: str(FORMAT).encode()})


def encode_version(version: DatasetVersion) -> bytes:
    """Write a version as Parquet; equal versions give equal bytes."""
    import pyarrow as pa

    identity = version.identity
    row = {
        "dataset": version.dataset,
        "run": version.run,
        "kind": identity.kind,
        "version": identity.version,
        "digest": identity.digest,
        "files": identity.files,
        "size": identity.size,
        "ancestors": [{"dataset": a.dataset, "digest": a.digest, "commit": a.commit} for a in version.ancestors],
    }
    table = pa.Table.from_pylist([row], schema())
    if version.rows:  # a column that stores of before do not have
        table = table.append_column("rows", pa.array([version.rows], pa.string()))
    return write_parquet(table)


@refusing_damage("a fragment is not a dataset version")
def decode_version(data: bytes) -> DatasetVersion:
    """Read what `encode_version` wrote.

    Raises:
        IntegrityError: It is something else, or of a newer format.
    """
    table = read_parquet(data)
    for key in (_FORMAT_KEY, _OLD_FORMAT_KEY):
        table = of_format(table, key, FORMAT, "a dataset version has")
    (body,) = table.to_pylist()
    identity = ContentIdentity(body["kind"], body["version"], body["digest"], body["files"], body["size"])
    ancestors = tuple(Ancestor(current_id(a["dataset"]), a["digest"], a["commit"]) for a in body["ancestors"])
    return DatasetVersion(current_id(body["dataset"]), identity, body["run"], ancestors, body.get("rows") or "")


def _identity(kind: str, version: int | None, files: list[DataFile]) -> ContentIdentity:
    digest = hashlib.sha256(json.dumps([list(file) for file in files]).encode()).hexdigest()
    return ContentIdentity(kind, version, digest, len(files), sum(file.size for file in files))


def _is_hidden(path: str) -> bool:
    """As Spark and Hive see it: names that begin with a dot or an underscore, unless they are partitions."""
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in path.split("/"))
