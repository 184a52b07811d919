"""Python functions as digests: equal in two identical processes, other with any value that they take along."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from govtool.model.reproduction import Reproduction, reproduction_from, reproduction_value
from govtool.spark.live.job.digest_key import Digests
from govtool.spark.live.plans.python_functions import described
from govtool.spark.live.plans.value_text import NoTextError, ValueText

KEYED = Digests(b"secret")

JOB = """
import dataclasses, datetime, decimal, enum, functools, json, re, sys
from govtool.spark.live.job.digest_key import Digests
from govtool.spark.live.plans.python_functions import described

@dataclasses.dataclass
class Options:
    names: set
    limit: int = 1

class Color(enum.Enum):
    RED = "r"

class Table:
    def eval(self, n):
        yield n + LIMIT, Color.RED.value

LIMIT = int(sys.argv[1])
WORDS = {"alpha", "beta", "gamma", "delta"}
RATES = {word: decimal.Decimal("1.5") for word in WORDS}
options = Options({"x", "y", "z"})
pattern = re.compile("a+", re.I)

def helper(value):
    return helper(value - 1) if value > LIMIT else datetime.date(2026, 1, 1)

def outer(factor, rest=("a", None)):
    def inner(value):
        return value in {"one", "two", "three"}
    return lambda value, more=3: (helper(value), factor, rest, inner(value), WORDS, RATES, options.limit, pattern)

found = [outer(2), Table, functools.partial(outer(3), more=4), lambda v: open("x"), re.sub, Options({"a"})]
print(json.dumps([described(each, Digests(b"secret")) for each in found]))
"""


def described_by(seed: str, limit: str = "7") -> list[dict]:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", JOB, limit], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_identical_processes_give_identical_digests():
    first = described_by("1")
    assert first == described_by("2")
    assert all(each["unknown"] == {} for each in first)
    names = {"factor", "rest", "inner", "helper.LIMIT", "more=", "WORDS", "RATES", "options", "pattern"}
    assert first[0]["captured"].keys() >= names - {"inner"}


def test_a_value_that_a_helper_reads_is_named():
    first, second = described_by("1"), described_by("1", "8")
    for number, expected in ((0, "helper.LIMIT"), (1, "eval.LIMIT")):  # a function, and a class of a table function
        one, other = first[number], second[number]
        assert one["code"] == other["code"]
        assert {name for name, digest in one["captured"].items() if other["captured"][name] != digest} == {expected}


def made(body: str, **values: object):
    """A function of a script of its own."""
    scope: dict[str, object] = {"__name__": "__main__", **values}
    exec(compile(body, "<job>", "exec"), scope)
    return scope["f"]


def test_code_counts_and_lines_do_not():
    plain = described(made("def f(x): return x + 1"), KEYED)
    assert plain == described(made("\n\n# moved\ndef f(x):\n    return x + 1"), KEYED)
    for other in ("def f(x): return x + 2", "def f(x): return x - 1", "def f(x): return g(x) + 1"):
        assert described(made(other), KEYED)["code"] != plain["code"]


def test_an_attribute_of_the_name_of_a_global_is_no_global():
    body = "def f(x): return x.limit"
    assert described(made(body, limit=1), KEYED) == described(made(body, limit=2), KEYED)


@dataclasses.dataclass
class Settings:
    names: tuple[str, ...]


class Slotted:
    __slots__ = ("value",)


class Pickled:
    def __reduce__(self):
        return Pickled, ()


EQUAL = [
    ({"a", "b"}, {"b", "a"}), ({"a": 1, "b": [2]}, {"b": [2], "a": 1}), (Settings(("x",)), Settings(("x",))),
    (re.compile("a"), re.compile("a")), (Path("/x"), Path("/x")), (datetime.timedelta(1), datetime.timedelta(days=1)),
    (functools.partial(int, base=2), functools.partial(int, base=2)), (frozenset(("q", "r")), frozenset(("r", "q"))),
    ("x" * 9999, "x" * 9999),
]  # fmt: skip
OTHER = [
    (1, True), (1, 1.0), ("1", 1), ((1,), [1]), ({"a": 1}, {"a": 2}), (Settings(("x",)), Settings(("y",))), (b"a", b"b"),
    (re.compile("a"), re.compile("a", re.I)), (Path("/x"), "/x"), (None, False), ([[1], 2], [[1, 2]]),
    (functools.partial(int, base=2), functools.partial(int, base=8)), ("x" * 9999, "x" * 9998), (-0.0, 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("one", "two"), EQUAL, ids=lambda value: type(value).__name__)
def test_equal_values_have_one_text(one, two):
    assert ValueText().of(one) == ValueText().of(two)


@pytest.mark.parametrize(("one", "two"), OTHER, ids=lambda value: type(value).__name__)
def test_other_values_have_other_texts(one, two):
    assert ValueText().of(one) != ValueText().of(two)


@pytest.mark.parametrize("value", [object(), iter([1]), Slotted(), Pickled(), sys.stdout, [1, object()]])
def test_what_prints_its_place_in_memory_has_none(value):
    with pytest.raises(NoTextError):
        ValueText().of(value)


def test_a_list_within_itself_ends():
    values: list[object] = [1]
    values.append(values)
    assert ValueText().of(values) == ValueText().of(values)


def test_arrays_and_frames_are_known_by_content():
    np, pd = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    assert ValueText().of(np.arange(3)) == ValueText().of(np.array([0, 1, 2]))
    assert ValueText().of(np.arange(3)) != ValueText().of(np.arange(3.0))
    assert ValueText().of(pd.DataFrame({"a": ["x"]})) != ValueText().of(pd.DataFrame({"a": ["y"]}))
    with pytest.raises(NoTextError):
        ValueText().of(np.array([object()]))


def test_what_has_no_digest_is_named_with_its_kind():
    facts = described(made("def f(x): return next(g) + k", g=iter([1]), k=2), KEYED)
    assert (facts["captured"].keys(), facts["unknown"]) == ({"k"}, {"g": "list_iterator"})


def test_functions_of_a_run_are_stored_as_they_are():
    given = {"key": "k", "python": [{"name": "f", "code": "c", "captured": {"k": "1"}, "unknown": {"g": "iterator"}}]}
    assert reproduction_value(reproduction_from(given))["python"] == given["python"]
    assert reproduction_from({}).python is None
    assert reproduction_from(reproduction_value(Reproduction(python=()))).python == ()
