"""Generated inputs: text of 8,000 terms, and PigMix's page_views, users, power_users and widerow. Seeded, as Parquet.

PigMix's distributions: users, terms of queries and time spent are Zipf's, addresses, times and revenues are uniform.
Its maps and bags are kept, with fewer entries than in PigMix, so that a row is about 250 bytes of plain text.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

TERMS = 8000
WORDS_A_LINE = 10
CHUNK = 1_000_000
MIN_FILES = 4
PAGE_ROWS = 20_000
"""Pages end after so many rows, and have an index, as in files that Spark writes (parquet.page.row.count.limit)."""
Chunk = Callable[[np.random.Generator, int, int], pa.Table]
"""Makes the rows of one file: from a generator, the first row's number and the count."""
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", dtype=np.uint8)


def text(folder: Path, rows: int) -> Path:
    """Lines of ten words, Zipf, 8,000 terms."""
    vocabulary = words(np.random.default_rng(1), TERMS, 3, 12)
    cumulated = _zipf(TERMS)

    def chunk(random: np.random.Generator, start: int, count: int) -> pa.Table:
        drawn = vocabulary.take(pa.array(_draw(random, cumulated, count * WORDS_A_LINE)))
        offsets = pa.array(np.arange(0, count * WORDS_A_LINE + 1, WORDS_A_LINE, dtype=np.int32))
        return pa.table({"value": pc.binary_join(pa.ListArray.from_arrays(offsets, drawn), " ")})

    return _written(folder, f"text-{rows}", rows, chunk)


def page_views(folder: Path, rows: int) -> Path:
    """PigMix's main table, with its nine columns."""
    names, user_ranks = users_of(rows), _zipf(_users(rows))
    terms = words(np.random.default_rng(3), max(1000, rows // 9), 5, 15)
    term_ranks, spent_ranks = _zipf(len(terms)), _zipf(20)
    short = words(np.random.default_rng(4), 5000, 5, 15)

    def chunk(random: np.random.Generator, start: int, count: int) -> pa.Table:
        no_term = pa.array(random.random(count) < 0.1)
        term = pc.if_else(no_term, None, terms.take(pa.array(_draw(random, term_ranks, count))))
        links = pa.array(np.arange(0, 2 * count + 1, 2, dtype=np.int32))
        return pa.table(
            {
                "user": names.take(pa.array(_draw(random, user_ranks, count))),
                "action": pa.array(random.integers(1, 3, count, dtype=np.int32)),
                "timespent": pa.array(_draw(random, spent_ranks, count).astype(np.int32)),
                "query_term": term,
                "ip_addr": pa.array(random.integers(0, 1_000_000, count)),
                "timestamp": pa.array(random.integers(0, 86_400, count)),
                "estimated_revenue": pa.array(np.round(random.random(count) * 100, 2)),
                "page_info": _maps(random, short, ("a", "c", "d"), count),
                "page_links": pa.ListArray.from_arrays(links, _maps(random, short, ("b", "e"), 2 * count)),
            }
        )

    return _written(folder, f"page_views-{rows}", rows, chunk)


def users(folder: Path, rows: int) -> Path:
    """One row a user of page_views, but for every fourth, who is left out: L5 looks for them."""
    names = users_of(rows)
    kept = names.take(pa.array([i for i in range(len(names)) if i % 4]))
    return _people(folder, f"users-{rows}", kept)


def power_users(folder: Path, rows: int) -> Path:
    """One row for each of a few hundred users."""
    names = users_of(rows)
    drawn = np.random.default_rng(5).choice(len(names), min(500, len(names)), replace=False)
    return _people(folder, f"power_users-{rows}", names.take(pa.array(drawn)))


def widerow(folder: Path, rows: int) -> Path:
    """Users, some of them unknown to page_views, with ten numbers each."""
    known = users_of(rows)
    strangers = words(np.random.default_rng(6), max(100, len(known) // 4), 10, 12)
    names = pa.concat_arrays([known.take(pa.array(np.arange(0, len(known), 2))), strangers])

    def chunk(random: np.random.Generator, start: int, count: int) -> pa.Table:
        numbers = {f"c{i}": pa.array(random.integers(0, 1000, count)) for i in range(10)}
        return pa.table({"user": names.take(pa.array(random.integers(0, len(names), count))), **numbers})

    return _written(folder, f"widerow-{rows}", max(1000, rows // 10), chunk)


TABLES: dict[str, Callable[[Path, int], Path]] = {
    "text": text,
    "page_views": page_views,
    "users": users,
    "power_users": power_users,
    "widerow": widerow,
}


def made(folder: Path, tables: tuple[str, ...], rows: int) -> int:
    """Make the tables that are not there yet; return their bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    places = [TABLES[name](folder, rows) for name in tables]
    return sum(file.stat().st_size for place in places for file in place.glob("*.parquet"))


def words(random: np.random.Generator, count: int, shortest: int, longest: int) -> pa.Array:
    """Distinct random words: letters, and the word's number in base 26, so that no two are the same."""
    lengths = random.integers(shortest, longest + 1, count)
    letters = _LETTERS[random.integers(0, 26, int(lengths.sum()))].tobytes().decode()
    ends = np.cumsum(lengths)
    made: dict[str, None] = {}
    for end, length in zip(ends.tolist(), lengths.tolist(), strict=True):
        word = letters[end - length : end]
        while word in made:
            word += "x"
        made[word] = None
    return pa.array(list(made))


def users_of(rows: int) -> pa.Array:
    """The names of users."""
    return words(np.random.default_rng(2), _users(rows), 6, 10)


def _users(rows: int) -> int:
    return max(1000, rows // 10)


def _people(folder: Path, name: str, names: pa.Array) -> Path:
    def chunk(random: np.random.Generator, start: int, count: int) -> pa.Table:
        part = names.slice(start, count)
        phones = pa.array(random.integers(10**9, 10**10, count))
        return pa.table({"name": part, "phone": phones, "zip": pa.array(random.integers(10_000, 99_999, count))})

    return _written(folder, name, len(names), chunk, files=1)


def _zipf(count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The cumulated distribution of Zipf's law over so many ranks."""
    cumulated: np.ndarray[Any, np.dtype[np.float64]] = np.cumsum(1.0 / np.arange(1, count + 1))
    cumulated /= cumulated[-1]
    return cumulated


def _draw(
    random: np.random.Generator, cumulated: np.ndarray[Any, np.dtype[np.float64]], count: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    drawn: np.ndarray[Any, np.dtype[np.int64]] = np.searchsorted(cumulated, random.random(count)).astype(np.int64)
    return drawn


def _maps(random: np.random.Generator, values: pa.Array, keys: tuple[str, ...], count: int) -> pa.Array:
    offsets = pa.array(np.arange(0, count * len(keys) + 1, len(keys), dtype=np.int32))
    drawn = values.take(pa.array(random.integers(0, len(values), count * len(keys))))
    named = pa.array(list(keys)).take(pa.array(np.tile(np.arange(len(keys)), count)))
    return pa.MapArray.from_arrays(offsets, named, drawn)


def _written(
    folder: Path,
    name: str,
    rows: int,
    chunk: Chunk,
    files: int = MIN_FILES,
) -> Path:
    """A folder of Parquet files; whole when its mark is there, so that a broken run starts it anew."""
    place, mark = folder / name, folder / f"{name}.json"
    if mark.exists():
        return place
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    size = CHUNK if files == 1 else min(CHUNK, -(-rows // files))
    for number, start in enumerate(range(0, rows, size)):
        table = chunk(np.random.default_rng([rows, number]), start, min(size, rows - start))
        file = place / f"part-{number:05d}.parquet"
        pq.write_table(table, file, max_rows_per_page=PAGE_ROWS, write_page_index=True)
    mark.write_text(json.dumps({"rows": rows}))
    return place
