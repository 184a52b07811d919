"""Files that are read instead of an input."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from govtool.errors import UsageError
from govtool.records.plan.nodes import File
from govtool.records.replay.changes import Replacement


def replacement(dataset: str, place: str | os.PathLike[str]) -> Replacement:
    """The content of a Parquet file, or of those of a folder, for an input.

    Raises:
        UsageError: There is no such file (``usage.path``), or it is not Parquet (``usage.format``).
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(place).absolute()
    found = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not found or not all(each.is_file() for each in found):
        raise UsageError(f"no Parquet file for {dataset!r}", code="usage.path", location=str(place))
    files, columns = [], dict[tuple[str, Any], None]()
    for number, each in enumerate(found):
        try:
            columns.update(dict.fromkeys((field.name, field.type) for field in pq.read_schema(each)))
        except (pa.ArrowException, OSError) as error:
            raise UsageError(f"it is not a Parquet file: {error}", code="usage.format", location=str(each)) from error
        facts = each.stat()
        files.append(File(number, each.as_uri(), facts.st_size, facts.st_mtime_ns // 1_000_000))
    return Replacement(dataset, tuple(files), tuple(columns))
