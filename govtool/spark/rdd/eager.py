"""RecordPositions of records written down after an action, so that a trace needs no function of the program afterwards.

For each boundary, and for the lines of the result, a table pairs the id of a record with that of a record of the
boundary before it, as Titian's association tables do (Interlandi et al., PVLDB 9(3), section 4). Ids are 63 bits: place
in a text file (ordinal and line), place in another source, or a hash of key, value or partition. The action itself is
not touched; its operators run once more, and that time is the cost.
"""

from __future__ import annotations

import array
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from govtool.spark.rdd import sources, worker
from govtool.spark.rdd.checks import own_jobs
from govtool.spark.rdd.conditions import EVERYTHING, KeyIn, keys_of
from govtool.spark.rdd.log import RddNode, ancestors
from govtool.spark.rdd.operators import Kind, itself
from govtool.spark.rdd.rows import aligned, has_origins, narrow_rows, ordered_rows, rows_of, stop_rows
from govtool.spark.rdd.worker import Row

MAX_PAIRS = 8_000_000
"""Pairs of ids that are kept of one action."""
MAX_TEXTS = 10_000
"""Records of a source that is no text file, and of a result that the driver had, whose text is kept."""
RESULT = -1
"""The table of the result's lines."""

Ids = Callable[[Row], int]


class TooManyPositionsError(Exception):
    """An action has more positions than are kept."""


@dataclass(frozen=True, slots=True)
class PositionTable:
    """Pairs of ids: of a node, and of the stop before it.

    Attributes:
        node: The number of the node; ``RESULT`` for lines of the result.
        stop: The number of the stop.
        pairs: Ids of both in turns, as 64-bit integers.
        exactness: ``exact`` or ``superset``.
        reason: Why it is not exact.
    """

    node: int
    stop: int
    pairs: bytes
    exactness: str = "exact"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RecordPositions:
    """The positions of one action.

    Attributes:
        tables: Pairs of ids, from the result to the sources.
        coarse: Nodes all of whose input counts: the number, those of the stops before it, and the reason.
        texts: Text of records by number of source, and of the result, and by id.
    """

    tables: tuple[PositionTable, ...]
    coarse: tuple[tuple[int, tuple[int, ...], str], ...]
    texts: dict[int, dict[int, str]]


def positions(result: RddNode, texts_of_result: bool) -> RecordPositions:
    """Run the operators behind a result once more, and return which records each of its records comes from.

    Args:
        result: The node of the lines that were written, or that an action ran on.
        texts_of_result: The driver had the result: no file has its text.

    Raises:
        TooManyPositionsError: There are more than ``MAX_PAIRS``.
    """
    with own_jobs():
        tables: list[PositionTable] = []
        coarse = []
        for node in ancestors((result,)):
            if node.kind is Kind.SOURCE or not (node.stops or node is result):
                continue
            found = list(_tables(node, result))
            if node.kind is Kind.OPAQUE or not found:
                before = tuple(stop.number for stop in _stops(node))
                reason = f"{node.label} is not known to lineage: every record may have been used"
                coarse.append((node.number, before, reason))
            tables += found
        if result.stops:
            tables.append(_result_of_stop(result))
        if sum(len(each.pairs) for each in tables) > 16 * MAX_PAIRS:
            raise TooManyPositionsError
        return RecordPositions(tuple(tables), tuple(coarse), _texts(result, texts_of_result))


def _tables(node: RddNode, result: RddNode) -> Iterator[PositionTable]:
    if node.kind is Kind.GROUP:
        yield from _of_group(node)
    elif has_origins(node):
        own = _line if node is result and not node.stops else _id_of(node)
        number = RESULT if node is result and not node.stops else node.number
        rows = rows_of(node)
        for stop in _stops(node):
            yield PositionTable(
                number, stop.number, _packed(rows.flatMap(_origin_pairs(own, stop.number, _id_of(stop))))
            )
    elif node.kind is Kind.ORDER:
        yield from _of_order(node)
    elif node.kind is Kind.PARTITION:
        yield from _of_partition(node)


def _stops(node: RddNode) -> list[RddNode]:
    found = {feed.stop.number: feed.stop for feeds in node.incoming for feed in feeds}
    return [found[number] for number in sorted(found)]


def _of_group(node: RddNode) -> Iterator[PositionTable]:
    key = node.key()
    for feed in (feed for feeds in node.incoming for feed in feeds):
        rows = stop_rows(feed.stop, EVERYTHING, worker.single)
        pairs = _packed(rows.flatMap(_key_pairs(key, worker.pipeline(feed.steps), _id_of(feed.stop))))
        yield PositionTable(node.number, feed.stop.number, pairs)


def _of_order(node: RddNode) -> Iterator[PositionTable]:
    """By value: Spark may give other places to records behind a shuffle."""
    rows = narrow_rows(node.incoming[0], EVERYTHING, worker.single)
    reason = "records were matched by value behind a shuffle: equal ones cannot be told apart"
    for stop in _stops(node):
        pairs = _packed(rows.flatMap(_origin_pairs(_value, stop.number, _id_of(stop))))
        yield PositionTable(node.number, stop.number, pairs, "superset", reason)


def _of_partition(node: RddNode) -> Iterator[PositionTable]:
    rows = aligned(node.incoming[0], node.parents[0].rdd)
    if rows is None:
        return
    reason = f"{node.label} may use any record of its partition"
    for stop in _stops(node):
        placed = rows.mapPartitionsWithIndex(_partition_pairs(stop.number, _id_of(stop)))
        yield PositionTable(node.number, stop.number, _packed(placed), "superset", reason)


def _result_of_stop(node: RddNode) -> PositionTable:
    rows = rows_of(node)
    return PositionTable(RESULT, node.number, _packed(rows.map(_line_pair(_id_of(node)))))


# ---- ids ------------------------------------------------------------------------------------------------------------


def _id_of(stop: RddNode) -> Ids:
    """The function from a row of a stop to its id."""
    if stop.kind is Kind.SOURCE:
        return _source_id(_starts(stop))
    if stop.kind is Kind.PARTITION:
        return _partition
    if stop.kind is Kind.ORDER and not has_origins(stop):
        return _ordered(stop.result_key())
    return _constant if stop.kind is Kind.OPAQUE else _hashed


def _starts(source: RddNode) -> dict[int, tuple[int, int]]:
    """File ordinal and first line of each partition of a source; computed once."""
    known: dict[int, tuple[int, int]] | None = source.details.get("starts")
    if known is None:
        known = source.details["starts"] = _counted_starts(source)
    return known


def _counted_starts(source: RddNode) -> dict[int, tuple[int, int]]:
    numbers = range(source.rdd.getNumPartitions())
    files = sources.files_of_partitions(source, numbers) if "path" in source.details else {}
    names = source.details.get("listed") or _in_order(source.details.get("files", {}))
    ordinals = {file: place for place, file in enumerate(names)}
    counts = dict(source.rdd.mapPartitionsWithIndex(worker.counted).collect())
    before: dict[str, int] = {}
    found = {}
    for number in numbers:
        file = files.get(number, "")
        found[number] = (ordinals[file] if file else 0, before.get(file, 0))
        before[file] = before.get(file, 0) + counts[number]
    return found


def rows_at(source: RddNode, packed: list[int]) -> Any:
    """Return the rows of a source with given ids."""
    keys = keys_of(source.rdd.context.parallelize(packed))
    own = _source_id(_starts(source))
    return KeyIn(keys, itself).matching(ordered_rows(source), lambda row: (own(row),))


def listed(source: RddNode, files: Iterable[str]) -> None:
    """Note the files that a source of text has now: their order gives ordinals."""
    names = _in_order(files)
    if source.details.get("listed") != names:
        source.details["listed"] = names
        source.details.pop("starts", None)


def _in_order(files: Iterable[str]) -> list[str]:
    return sorted(files, key=lambda file: Path(file).as_uri() if file.startswith("/") else file)


def _source_id(starts: dict[int, tuple[int, int]]) -> Ids:
    def packed(row: Row) -> int:
        partition, ordinal = row[0]
        file, first = starts[partition]
        return file << 34 | first + int(ordinal)

    return packed


def text_id(text: str) -> int:
    """Return the id of a line by its text."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 1


def _line(row: Row) -> int:
    return text_id(worker.shown(row[1]))


def _hashed(row: Row) -> int:
    return text_id(canonical(row[0]))


def _value(row: Row) -> int:
    return text_id(canonical(worker.as_key(row[1])))


def _ordered(result_key: Callable[[Any], Any]) -> Ids:
    return lambda row: text_id(canonical(worker.as_key(result_key(row[1]))))


def _partition(row: Row) -> int:
    return int(row[0][0])


def _constant(row: Row) -> int:
    return 0


def canonical(value: Any) -> str:
    """Return a text that keys share if they are equal in Python: 1, 1.0 and True are one."""
    if isinstance(value, (bool, int, float)):
        try:
            plain = float(value)
        except OverflowError:
            return f"i{value}"
        return f"n{plain!r}" if plain == value else f"i{value!r}"
    if isinstance(value, tuple):
        return f"({','.join(map(canonical, value))})"
    return worker.token(value)


# ---- pairs ----------------------------------------------------------------------------------------------------------


def _origin_pairs(own: Ids, stop: int, other: Ids) -> Callable[[Row], Iterator[tuple[int, int]]]:
    return lambda row: ((own(row), other(origin)) for number, origin in row[2] if number == stop)


def _key_pairs(
    key: Callable[[Any], Any], outputs: worker.Outputs, other: Ids
) -> Callable[[Row], Iterator[tuple[int, int]]]:
    def pairs(row: Row) -> Iterator[tuple[int, int]]:
        number = other(row)
        return ((text_id(canonical(key(each))), number) for each in outputs(row[1]))

    return pairs


def _partition_pairs(stop: int, other: Ids) -> Callable[[int, Any], Iterator[tuple[int, int]]]:
    return lambda partition, rows: (
        (partition, other(origin)) for row in rows for number, origin in row[2] if number == stop
    )


def _line_pair(own: Ids) -> Callable[[Row], tuple[int, int]]:
    return lambda row: (_line(row), own(row))


def _packed(pairs: Any) -> bytes:
    """Each pair once, of a task at least, as 64-bit integers.

    Raises:
        TooManyPositionsError: There are too many.
    """
    parts = pairs.mapPartitions(_pack).collect()
    if any(part is None for part in parts):
        raise TooManyPositionsError
    return b"".join(parts)


def _pack(pairs: Any) -> Iterator[bytes | None]:
    found: set[tuple[int, int]] = set()
    for pair in pairs:
        found.add(pair)
        if len(found) > MAX_PAIRS:
            yield None
            return
    yield array.array("q", (number for pair in sorted(found) for number in pair)).tobytes()


# ---- text -----------------------------------------------------------------------------------------------------------


def _texts(result: RddNode, of_result: bool) -> dict[int, dict[int, str]]:
    found: dict[int, dict[int, str]] = {}
    for node in ancestors((result,)):
        if node.kind is Kind.SOURCE and "path" not in node.details:
            rows = ordered_rows(node)
            found[node.number] = _first_texts(rows, _id_of(node))
    if of_result:
        found[RESULT] = _first_texts(rows_of(result), _line)
    return found


def _first_texts(rows: Any, own: Ids) -> dict[int, str]:
    few = rows.map(_with_text(own)).take(MAX_TEXTS + 1)
    return dict(few) if len(few) <= MAX_TEXTS else {}


def _with_text(own: Ids) -> Callable[[Row], tuple[int, str]]:
    return lambda row: (own(row), worker.shown(row[1]))
