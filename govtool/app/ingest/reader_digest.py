"""Digests of readers: an ingest is repeated when the code that decides its answer has changed, and only then.

Each kind of ingest depends on its own reader and on what lies below it; a change of Spark's reader does not read SQL
again. The test of this module follows the imports and demands that nothing which decides is missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from govtool.release import __version__

PACKAGE = Path(__file__).parents[2]
"""The folder of govtool's modules."""


@dataclass(frozen=True, slots=True)
class ReaderSources:
    """The files and versions that decide the result of one kind of ingest."""

    parts: tuple[str, ...]
    """Folders and files of the package."""
    libraries: tuple[str, ...]
    """Distributions whose version counts: parsers and template engines."""


_MODEL = ("errors.py", "functions", "given_files.py", "model", "names.py", "redaction.py")
_PATHS = ("capture/openlineage/identity.py", "capture/spark/identity.py")
"""What calls paths as runs do."""
_SQL = (
    *_MODEL,
    *_PATHS,
    "linear.py",
    "app/ingest/project_facts.py",
    "app/ingest/sql_options.py",
    "capture/dbt",
    "capture/sql",
)
_CATALOG = (*_SQL, "app/ingest/postgres_explain.py", "app/ingest/catalog.py", "capture/catalog")
_STREAMS = ("capture/compressed.py", "capture/lzf.py", "capture/logs", "clock.py")
_SQL_LIBRARIES = ("google-re2", "sqlglot", "jinja2", "pyyaml")

READERS = {
    "sql": ReaderSources(_SQL, _SQL_LIBRARIES),
    "explained": ReaderSources(_CATALOG, _SQL_LIBRARIES),
    "catalog": ReaderSources(_CATALOG, _SQL_LIBRARIES),
    "dbt": ReaderSources((*_SQL, "app/ingest/dbt.py"), _SQL_LIBRARIES),
    "log": ReaderSources((*_SQL, *_STREAMS, "app/ingest/logs"), _SQL_LIBRARIES),
    "openlineage": ReaderSources(
        (*_SQL, *_STREAMS, "app/ingest/openlineage.py", "capture/openlineage"), _SQL_LIBRARIES
    ),
    "prov": ReaderSources(
        (*_MODEL, *_STREAMS, "app/ingest/prov.py", "capture/openlineage", "capture/prov"),
        ("prov",),
    ),
    "spark": ReaderSources(
        (
            *_MODEL,
            "app/ingest/spark.py",
            "capture/compressed.py",
            "capture/lzf.py",
            "capture/openlineage",
            "capture/spark",
            "spark/live/job/cleaned.py",
            "clock.py",
        ),
        ("pyarrow", "sqlglot"),
    ),
}
"""By kind of ingest; ``explained`` is SQL of which a database explains what was not understood."""


@lru_cache
def reader_digest(kind: str, package: Path = PACKAGE) -> str:
    """Return what identifies a reader: its source, and the versions of govtool and of the libraries below it.

    Args:
        kind: A key of ``READERS``.
        package: The folder of the modules.
    """
    reader = READERS[kind]
    digest = hashlib.sha256(" ".join((__version__, *map(_version, reader.libraries))).encode())
    start = len(package.as_posix())
    for file in files(reader.parts, package):
        digest.update(f"\n{file.as_posix()[start:]}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


class BatchDigest:
    """The name of a batch: a digest of the reader, of its settings, and of all that is read."""

    def __init__(self, kind: str, *settings: object) -> None:
        """Begin with the reader of a kind of ingest, and with settings as JSON values."""
        self._kind = kind
        self._digest = hashlib.sha256(json.dumps([reader_digest(kind), *settings]).encode())

    def add_bytes(self, data: bytes) -> None:
        """Add what has a fixed length, as a digest has, or ends what is read."""
        self._digest.update(data)

    def add_values(self, *values: object) -> None:
        """Add JSON values."""
        self.add_bytes(json.dumps(values).encode("utf-8", "surrogatepass"))

    def add_data(self, value: object) -> None:
        """Add frozen data, whose ``repr`` tells all fields."""
        self.add_bytes(repr(value).encode("utf-8", "surrogatepass"))

    def __str__(self) -> str:
        """The kind of ingest and the digest: ``dbt:5feceb66…``."""
        return f"{self._kind}:{self._digest.hexdigest()}"


def files(parts: Iterable[str], package: Path = PACKAGE) -> Iterator[Path]:
    """Yield the modules of some parts of the package, sorted."""
    folders = [package / part for part in parts]
    yield from sorted(file for part in folders for file in ([part] if part.is_file() else part.rglob("*.py")))


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:  # an extra that is not installed: the ingest itself explains that
        return ""
