"""Rows of a version's files that are deleted: by deletion vectors of Delta and Iceberg, by Iceberg's position deletes.

What deletes them is kept as places of files; they are read when the leaf is evaluated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.capture.tables.vectors import VectorError, decoded, framed, vector_rows
from govtool.model.token import ROW_BITS
from govtool.records.execute.places import plain_uri
from govtool.records.lake.leaf_options import DELETED, table_of
from govtool.records.lake.places import folder_of
from govtool.records.plan.nodes import Relation
from govtool.records.sql.dialect import NotExact

if TYPE_CHECKING:
    import numpy as np

_LARGEST = 512 * 1024 * 1024


def deleted_records(relation: Relation) -> np.ndarray[Any, Any]:
    """The ids of the records that are deleted, as they are packed: file ordinal and row; none of most tables.

    Raises:
        NotExact: What deletes them is gone, or cannot be read.
    """
    import numpy as np

    given, table = dict(relation.options).get(DELETED), table_of(relation)
    if given is None:
        return np.zeros(0, np.int64)
    folder = None if table is None else folder_of(table[1])
    if folder is None:
        raise NotExact("deleted rows of files that are not on this machine")
    try:
        listed = json.loads(given)
        found = [part for each in listed for part in _records(folder, relation, each)]
    except (VectorError, OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise NotExact(f"the deleted rows of {relation.dataset} cannot be read: {error}") from error
    return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)


def _records(folder: Path, relation: Relation, delete: Sequence[Any]) -> Iterator[np.ndarray[Any, Any]]:
    import numpy as np

    ordinal, kind, place = int(delete[0]), delete[1], str(delete[2])
    if kind == "positions":
        yield from _positions(folder / place, relation)
        return
    if kind == "inline":
        rows = vector_rows(decoded(place))
    else:
        path = folder / place
        if path.stat().st_size > _LARGEST:
            raise VectorError("a file of vectors is too large")
        rows = vector_rows(framed(path.read_bytes(), int(delete[3]), int(delete[4])))
    yield (np.int64(ordinal) << ROW_BITS) + rows


def _positions(path: Path, relation: Relation) -> Iterator[np.ndarray[Any, Any]]:
    """The records that a file of position deletes lists, of a relation's files."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    ordinals = {plain_uri(file.uri): file.ordinal for file in relation.files}
    try:
        found = pq.read_table(path, columns=["file_path", "pos"])
    except pa.ArrowException as error:
        raise VectorError(str(error)) from error
    for name in found.column("file_path").unique().to_pylist():
        ordinal = ordinals.get(plain_uri(_encoded(name)))
        if ordinal is not None:
            rows = found.filter(pc.equal(found.column("file_path"), name)).column("pos").to_numpy()
            yield (np.int64(ordinal) << ROW_BITS) + rows.astype(np.int64)


def _encoded(path: str) -> str:
    folder = folder_of(path)
    return path if folder is None else folder.as_uri()
