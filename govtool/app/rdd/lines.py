"""Lines of text files on this machine, as Spark reads them, and conditions in Spark SQL on them, without Spark."""

from __future__ import annotations

import bz2
import gzip
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from govtool.app.rdd.conditions import LINE
from govtool.errors import EvidenceError
from govtool.records.execute.inputs import local_path
from govtool.records.execute.places import place_of
from govtool.records.plan import types as t
from govtool.records.plan.nodes import File, Filter, Relation

if TYPE_CHECKING:
    from govtool.records.execute.places import Place
    from govtool.records.plan.expressions import Expression
    from govtool.records.plan.nodes import Session

DUPLICATES = "rows that equal each other cannot be told apart"
_BATCH = 50_000
_OPENERS: dict[str, Callable[..., IO[Any]]] = {".gz": gzip.open, ".bz2": bz2.open}
_COMPRESSED = frozenset({".zst", ".snappy", ".lz4", ".deflate"})
_SCHEMA = t.Struct((t.Field("value", t.STRING),))


def lines_of(file: File) -> Iterator[str]:
    r"""Yield the lines of a text file: ended by ``\n``, ``\r`` or ``\r\n``, undecodable bytes replaced.

    Raises:
        EvidenceError: It is not on this machine, or compressed by what Python does not read (``evidence.unreadable``).
    """
    path = local_path(file.uri)
    if path is None or path.suffix in _COMPRESSED:
        raise EvidenceError(
            f"the lines of {file.uri} cannot be read without Spark", code="evidence.unreadable", hint="--ids"
        )
    opener = _OPENERS.get(path.suffix, open)
    try:
        with opener(path, "rt", encoding="utf-8", errors="replace", newline=None) as text:
            for number, line in enumerate(text):
                yield line.removesuffix("\n").removeprefix("\ufeff" if number == 0 else "\n")
    except (OSError, EOFError) as error:
        raise EvidenceError(f"{path} cannot be read: {error}", code="evidence.unreadable") from error


def lines_at(output: Relation | None, rows: Mapping[Place, set[int]]) -> list[str]:
    """Return the text of lines at given places of written files.

    Raises:
        EvidenceError: The files are gone or have changed (``evidence.changed``), or cannot be read.
    """
    if output is None:
        raise EvidenceError("the files that it wrote are gone or have changed", code="evidence.changed")
    found = []
    for file in output.files:
        wanted = rows.get(place_of(file), ())
        if wanted:
            found += [text for row, text in enumerate(lines_of(file)) if row in wanted]
    return found


def meeting(texts: Iterable[str], condition: Expression, session: Session) -> tuple[set[str], str]:
    """Return the texts that meet a condition, and the engine that evaluated it.

    Args:
        texts: Any number of texts.
        condition: As ``line_condition`` returns it.
        session: What it is evaluated in.

    Raises:
        EngineError: No engine evaluates it as Spark does.
    """
    from govtool.app.records.engines import engines
    from govtool.records.execute.chain import ExecutorChain

    executor = ExecutorChain(engines(session), session)
    with tempfile.TemporaryDirectory(prefix="govtool-lines-") as folder:
        file = _as_parquet(texts, Path(folder) / "lines.parquet")
        leaf = Relation(0, "lines", "parquet", (file,), (LINE,), _SCHEMA)
        found = executor.arrow(Filter(leaf, condition))
        return set(found.column(0).to_pylist()), executor.engine


def _as_parquet(texts: Iterable[str], path: Path) -> File:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("value", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        rest = iter(texts)
        while batch := list(islice(rest, _BATCH)):
            safe = [text.encode("utf-8", "replace").decode() for text in batch]
            writer.write_table(pa.table({"value": pa.array(safe, pa.string())}, schema=schema))
    status = path.stat()
    return File(0, path.as_uri(), status.st_size, status.st_mtime_ns // 1_000_000)
