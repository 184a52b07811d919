"""Generated RDD programs over pairs: each step is written twice, for tracked RDDs and for the reference."""

from __future__ import annotations

import random
import zlib
from operator import add

import rdd_reference as ref

KEYS = (None, 0, 1, 2, "a", "a", "a", "a")
"""The keys of generated records: None among them, and one that most records have."""


def small(value):
    """A number below five for any value: results often equal each other."""
    return zlib.crc32(repr(value).encode()) % 5


def _swap(pair):
    return small(pair[1]), pair[0]


def _fan(pair):
    return [(pair[0], each) for each in range(small(pair[1]) - 1)]


def _even(pair):
    return small(pair) % 2 == 0


def _shrunk(pair):
    return pair[0], small(pair[1])


def _twice(value):
    return [value, small(value)]


def _sizes(groups):
    return tuple(sorted(tuple(map(repr, sorted(group, key=repr))) for group in groups))


def _positive(value):
    return small(value) > 0


def _text(pair):
    return repr(pair)


ALONE = {
    "swap": (lambda r: r.map(_swap), lambda r: ref.mapped(r, _swap)),
    "fan": (lambda r: r.flatMap(_fan), lambda r: ref.flat_map(r, _fan)),
    "even": (lambda r: r.filter(_even), lambda r: ref.filtered(r, _even)),
    "mapValues": (lambda r: r.mapValues(small), lambda r: ref.mapped(r, _shrunk)),
    "flatMapValues": (
        lambda r: r.flatMapValues(_twice),
        lambda r: ref.flat_map(r, lambda pair: [(pair[0], each) for each in _twice(pair[1])]),
    ),
    "keyBy": (lambda r: r.keyBy(small), lambda r: ref.mapped(r, lambda pair: (small(pair), pair))),
    "values": (lambda r: r.values().keyBy(small), lambda r: ref.mapped(r, lambda pair: (small(pair[1]), pair[1]))),
    "keys": (lambda r: r.keys().keyBy(small), lambda r: ref.mapped(r, lambda pair: (small(pair[0]), pair[0]))),
    "reduceByKey": (
        lambda r: r.mapValues(small).reduceByKey(add),
        lambda r: ref.folded(ref.mapped(r, _shrunk), int, add),
    ),
    "foldByKey": (
        lambda r: r.mapValues(small).foldByKey(0, max),
        lambda r: ref.folded(ref.mapped(r, _shrunk), int, max),
    ),
    "aggregateByKey": (
        lambda r: r.aggregateByKey(0, lambda n, _: n + 1, add),
        lambda r: ref.folded(r, int, lambda n, _: n + 1),
    ),
    "combineByKey": (
        lambda r: r.combineByKey(lambda v: small(v), lambda n, v: n + small(v), add),
        lambda r: ref.folded(r, int, lambda n, v: n + small(v)),
    ),
    "groupByKey": (
        lambda r: r.groupByKey().mapValues(lambda group: tuple(sorted(map(repr, group)))),
        lambda r: ref.mapped(
            ref.folded(r, list, lambda group, v: [*group, repr(v)]), lambda pair: (pair[0], tuple(sorted(pair[1])))
        ),
    ),
    "groupBy": (
        lambda r: r.groupBy(small).mapValues(len),
        lambda r: ref.folded(ref.mapped(r, lambda pair: (small(pair), pair)), int, lambda n, _: n + 1),
    ),
    "distinct": (lambda r: r.distinct(), ref.distinct),
    "repartition": (lambda r: r.repartition(3), lambda r: r),
    "coalesce": (lambda r: r.coalesce(1), lambda r: r),
    "sortBy": (lambda r: r.sortBy(_text, numPartitions=2), lambda r: r),
    "partitionBy": (lambda r: r.partitionBy(2), lambda r: r),
    "mark": (lambda r: r.mark(), lambda r: r),
    "persist": (lambda r: r.persist(), lambda r: r),
}
TOGETHER = {
    "union": (lambda a, b: a.union(b), lambda a, b: [*a, *b]),
    "join": (lambda a, b: a.join(b), ref.joined),
    "leftOuterJoin": (lambda a, b: a.leftOuterJoin(b), lambda a, b: ref.joined(a, b, keep_left=True)),
    "rightOuterJoin": (lambda a, b: a.rightOuterJoin(b), lambda a, b: ref.joined(a, b, keep_right=True)),
    "fullOuterJoin": (
        lambda a, b: a.fullOuterJoin(b),
        lambda a, b: ref.joined(a, b, keep_left=True, keep_right=True),
    ),
    "cogroup": (
        lambda a, b: a.cogroup(b).mapValues(_sizes),
        lambda a, b: ref.mapped(ref.cogrouped(a, b), lambda pair: (pair[0], _sizes(pair[1]))),
    ),
    "intersection": (lambda a, b: a.intersection(b), ref.intersection),
    "subtract": (lambda a, b: a.subtract(b), ref.subtracted),
    "subtractByKey": (lambda a, b: a.subtractByKey(b), ref.subtracted_by_key),
    "cartesian": (
        lambda a, b: a.cartesian(b).map(lambda pair: (pair[0][0], pair)),
        lambda a, b: ref.mapped(ref.product(a, b), lambda pair: (pair[0][0], pair)),
    ),
}
MAX_RECORDS = 120
"""A program whose records multiply beyond this goes another way."""


def generated(seed, context):
    """A program: its sources (name, tracked RDD), its result as a tracked RDD and by the definition, and its steps."""
    random_ = random.Random(seed)
    sources, sides = [], []
    for number in range(2):
        values = [(random_.choice(KEYS), random_.randrange(4)) for _ in range(random_.choice((0, 3, 7, 9)))]
        tracked = context.parallelize(values, random_.choice((1, 2, 4)))
        sources.append((f"s{number}", tracked))
        sides.append((tracked, ref.source(f"s{number}", values)))
    steps = []
    for _ in range(random_.randrange(2, 6)):
        name = random_.choice([*ALONE, *TOGETHER])
        chosen = random_.randrange(len(sides))
        one, other = sides[chosen], random_.choice(sides)
        if name in ALONE:
            makers, given = ALONE[name], (one,)
        else:
            makers, given = TOGETHER[name], (one, other)
        expected = makers[1](*(side[1] for side in given))
        if len(expected) > MAX_RECORDS:
            continue
        sides[chosen] = (makers[0](*(side[0] for side in given)), expected)
        steps.append(name)
        result = sides[chosen]
    if not steps:
        return generated(seed + 100_000, context)
    return sources, *result, steps
