"""A part of a Parquet file as a file of its own: the pages that hold some rows, copied as they are.

Pages of different columns need not end at the same rows. Columns whose pages do are cut together; each set of columns
that differs makes a piece of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.records.parquet import footer as f
from govtool.records.parquet.footer import ColumnPages, NoPageIndexError, PagedFile, page_values
from govtool.records.parquet.thrift import BINARY, I64, LIST, STRUCT, Struct, written

if TYPE_CHECKING:
    import numpy as np

MAX_PIECES = 8
"""Columns whose pages end at more different rows than this are not cut."""
_WORTH = 0.5
"""Pieces with more than this part of the rows are not worth it."""
_PLAIN = frozenset({f.TYPE, f.ENCODINGS, f.PATH, f.CODEC})
"""Fields of ColumnMetaData that hold for a part of a chunk as well: no statistics, no indexes, no Bloom filter."""
Ranges = tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
"""Row groups by number, each with ranges of its rows: first, and the one after the last."""


@dataclass(frozen=True, slots=True)
class CutPiece:
    """Some columns of some rows of a file.

    Attributes:
        path: The file of the piece.
        columns: Names of top-level columns.
        places: ``[n] int64``, where the wanted rows are in the piece, in their order.
    """

    path: Path
    columns: tuple[str, ...]
    places: np.ndarray[Any, Any]


def cut(source: Path, columns: Collection[str], rows: np.ndarray[Any, Any], folder: Path) -> list[CutPiece] | None:
    """Cut the pages of rows out of a file; None where this is not possible, or not worth it.

    Args:
        source: The file.
        columns: Names of top-level columns, at least one.
        rows: ``[n] int64``, rows of the file, ascending, each once.
        folder: Where the pieces are written; it is empty.

    Raises:
        OSError: A file cannot be read or written.
    """
    try:
        opened = PagedFile(source)
    except NoPageIndexError:
        return None
    try:
        return _cut(opened, columns, rows, folder)
    except (NoPageIndexError, KeyError, IndexError, ValueError, TypeError, OverflowError):
        return None  # metadata of another form than the specification's
    finally:
        opened.close()


def _cut(
    opened: PagedFile, columns: Collection[str], rows: np.ndarray[Any, Any], folder: Path
) -> list[CutPiece] | None:
    names = list(dict.fromkeys(leaf.top for leaf in opened.leaves))
    is_unique = len({leaf.elements for leaf in opened.leaves}) == len(names)
    local = _by_group(rows, [group[f.GROUP_ROWS][1] for group in opened.groups])
    if not is_unique or not set(columns) <= set(names) or not local:
        return None
    pages: dict[tuple[int, int], ColumnPages] = {}
    sets: dict[Ranges, list[str]] = {}
    for name in names:
        if name in columns:
            sets.setdefault(_ranges_of(opened, name, local, pages), []).append(name)
    if len(sets) > MAX_PIECES or _share(opened, sets) > _WORTH:
        return None
    pieces = []
    for number, (ranges, own) in enumerate(sets.items()):
        path = folder / f"{number}.parquet"
        _write(opened, own, ranges, pages, path)
        pieces.append(CutPiece(path, tuple(own), _places(ranges, local)))
    return pieces


def _by_group(rows: np.ndarray[Any, Any], sizes: Sequence[int]) -> dict[int, np.ndarray[Any, Any]]:
    """The rows of each row group that has some, counted from its first; nothing if there are not so many rows."""
    import numpy as np

    starts = np.cumsum([0, *sizes])
    if not len(rows) or rows[-1] >= starts[-1]:
        return {}
    groups = np.searchsorted(starts, rows, "right") - 1
    return {group: rows[groups == group] - starts[group] for group in sorted({*groups.tolist()})}


def _ranges_of(
    opened: PagedFile, name: str, local: dict[int, np.ndarray[Any, Any]], pages: dict[tuple[int, int], ColumnPages]
) -> Ranges:
    """The ranges of rows that are read of a column; its pages are added to what is known of pages."""
    leaves = [number for number, leaf in enumerate(opened.leaves) if leaf.top == name]
    found = []
    for group, rows in local.items():
        own = {(group, leaf): opened.pages(opened.groups[group], leaf) for leaf in leaves}
        pages |= own
        size = opened.groups[group][f.GROUP_ROWS][1]
        found.append((group, _ranges([each.first_rows for each in own.values()], rows, size)))
    return tuple(found)


def _share(opened: PagedFile, sets: dict[Ranges, list[str]]) -> float:
    """The part of the cells of the row groups that would be copied."""
    copied = sum(len(own) * _rows_of(ranges) for ranges, own in sets.items())
    (groups, *_) = ([group for group, _ in ranges] for ranges in sets)
    cells = sum(map(len, sets.values())) * sum(opened.groups[group][f.GROUP_ROWS][1] for group in groups)
    return float(copied / cells)


def _ranges(
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


def _rows_of(ranges: Ranges) -> int:
    return sum(end - start for _, own in ranges for start, end in own)


def _places(ranges: Ranges, local: dict[int, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Where rows are in a piece that has these ranges one after the other."""
    import numpy as np

    found, passed = [], 0
    for group, own in ranges:
        starts = np.array([start for start, _ in own])
        lengths = np.array([end - start for start, end in own])
        at = np.searchsorted(starts, local[group], "right") - 1
        found.append(passed + lengths.cumsum()[at] - lengths[at] + local[group] - starts[at])
        passed += int(lengths.sum())
    return np.concatenate(found)


def _write(
    opened: PagedFile, columns: list[str], ranges: Ranges, pages: dict[tuple[int, int], ColumnPages], path: Path
) -> None:
    """Write a piece: pages as they are, and a footer about them."""
    made: list[Struct] = []
    with path.open("wb") as target:
        target.write(f.MAGIC)
        position = len(f.MAGIC)
        for group, own in ranges:
            rows, chunks, total = sum(end - start for start, end in own), [], 0
            for leaf, described in enumerate(opened.leaves):
                if described.top not in columns:
                    continue
                meta = opened.groups[group][f.COLUMNS][1][1][leaf][f.META][1]
                parts, changes = _chunk(opened, pages[group, leaf], own, rows, described.repeated, position)
                target.writelines(parts)
                position += changes[f.COMPRESSED]
                total += changes[f.UNCOMPRESSED]
                chunks.append(_column_chunk(meta, changes))
            made.append({f.COLUMNS: (LIST, (STRUCT, chunks)), f.TOTAL_BYTES: (I64, total), f.GROUP_ROWS: (I64, rows)})
        footer = written(_footer(opened, columns, made))
        target.write(footer + len(footer).to_bytes(4, "little") + f.MAGIC)


def _chunk(
    opened: PagedFile, pages: ColumnPages, ranges: Sequence[tuple[int, int]], rows: int, repeated: bool, position: int
) -> tuple[list[bytes], dict[int, int]]:
    """The bytes of a column's pages, its dictionary first, and the fields that describe them."""
    dictionary, plain = opened.dictionary(pages)
    parts, values, data = [dictionary] if dictionary else [], 0, position + len(dictionary)
    for number in _numbers(pages, ranges):
        page = opened.read(int(pages.offsets[number]), int(pages.sizes[number]))
        count, size = page_values(page)
        parts.append(page)
        values, plain = values + count, plain + size
    if not repeated and values != rows:
        raise NoPageIndexError("pages that do not have the rows of their index")
    changes = {f.VALUES: values, f.UNCOMPRESSED: plain, f.COMPRESSED: sum(map(len, parts)), f.DATA_PAGE: data}
    return parts, changes | ({f.DICTIONARY_PAGE: position} if dictionary else {})


def _numbers(pages: ColumnPages, ranges: Sequence[tuple[int, int]]) -> Iterator[int]:
    """The numbers of the pages in some ranges of rows."""
    import numpy as np

    for start, end in ranges:
        first, last = np.searchsorted(pages.first_rows, (start, end))
        yield from range(int(first), int(last))


def _column_chunk(meta: Struct, changes: dict[int, int]) -> Struct:
    kept = {field: value for field, value in meta.items() if field in _PLAIN}
    described = kept | {field: (I64, value) for field, value in changes.items()}
    return {f.FILE_OFFSET: (I64, 0), f.META: (STRUCT, described)}


def _footer(opened: PagedFile, columns: list[str], groups: list[Struct]) -> Struct:
    """FileMetaData of a piece: the schema's elements of its columns, no key-value metadata."""
    elements = opened.footer[f.SCHEMA][1][1]
    spans = dict.fromkeys(leaf.elements for leaf in opened.leaves if leaf.top in columns)
    schema = [f.root_of(elements[0], len(spans)), *(each for start, end in spans for each in elements[start:end])]
    return {
        f.VERSION: opened.footer[f.VERSION],
        f.SCHEMA: (LIST, (STRUCT, schema)),
        f.ROWS: (I64, sum(group[f.GROUP_ROWS][1] for group in groups)),
        f.ROW_GROUPS: (LIST, (STRUCT, groups)),
        f.CREATED_BY: opened.footer.get(f.CREATED_BY, (BINARY, b"")),
    }
