"""Runs under the names of relations: folders of runs do not count, copies go by their origin."""

from __future__ import annotations

from govtool.model.run import KEPT_FROM, Run, RunInput, RunOutput
from govtool.model.version import ContentIdentity
from govtool.query.relation_names import RelationHistory, relation_name
from govtool.query.rundiff import diff_runs
from govtool.query.runs import History


def content(text):
    return ContentIdentity("content", None, text, 1, 10)


def step(number, reads, writes, time):
    """A run of one statement; what it reads and writes are pairs of a dataset and its content."""
    application = f"flow-{number}"
    inputs = tuple(RunInput(name, identity=content(text)) for name, text in reads)
    outputs = tuple(RunOutput(name, "overwrite", identity=content(text)) for name, text in writes)
    return Run(f"{application}/{writes[0][0]}", f"flow:{writes[0][0].rpartition('/')[2]}", "complete", "plan",
               "sql:flow", application, started=time, ended=time, inputs=inputs, outputs=outputs)  # fmt: skip


def test_only_whole_folders_of_runs_are_left_out():
    assert relation_name("file//s/flow-1/joined", {"flow-1"}) == "file//s/joined"
    assert relation_name("file//s/flow-10/joined", {"flow-1"}) == "file//s/flow-10/joined"
    assert relation_name("db.joined", {"flow-1"}) == "db.joined"


def test_a_history_without_such_folders_is_left_as_it_is():
    history = History([step(1, [("a", "x")], [("b", "y")], "2026-01-01T00:00")])
    named = RelationHistory(history)
    assert named.history is history
    assert named.run(history.runs[0]) is history.runs[0]


def test_state_of_the_run_before_is_followed_into_that_run():
    runs = [
        step(1, [("lake/raw", "r1")], [("s/flow-1/model", "m1")], "2026-01-01T00:00"),
        step(2, [("s/flow-1/model", "m1"), ("lake/raw", "r1")], [("s/flow-2/model", "m2")], "2026-01-02T00:00"),
        step(3, [("s/flow-2/model", "m2"), ("lake/raw", "r1")], [("s/flow-3/model", "m3")], "2026-01-03T00:00"),
    ]
    history = History(runs)
    found = diff_runs(history, *history.runs[1:])
    assert [(each.aspect, each.name, each.what) for each in found.changes] == [
        ("input", "s/model", "content"),
        ("output", "s/model", "content"),
    ]
    assert found.changes[0].cause is not None
    assert found.changes[0].cause.runs == ("flow-1/s/flow-1/model", "flow-2/s/flow-2/model")


def test_copies_go_by_their_origin_and_the_option_is_no_difference():
    def copied(number, text):
        name = f"s/flow-{number}/inputs/c.parquet"
        read = RunInput(name, identity=content(text), options=((KEPT_FROM, "data/c.csv"),))
        made = (RunOutput(f"s/flow-{number}/out", "overwrite", content=content("same")),)
        return Run(f"flow-{number}/0", "flow:out", "complete", "plan", "sql:flow", f"flow-{number}",
                   started=f"2026-01-0{number}", inputs=(read,), outputs=made)  # fmt: skip

    history = History([copied(1, "x"), copied(2, "y")])
    found = diff_runs(history, *history.runs)
    assert [(each.aspect, each.name, each.what) for each in found.changes] == [("input", "data/c.csv", "content")]
    assert found.verdict == "equal"
    assert [list(history.unknown_inputs(run)) for run in history.runs] == [[], []]
