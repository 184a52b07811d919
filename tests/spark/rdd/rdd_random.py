"""Random RDD programs: directed graphs of operators, each written for tracked RDDs and for the reference.

A value of a node is a pair (``P``), something that can be a key (``H``) or anything (``R``).
"""

from __future__ import annotations

import gzip
import random
from dataclasses import dataclass, field
from itertools import pairwise, permutations
from pathlib import Path

import rdd_functions as fn
import rdd_spans as ref

import govtool.spark

MAX_RECORDS = 90
"""A program whose records multiply beyond this goes another way."""


@dataclass(frozen=True)
class Operator:
    """An operator: what it reads and gives, how Spark runs it, and what it does by the definition.

    Attributes:
        stop: A trace stops at its records.
        exact: ``record``, ``place``, ``partition`` or ``coarse``: how exact its trace can be.
    """

    reads: str
    gives: str
    run: object
    refer: object
    stop: bool = False
    exact: str = "record"
    weight: int = 2


def _map(gives, name, reads="P", weight=2):
    f = getattr(fn, name)
    return Operator(
        reads, gives, lambda g, r: r.map(f), lambda g, seen, s: ref.flat(s, lambda v: [f(v)]), weight=weight
    )


def _flat(gives, name, reads="P"):
    f = getattr(fn, name)
    return Operator(reads, gives, lambda g, r: r.flatMap(f), lambda g, seen, s: ref.flat(s, f))


def _filter(name, weight=2):
    f = getattr(fn, name)
    return Operator(
        "R", "=", lambda g, r: r.filter(f), lambda g, seen, s: ref.flat(s, lambda v: [v] if f(v) else []), weight=weight
    )


def _same(reads, run):
    return Operator(reads, "=", run, lambda g, seen, s: ref.somewhere(s.records))


def _group(run, value_of, gives="P", reads="P"):
    return Operator(reads, gives, run, lambda g, seen, s: ref.folded(s, value_of), stop=True)


def _join(name, keep_left, keep_right):
    return Operator(
        "PP",
        "P",
        lambda g, a, b: getattr(a, name)(b, g["n"]),
        lambda g, seen, a, b: ref.joined(a, b, keep_left, keep_right),
        stop=True,
    )


def _place(run, in_order, result_key):
    def refer(g, seen, side):
        return in_order(g, side) if side.known else ref.chosen(side, seen("result"), result_key)

    return run, refer


def _sampled(g, r):
    return r.sample(g["again"], g["fraction"], g["seed"])


def _numbered(side, number):
    parts, before = [], 0
    for at, part in enumerate(side.parts):
        parts.append(
            [
                ref.Record((each.value, number(at, before, ordinal, len(side.parts))), each.sources, each.before)
                for ordinal, each in enumerate(part)
            ]
        )
        before += len(part)
    return ref.Side(parts)


def _drawn(g, side):
    from pyspark.rddsampler import RDDSampler

    sampler = RDDSampler(g["again"], g["fraction"], g["seed"])
    return ref.Side([list(sampler.func(at, iter(part))) for at, part in enumerate(side.parts)])


def _partition(run, function, reads="R", gives="P"):
    return Operator(
        reads,
        gives,
        run,
        lambda g, seen, s: ref.of_partitions(s, function, seen),
        stop=True,
        exact="partition",
    )


_index = _place(
    lambda g, r: r.zipWithIndex(),
    lambda g, s: _numbered(s, lambda at, before, ordinal, parts: before + ordinal),
    ref.first,
)
_unique = _place(
    lambda g, r: r.zipWithUniqueId(),
    lambda g, s: _numbered(s, lambda at, before, ordinal, parts: at + ordinal * parts),
    ref.first,
)
_sample = _place(_sampled, _drawn, ref.itself)


def _lists(values):
    return list(values)


OPERATORS = {
    "swap": _map("P", "swapped"),
    "nest": _map("P", "nested"),
    "unwrap": _map("P", "unwrapped"),
    "pair": _map("P", "pair", "R", 4),
    "text": _map("H", "text", "R"),
    "words": _flat("P", "words", "T"),
    "fan": _flat("P", "fan"),
    "fan any": _flat("P", "fan_any", "R"),
    "even": _filter("even"),
    "nothing": _filter("nothing", 1),
    "broadcast": Operator(
        "R",
        "=",
        lambda g, r: r.filter(_among(r.rdd.context.broadcast({0, 1, 3}))),
        lambda g, seen, s: ref.flat(s, lambda v: [v] if fn.small(v) in {0, 1, 3} else []),
    ),
    "keyBy": Operator(
        "H", "P", lambda g, r: r.keyBy(fn.small), lambda g, seen, s: ref.flat(s, lambda v: [(fn.small(v), v)])
    ),
    "mapValues": Operator(
        "P",
        "P",
        lambda g, r: r.mapValues(fn.small),
        lambda g, seen, s: ref.flat(s, lambda v: [(v[0], fn.small(v[1]))]),
    ),
    "flatMapValues": Operator(
        "P",
        "P",
        lambda g, r: r.flatMapValues(fn.twice),
        lambda g, seen, s: ref.flat(s, lambda v: [(v[0], each) for each in fn.twice(v[1])]),
    ),
    "keys": Operator("P", "H", lambda g, r: r.keys(), lambda g, seen, s: ref.flat(s, lambda v: [v[0]])),
    "values": Operator("P", "H", lambda g, r: r.values(), lambda g, seen, s: ref.flat(s, lambda v: [v[1]])),
    "per record": Operator(
        "R",
        "P",
        lambda g, r: r.mapPartitions(govtool.spark.per_record(fn.doubled)),
        lambda g, seen, s: ref.flat(s, lambda v: fn.doubled([v])),
    ),
    "union": Operator(
        "RR",
        "=",
        lambda g, a, b: a.union(b),
        lambda g, seen, a, b: ref.Side([*a.parts, *b.parts], a.known and b.known),
        weight=5,
    ),
    "repartition": _same("R", lambda g, r: r.repartition(g["n"])),
    "coalesce": _same("R", lambda g, r: r.coalesce(g["n"], g["again"])),
    "sortBy": _same("R", lambda g, r: r.sortBy(fn.small, g["again"], g["n"])),
    "sortByKey": _same("P", lambda g, r: r.keyBy(fn.text).sortByKey(g["again"], g["n"]).values()),
    "partitionBy": _same("P", lambda g, r: r.partitionBy(g["n"])),
    "repartitionAndSortWithinPartitions": _same(
        "P", lambda g, r: r.repartitionAndSortWithinPartitions(g["n"], keyfunc=fn.text)
    ),
    "persist": Operator("R", "=", lambda g, r: r.persist(), lambda g, seen, s: s),  # the same RDD: no step of its own
    "mark": Operator("R", "=", lambda g, r: r.mark(), lambda g, seen, s: s, stop=True),
    "reduceByKey": _group(
        lambda g, r: r.mapValues(fn.small).reduceByKey(fn.add, g["n"]), lambda vs: sum(map(fn.small, vs))
    ),
    "foldByKey": _group(
        lambda g, r: r.mapValues(fn.small).foldByKey(0, fn.largest, g["n"]), lambda vs: max(map(fn.small, vs))
    ),
    "aggregateByKey": _group(lambda g, r: r.aggregateByKey(0, fn.count, fn.add, g["n"]), len),
    "combineByKey": _group(
        lambda g, r: r.combineByKey(fn.small, fn.add_small, fn.add, g["n"]), lambda vs: sum(map(fn.small, vs))
    ),
    "groupByKey": _group(lambda g, r: r.groupByKey(g["n"]), _lists, "G"),
    "groupBy": Operator(
        "R",
        "G",
        lambda g, r: r.groupBy(fn.small, g["n"]),
        lambda g, seen, s: ref.folded(ref.flat(s, lambda v: [(fn.small(v), v)]), _lists),
        stop=True,
    ),
    "sizes": Operator(
        "G",
        "P",
        lambda g, r: r.mapValues(fn.grouped),
        lambda g, seen, s: ref.flat(s, lambda v: [(v[0], fn.grouped(v[1]))]),
        weight=8,
    ),
    "sides": Operator(
        "C",
        "P",
        lambda g, r: r.mapValues(fn.sides),
        lambda g, seen, s: ref.flat(s, lambda v: [(v[0], fn.sides(v[1]))]),
        weight=8,
    ),
    "distinct": Operator("H", "=", lambda g, r: r.distinct(g["n"]), lambda g, seen, s: ref.distinct(s), stop=True),
    "intersection": Operator(
        "HH", "H", lambda g, a, b: a.intersection(b), lambda g, seen, a, b: ref.intersection(a, b), stop=True
    ),
    "join": _join("join", False, False),
    "leftOuterJoin": _join("leftOuterJoin", True, False),
    "rightOuterJoin": _join("rightOuterJoin", False, True),
    "fullOuterJoin": _join("fullOuterJoin", True, True),
    "cogroup": Operator(
        "PP", "C", lambda g, a, b: a.cogroup(b, g["n"]), lambda g, seen, *s: ref.cogrouped(s), stop=True
    ),
    "groupWith": Operator(
        "PPP", "C", lambda g, a, b, c: a.groupWith(b, c), lambda g, seen, *s: ref.cogrouped(s), stop=True
    ),
    "cartesian": Operator(
        "HH", "P", lambda g, a, b: a.cartesian(b), lambda g, seen, a, b: ref.product(a, b), stop=True
    ),
    "subtract": Operator(
        "HH",
        "H",
        lambda g, a, b: a.subtract(b, g["n"]),
        lambda g, seen, a, b: ref.subtracted(a, b, ref.itself),
        stop=True,
    ),
    "subtractByKey": Operator(
        "PP",
        "P",
        lambda g, a, b: a.subtractByKey(b, g["n"]),
        lambda g, seen, a, b: ref.subtracted(a, b, ref.first),
        stop=True,
    ),
    "zipWithIndex": Operator("H", "P", *_index, stop=True, exact="place", weight=3),
    "zipWithUniqueId": Operator("H", "P", *_unique, stop=True, exact="place"),
    "sample": Operator("H", "=", *_sample, stop=True, exact="place", weight=3),
    "mapPartitions": _partition(lambda g, r: r.mapPartitions(fn.sized), lambda at, values: fn.sized(values)),
    "mapPartitions folded": _partition(
        lambda g, r: r.mapPartitions(fn.folded), lambda at, values: fn.folded(values), gives="H"
    ),
    "mapPartitionsWithIndex": _partition(lambda g, r: r.mapPartitionsWithIndex(fn.folded_at), fn.folded_at),
    "glom": _partition(lambda g, r: r.glom(), lambda at, values: [list(values)], gives="R"),
    "pipe": _partition(
        lambda g, r: r.map(fn.text).pipe("cat"), lambda at, values: [fn.text(value) for value in values], gives="H"
    ),
}


def _among(kept):
    return lambda value: fn.small(value) in kept.value


GROUPS = {"reduceByKey", "foldByKey", "aggregateByKey", "combineByKey", "groupByKey", "groupBy", "cogroup", "groupWith"}
SETS = {"distinct", "intersection"}
REPEATING = {"flatMapValues", "join", "leftOuterJoin", "rightOuterJoin", "fullOuterJoin", "cartesian"}
"""Operators that give several records with one and the same object."""


@dataclass
class Node:
    """A step of a program: a source or an operator, as a tracked RDD and by the definition."""

    number: int
    name: str
    inputs: tuple[int, ...]
    given: dict
    tracked: object
    gives: str
    side: ref.Side = None
    direct: dict = field(default_factory=dict)

    @property
    def stop(self):
        return not self.inputs or OPERATORS[self.name].stop


@dataclass
class Program:
    """A program with what only Spark decides: the order of records behind a shuffle."""

    seed: int
    nodes: list[Node] = field(default_factory=list)
    odd: bool = False
    """Some keys are NaN."""
    ordered: bool = False
    """Some operators count by place or partition: the order of groups is looked at."""

    def sources(self):
        return [node for node in self.nodes if not node.inputs]

    def behind(self, number):
        """A node and all nodes that it comes from."""
        found, waiting = set(), [number]
        while waiting:
            each = waiting.pop()
            if each not in found:
                found.add(each)
                waiting.extend(self.nodes[each].inputs)
        return sorted(found)

    def without_order(self, number):
        """The trace is exact by the documentation: nothing depends on where a record is."""
        names = [self.nodes[each] for each in self.behind(number)]
        return not self.odd and all(
            not each.inputs
            or OPERATORS[each.name].exact == "record"
            or (OPERATORS[each.name].exact == "place" and self.nodes[each.inputs[0]].side.known)
            for each in names
        )

    def text(self, number):
        return "; ".join(
            f"{each.number}={each.name}{list(each.inputs)}{ {k: v for k, v in each.given.items() if k != 'values'} }"
            for each in (self.nodes[at] for at in self.behind(number))
        )


def _stopped(node, side):
    """The records of a boundary; what lies behind them is kept apart."""
    parts, number = [], 0
    for part in side.parts:
        found = []
        for each in part:
            node.direct[number] = each
            found.append(ref.Record(each.value, each.sources, ref.at((node.number, number))))
            number += 1
        parts.append(found)
    return ref.Side(parts, side.known)


def evaluated(node, sides, seen):
    """What a node has by the definition."""
    operator = OPERATORS[node.name]
    return operator.refer(node.given, seen, *(side.read() for side in sides))


def _unseen(_):
    return None


def replayed(program, number, kept):
    """The values of a node where the sources have some of their records only; None where only Spark knows them."""
    sides = {}
    for each in program.behind(number):
        node = program.nodes[each]
        if not node.inputs:
            parts = [[r for r in part if r.sources.least & kept] for part in node.side.parts]
            sides[each] = ref.Side(parts)
            continue
        try:
            sides[each] = evaluated(node, [sides[at] for at in node.inputs], _unseen)
        except ref.UnknownOrderError:
            return None
    return [each.value for each in sides[number].records]


# ---- generation -----------------------------------------------------------------------------------------------------

KEYS = [None, 0, 1, True, 1.0, 2, "a", "ä€😀", "", b"a", (1, "x"), (None, (True,)), -0.0, 2**63, float("inf"), "1"]
WORDS = ["a", "a", "bé", "c", "", "a", "d\te"]


def _source(random_, context, folder, program):
    number = len(program.nodes)
    if random_.random() < 0.35:
        home = folder / f"in{number}"
        home.mkdir(parents=True)
        files = {}
        for at in range(random_.choice((1, 1, 2, 3))):
            content = [
                " ".join(random_.choices(WORDS, k=random_.randrange(4))) for _ in range(random_.choice((0, 2, 6)))
            ]
            content = [f"{at} first", *content] if random_.random() < 0.8 or at else content
            end = random_.choice(("\n", "\r\n"))
            data = end.join(content).encode() + (end.encode() if random_.random() < 0.7 and content else b"")
            name = f"part-{at}" + random_.choice(("", "", ".gz"))
            (home / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
            read = data.decode().split(end)
            files[name] = read if read[-1] else read[:-1]
        tracked = context.textFile(str(home), random_.choice((1, 2, 4)))
        seen = tracked.rdd.glom().collect()
        together = [line for part in seen for line in part]
        names = next(p for p in permutations(files) if [line for name in p for line in files[name]] == together)
        tokens = [(number, name, at) for name in names for at in range(len(files[name]))]
        kind, name = "T", "textFile"
    else:
        keys = random_.sample(KEYS, random_.choice((2, 3, 5)))
        keys += [keys[0]] * random_.choice((0, 6))
        if program.odd:
            keys += [float("nan"), (float("nan"), 1)]
        values = [
            ref.fresh((random_.choice(keys), random_.choice((0, 1, 2, 3, None, "é"))))
            for _ in range(random_.choice((0, 1, 3, 7, 9)))
        ]
        tracked = context.parallelize(values, random_.choice((1, 2, 4, 5)))
        slices = tracked.getNumPartitions()
        bounds = [len(values) * at // slices for at in range(slices + 1)]
        seen = [values[start:stop] for start, stop in pairwise(bounds)]
        tokens = [(number, "", at) for at in range(len(values))]
        kind, name = "P", "parallelize"
    left = iter(tokens)
    parts = [[ref.Record(value, ref.at(next(left))) for value in part] for part in seen]
    node = Node(number, name, (), {}, tracked, kind)
    node.side = _stopped(node, ref.Side(parts))
    program.nodes.append(node)


_FITS = {"R": "PHTRGC", "H": "PHT", "P": "P", "T": "T", "G": "G", "C": "C"}


def _gives(operator, inputs):
    if operator.gives != "=":
        return operator.gives
    kinds = {each.gives for each in inputs}
    if len(kinds) == 1:
        return kinds.pop()
    return "H" if kinds <= set("PHT") else "R"


def _add(random_, program, name):
    """Add a step, if there are records for it and they do not become too many."""
    operator = OPERATORS[name]
    chosen = []
    for kind in operator.reads:
        fitting = [node for node in program.nodes if node.gives in _FITS[kind]]
        if not fitting:
            return
        latest = random_.random() < 0.6
        chosen.append(fitting[-1] if latest else random_.choice(fitting))
    given = {
        "n": random_.choice((1, 2, 3)),
        "again": random_.random() < 0.5,
        "seed": random_.randrange(1000),
        "fraction": random_.choice((0.3, 0.7)),
    }
    if name == "sortByKey" and chosen[0].gives != "P":
        return
    tracked = operator.run(given, *(node.tracked for node in chosen))
    if name == "persist":
        return
    node = Node(
        len(program.nodes), name, tuple(each.number for each in chosen), given, tracked, _gives(operator, chosen)
    )

    def seen(what):
        rdd = tracked.rdd if what == "result" else chosen[0].tracked.rdd
        return rdd.glom().collect()

    side = evaluated(node, [each.side for each in chosen], seen)
    if len(side.records) > MAX_RECORDS:
        return
    if program.ordered and not program.odd and name in GROUPS | SETS:
        side = ref.placed(side, seen("result"), ref.first if name in GROUPS else ref.itself)
    node.side = _stopped(node, side) if operator.stop else side
    program.nodes.append(node)
    if program.odd and name in REPEATING:
        _add_fresh(program)


def _add_fresh(program):
    last = program.nodes[-1]
    node = Node(len(program.nodes), "fresh", (last.number,), {}, last.tracked.map(fn.fresh), last.gives)
    node.side = evaluated(node, [last.side], _unseen)
    program.nodes.append(node)


OPERATORS["fresh"] = _map("=", "fresh", "R", 0)


def generated(seed, context, folder: Path):
    """The program of a seed, whose last node is its result."""
    random_ = random.Random(seed)
    program = Program(seed, odd=random_.random() < 0.15)
    for _ in range(random_.choice((1, 2, 2, 3))):
        _source(random_, context, folder, program)
    sources, wanted = len(program.nodes), random_.randrange(3, 9)
    names = random_.choices(list(OPERATORS), [each.weight for each in OPERATORS.values()], k=40)
    if random_.random() < 0.5:
        names = [name for name in names if OPERATORS[name].exact == "record"]
    program.ordered = any(OPERATORS[name].exact != "record" for name in names)
    for name in names:
        if len(program.nodes) < sources + wanted:
            _add(random_, program, name)
    return program
