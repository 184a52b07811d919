"""Runs under the names of relations: folders of runs do not count, copies go by their origin."""

from __future__ import annotations

from dataclasses import replace

import pytest

from govtool.app.runs.lookup import find_version
from govtool.errors import AmbiguousNameError
from govtool.model.run import KEPT_FROM, Run, RunInput, RunOutput
from govtool.model.version import ContentIdentity
from govtool.query.runs.diff import diff_runs
from govtool.query.runs.history import History
from govtool.query.runs.relation_names import RelationHistory, relation_name


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
    assert relation_name("file:///s/flow-1/joined", {"flow-1"}) == "file:///s/joined"
    assert relation_name("file:///s/flow-10/joined", {"flow-1"}) == "file:///s/flow-10/joined"
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


def execution(number, state, mark, balances):
    """One write of an execution of a workflow in Python."""
    place = f"file//{state}/e{number:06d}.{mark}"
    before = (RunInput(f"{place[:-1]}0/post/Accounts", identity=content("a")),) if number > 1 else ()
    made = (RunOutput(f"{place}/post/Balances", "errorifexists", identity=content(balances)),)
    return Run(f"local-{mark}/0", "flow:post/Balances", "complete", "plan", "workflow:flow", f"local-{mark}",
               started=f"2026-01-0{number}", ended=f"2026-01-0{number}", inputs=before, outputs=made)  # fmt: skip


def test_executions_of_a_workflow_pair_by_node_and_relation_whatever_their_state_folder():
    runs = [execution(1, "s", "aaaaaaa1", "x"), execution(2, "s", "bbbbbbb1", "y"), execution(1, "t", "ccccccc1", "z")]
    history = History(runs)
    for first, second in ((runs[0], runs[1]), (runs[0], runs[2])):
        found = diff_runs(history, first, second)
        outputs = [(each.name, each.what) for each in found.changes if each.aspect == "output"]
        assert outputs == [("flow/post/Balances", "content")]
        assert found.changes[-1].cause is not None
        assert found.changes[-1].cause.kind != "added"


def test_inputs_of_executions_pair_by_the_folder_that_holds_their_numbers():
    def reading(number, mark, name, text):
        run = execution(number, "s", mark, "x")
        return replace(run, inputs=(RunInput(name, identity=content(text)),))

    runs = [reading(1, "aaaaaaa1", "d/1/Payments.csv", "p"), reading(2, "bbbbbbb1", "d/2/Payments.csv", "q")]
    found = diff_runs(History(runs), *runs)
    inputs = [(each.name, each.what) for each in found.changes if each.aspect == "input"]
    assert inputs == [("d/Payments.csv", "content")]
    other = [runs[0], reading(2, "bbbbbbb1", "d/1999/Payments.csv", "q")]  # no folder of execution 2
    found = diff_runs(History(other), *other)
    inputs = [(each.name, each.what) for each in found.changes if each.aspect == "input"]
    assert inputs == [("d/1999/Payments.csv", "added"), ("d/Payments.csv", "removed")]


def test_a_short_name_is_the_relation_of_all_runs_that_keep_it_in_folders_of_their_own():
    runs = [execution(1, "s", "aaaaaaa1", "x"), execution(2, "s", "bbbbbbb1", "y")]
    history = History(runs)
    for text, number in (("latest", 1), ("local-aaaaaaa1", 0), ("2026-01-01", 0), ("2026-01-02", 1)):
        assert find_version(history, "post/Balances", text).dataset == runs[number].outputs[0].dataset, text
    both = History([*runs, execution(1, "t", "ccccccc1", "z")])
    assert find_version(both, "post/Balances", "latest").dataset == runs[1].outputs[0].dataset
    alone = replace(
        runs[0], id="job/0", application="job", source="run:job", outputs=(RunOutput("lake/post/Balances"),)
    )
    with pytest.raises(AmbiguousNameError):
        find_version(History([*runs, alone]), "post/Balances", "latest")
