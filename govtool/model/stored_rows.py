"""Derivations of a fragment by file, as rows that become Python objects only where somebody looks at them.

A fragment holds the derivations of many files. Where one of these changes, the rows of the others go into the new
fragment as they lie in the old one: it is the one that all derivations together would be encoded to, to the byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from govtool.model.columnar import derivations_of, read_table, schema, to_table, write_table
from govtool.model.derivation import Derivation
from govtool.model.parquet import refusing_damage


class RowSpan(NamedTuple):
    """Rows of a table that follow each other."""

    table: Any
    start: int
    size: int


class StoredRows:
    """The rows of a derivations fragment.

    Args:
        table: A table of derivations.

    Raises:
        IntegrityError: Its rows have no files.
    """

    def __init__(self, table: Any) -> None:
        self._table: Final = table.cast(schema())
        self._spans: dict[str, list[RowSpan]] = {}
        with refusing_damage("a derivations fragment cannot be read"):
            at = 0
            for file, rows in groupby(self._table.column("file").to_pylist()):
                count = sum(1 for _ in rows)
                self._spans.setdefault(file, []).append(RowSpan(self._table, at, count))
                at += count

    @classmethod
    def of(cls, data: bytes) -> StoredRows:
        """The rows of a fragment.

        Raises:
            IntegrityError: The bytes are not a derivations table, or of a newer layout.
        """
        return cls(read_table(data, dictionary=False))

    def of_file(self, file: str) -> Sequence[RowSpan]:
        """The rows of a file, in order."""
        return self._spans.get(file, ())

    def derivations(self, file: str) -> list[Derivation]:
        """The derivations of a file.

        Raises:
            IntegrityError: The rows are not what derivations are written as.
        """
        with refusing_damage("a derivations fragment cannot be read"):
            return [d for span in self.of_file(file) for d in derivations_of(span.table.slice(span.start, span.size))]


def spans_of(parts: Iterable[Sequence[Derivation]]) -> list[RowSpan]:
    """Derivations as rows of one table, a span a part."""
    listed = list(parts)
    table = to_table([derivation for part in listed for derivation in part])
    spans, at = [], 0
    for part in listed:
        spans.append(RowSpan(table, at, len(part)))
        at += len(part)
    return spans


def same_rows(some: Iterable[RowSpan], others: Iterable[RowSpan]) -> bool:
    """Return whether two lists of rows, each in order, are the same: they are then encoded alike."""
    same: bool = _table_of(some).equals(_table_of(others))
    return same


def encode_spans(spans: Iterable[RowSpan]) -> tuple[bytes, int]:
    """Rows as a fragment, which is that of their derivations; and their number."""
    table = _table_of(spans)
    return write_table(table), table.num_rows


def _table_of(spans: Iterable[RowSpan]) -> Any:
    """Rows as one table."""
    import pyarrow as pa

    joined: list[RowSpan] = []
    for span in spans:
        last = joined[-1] if joined else None
        if last is not None and last.table is span.table and last.start + last.size == span.start:
            joined[-1] = RowSpan(last.table, last.start, last.size + span.size)
        elif span.size:
            joined.append(span)
    # Chunks of a column would begin new pages.
    pieces = [span.table.slice(span.start, span.size) for span in joined]
    return pa.concat_tables(pieces).combine_chunks() if pieces else to_table([])
