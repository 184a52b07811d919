"""Numbers of executions: by the query's id, by accumulators, by the text of the plan, and once they are known."""

from __future__ import annotations

import gc
import weakref

import pytest

from govtool.capture.spark.live.spool import read_spool
from govtool.spark.live.jvm import hadoop
from govtool.spark.live.listener import Recorder
from govtool.spark.live.numbers import Mark, Numbers
from govtool.spark.live.spool import Spool


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

    def __init__(self, number, root, query=None, metrics="", text="", details="main", description=""):
        self.number, self.root, self.query, self.listed, self.text = number, root, query, metrics, text
        self.reported, self.described = details, description

    def executionId(self):
        return self.number

    def rootExecutionId(self):
        return self.root

    def details(self):
        return self.reported

    def description(self):
        return self.described

    def submissionTime(self):
        return 1_700_000_000_250

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

    def executionsCount(self):
        return len(self.entries)

    def executionsList(self, offset, length):
        return Listed([self.entries[number] for number in sorted(self.entries)][offset : offset + length])


class Listed(list):
    """A Scala Seq."""

    def size(self):
        return len(self)

    def apply(self, i):
        return self[i]


def at(number, root, **more):
    """What is known of an execution that began at 1,700,000,000.25 s."""
    return {"execution": number, "root": root, "started": 1_700_000_000.25, **more}


def looked(*entries):
    numbers = Numbers()
    numbers.look(Store(*entries))
    return numbers


def test_by_the_id_of_the_query_and_only_once():
    numbers = looked(Data(0, 0, "a"), Data(1, 0, "b", details="org.apache.spark.sql.DataFrameReader.json"))
    assert numbers.take(Mark("b", frozenset(), "")) == at(1, 0, inference=True)
    assert numbers.take(Mark("b", frozenset(), "")) is None
    assert numbers.take(Mark("a", frozenset(), "")) == at(0, 0)


def test_by_the_accumulators_that_are_shared():
    numbers = looked(
        Data(0, 0, metrics="SQLPlanMetric(number of output rows,7,sum)\x01SQLPlanMetric(time, in ms,8,timing)"),
        Data(1, 1, metrics="SQLPlanMetric(number of output rows,17,sum)"),
    )
    assert numbers.take(Mark("", frozenset({8, 17, 7}), "")) == at(0, 0)
    assert numbers.take(Mark("", frozenset({99}), "")) is None
    assert numbers.take(Mark("", frozenset({17}), "")) == at(1, 1)


def test_by_the_text_of_a_plan_that_measures_nothing():
    numbers = looked(Data(0, 0, text="drop a"), Data(1, 1, text="drop b"), Data(2, 2, text="drop b"))
    assert [numbers.take(Mark("", frozenset(), "drop b")) for _ in range(3)] == [
        at(1, 1),
        at(2, 2),
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
    assert numbers.take(Mark("b", frozenset(), "")) == at(1, 0)


def test_a_number_that_no_execution_has_hides_none_that_follow():
    store = Store(Data(0, 0, "a"), Data(2, 2, "c"))  # 1 is a command that analysis refused
    numbers = Numbers()
    numbers.look(store)
    assert numbers.take(Mark("c", frozenset(), "")) == at(2, 2)
    store.entries[1] = Data(1, 0, "b")  # or one that is announced late
    store.entries[3] = Data(3, 3, "d")
    numbers.look(store)
    assert [numbers.take(Mark(query, frozenset(), "")) for query in "bd"] == [at(1, 0), at(3, 3)]


def test_the_query_that_is_looked_for_is_enough():
    store = Store(Data(0, 0, "a"), Data(2, 2, "c"))
    numbers = Numbers()
    assert numbers.upcoming() == [0, 1, 2]
    numbers.look(store, "a")  # need not look behind the number that is missing
    assert numbers.take(Mark("a", frozenset(), "")) == at(0, 0)
    assert numbers.upcoming() == [1, 2, 3]
    numbers.look(store, "c")
    assert numbers.take(Mark("c", frozenset(), "")) == at(2, 2)
    assert numbers.upcoming() == [1, 3, 4, 5]


def test_executions_of_other_sessions_are_fetched_together():
    every = [Data(n, n, f"q{n}") for n in range(130)]
    asked = []

    def fetched(wanted):
        asked.append((wanted[0], len(wanted)))
        return Store(*every[wanted[0] : wanted[-1] + 1])

    numbers = Numbers()
    numbers.look(fetched(numbers.upcoming()), "q129", fetched)
    assert asked == [(0, 3), (3, 6), (9, 12), (21, 24), (45, 48), (93, 48)]
    assert numbers.take(Mark("q129", frozenset(), "")) == at(129, 129)
    every.append(Data(130, 130, "q130"))
    numbers.look(fetched(numbers.upcoming()), "q130", fetched)
    assert asked[6:] == [(130, 3)]
    assert numbers.take(Mark("q130", frozenset(), "")) == at(130, 130)


def test_the_batch_of_a_streaming_query_is_in_the_description():
    query, run = "10b986f8-28ef-4a5d-8793-1c4be817cca1", "84d78c90-0a11-4c22-8374-2611795c2480"
    text = f"daily<br/>\nid = {query}\nrunId = {run}\nbatch = 12"
    numbers = looked(Data(0, 0, "a", description=text), Data(1, 1, "b", description="save at job.py:1"))
    assert numbers.take(Mark("a", frozenset(), "")) == at(0, 0, batch=[query, run, 12])
    assert numbers.take(Mark("b", frozenset(), "")) == at(1, 1)


@pytest.mark.parametrize("late", ['{"e":"number","n":2,"execution":5,"root":4}\n', ""])
def test_numbers_that_came_late_are_those_of_their_execution(tmp_path, late):
    lines = '{"e":"process"}\n{"e":"execution","n":2,"query":"b"}\n{"e":"number","n":"x"}\n' + late
    (tmp_path / "1.jsonl").write_text(lines)
    (process,) = read_spool(tmp_path)
    (execution,) = process.executions
    assert execution.get("execution") == (5 if late else None)
    assert execution.get("root") == (4 if late else None)


def test_an_execution_is_let_go_once_it_is_recorded(spark, tmp_path, monkeypatch):
    """Its joins hold megabytes in the JVM, and Python's collector does not know that there is any hurry."""
    recorder = Recorder(Spool(str(tmp_path / "spool")))
    session = spark.newSession()
    heard = []
    original = Recorder.executed

    def executed(self, key, name, execution, *rest):
        heard.append(weakref.ref(execution))
        original(self, key, name, execution, *rest)

    monkeypatch.setattr(Recorder, "executed", executed)
    recorder.attach(session)
    listeners = session._jsparkSession.listenerManager().listListeners()
    gc.disable()
    try:
        for _ in range(3):
            session.range(5).join(session.range(3), "id").write.mode("overwrite").parquet(str(tmp_path / "joined"))
        assert recorder.drain(60)
        assert len(heard) >= 3
        assert [each() for each in heard] == [None] * len(heard)
    finally:
        gc.enable()
        session._jsparkSession.listenerManager().unregister(listeners[len(listeners) - 1])


def test_paths_are_resolved_once_the_application_was_stopped(spark, monkeypatch):
    """The last actions of a job are written down after it: streams with the folders that they wrote to, too."""
    from pyspark import SparkContext

    hadoop.remember(spark.sparkContext)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    assert hadoop.qualified("/lake/orders") == "file:/lake/orders"
