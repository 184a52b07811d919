"""Which executions are one action: by time, by what starts what, by target and plan."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from spark_logs import ended, event, gathered, started, write_plan

from govtool.capture.spark.dependencies import ColumnDependencies, PlanDependencies
from govtool.capture.spark.execution import Reading, WrittenDataset
from govtool.capture.spark.identity import DatasetPlace, path_name, table_name
from govtool.capture.spark.nesting import actions_of


@dataclass(frozen=True)
class Ran:
    """An execution for tests."""

    name: str
    opened: float
    closed: float
    reading: Reading | None = None
    is_batch: bool = False
    problem: None = None
    is_inference: bool = False


def saved(name, opened, closed, table, *, ids=(), columns=None, mode="append"):
    """The first command of saveAsTable: it names the table as the user does."""
    written = WrittenDataset(
        DatasetPlace(table_name(table), "table"), "create_table_as", mode, mode, columns, parts=1, final=False
    )
    return Ran(name, opened, closed, Reading(PlanDependencies(), "", written, ids=ids, command=True))


def created(name, opened, closed, table, *, ids=(), columns=("a",)):
    """The second: it names the table with its catalog and its columns."""
    place = DatasetPlace(table_name(f"spark_catalog.{table}"), "table")
    written = WrittenDataset(place, "create_table_as", "append", "append", columns, parts=3, final=False)
    return Ran(name, opened, closed, Reading(PlanDependencies(), "", written, ids=ids, command=True))


def inserted(name, opened, closed, path, *, ids=(), columns=("a",)):
    """What writes: it has the place."""
    written = WrittenDataset(DatasetPlace(path_name(path), "file"), "insert", "append", "append", columns, alone=True)
    return Ran(
        name,
        opened,
        closed,
        Reading(PlanDependencies(tuple(ColumnDependencies(c, ()) for c in columns)), "", written, ids=ids),
    )


def queried(name, opened, closed, normal="q"):
    return Ran(name, opened, closed, Reading(PlanDependencies((ColumnDependencies("a", ()),)), normal))


def batch(closed=100.0):
    return Ran(
        "batch", 0, closed, Reading(PlanDependencies((ColumnDependencies("a", ()),)), "the batch"), is_batch=True
    )


def names(executions):
    return {action.lead.name: [member.name for member in action.members] for action in actions_of(executions)}


SAVE = [
    saved("save", 1, 6, "t"),
    created("create", 2, 5, "hard.t", ids=(7,)),
    inserted("insert", 3, 4, "file:/w/hard.db/t", ids=(7,)),
]


def test_three_executions_of_save_as_table_are_one_action():
    (action,) = actions_of(SAVE)
    assert (action.lead.name, action.main.name) == ("save", "insert")
    assert action.written.place.id == "hard.t"
    assert [alias.id for alias in action.written.place.aliases] == ["file:///w/hard.db/t"]
    assert action.written.columns == ("a",)


def test_the_order_in_which_they_are_given_does_not_matter():
    assert names(reversed(SAVE)) == names(SAVE) == {"save": ["save", "create", "insert"]}


def test_writes_of_one_batch_stay_apart():
    one, other = inserted("one", 1, 2, "file:/out/1"), inserted("other", 7, 8, "file:/out/2")
    later = [saved("save", 9, 14, "t"), created("create", 10, 13, "hard.t"), inserted("insert", 11, 12, "file:/w/t")]
    found = names([batch(), one, other, *later])
    assert found == {"batch": ["batch"], "one": ["one"], "other": ["other"], "save": ["save", "create", "insert"]}


def test_a_batch_that_nothing_was_heard_of_is_no_action():
    one, other = inserted("one", 1, 2, "file:/out/1"), inserted("other", 3, 4, "file:/out/2")
    assert names([one, other]) == {"one": ["one"], "other": ["other"]}


@pytest.mark.parametrize("columns", [("a",), ("b",)])
def test_what_threads_write_meanwhile_is_not_inside(columns):
    """The other write begins and ends while the table is made; only target and plan tell that it is none of its."""
    other = inserted("other", 2.5, 4.5, "file:/out/other", ids=(9,), columns=columns)
    assert names([batch(), *SAVE, other]) == {
        "batch": ["batch"],
        "save": ["save", "create", "insert"],
        "other": ["other"],
    }


def test_two_tables_at_once_each_have_their_own():
    left = [saved("s1", 1, 20, "x"), created("c1", 3, 19, "hard.x", ids=(1,)), inserted("i1", 5, 18, "file:/w/hard.db/x", ids=(1,))]  # fmt: skip
    right = [saved("s2", 2, 17, "y"), created("c2", 4, 16, "hard.y", ids=(2,)), inserted("i2", 6, 15, "file:/w/hard.db/y", ids=(2,))]  # fmt: skip
    assert names([*left, *right]) == {"s1": ["s1", "c1", "i1"], "s2": ["s2", "c2", "i2"]}


def test_a_table_at_a_place_of_its_own_is_known_by_the_plan():
    found = names([created("create", 1, 4, "hard.t", ids=(5,)), inserted("insert", 2, 3, "file:/far/away", ids=(5,))])
    assert found == {"create": ["create", "insert"]}


def test_an_insert_starts_no_other_write_even_of_the_same_place():
    found = names([batch(), inserted("one", 1, 4, "file:/out"), inserted("two", 2, 3, "file:/out")])
    assert found == {"batch": ["batch"], "one": ["one"], "two": ["two"]}


def test_queries_belong_to_what_encloses_them_and_not_to_a_batch():
    found = names([batch(), saved("save", 1, 6, "t"), queried("look", 2, 3), queried("count", 7, 8)])
    assert found == {"batch": ["batch"], "save": ["save", "look"], "count": ["count"]}


def test_a_sink_that_runs_the_plan_of_its_batch_again_is_the_batch():
    assert names([batch(), queried("again", 1, 2, normal="the batch")]) == {"batch": ["batch", "again"]}


def test_an_execution_without_a_plan_belongs_to_what_encloses_it():
    assert names([saved("save", 1, 6, "t"), Ran("torn", 2, 3)]) == {"save": ["save", "torn"]}


def test_of_a_connector_the_query_with_the_expected_columns_is_the_main_one():
    written = WrittenDataset(DatasetPlace(table_name("lake.db.t"), "table"), "insert", "append", "append", final=False, expects=((4, "x"), (3, "a")))  # fmt: skip
    append = Ran("append", 1, 9, Reading(PlanDependencies(), "", written, command=True))
    look = Ran("look", 2, 3, Reading(PlanDependencies((ColumnDependencies("z", ()),)), "", ids=(8,)))
    query = Ran(
        "query",
        4,
        5,
        Reading(PlanDependencies((ColumnDependencies("a", ()), ColumnDependencies("x", ()))), "", ids=(3, 4)),
    )
    (action,) = actions_of([append, look, query])
    assert (action.main.name, action.written.columns) == ("query", ("a", "x"))


# ---- writes that leave alone what is there -------------------------------------------------------------------------


def ignoring(folder, *, registered=True, files=None, version="4.3.0"):
    """The runs of a log of one write with ``mode("ignore")``: its metrics registered or not, and how many files."""
    start = json.loads(started(1, write_plan(mode="Ignore")))
    if registered:
        metric = {"name": "number of written files", "accumulatorId": 7, "metricType": "sum"}
        start["sparkPlanInfo"]["metrics"] = [metric]
    lines = [event("SparkListenerLogStart", **{"Spark Version": version})]
    lines.append(json.dumps(start, separators=(",", ":")).encode() + b"\n")
    if files is not None:
        lines.append(event("SparkListenerDriverAccumUpdates", executionId=1, accumUpdates=[[7, files]]))
    (folder / "app-1").write_bytes(b"".join([*lines, ended(1)]))
    return [(run.outputs[0].dataset, run.outputs[0].files) for run in gathered(folder / "app-1").runs]


def test_a_write_that_found_something_there_already_wrote_nothing(tmp_path):
    assert ignoring(tmp_path) == ignoring(tmp_path, files=0) == []


def test_a_write_that_found_nothing_there_is_one(tmp_path):
    assert ignoring(tmp_path, files=2) == [("file:///out/t", 2)]


def test_a_write_that_nothing_measures_may_be_one(tmp_path):
    assert ignoring(tmp_path, registered=False) == [("file:///out/t", None)]


@pytest.mark.parametrize(("version", "runs"), [("4.3.0", []), ("2.4.8", ["default.t"])])
def test_a_table_that_is_there_already_is_not_made_where_the_writing_would_be_an_execution(tmp_path, version, runs):
    plan = """== Physical Plan ==
Execute CreateDataSourceTableAsSelectCommand (1)
   +- CreateDataSourceTableAsSelectCommand (2)
         +- LogicalRelation (3)


(1) Execute CreateDataSourceTableAsSelectCommand
Output: []

(2) CreateDataSourceTableAsSelectCommand
Arguments: `spark_catalog`.`default`.`t`, Ignore, [a]

(3) LogicalRelation
Arguments: parquet, [a#1], `spark_catalog`.`default`.`s`, false

"""
    lines = [event("SparkListenerLogStart", **{"Spark Version": version}), started(1, plan), ended(1)]
    (tmp_path / "app-1").write_bytes(b"".join(lines))
    assert [run.outputs[0].dataset for run in gathered(tmp_path / "app-1").runs] == runs
