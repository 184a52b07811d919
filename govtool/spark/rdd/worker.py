"""Functions that run inside of tasks. They import the standard library only and are pickled by value.

A *row* is a record with its id and its origins: ``(id, value, ((stop number, row), …))``. Ids do not depend on where
or when a task runs: a source record is ``(partition, ordinal)``, a group its key, a joined pair the ids of both.
"""

from __future__ import annotations

import copy
import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

Row = tuple[Any, Any, tuple[Any, ...]]
Outputs = Callable[[Any], Iterable[Any]]
Step = tuple[str, Callable[[Any], Any]]

ATOMS = (str, int, float, bytes, bool, type(None), complex)


def pipeline(steps: tuple[Step, ...]) -> Outputs:
    """Return the function from one record to what a chain of one-record operators makes of it, lazily."""
    if not steps:
        return single

    def outputs(value: Any) -> Iterable[Any]:
        values: Iterable[Any] = (own_copy(value),)
        for kind, function in steps:
            if kind == "map":
                values = map(function, values)
            elif kind == "filter":
                values = filter(function, values)
            else:
                values = chain.from_iterable(map(function, values))
        return values

    return outputs


def single(value: Any) -> tuple[Any]:
    """Return the record itself, as the only output."""
    return (value,)


def composed(first: Outputs, second: Outputs) -> Outputs:
    """Return ``second`` after ``first``."""
    if first is single:
        return second
    if second is single:
        return first
    return lambda value: chain.from_iterable(map(second, first(value)))


def on_value(outputs: Outputs) -> Outputs:
    """Return the outputs of a row's value."""
    return lambda row: outputs(row[1])


def own_copy(value: Any) -> Any:
    """Return a value that a function may change in place, while the original stays as it was read."""
    if is_atomic(value):
        return value
    try:
        return pickle.loads(pickle.dumps(value, 5))  # noqa: S301 - made by the line itself
    except Exception:
        return copy.deepcopy(value)


def is_atomic(value: Any) -> bool:
    """Return True for values that no function can change."""
    kind = type(value)
    return kind in ATOMS or (kind is tuple and all(map(is_atomic, value)))


# ---- rows -----------------------------------------------------------------------------------------------------------


def numbered(partition: int, values: Iterable[Any]) -> Iterator[Row]:
    """Rows named by partition and ordinal."""
    for ordinal, value in enumerate(values):
        yield (partition, ordinal), value, ()


def renumbered(partition: int, rows: Iterable[tuple[Any, tuple[Any, ...]]]) -> Iterator[Row]:
    """Pairs of value and origins as rows named by partition and ordinal."""
    for ordinal, (value, origins) in enumerate(rows):
        yield (partition, ordinal), value, origins


def named_by(key: Callable[[Any], Any]) -> Callable[[Any], Row]:
    """Rows named by a key of the record."""
    return lambda value: (key(value), value, ())


def expansion(feed: int, stop: int, outputs: Outputs) -> Callable[[Row], Iterator[Row]]:
    """What a chain makes of a row: rows named by feed, row and ordinal, with the row as their origin."""

    def expanded(row: Row) -> Iterator[Row]:
        origins = ((stop, row),)
        for ordinal, value in enumerate(outputs(row[1])):
            yield (feed, row[0], ordinal), value, origins

    return expanded


def joined(pair: tuple[Any, tuple[Row | None, Row | None]]) -> Row:
    """A joined pair of rows as one row; a side that is missing is None."""
    key, (left, right) = pair
    sides = [side for side in (left, right) if side is not None]
    value = key, (left and left[1][1], right and right[1][1])
    return (left and left[0], right and right[0]), value, tuple(chain.from_iterable(side[2] for side in sides))


def paired(pair: tuple[Row, Row]) -> Row:
    """A pair of rows of a product as one row."""
    left, right = pair
    return (left[0], right[0]), (left[1], right[1]), (*left[2], *right[2])


def origins_at(stop: int) -> Callable[[Row], Iterator[Row]]:
    """The origins of a row at one stop."""
    return lambda row: (origin for number, origin in row[2] if number == stop)


def origin_ids(stop: int) -> Callable[[Row], list[Any]]:
    """The ids of a row's origins at one stop."""
    return lambda row: [origin[0] for number, origin in row[2] if number == stop]


def of_partitions(numbers: frozenset[int]) -> Callable[[int, Iterable[Any]], Iterable[Any]]:
    """Records of some partitions; those of others are not computed."""
    return lambda partition, values: values if partition in numbers else ()


def with_partition(partition: int, values: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Records with their partition."""
    return ((partition, value) for value in values)


# ---- matching -------------------------------------------------------------------------------------------------------


def any_output(predicate: Callable[[Any], Any], outputs: Outputs) -> Callable[[Any], bool]:
    """Return True for an item with an output that fulfils a predicate."""
    return lambda item: any(map(predicate, outputs(item)))


def any_key(keys: Any, key: Callable[[Any], Any], outputs: Outputs) -> Callable[[Any], bool]:
    """Return True for an item with an output whose key is among the broadcast ones."""

    def found(item: Any) -> bool:
        plain, odd = keys.value
        if not odd:
            return not plain.isdisjoint(map(key, outputs(item)))
        return any(each in plain or token(each) in odd for each in map(key, outputs(item)))

    return found


def keyed_items(key: Callable[[Any], Any], outputs: Outputs) -> Callable[[Any], list[tuple[Any, Any]]]:
    """An item once for each key of its outputs."""
    return lambda item: [(each, item) for each in dict.fromkeys(map(key, outputs(item)))]


def distinct_up_to(limit: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The distinct keys of a partition, at most one more than the limit."""

    def limited(keys: Iterable[Any]) -> Iterator[Any]:
        seen: set[Any] = set()
        for key in keys:
            if key in seen:
                continue
            seen.add(key)
            yield key
            if len(seen) > limit:
                return

    return limited


def equals_itself(key: Any) -> bool:
    """Return False for a key such as NaN, or a tuple with one, which a copy of it does not equal."""
    if type(key) is tuple:  # Python compares the parts of a tuple by identity first
        return all(map(equals_itself, key))
    return bool(key == key if type(key) in ATOMS else own_copy(key) == key)


def as_key(value: Any) -> Any:
    """Return something that can be compared and hashed in place of any value."""
    try:
        hash(value)
    except TypeError:
        return token(value)
    return value if equals_itself(value) else token(value)


# ---- digests --------------------------------------------------------------------------------------------------------


def token(value: Any) -> str:
    """Return a text that equal values share, as 0, -0.0 and False do: which of them a group has as its key may change.

    Floats count nine digits; the order in collections does not count.
    """
    if isinstance(value, float):
        return format(value or 0.0, ".9g")
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, ATOMS):
        return repr(value)
    if isinstance(value, tuple):
        return f"({','.join(map(token, value))})"
    if isinstance(value, dict):
        return f"{{{','.join(sorted(f'{token(k)}:{token(v)}' for k, v in value.items()))}}}"
    if isinstance(value, (list, set, frozenset)) or type(value).__name__ == "ResultIterable":
        return f"[{','.join(sorted(map(token, value)))}]"
    return type(value).__qualname__


def is_small(value: Any, budget: int) -> bool:
    """Return True if a value is made of few values and short texts."""
    waiting = [value]
    while waiting and budget >= 0:
        each = waiting.pop()
        budget -= 1
        if isinstance(each, (str, bytes)):
            budget -= len(each) // 100
        elif isinstance(each, (tuple, list, set, frozenset)):
            waiting.extend(islice(each, max(budget, 0) + 1))
        elif isinstance(each, dict):
            waiting.extend(islice(chain.from_iterable(each.items()), max(budget, 0) + 1))
        elif type(each).__name__ == "ResultIterable":
            return False  # a group, which may be large
    return budget >= 0 and not waiting


def digest(values: Iterable[Any]) -> tuple[int, int]:
    """Return count and digest of records, whatever their order."""
    count = total = 0
    for value in values:
        count += 1
        total += digest_of_one(value)
    return count, total % (1 << 64)


def digest_of_one(value: Any) -> int:
    """Return the digest of one record; those of records are added."""
    return int.from_bytes(hashlib.sha256(token(value).encode("utf-8", "surrogatepass")).digest()[:8], "big")


class PartitionTotals:
    """An accumulator of count and digest by partition: a task that is retried counts once."""

    def zero(self, value: dict[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
        """Return no partition."""
        return {}

    def addInPlace(
        self, one: dict[int, tuple[int, int]], other: dict[int, tuple[int, int]]
    ) -> dict[int, tuple[int, int]]:
        """Return the partitions of both."""
        return {**one, **other}


def observing(seen: Any, with_digest: bool) -> Callable[[int, Iterable[Row]], Iterator[Row]]:
    """Rows as they are, while count and digest of a partition go to an accumulator."""

    def observed(partition: int, rows: Iterable[Row]) -> Iterator[Row]:
        count = total = 0
        for row in rows:
            count += 1
            if with_digest:
                total += digest_of_one(row[1])
            yield row
        seen.add({partition: (count, total)})

    return observed


def counted(partition: int, values: Iterable[Any]) -> Iterator[tuple[int, int]]:
    """The number of records of a partition."""
    yield partition, sum(1 for _ in values)


def digested(values: Iterable[Any]) -> Iterator[tuple[int, int]]:
    """Count and digest of a partition."""
    yield digest(values)


# ---- small functions ------------------------------------------------------------------------------------------------


def id_of(row: Row) -> Any:
    """Return the id of a row."""
    return row[0]


def value_of(row: Row) -> Any:
    """Return the record of a row."""
    return row[1]


def order_of(value: Any) -> tuple[Any, ...]:
    """Return what sorts ids of any kind: numbers as numbers, everything else as text."""
    if isinstance(value, tuple):
        return (2, tuple(map(order_of, value)))
    if isinstance(value, (int, float)) and value == value:
        return (0, value)
    return (1, token(value))


def shown(value: Any) -> str:
    """Return a record as text."""
    if type(value).__name__ == "ResultIterable":
        return repr(list(value))
    return value if isinstance(value, str) else repr(value)


def counted_once(text: str) -> tuple[str, int]:
    """Return a text with the number of times that it is here."""
    return text, 1


def surplus(pair: tuple[str, tuple[int, int | None]]) -> list[str]:
    """Return a text as often as one side has it more than the other."""
    text, (one, other) = pair
    return [text] * (one - (other or 0))


def alone(text: str) -> tuple[str]:
    """Return a text as a row of one column."""
    return (text,)


def own_id(row: Row) -> tuple[Any]:
    """Return the id of a row, as the only output."""
    return (row[0],)


def no_key(keys: Any) -> Callable[[Row], bool]:
    """Return True for a row whose id is not among broadcast ones."""
    return lambda row: row[0] not in keys.value[0]


def never(_: Any) -> bool:
    """Return False."""
    return False


def with_none(key: Any) -> tuple[Any, None]:
    """Return a key as a pair."""
    return key, None


def first_of_pair(pair: tuple[Any, tuple[Any, Any]]) -> Any:
    """Return the left side of a joined pair."""
    return pair[1][0]


def member(values: frozenset[Any]) -> Callable[[Any], bool]:
    """Return True for a value among others."""
    return lambda value: value in values


def numbered_pair(pair: tuple[Row, int]) -> tuple[Any, tuple[Any, ...]]:
    """Return value and origins of a row with its number."""
    row, number = pair
    return (row[1], number), row[2]


def plain_pair(row: Row) -> tuple[Any, tuple[Any, ...]]:
    """Return value and origins of a row."""
    return row[1], row[2]


def either(row: Row, _: Row) -> Row:
    """Return the first of two rows with one id."""
    return row


def key_of_value(row: Row) -> Any:
    """Return the key of a row's pair."""
    return row[1][0]


def named_by_value(row: Row) -> Row:
    """Return a row with its value as the id."""
    return as_key(row[1]), None, ()


def key_after(key: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the comparable form of a key of a value."""
    return lambda value: as_key(key(value))
