"""Sequences of executions: state, versions, kills, hostile modules; on an engine of plain files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from jsonframes import Sequence, counter, give

import govtool
from govtool.app.workflow_runs.executions import executions_to_run
from govtool.app.workflow_runs.inputs import InputFolder
from govtool.app.workflow_runs.reuse import InvocationCache
from govtool.app.workflow_runs.state import StateFolder
from govtool.errors import EngineError, IntegrityError, UsageError


def relay(name, source, target):
    return govtool.module(name, [source], (), [target])(lambda rows: list(rows))


def twice():
    """A module at two nodes, one below the other."""
    count = counter()
    return govtool.Workflow(
        "twice",
        {"first": count, "between": relay("Relay", "Out", "In"), "second": count},
        [("first", "between", "Out"), ("between", "second", "In")],
        keep={"first": ["Out"]},
    )


def test_a_module_used_twice_sees_its_own_earlier_state(tmp_path):
    give(tmp_path, In=[1])
    flow = govtool.Workflow("w", twice().nodes, twice().edges)
    assert Sequence(flow, tmp_path).run(2) == [{"Out": [3001]}, {"Out": [7001]}]
    state = json.loads((tmp_path / "state" / "current.json").read_text())
    assert state["invocations"] == {"Counter": 4, "Relay": 2}
    # Each invocation adds one row to the state that the last one left: 1, 2, 3 and 4 rows.
    seen = Path(state["state"]["Counter.Seen"]["path"]) / "part.json"
    assert [int(line) for line in seen.read_text().splitlines()] == [1001, 3001, 3001, 7001]


def test_state_goes_on_from_run_to_run(tmp_path):
    give(tmp_path, In=[1])
    flow = govtool.Workflow("w", [counter()])
    sequence = Sequence(flow, tmp_path)
    assert [sequence.run() for _ in range(3)] == [[{"Out": [1001]}], [{"Out": [2001]}], [{"Out": [3001]}]]
    assert len([each for each in (tmp_path / "state").iterdir() if each.name.startswith("e0")]) == 3


def test_initial_state_and_inputs_of_single_executions(tmp_path):
    give(tmp_path, In=[1], **{"2/In": [5, 6], "state/Counter.Seen": [7, 8]})
    assert Sequence(govtool.Workflow("w", [counter()]), tmp_path).run(2) == [{"Out": [3001]}, {"Out": [4005, 4006]}]


def test_modules_share_state_that_is_declared_shared(tmp_path):
    give(tmp_path, In=[1])
    one = govtool.module("One", ["In"], {"Ledger": "n int"}, ["Mid"])(
        lambda rows, ledger: {"Mid": rows, "Ledger": [*ledger, "one"]}
    )
    two = govtool.module("Two", ["Mid"], {"Ledger": "n int"}, ["Out"])(
        lambda rows, ledger: {"Out": ledger, "Ledger": [*ledger, "two"]}
    )
    nodes, edges = {"one": one, "two": two}, [("one", "two", "Mid")]
    shared = Sequence(govtool.Workflow("w", nodes, edges, shared={"Ledger": ["One", "Two"]}), tmp_path)
    assert shared.run(2)[1] == {"Out": ["one", "two", "one"]}
    own = Sequence(govtool.Workflow("v", nodes, edges), tmp_path)
    own.folder = StateFolder(tmp_path / "own", "v")
    assert own.run(2)[1] == {"Out": ["two"]}


def test_what_nobody_reads_is_not_written_and_unchanged_state_stays(tmp_path):
    give(tmp_path, In=[1])
    source = govtool.module("Source", ["In"], {"Kept": "n int"}, ["A", "Unread"])(
        lambda rows, kept: {"A": rows, "Unread": rows, "Kept": kept}
    )
    flow = govtool.Workflow("w", {"source": source, "sink": relay("Sink", "A", "B")}, [("source", "sink", "A")])
    sequence = Sequence(flow, tmp_path)
    sequence.run()
    assert sequence.frames.written == ["source/A", "sink/B"]


RETURNS = {
    "nothing": (lambda rows, seen: None, "returned NoneType"),
    "a missing output": (lambda rows, seen: {"Seen": seen}, "returned no Out"),
    "an output that is None": (lambda rows, seen: {"Out": None}, "returned no Out"),
    "a path": (lambda rows, seen: {"Out": rows, "../../evil": rows}, "which it does not declare"),
    "an input": (lambda rows, seen: {"Out": rows, "In": rows}, "which it does not declare"),
    "an error": (lambda rows, seen: 1 / 0, "ZeroDivisionError: division by zero"),
    "another error": (lambda rows, seen: [][1], "IndexError"),
}


@pytest.mark.parametrize("case", RETURNS)
def test_hostile_modules(tmp_path, case):
    function, message = RETURNS[case]
    give(tmp_path, In=[1])
    bad = govtool.module("Bad", ["In"], {"Seen": "n int"}, ["Out"])(function)
    with pytest.raises(EngineError, match=r"module Bad \(node Bad, execution 1\)") as caught:
        Sequence(govtool.Workflow("w", [bad]), tmp_path).run()
    assert message in caught.value.message
    assert not (tmp_path / "state" / "current.json").exists()
    assert not list(tmp_path.parent.glob("evil*"))


@pytest.mark.parametrize("jobs", [0, 1])
def test_a_function_that_ran_jobs_may_have_decided_what_stays_as_it_is(tmp_path, jobs):
    """It hands on an input, and leaves its state: with jobs both are written, as relations that it made."""
    give(tmp_path, In=[1], **{"state/Pass.Seen": [7]})

    @govtool.module("Pass", ["Mid"], {"Seen": "n int"}, ["Out"])
    def pass_on(rows, seen):
        sequence.frames.jobs += jobs
        return {"Out": rows}

    flow = govtool.Workflow("w", [relay("Relay", "In", "Mid"), pass_on], [("Relay", "Pass", "Mid")])
    sequence = Sequence(flow, tmp_path)
    assert sequence.run() == [{"Out": [1]}]
    assert sequence.frames.written == ["Relay/Mid", *["Pass/Out", "Pass/Seen"][: 2 * jobs]]


def test_a_failure_leaves_the_last_whole_execution(tmp_path):
    give(tmp_path, In=[1], **{"3/In": ["no number"]})
    sequence = Sequence(govtool.Workflow("w", [counter()]), tmp_path)
    with pytest.raises(EngineError):
        sequence.run(3)
    give(tmp_path, **{"3/In": [9]})
    assert sequence.run() == [{"Out": [3009]}]


# ---- kills ----------------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from jsonframes import Sequence, counter
import govtool
invocations = 0
def hook():
    global invocations
    invocations += 1
    if invocations == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
first, second = counter("First", hook), counter("Second", hook)
relay = govtool.module("Relay", ["Out"], (), ["In"])(lambda rows: list(rows))
flow = govtool.Workflow("w", dict(first=first, relay=relay, second=second),
                        [("first", "relay", "Out"), ("relay", "second", "In")])
print(Sequence(flow, sys.argv[1]).run(int(sys.argv[3])))
"""


def killed(folder, at, count):
    code = KILLED.format(tests=str(Path(__file__).parent))
    words = [sys.executable, "-c", code, str(folder), str(at), str(count)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
def test_killed_between_modules(tmp_path, at):
    """Two modules an execution: a kill in the ``at``-th invocation is in execution (at + 1) // 2."""
    give(tmp_path, In=[1])
    done = killed(tmp_path, at, 3)
    assert done.returncode == -signal.SIGKILL, done.stderr
    whole = (at - 1) // 2
    current = tmp_path / "state" / "current.json"
    assert current.exists() == (whole > 0)
    if whole:
        assert json.loads(current.read_text())["execution"] == whole
    left = [each.name for each in (tmp_path / "state").iterdir() if each.name.startswith(f"e{whole + 1:06d}.")]
    again = killed(tmp_path, 0, 3 - whole)
    assert again.returncode == 0, again.stderr
    alone = tmp_path / "alone"
    give(alone, In=[1])
    never_killed = killed(alone, 0, 3)
    assert never_killed.stdout.endswith(again.stdout.lstrip("["))
    assert json.loads(current.read_text())["invocations"] == {"First": 3, "Relay": 3, "Second": 3}
    assert not any((tmp_path / "state" / name).exists() for name in left)


def test_an_execution_is_written_down_before_the_pointer_names_it(tmp_path):
    """So a kill between the two loses nothing: the pointer says whether the execution is whole."""
    give(tmp_path, In=[1])
    seen = []

    class Observer:
        def invoked(self, invocation, relations):
            pass

        def executed(self, execution):
            seen.append((execution, sequence.folder.current().execution))

    flow = govtool.Workflow("w", {"a": counter()}, [])
    sequence = Sequence(flow, tmp_path, observer=Observer())
    sequence.run(2)
    assert seen == [(1, 0), (2, 1)]


def test_two_runs_do_not_share_a_state(tmp_path):
    folder = StateFolder(tmp_path / "state", "w")
    with folder.opened(), pytest.raises(UsageError, match="another run") as caught, folder.opened():
        pass
    assert caught.value.code == "usage.state-locked"
    with folder.opened():
        pass


def test_a_state_is_of_one_workflow(tmp_path):
    give(tmp_path, In=[1])
    Sequence(govtool.Workflow("w", [counter()]), tmp_path).run()
    with pytest.raises(UsageError, match="of workflow w, not of v"):
        Sequence(govtool.Workflow("v", [counter()]), tmp_path).run()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2}', '{"format": 1, "workflow": "w", "execution": "x"}'])
def test_a_pointer_that_cannot_be_read(tmp_path, text):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "current.json").write_text(text)
    with pytest.raises(IntegrityError):
        Sequence(govtool.Workflow("w", [counter()]), tmp_path).run()


def test_a_sweep_leaves_what_is_not_its_own(tmp_path):
    place = tmp_path / "state"
    for name in ("e000001.abcd", "e000001", "exxxxxx.abcd", "mine", "e000001.notes"):
        (place / name).mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (place / "e000009.abcd").symlink_to(outside)
    (place / ".current.json.17.tmp").touch()
    with StateFolder(place, "w").opened():
        pass
    left = {each.name for each in place.iterdir()}
    assert left == {"lock", "e000001", "exxxxxx.abcd", "mine", "e000001.notes", "e000009.abcd"}
    assert outside.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_state_that_cannot_be_written(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="cannot be kept"), StateFolder(tmp_path / "state", "w").opened():
        pass


# ---- inputs ---------------------------------------------------------------------------------------------------------


def test_missing_inputs_name_what_is_there(tmp_path):
    give(tmp_path, Inn=[1])
    with pytest.raises(UsageError, match="no input In for execution 1") as caught:
        Sequence(govtool.Workflow("w", [counter()]), tmp_path).run()
    assert caught.value.nearest == ("Inn",)
    with pytest.raises(UsageError, match="no such folder"):
        InputFolder(tmp_path / "nowhere").check()


def test_an_input_is_one_file(tmp_path):
    give(tmp_path, In=[1])
    (tmp_path / "in" / "In.csv").write_text("n\n1\n")
    with pytest.raises(UsageError, match=r"In\.csv, In\.jsonl"):
        InputFolder(tmp_path / "in").find("In", 1)


def test_state_without_a_beginning_is_refused(tmp_path):
    give(tmp_path, In=[1])
    flow = govtool.Workflow("w", [govtool.module("M", ["In"], ["Kept"], ["Out"])(lambda rows, kept: {"Out": rows})])
    with pytest.raises(UsageError, match=r"the state M\.Kept has no initial version"):
        Sequence(flow, tmp_path).run()


@pytest.mark.parametrize(
    ("done", "wanted", "numbered", "ahead"),
    [
        (0, None, (), [1]),
        (4, None, (), [5]),
        (0, None, (1, 2, 3), [1, 2, 3]),
        (2, None, (1, 2, 3), [3]),
        (3, None, (1, 2, 3), []),
        (2, 5, (), [3, 4, 5]),
        (5, 5, (), []),
        (6, 5, (1, 2), []),
    ],
)
def test_executions_that_are_still_to_run(done, wanted, numbered, ahead):
    assert list(executions_to_run(done, wanted, numbered)) == ahead


# ---- replay ---------------------------------------------------------------------------------------------------------


def test_equal_invocations_are_not_evaluated_again(tmp_path):
    calls = []
    cache = InvocationCache()
    flow = govtool.Workflow("w", [counter(hook=lambda: calls.append(1))])
    results = []
    for name, row in (("a", 1), ("b", 1), ("c", 2)):
        give(tmp_path / name, In=[row])
        results.append(Sequence(flow, tmp_path / name, reuse=cache).run(2))
    assert results[0] == results[1] == [{"Out": [1001]}, {"Out": [2001]}]
    assert results[2] == [{"Out": [1002]}, {"Out": [2002]}]
    assert (len(calls), cache.hits, cache.misses) == (4, 2, 4)
