"""Positions of records in a store: which records of an action's result come from which, as pairs of ids by boundary.

They lie in a table of their own with a prefix of private data: the ids of lines are hashes of their text, and text of
records that no file has is kept with them. A fragment holds one action.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from govtool.errors import IntegrityError
from govtool.model.parquet import of_format, read_parquet, refusing_damage, write_parquet
from govtool.model.position_facts import require_facts
from govtool.model.records import PRIVATE
from govtool.model.token import ROW_BITS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PRIVATE_POSITIONS = f"{PRIVATE}positions"
"""The store table of positions; one fragment an action."""
FORMAT = 1
"""Version of the layout, in the Parquet metadata."""
_FORMAT_KEY = b"govtool.positions"
_FACTS_KEY = b"govtool.positions.facts"


@dataclass(frozen=True, slots=True)
class StoredPositions:
    """The positions of one action.

    Attributes:
        facts: The tables in order (node, stop, exactness, reason), nodes that are ``coarse``, and ``texts``.
        pairs: For each table an array of shape (pairs, 2), sorted: the id of a record, and that of one that it
            comes from.
    """

    facts: Mapping[str, Any]
    pairs: tuple[NDArray[np.int64], ...]

    def require_files(self, files: Mapping[int, Sequence[int]]) -> None:
        """Refuse rows of files that were not read.

        Args:
            files: The ordinals of the files of each input, by the number of its stop.

        Raises:
            ValueError: There are such rows.
        """
        import numpy as np

        for (_, stop, _, _), pairs in zip(self.facts["tables"], self.pairs, strict=True):
            if stop in files and not np.isin(pairs[:, 1] >> ROW_BITS, files[stop]).all():
                raise ValueError("a row is of no file that was read")


def require_row_within(row: int, rows: int) -> None:
    """Refuse a position beyond the end of a file that is as it was read.

    Raises:
        IntegrityError: The file has no such row (``store.corrupt-fragment``).
    """
    if row >= rows:
        raise IntegrityError(
            f"kept positions name a row beyond the {rows:,} of a file that is as it was read",
            code="store.corrupt-fragment",
        )


def encode_positions(positions: StoredPositions) -> bytes:
    """Positions as Parquet; equal ones give equal bytes."""
    import numpy as np
    import pyarrow as pa

    whole = np.concatenate([np.empty((0, 2), np.int64), *positions.pairs])
    numbers = np.repeat(np.arange(len(positions.pairs), dtype=np.int32), [len(each) for each in positions.pairs])
    facts = json.dumps(positions.facts, sort_keys=True, separators=(",", ":"))
    names = ("table", "id", "origin")
    schema = pa.schema(
        [(names[0], pa.int32()), (names[1], pa.int64()), (names[2], pa.int64())],
        metadata={_FORMAT_KEY: str(FORMAT).encode(), _FACTS_KEY: facts.encode("utf-8", "backslashreplace")},
    )
    table = pa.table([numbers, whole[:, 0], whole[:, 1]], schema=schema)
    return write_parquet(table)


@refusing_damage("a fragment holds no positions")
def decode_positions(data: bytes) -> StoredPositions:
    """Read what ``encode_positions`` wrote.

    Raises:
        IntegrityError: It is something else, or of a newer format.
    """
    import numpy as np

    table = of_format(read_parquet(data), _FORMAT_KEY, FORMAT, "positions have")
    _require_columns(table)
    facts = json.loads(table.schema.metadata[_FACTS_KEY])
    require_facts(facts)
    numbers = table["table"].to_numpy()
    if len(numbers) and (numbers[0] < 0 or numbers[-1] >= len(facts["tables"]) or (np.diff(numbers) < 0).any()):
        raise ValueError("pairs are of no table, or not in order")
    whole = np.stack([table["id"].to_numpy(), table["origin"].to_numpy()], axis=1)
    cuts = np.searchsorted(numbers, np.arange(len(facts["tables"]) + 1))
    pairs = tuple(whole[start:end] for start, end in pairwise(cuts))
    return StoredPositions(facts, pairs)


def _require_columns(table: Any) -> None:
    """Refuse pairs of other types, and pairs of which a part is missing.

    Raises:
        ValueError: They are.
    """
    import pyarrow as pa

    kinds = {"table": pa.int32(), "id": pa.int64(), "origin": pa.int64()}
    if {name: table.schema.field(name).type for name in kinds} != kinds or any(table[n].null_count for n in kinds):
        raise ValueError("a pair is no two numbers")


@dataclass(frozen=True, slots=True)
class PositionsCost:
    """What it cost to keep the positions of an action.

    Attributes:
        pairs: How many there are.
        bytes: Their size in the store.
        seconds: How long the query ran with ids of records; for an action of RDDs, how much longer the job took.
            None: not recorded.
        write_seconds: How long its rows were then written. None: not recorded, or an action of RDDs.
    """

    pairs: int
    bytes: int
    seconds: float | None
    write_seconds: float | None


@refusing_damage("a fragment holds no positions")
def decode_cost(data: bytes) -> PositionsCost:
    """Read the cost of what `encode_positions` wrote, without the pairs.

    Raises:
        IntegrityError: It is something else, or of a newer format.
    """
    table = of_format(read_parquet(data, columns=[]), _FORMAT_KEY, FORMAT, "positions have")
    facts = json.loads(table.schema.metadata[_FACTS_KEY])
    seconds, written = facts.get("seconds"), facts.get("write_seconds")
    return PositionsCost(
        table.num_rows,
        len(data),
        None if seconds is None else float(seconds),
        None if written is None else float(written),
    )


def from_packed(facts: Mapping[str, Any], packed: Sequence[bytes]) -> StoredPositions:
    """Return positions of packed pairs of 64-bit integers, each pair once and sorted."""
    import numpy as np

    arrays = (np.frombuffer(data, np.int64).reshape(-1, 2) for data in packed)
    return StoredPositions(facts, tuple(np.unique(array, axis=0) for array in arrays))
