"""Rows of a Parquet file as ranges of its row groups that end where pages do, and the wanted ones among these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from govtool.records.parquet.footer import NoPageIndexError

if TYPE_CHECKING:
    import numpy as np

Ranges = tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
"""Row groups by number, each with ranges of its rows: first, and the one after the last."""


@dataclass(frozen=True, slots=True)
class MarkedGroup:
    """A row group of a piece: what is copied into it, and the wanted rows among that.

    Attributes:
        number: Of the row group in the source.
        ranges: The ranges of its rows.
        rows: How many these are.
        places: ``[n] int64``, the wanted ones, counted within the piece's row group.
        marks: ``[n] int64``, their marks.
    """

    number: int
    ranges: tuple[tuple[int, int], ...]
    rows: int
    places: np.ndarray[Any, Any]
    marks: np.ndarray[Any, Any]


def by_group(rows: np.ndarray[Any, Any], sizes: Sequence[int]) -> dict[int, np.ndarray[Any, Any]]:
    """The rows of each row group that has some, counted from its first; nothing if there are not so many rows."""
    import numpy as np

    starts = np.cumsum([0, *sizes])
    if not len(rows) or rows[-1] >= starts[-1]:
        return {}
    groups = np.searchsorted(starts, rows, "right") - 1
    return {group: rows[groups == group] - starts[group] for group in sorted({*groups.tolist()})}


def page_ranges(
    firsts: Sequence[np.ndarray[Any, Any]], rows: np.ndarray[Any, Any], size: int
) -> tuple[tuple[int, int], ...]:
    """The smallest ranges that hold the rows of a row group and end where pages of all leaves do."""
    import numpy as np

    common = firsts[0]
    for each in firsts[1:]:
        common = np.intersect1d(common, each, assume_unique=True)
    if not len(common) or common[0] != 0 or any((np.diff(each) <= 0).any() for each in firsts):
        raise NoPageIndexError("pages that are not in the order of their rows")
    at = np.array(sorted({*(np.searchsorted(common, rows, "right") - 1).tolist()}))
    ends = np.append(common, size)
    return tuple(zip(common[at].tolist(), ends[at + 1].tolist(), strict=True))


def rows_of(ranges: Ranges) -> int:
    """The number of rows of ranges."""
    return sum(end - start for _, own in ranges for start, end in own)


def marked_groups(
    ranges: Ranges, local: dict[int, np.ndarray[Any, Any]], starts: Mapping[int, int]
) -> Iterator[MarkedGroup]:
    """The row groups of a piece that has these ranges one after the other."""
    import numpy as np

    for group, own in ranges:
        begins = np.array([start for start, _ in own])
        lengths = np.array([end - start for start, end in own])
        at = np.searchsorted(begins, local[group], "right") - 1
        places = lengths.cumsum()[at] - lengths[at] + local[group] - begins[at]
        yield MarkedGroup(group, own, int(lengths.sum()), places, starts[group] + local[group])
