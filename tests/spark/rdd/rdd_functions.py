"""Functions of generated RDD programs. They look at values through ``canonical``, as equal keys may differ in type."""

from __future__ import annotations

import zlib


def canonical(value):
    """A form that equal values share: 1, True and 1.0 are one value, NaN is one text, groups have no order."""
    if isinstance(value, float) and value != value:
        return "<NaN>"
    if isinstance(value, (bool, float)):
        return int(value) if abs(value) < 1e300 and value == int(value) else value
    if isinstance(value, tuple):
        return tuple(map(canonical, value))
    if isinstance(value, list) or type(value).__name__ == "ResultIterable":
        return "<list>", *sorted(map(canonical, value), key=repr)
    return value


def text(value):
    return repr(canonical(value))


def small(value):
    """A number below five for any value: results often equal each other."""
    return zlib.crc32(text(value).encode()) % 5


def fresh(value):
    """The value with NaNs of its own: no two of them are one object."""
    if isinstance(value, float) and value != value:
        return float("nan")
    return tuple(map(fresh, value)) if isinstance(value, tuple) else value


def pair(value):
    return small(value), text(value)[-12:]


def words(line):
    return [(word, number) for number, word in enumerate(line.split(" ")[:3]) if word]


def swapped(value):
    return small(value[1]), fresh(value[0])


def nested(value):
    return (fresh(value[0]), ("é", small(value[1]))), small(value)


def unwrapped(value):
    key = value[0]
    return (key[0] if isinstance(key, tuple) and key else key), small(value)


def fan(value):
    return [(fresh(value[0]), each) for each in range(small(value[1]) - 1)]


def fan_any(value):
    return [(each, small(value)) for each in range(small(value) - 1)]


def even(value):
    return small(value) % 2 == 0


def nothing(value):
    return False


def twice(value):
    return [small(value)] * (small(value) % 4)


def lines(value):
    return f"{text(value)[:5]}\u2028{small(value)}\r\n{text(value)}" if small(value) > 2 else text(value)


def one(_):
    return 1


def count(total, _):
    return total + 1


def add_small(total, value):
    return total + small(value)


def add(one_, other):
    return one_ + other


def largest(one_, other):
    return max(one_, other)


def grouped(values):
    return tuple(sorted(map(text, values)))


def sides(groups):
    return tuple(map(grouped, groups))


def sized(records):
    return [("n", sum(1 for _ in records))]


def folded(records):
    return sorted({small(each) for each in records})


def folded_at(partition, records):
    return [(partition, each) for each in folded(records)]


def doubled(records):
    for each in records:
        if small(each) > 1:
            yield small(each), 1
            yield small(each), text(each)[:3]
