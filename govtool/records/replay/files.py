"""Files that are read instead of an input."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from govtool.errors import UsageError
from govtool.model.version import needed
from govtool.records.plan.nodes import File
from govtool.records.replay.changes import Replacement


def replacement(dataset: str, place: str | os.PathLike[str]) -> Replacement:
    """The content of a Parquet file, or of those of a folder, for an input.

    Of a folder, the files are read that Spark reads: all but those whose names begin with ``_`` or ``.``.

    Raises:
        UsageError: There is no such file (``usage.path``), or it is not Parquet (``usage.format``).
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(place).absolute()
    found = _files_of(path) if path.is_dir() else [path]
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


def _files_of(folder: Path) -> list[Path]:
    """The data files of a folder.

    Raises:
        UsageError: It is a table of Delta Lake, whose log decides which files count (``usage.format``).
    """
    if (folder / "_delta_log").is_dir():
        raise UsageError(
            "a table of Delta Lake is not read in place of an input",
            code="usage.format",
            location=str(folder),
            hint="write its rows to Parquet files, and name these",
        )
    names = [each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()]
    return [folder / name for name in sorted(needed(names))]
