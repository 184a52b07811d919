"""Numbers of executions: by the query's id, by accumulators, by the text of the plan, and once they are known."""

from __future__ import annotations

import pytest

from govtool.capture.spark.live.spool import read_spool
from govtool.spark.live.numbers import Mark, Numbers


class Option:
    def __init__(self, value):
        self.value = value

    def isDefined(self):
        return self.value is not None

    def get(self):
        return self.value


class Text:
    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text

    toString = __str__

    def mkString(self, _):
        return self.text


class Data:
    """As much of Spark's entry of an execution as is asked for."""

    def __init__(self, number, root, query=None, metrics="", text="", details="main"):
        self.number, self.root, self.query, self.listed, self.text, self.reported = (
            number,
            root,
            query,
            metrics,
            text,
            details,
        )

    def executionId(self):
        return self.number

    def rootExecutionId(self):
        return self.root

    def details(self):
        return self.reported

    def queryId(self):
        if self.query is None:
            raise AttributeError("queryId")
        return Text(self.query)

    def metrics(self):
        return Text(self.listed)

    def physicalPlanDescription(self):
        return self.text


class Store:
    def __init__(self, *entries):
        self.entries = {entry.number: entry for entry in entries}

    def execution(self, number):
        return Option(self.entries.get(number))


def looked(*entries):
    numbers = Numbers()
    numbers.look(Store(*entries))
    return numbers


def test_by_the_id_of_the_query_and_only_once():
    numbers = looked(Data(0, 0, "a"), Data(1, 0, "b", details="org.apache.spark.sql.DataFrameReader.json"))
    assert numbers.take(Mark("b", frozenset(), "")) == {"execution": 1, "root": 0, "inference": True}
    assert numbers.take(Mark("b", frozenset(), "")) is None
    assert numbers.take(Mark("a", frozenset(), "")) == {"execution": 0, "root": 0}


def test_by_the_accumulators_that_are_shared():
    numbers = looked(
        Data(0, 0, metrics="SQLPlanMetric(number of output rows,7,sum)\x01SQLPlanMetric(time, in ms,8,timing)"),
        Data(1, 1, metrics="SQLPlanMetric(number of output rows,17,sum)"),
    )
    assert numbers.take(Mark("", frozenset({8, 17, 7}), "")) == {"execution": 0, "root": 0}
    assert numbers.take(Mark("", frozenset({99}), "")) is None
    assert numbers.take(Mark("", frozenset({17}), "")) == {"execution": 1, "root": 1}


def test_by_the_text_of_a_plan_that_measures_nothing():
    numbers = looked(Data(0, 0, text="drop a"), Data(1, 1, text="drop b"), Data(2, 2, text="drop b"))
    assert [numbers.take(Mark("", frozenset(), "drop b")) for _ in range(3)] == [
        {"execution": 1, "root": 1},
        {"execution": 2, "root": 2},
        None,
    ]
    assert numbers.take(Mark("", frozenset(), "")) is None


def test_what_comes_later_is_found_later():
    store = Store(Data(0, 0, "a"))
    numbers = Numbers()
    numbers.look(store)
    assert numbers.take(Mark("b", frozenset(), "")) is None
    store.entries[1] = Data(1, 0, "b")
    numbers.look(store)
    assert numbers.take(Mark("b", frozenset(), "")) == {"execution": 1, "root": 0}


@pytest.mark.parametrize("late", ['{"e":"number","n":2,"execution":5,"root":4}\n', ""])
def test_numbers_that_came_late_are_those_of_their_execution(tmp_path, late):
    lines = '{"e":"process"}\n{"e":"execution","n":2,"query":"b"}\n{"e":"number","n":"x"}\n' + late
    (tmp_path / "1.jsonl").write_text(lines)
    (process,) = read_spool(tmp_path)
    (execution,) = process.executions
    assert execution.get("execution") == (5 if late else None)
    assert execution.get("root") == (4 if late else None)
