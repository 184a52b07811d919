"""Values that functions of modules leave for each other beside relations."""

from __future__ import annotations

import itertools
import logging
import types
from collections import Counter, deque
from functools import lru_cache, partial, wraps

import pytest
from jsonframes import Sequence, give

import govtool
from govtool.app.workflow_runs.left_values import LeftValues

SHARED: dict[str, int] = {}
NUMBER = 0
LIMITS = {"low": 1, "high": [2, float("nan")]}
LOG = logging.getLogger(__name__)
HELPERS = types.ModuleType("helpers_of_users")
HELPERS.total = 0


class Base:
    __slots__ = ("__dict__", "__hidden")
    count = 0

    def fill(self):
        self.__hidden = object()


class Totals(Base):
    value = 0

    def __init__(self):
        self.own = {}


TOTALS = Totals()


def _through_a_helper():
    return SHARED.get("total", 0)


def reads_nothing(rows):
    LOG.info("%s", LIMITS["low"])
    return rows[: LIMITS["low"]]


def reads_a_dict(rows):
    return rows[: SHARED["total"]]


def reads_a_name(rows):
    return rows[:NUMBER]


def reads_by_a_helper(rows):
    return rows[: _through_a_helper()]


def reads_a_class(rows):
    return [row for row in rows if row > Totals.value]


def reads_an_object(rows):
    def inner(row):
        return row in TOTALS.own

    return list(filter(inner, rows))


class Reading:
    @staticmethod
    def by_itself():
        return SHARED.get("total", 0)

    @property
    def shown(self):
        return self.by_itself()


@lru_cache
def _kept_result():
    return Reading().shown


def reads_by_a_cache(rows):
    return rows[: _kept_result()]


@wraps(reads_a_dict)
def _wrapper(*rows):
    return None


def reads_by_a_decorator(rows):
    return _wrapper(rows)


def reads_a_module(rows):
    return rows[: HELPERS.total]


def reads_its_default(rows, known=[]):  # noqa: B006
    return known + rows


WORDS, LAST, SPACE = Counter(), deque(maxlen=2), types.SimpleNamespace(n=0)


def reads_collections(rows):
    return rows[: WORDS["n"] + len(LAST) + SPACE.n]


def _set_number():
    global NUMBER
    NUMBER += 1


def _of_closure():
    kept = []

    def reads(rows):
        return rows + kept

    return reads, lambda: kept.append(1)


CLOSURE, FILLS_CLOSURE = _of_closure()
ALL = [
    reads_nothing, reads_a_dict, reads_a_name, reads_by_a_helper, reads_a_class, reads_an_object, reads_a_module,
    reads_its_default, CLOSURE, reads_collections, reads_by_a_decorator,
    reads_by_a_cache,
]  # fmt: skip
CHANGES = {
    "a global dict": (
        lambda: SHARED.update(total=SHARED.get("total", 0) + 1),
        {reads_a_dict, reads_by_a_helper, reads_by_a_decorator, reads_by_a_cache},
    ),
    "a global name": (_set_number, {reads_a_name}),
    "an attribute of a class": (lambda: setattr(Totals, "value", Totals.value + 1), {reads_a_class, reads_an_object}),
    "an attribute of an object": (lambda: TOTALS.own.update(x=len(TOTALS.own), y=object()), {reads_an_object}),
    "an attribute of a base class": (lambda: setattr(Base, "count", Base.count + 1), {reads_a_class, reads_an_object}),
    "a private slot": (TOTALS.fill, {reads_an_object}),
    "an attribute of a module": (lambda: setattr(HELPERS, "total", HELPERS.total + 1), {reads_a_module}),
    "a default": (lambda: reads_its_default.__defaults__[0].append(1), {reads_its_default}),
    "a closure": (FILLS_CLOSURE, {CLOSURE}),
    "a counter": (lambda: WORDS.update("n"), {reads_collections}),
    "a queue": (lambda: LAST.append(len(LAST)), {reads_collections}),
    "a namespace": (lambda: setattr(SPACE, "n", SPACE.n + 1), {reads_collections}),
    "nothing": (lambda: LOG.info("counted"), set()),
}


@pytest.mark.parametrize("case", CHANGES)
def test_who_can_reach_what_a_call_left(case):
    change, readers = CHANGES[case]
    left = LeftValues({str(number): function for number, function in enumerate(ALL)})
    left.called(["before"])
    change()
    left.called(["Orders", "Users"])
    assert {ALL[int(name)] for name in map(str, range(len(ALL))) if left.reached(name)} == readers
    assert all(left.reached(str(ALL.index(each))) == ("Orders", "Users") for each in readers)


def test_a_python_function_of_spark_reads_what_its_own_function_reads():
    from pyspark.sql.functions import udf
    from pyspark.sql.types import IntegerType

    ours = udf(lambda number: number + SHARED.get("total", 0), IntegerType())
    left = LeftValues({"M": lambda rows: rows.select(ours("n"))})
    SHARED["total"] = SHARED.get("total", 0) + 1
    left.called(["R"])
    assert left.reached("M") == ("R",)


def test_values_that_cannot_be_compared_count_as_others():
    class Odd:
        __slots__ = ()

        @property
        def __dict__(self):
            raise RuntimeError

    odd, many = Odd(), list(range(30_000))
    left = LeftValues({"odd": lambda: odd, "many": lambda: many, "bound": partial(reads_nothing, [1])})
    left.called(["R"])
    assert [left.reached(name) for name in ("odd", "many", "bound")] == [("R",), ("R",), ()]


def test_invocations_name_what_reached_them_beside_relations(tmp_path):
    give(tmp_path, In=[1, 2, 3], Other=[5, 6], **{"2/In": [1], "2/Other": [5]})
    kept, jobs = {"n": 0}, itertools.count()

    @govtool.module("Count", inputs=["In"], outputs=["Counted"])
    def count(rows):
        kept["n"] = len(rows)
        next(jobs)
        return {"Counted": rows}

    @govtool.module("Limit", inputs=["Other"], outputs=["Limited"])
    def limit(rows):
        return {"Limited": rows[: kept["n"]]}

    @govtool.module("Both", inputs=["Counted", "Limited"], outputs=["Out"])
    def both(counted, limited):
        return {"Out": counted + limited}

    class Seen:
        def __init__(self):
            self.invocations = []

        def invoked(self, invocation, relations):
            self.invocations.append(invocation)

        def executed(self, execution):
            pass

    seen = Seen()
    edges = [("Count", "Both", "Counted"), ("Limit", "Both", "Limited")]
    sequence = Sequence(govtool.Workflow("w", [count, limit, both], edges), tmp_path, observer=seen)
    sequence.frames.jobs_run = lambda: repr(jobs)
    sequence.run(2)
    named = [
        (each.module, each.execution, [p.rpartition("/in/")[2] for p in each.indirect]) for each in seen.invocations
    ]
    assert named == [
        ("Count", 1, []),
        ("Limit", 1, ["In.jsonl"]),
        ("Both", 1, []),
        ("Count", 2, ["In.jsonl"]),
        ("Limit", 2, ["In.jsonl", "2/In.jsonl"]),
        ("Both", 2, []),
    ]
