"""Both phases of the paper's dealership, over modules and state, node by node.

Nodes are written down from the rules of the specification. A dealer's bid is in two relations, what it sends and what
it keeps: its statements are drawn once.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import govtool
from govtool.app.workflow_runs.load import load_workflow
from govtool.store import Store

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install govtool[spark]")
pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

PROGRAM = Path(__file__).with_name("dealership_phases.py")
CARS = {1: ("Accord", "Civic", "Civic"), 2: ("Civic",)}
PRICE = {1: 20000, 2: 20200}


@pytest.fixture(scope="module")
def found(spark, tmp_path_factory):
    """The graph of two executions; the second has no request."""
    folder = tmp_path_factory.mktemp("phases")
    files = {"1/Requests": "BidId,Model\nB1,Civic\n", "2/Requests": "BidId,Model\n"}
    for dealer, models in CARS.items():
        rows = "".join(f"D{dealer}C{number},{model}\n" for number, model in enumerate(models))
        files[f"state/M_dealer{dealer}.Cars"] = f"CarId,Model\n{rows}"
        files[f"state/M_dealer{dealer}.Offers"] = "BidId,Amount\n"
    for name, text in files.items():
        file = folder / "in" / f"{name}.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    store = Store.init(str(folder / "store")).uri
    flow = load_workflow(str(PROGRAM))
    govtool.run_workflow(flow, folder / "in", state=folder / "state", mode="records", store=store, spark=spark)
    graph = govtool.provenance_graph("run:phases", store=str(folder / "store"), state_nodes="all", pig_nodes=True)
    return json.loads("\n".join(graph.export("json")))


class Expected:
    """A graph as it is written down."""

    def __init__(self) -> None:
        self.nodes = {}
        self.made = {}
        self.own = None

    def call(self, module, number):
        """The node of an invocation, to which the next nodes belong."""
        self.own = (module, number)
        return self.node("m", module)

    def source(self, kind, label):
        """A record."""
        own, self.own = self.own, None
        node = self.node(kind, label)
        self.own = own
        return node

    def node(self, kind, label, *made_of, value=None, box=False):
        number = len(self.nodes)
        self.nodes[number] = (self.own, kind, label, value, box)
        self.made[number] = made_of
        return number


def shapes(nodes, made):
    """How often there is a node of the same description, made of such nodes, and read by as many others."""
    known = {}

    def shape(node):
        if node not in known:
            known[node] = (nodes[node], tuple(sorted(map(shape, made.get(node, ())), key=repr)))
        return known[node]

    readers = Counter(each for sources in made.values() for each in sources)
    return Counter((shape(node), readers[node]) for node in nodes)


def described(label):
    """The name of a relation in place of the token of a record."""
    return label.rpartition("/in/")[2].partition(".csv")[0] if label.startswith("file:") else label


def as_written(body):
    nodes, made = {}, {}
    for each in body["nodes"]:
        own = (each["module"], each["inv"]) if "module" in each else None
        value = each.get("value") if each["kind"] == "v" else None
        nodes[each["id"]] = (own, each["type"], described(each["label"]), value, each.get("bb", False))
    for source, target, *_ in body["edges"]:
        made.setdefault(target, []).append(source)
    return shapes(nodes, made)


def bid_nodes(g, request, cars, dealer):
    """JOIN, GROUP, the count of each group, and a FOREACH with the price: the bid, and its amount."""
    wanted = g.node("op", "+", request)
    inventory = [
        g.node("op", "·", car, wanted) for car, model in zip(cars, CARS[dealer], strict=True) if model == "Civic"
    ]
    group = g.node("op", "+", g.node("op", "δ", *inventory))
    terms = [g.node("val", "⊗", each, g.node("val", "const", value=1)) for each in inventory]
    count = g.node("val", "COUNT", *terms, value=len(inventory))
    return g.node("op", "+", group), g.node("val", "-()", count, value=PRICE[dealer], box=True)


def expected():
    g = Expected()
    request = g.source("wi", "1/Requests")
    own = g.call("M_and", 1)
    order = g.node("o", "·", g.node("op", "+", g.node("i", "·", request, own)), own)

    # ---- the bids
    records, offers, bids = {}, {}, {}
    for dealer, models in CARS.items():
        name = f"M_dealer{dealer}"
        records[dealer] = [g.source("st", f"state/{name}.Cars") for _ in models]
        own = g.call(name, 1)
        received = g.node("i", "·", order, own)
        cars = [g.node("s", "·", record, own) for record in records[dealer]]
        bid, amount = bid_nodes(g, received, cars, dealer)
        bids[dealer] = g.node("o", "·", bid, own), g.node("o", "value", amount, value=PRICE[dealer])
        offers[dealer] = g.node("op", "+", bid), amount

    own = g.call("M_agg", 1)
    received = [
        (g.node("i", "·", bid, own), g.node("i", "value", amount, value=PRICE[dealer]))
        for dealer, (bid, amount) in bids.items()
    ]
    group = g.node("op", "+", g.node("op", "δ", *(bid for bid, _ in received)))
    least = g.node("val", "MIN", *(g.node("val", "⊗", *each) for each in received), value=20000)
    best = g.node("o", "·", group, own), g.node("o", "value", least, value=20000)

    # ---- the purchase: the order to the other dealer is a candidate, as its guard fails
    own = g.call("M_xor", 1)
    lowest = g.node("i", "·", best[0], own), g.node("i", "value", best[1], value=20000)
    orders = {}
    for dealer, (bid, amount) in bids.items():
        offered = g.node("i", "·", bid, own), g.node("i", "value", amount, value=PRICE[dealer])
        guard = g.node("op", "[=]", offered[1], lowest[1], box=True)
        pair = g.node("op", "·", g.node("op", "·", offered[0], guard), lowest[0])
        orders[dealer] = g.node("o", "·", g.node("op", "+", pair), own)

    sales = {}
    for dealer, car_records in records.items():
        own = g.call(f"M_dealer{dealer}", 2)
        received = {to: g.node("i", "·", each, own) for to, each in orders.items()}
        offer, amount = state_nodes(g, own, car_records, offers[dealer], dealer)
        sold = g.node("op", "+", g.node("op", "·", received[dealer], offer))
        sales[dealer] = g.node("o", "·", sold, own), g.node("o", "value", amount, value=PRICE[dealer])

    own = g.call("M_car", 1)
    for dealer, (sold, price) in sales.items():
        g.node("o", "·", g.node("i", "·", sold, own), own)
        g.node("o", "value", g.node("i", "value", price, value=PRICE[dealer]), value=PRICE[dealer])

    # ---- the second execution: what every invocation finds
    for name in ("M_and", "M_agg", "M_xor", "M_car"):
        g.call(name, 2)
    for dealer in CARS:
        for number in (3, 4):
            state_nodes(g, g.call(f"M_dealer{dealer}", number), records[dealer], offers[dealer], dealer)
    return shapes(g.nodes, g.made)


def state_nodes(g, own, records, offer, dealer):
    """Cars and the offer, fed by the nodes that produced them."""
    for record in records:
        g.node("s", "·", record, own)
    return g.node("s", "·", offer[0], own), g.node("s", "value", offer[1], value=PRICE[dealer])


def test_the_graph_of_both_phases_is_that_of_the_specification(found):
    assert as_written(found) == expected()
