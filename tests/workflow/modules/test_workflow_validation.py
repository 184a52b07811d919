"""Validation of workflows, rule by rule; loops, schedules and the decorator. No engine is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

import govtool
from govtool.errors import UsageError
from govtool.render.errors import error_lines
from govtool.workflow.modules.module_graph import DataEdge
from govtool.workflow.modules.unfold import unfolded
from govtool.workflow.modules.violations import InvalidWorkflowError


def made(name, inputs=(), state=(), outputs=()):
    return govtool.module(name, inputs, state, outputs)(lambda *frames: dict.fromkeys(outputs))


SOURCE = made("Source", ["In"], outputs=["A", "B"])
MIDDLE = made("Middle", ["A"], ["Kept"], ["C"])
SINK = made("Sink", ["B", "C"], outputs=["Result"])
EDGES = [("source", "middle", "A"), ("source", "sink", "B"), ("middle", "sink", "C")]


def diamond(edges=EDGES, more=None, **options):
    nodes = {"source": SOURCE, "middle": MIDDLE, "sink": SINK, **(more or {})}
    return govtool.Workflow("diamond", nodes, edges, **options)


def only(flow):
    (violation,) = flow.violations()
    return violation


def test_a_valid_workflow_has_no_violations_and_a_schedule():
    schedule = diamond().validated()
    assert diamond().violations() == ()
    assert [use.node for use in schedule.uses] == ["source", "middle", "sink"]
    assert dict(schedule.uses[2].sources) == {"B": "source", "C": "middle"}
    assert dict(schedule.uses[0].sources) == {"In": None}
    assert list(schedule.inputs) == ["In"]
    assert list(schedule.state) == ["Middle.Kept"]
    assert [use.outputs for use in schedule.uses] == [(), (), ("Result",)]


def test_modules_are_plain_functions():
    assert SOURCE(1) == {"A": None, "B": None}
    assert SOURCE.__wrapped__ is SOURCE.function


WRONG = {
    "unknown source": ([*EDGES, ("sourse", "sink", "A")], "edge", ("sourse", "sink"), ("A",), ("source",)),
    "no output of the source": (
        [("source", "middle", "A"), ("source", "sink", "B"), ("middle", "sink", "Kept")],
        "edge",
        ("middle", "sink"),
        ("Kept",),
        (),
    ),
    "a node into itself": ([*EDGES, ("middle", "middle", "C")], "edge", ("middle", "middle"), ("C",), ()),
    "an edge without a relation": ([*EDGES, ("source", "sink", [])], "edge", ("source", "sink"), (), ()),
    "a relation twice on an edge": ([*EDGES, ("source", "sink", "B")], "edge", ("source", "sink"), ("B",), ()),
    "an input is missing": (EDGES[:2], "inputs", ("sink",), ("C",), ()),
}


@pytest.mark.parametrize("case", WRONG)
def test_edges(case):
    edges, rule, nodes, relations, nearest = WRONG[case]
    found = diamond(edges).violations()[0]
    assert (found.rule, found.nodes, found.relations) == (rule, nodes, relations)
    assert found.nearest == nearest
    for name in (*nodes, *relations):
        assert name in found.message


def test_a_label_is_in_the_outputs_of_one_end_and_the_inputs_of_the_other():
    rules = diamond([*EDGES[:2], ("middle", "sink", "c")]).violations()
    assert [str(each) for each in rules] == [
        "middle → sink (c): c is no output of module Middle (did you mean C?)",
        "middle → sink (c): c is no input of module Sink (did you mean C?)",
    ]


def test_incoming_edges_have_disjoint_relations():
    flow = diamond(
        [*EDGES, ("other", "sink", "B"), ("source", "other", "A")], {"other": made("Other", ["A"], (), ["B"])}
    )
    found = only(flow)
    assert found.rule == "inputs"
    assert found.nodes == ("sink", "source", "other")
    assert "number them (B_1, B_2 …)" in found.message


def test_a_cycle_is_shown():
    turn = made("Turn", ["C"], (), ["A", "D"])
    flow = govtool.Workflow(
        "round", {"a": MIDDLE, "b": turn, "c": made("End", ["D"], (), ["E"])},
        [("a", "b", "C"), ("b", "a", "A"), ("b", "c", "D")],
    )  # fmt: skip
    found = only(flow)
    assert found.rule == "cycle"
    assert "a → b → a" in found.message
    assert found.relations == ("C", "A")


def test_all_nodes_are_connected():
    found = only(diamond(more={"alone": made("Alone", ["X"], (), ["Y"]), "lone": made("Lone", ["X"], (), ["Z"])}))
    assert (found.rule, found.nodes) == ("connected", ("alone", "lone"))


def test_relations_of_a_module_are_disjoint():
    found = only(govtool.Workflow("w", [made("M", ["A"], (), ["A"])]))
    assert found.rule == "module"
    assert "A is declared 2 times, in inputs, outputs" in found.message


def test_a_module_makes_something():
    assert only(govtool.Workflow("w", [made("M", ["A"])])).message == "module M has neither outputs nor state"


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a b", ".hidden", "_x", "1st", "a\n", "x" * 101, "C:"])
def test_names_are_no_paths(name):
    flows = [
        govtool.Workflow(name, [SOURCE]),
        govtool.Workflow("w", {name: SOURCE}),
        govtool.Workflow("w", {"n": made(name, ["A"], (), ["B"])}),
        govtool.Workflow("w", {"n": made("M", [name], (), ["B"])}),
        govtool.Workflow("w", {"n": made("M", ["A"], [name], ["B"])}),
        govtool.Workflow("w", {"n": made("M", ["A"], (), [name])}),
    ]
    for flow in flows:
        assert "name" in {each.rule for each in flow.violations()}


def test_names_differ_in_more_than_case():
    flow = govtool.Workflow("w", {"a": made("M", ["In"], (), ["A", "a"])})
    assert only(flow).relations == ("A", "a")
    assert {each.rule for each in govtool.Workflow("w", {"x": SOURCE, "X": SOURCE}).violations()} == {"name"}


def test_a_name_is_one_module():
    other = made("Source", ["In"], outputs=["A"])
    assert (
        "different modules are called Source"
        in govtool.Workflow("w", {"a": SOURCE, "b": other}).violations()[0].message
    )


def test_declared_schemas_agree():
    one = made("One", ["In"], (), {"A": "id  INTEGER,name string"})
    same, other = made("Same", {"A": "id int, name STRING"}, (), ["B"]), made("Other", {"A": "id string"}, (), ["B"])
    assert govtool.Workflow("w", {"a": one, "b": same}, [("a", "b", "A")]).violations() == ()
    found = only(govtool.Workflow("w", {"a": one, "b": other}, [("a", "b", "A")]))
    assert (found.rule, found.nodes, found.relations) == ("schema", ("a", "b"), ("A",))


def test_shared_state_is_declared_by_its_modules():
    one, two = made("One", ["In"], ["Ledger"], ["A"]), made("Two", ["A"], ["Ledger"], ["B"])
    nodes, edges = {"one": one, "two": two}, [("one", "two", "A")]
    flow = govtool.Workflow("w", nodes, edges, shared={"Ledger": ["One", "Two"]})
    assert flow.violations() == ()
    assert list(flow.validated().state) == ["Ledger"]
    assert list(govtool.Workflow("w", nodes, edges).validated().state) == ["One.Ledger", "Two.Ledger"]
    messages = [
        str(each) for each in govtool.Workflow("w", nodes, edges, shared={"Ledgr": ["One", "Too"]}).violations()
    ]
    assert messages == [
        "shared state Ledgr is no state of module One (did you mean Ledger?)",
        "shared state Ledgr: there is no module 'Too' (did you mean Two?)",
    ]
    assert "needs at least two" in only(govtool.Workflow("w", nodes, edges, shared={"Ledger": ["One"]})).message


def test_kept_outputs_are_checked():
    assert diamond(keep={"middle": ["C"]}).validated().uses[1].outputs == ("C",)
    assert only(diamond(keep={"midle": ["C"]})).nearest == ("middle",)
    assert only(diamond(keep={"middle": ["Kept"]})).relations == ("Kept",)


def test_an_invalid_workflow_lists_all_violations():
    with pytest.raises(InvalidWorkflowError, match="2 rules are broken") as caught:
        diamond([("sourse", "sink", "B"), ("source", "sinc", "B")]).validated()
    assert len(caught.value.violations) == 2
    assert caught.value.code == "usage.workflow"
    first, *items = ("".join(span.text for span in line) for line in error_lines(caught.value))
    assert first.endswith("2 rules are broken")
    assert items == str(caught.value).splitlines()[1:]
    assert all(each.startswith("  sour") for each in items)


# ---- loops ----------------------------------------------------------------------------------------------------------

STEP = made("Step", ["Guess", "Data"], (), ["Next"])
TURN = made("Turn", ["Next"], (), ["Guess"])
START = made("Start", ["In"], (), ["Guess", "Data"])
END = made("End", ["Guess"], (), ["Result"])


def looped(times=3, back=(("turn", "step", "Guess"),), **options):
    nodes = {"start": START, "step": STEP, "turn": TURN, "end": END}
    edges = [("start", "step", ["Guess", "Data"]), ("step", "turn", "Next"), ("turn", "end", "Guess")]
    return govtool.Workflow(
        "looped", nodes, edges, loops=[govtool.BoundedLoop(["step", "turn"], times, back)], **options
    )


def test_a_loop_is_unfolded():
    plain = unfolded(looped(2))
    assert list(plain.nodes) == ["start", "step.1", "step.2", "turn.1", "turn.2", "end"]
    assert set(plain.edges) == {
        DataEdge("start", "step.1", ("Guess", "Data")),
        DataEdge("start", "step.2", ("Data",)),
        DataEdge("step.1", "turn.1", ("Next",)),
        DataEdge("turn.1", "step.2", ("Guess",)),
        DataEdge("step.2", "turn.2", ("Next",)),
        DataEdge("turn.2", "end", ("Guess",)),
    }
    assert [use.node for use in looped(2).validated().uses] == ["start", "step.1", "turn.1", "step.2", "turn.2", "end"]


def test_one_pass_is_the_workflow_without_the_loop():
    assert [use.node for use in looped(1).validated().uses] == ["start", "step.1", "turn.1", "end"]


def test_kept_outputs_of_a_loop_are_those_of_the_last_pass():
    uses = {use.node: use.outputs for use in looped(2, keep={"turn": ["Guess"]}).validated().uses}
    assert (uses["turn.1"], uses["turn.2"]) == ((), ("Guess",))


@pytest.mark.parametrize("times", [0, -1, 1001, 2.0, True])
def test_a_loop_has_a_bound(times):
    assert "passes" in only(looped(times)).message


def test_loops_name_their_own_nodes():
    assert only(looped(back=[("turn", "end", "Guess")])).rule == "loop"
    assert only(looped(back=[])).message == "loop over step, turn: no edge leads from one pass to the next"
    nodes = {"start": START, "step": STEP}
    flow = govtool.Workflow("w", nodes, [("start", "step", ["Guess", "Data"])],
                            loops=[govtool.BoundedLoop(["stepp"], 2, [("step", "step", "Guess")])])  # fmt: skip
    assert [each.nearest for each in flow.violations()] == [("step",), ("stepp",)]


# ---- arguments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: govtool.module("M", "Cars"),
        lambda: govtool.module("M", [1]),
        lambda: govtool.module(3),
        lambda: govtool.module("M", {"A": 3}),
        lambda: govtool.module("M")(3),
        lambda: govtool.Workflow("w", [print]),
        lambda: govtool.Workflow("w", [SOURCE, SOURCE]),
        lambda: govtool.Workflow("w", [SOURCE], ["ab"]),
        lambda: govtool.Workflow("w", [SOURCE], [("a", "b")]),
    ],
)
def test_wrong_arguments_are_refused(wrong):
    with pytest.raises(UsageError):
        wrong()


def test_the_definitions_import_nothing_heavy():
    code = (
        "import sys, govtool; govtool.Workflow('w', [govtool.module('M', ['A'], [], ['B'])(print)]).validated();"
        "print(sorted({'pyspark', 'numpy', 'pyarrow', 'sqlglot', 'duckdb', 'govtool.app'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
