"""The paper's dealership from a captured run: Example 2.1 over the tables of 2.3, drawn as Figures 2 and 3 draw it.

Statements are those of ``dealership_program.py``. The second execution has no request and so no tuples in.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import govtool
from govtool.app.workflow_runs.load import load_workflow
from govtool.cli.main import main
from govtool.store import Store

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install govtool[spark]")
pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

GRAPHS = Path(__file__).parents[3] / "fixtures" / "graphs"
PROGRAM = Path(__file__).with_name("dealership_program.py")
NAMES = {"Requests": "Requests:B1", "Cars": ("Cars:C1", "Cars:C2", "Cars:C3")}


@pytest.fixture(scope="module")
def run(spark, tmp_path_factory):
    """The store of a run of two executions."""
    folder = tmp_path_factory.mktemp("dealership")
    for name, text in {
        "1/Requests": "UserId,BidId,Model\nP1,B1,Civic\n",
        "2/Requests": "UserId,BidId,Model\n",
        "state/M_dealer1.Cars": "CarId,Model\nC1,Accord\nC2,Civic\nC3,Civic\n",
    }.items():
        file = folder / "in" / f"{name}.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    store = Store.init(str(folder / "store")).uri
    flow = load_workflow(str(PROGRAM))
    govtool.run_workflow(flow, folder / "in", state=folder / "state", mode="records", store=store, spark=spark)
    return str(folder / "store")


@pytest.fixture(scope="module")
def drawn(run, tmp_path_factory):
    """The graph as ``graph export`` writes it, with the nodes of the paper."""
    file = tmp_path_factory.mktemp("drawn") / "run.json"
    words = ["--run", "dealership", "--pig-nodes", "--state-nodes", "all", "-o", str(file), "--store", run]
    assert main(["graph", "export", *words]) == 0
    return file


def paper_label(label):
    """``Cars:C2`` for the second record of the file of cars."""
    found = re.search(r"([A-Za-z]+)\.csv@.*/(\d+)$", label)
    if found is None:
        return label
    return NAMES["Cars"][int(found[2])] if found[1] == "Cars" else NAMES["Requests"]


def shapes(body, execution=1):
    """Every node by its type, label and value, and by the shapes of what it is made of; as often as it is there."""
    own = {each["id"]: each for each in body["nodes"] if each.get("inv", execution) == execution}
    made = {}
    for source, target, *_ in body["edges"]:
        if source in own and target in own:
            made.setdefault(target, []).append(source)
    known = {}

    def shape(node):
        if node not in known:
            each = own[node]
            value = each.get("value") if each["type"] == "val" else None
            parts = tuple(sorted(map(shape, made.get(node, ())), key=repr))
            known[node] = (each["type"], paper_label(each["label"]), value, each.get("bb", False), parts)
        return known[node]

    return sorted(map(shape, own), key=repr)


def test_the_graph_of_the_bid_phase_is_that_of_the_paper(drawn):
    paper = json.loads((GRAPHS / "dealership.json").read_text())
    # The paper draws one constant 1; here each term has its own. A black box reads the tuples of its bags, too, not
    # only the values in them: else a tuple that goes would not be seen by it.
    paper["nodes"].append({"id": "one 3", "kind": "v", "type": "val", "label": "const", "value": 1})
    paper["edges"].remove(["one", "t3"])
    paper["edges"] += [["one 3", "t3"], ["NumCarsByModel", "CalcBid"]]
    (bid,) = (each for each in paper["nodes"] if each["id"] == "CalcBid")
    bid["label"] = "+()"  # the outermost function of the price
    found = json.loads(drawn.read_text())
    assert shapes(found) == shapes(paper)


def test_an_invocation_without_tuples_has_its_node(drawn):
    second = [each for each in json.loads(drawn.read_text())["nodes"] if each.get("inv") == 2]
    assert [each["type"] for each in second].count("m") == 1
    assert {each["type"] for each in second} == {"m", "s"}  # the cars, which every invocation finds


@pytest.fixture(scope="module")
def graph(run):
    return govtool.provenance_graph("run:dealership", store=run, state_nodes="all", pig_nodes=True)


def token(graph, record):
    """The token of a record of the run, by its name in the paper."""
    network = graph.to_networkx()
    labels = (data["label"] for _, data in network.nodes(data=True) if data["type"] in ("wi", "st"))
    return next(label for label in labels if paper_label(label) == record)


def described(graph, nodes):
    network = graph.to_networkx()
    found = (network.nodes[node.id] for node in nodes)
    return sorted(paper_label(each["label"]) for each in found)


def test_example_4_1_zooming_out_shows_a_node_for_each_invocation(graph):
    view = graph.zoom_out("M_dealer1")
    types = sorted(data["type"] for _, data in view.to_networkx().nodes(data=True))
    assert types == ["i", "m", "m", "o", "o", "wi", "zoom", "zoom"]
    assert view.zoom_in("M_dealer1").to_networkx().edges == graph.to_networkx().edges


def test_example_4_3_deleting_a_car(graph, run, capsys):
    answer = graph.delete(token(graph, "Cars:C2"))
    # The record, its state node in both executions, its place in the inventory, its term, and that term's constant.
    assert set(described(graph, answer.removed)) <= {"Cars:C2", "·", "⊗", "const"}
    assert len(answer.removed) == 5
    assert [(before, after) for _, before, after in answer.recomputed] == [(2, 1)]
    assert described(graph, answer.unknown) == ["+()", "value"]  # the price hangs on a black box
    capsys.readouterr()
    command = ["whatif", "delete", token(graph, "Cars:C2"), "--run", "dealership", "--store", run, "-f", "json"]
    assert main(command) == 0
    (row,) = json.loads(capsys.readouterr().out)["relations"]["Bids"]["tuples"]
    assert (row["status"], row["before"][-1], row["after"][-1]) == ("recomputed", 20000, 20200)


def test_example_4_4_the_subgraph_of_a_car(graph):
    found = graph.subgraph(token(graph, "Cars:C2"))
    assert described(graph, found.ancestors) == []
    reached = described(graph, found.descendants)
    assert reached.count("·") == 5  # two state nodes, a place in the inventory, the bid, and the bid as an output
    assert {"δ", "+", "⊗", "COUNT", "value"} < set(reached)
    assert "M_dealer1" in described(graph, found.siblings)


def test_example_4_5_what_the_bid_depends_on(graph):
    nodes = graph.to_networkx().nodes(data=True)
    bid, amount = (next(str(n) for n, d in nodes if (d["type"], d["kind"]) == ("o", kind)) for kind in ("p", "v"))
    request, first, second = (token(graph, each) for each in ("Requests:B1", "Cars:C2", "Cars:C3"))
    assert graph.depends(bid, request).depends is True
    assert graph.depends(bid, first).depends is False
    assert graph.depends(bid, [first, second]).depends is False  # COGROUP: the request alone makes the group
    assert graph.depends(amount, first).depends == "unknown"


def test_drawn_nodes_are_those_of_a_run(capsys):
    assert main(["graph", "export", str(GRAPHS / "dealership.json"), "--pig-nodes"]) == 2
    assert "apply only with --run" in capsys.readouterr().err
