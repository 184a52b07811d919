"""``govtool export graph``: the same edges in every format, and hostile names in none of them as markup."""

from __future__ import annotations

import csv
import io
import json
import re

import jsonschema
import networkx as nx
import pytest
from test_report_data import SCHEMA

from govtool.app import report
from govtool.cli.main import main
from govtool.render.graph_export import render


@pytest.fixture
def export(shop, capsys):
    """The lines that the command writes in a format."""

    def run(form: str, *selectors: str) -> str:
        capsys.readouterr()
        assert main(["export", "graph", *selectors, "-f", form, "--store", shop.store]) == 0
        return capsys.readouterr().out

    return run


def test_every_format_has_the_same_edges(shop, export):
    index = shop.snapshot().index
    truth = {
        (index.name(index.edge_source[e]), index.name(index.edge_target[e]), index.kind(e).label)
        for e in range(index.edge_count)
    }
    rows = list(csv.DictReader(io.StringIO(export("csv"))))
    assert {(row["source"], row["target"], row["kind"]) for row in rows} == truth
    lines = [json.loads(line) for line in export("jsonl").splitlines()]
    assert [(one["source"], one["target"], one["kind"], str(one["line"])) for one in lines] == [
        (row["source"], row["target"], row["kind"], row["line"]) for row in rows
    ]
    graph = nx.parse_graphml(export("graphml"), force_multigraph=True)
    name = graph.nodes(data="name")
    assert {(name[a], name[b], about["kind"]) for a, b, about in graph.edges(data=True)} == truth
    body = json.loads(export("json"))
    jsonschema.validate(body, SCHEMA)
    assert len(body["graph"]["edges"]) == len(rows)
    pairs = {(source, target) for source, target, _ in truth}
    assert len(re.findall(r"n\d+ -> n\d+ ", export("dot"))) == len(pairs)
    assert len(re.findall(r"n\d+ -(?:->|\.->)", export("mermaid"))) == len(pairs)


@pytest.mark.parametrize("form", ["csv", "jsonl", "dot", "mermaid", "graphml"])
def test_formats_of_the_graph_alone_are_those_of_the_report_without_findings(shop, export, monkeypatch, form):
    wanted = "\n".join(line.rstrip("\n") for line in render(form, shop.report("crm.users+")))
    monkeypatch.setattr(report, "report_answer", None)
    assert export(form, "crm.users+").strip() == wanted.strip()


def test_selectors_choose_and_an_unknown_one_is_an_error(shop, export, capsys):
    rows = list(csv.DictReader(io.StringIO(export("csv", "crm.users+"))))
    chosen = {row["target"].rpartition(".")[0] for row in rows}
    chosen = {name for name in chosen if not name.startswith("temp.")}  # what ways pass through
    assert (
        {"stg.users", "mart.customers"} < chosen <= {one.name for one in shop.ls("crm.users+").entries} | {"crm.users"}
    )
    assert main(["export", "graph", "no.such", "--store", shop.store]) == 2
    assert main(["export", "graph", "-f", "pdf", "--store", shop.store]) == 2


def test_hostile_names_are_escaped(ingest, tmp_path, capsys):
    graph = ingest({"a.sql": 'create view "a""><b>\u202e]]>" as select "x;\n-->" from "t"'})
    for form in ("csv", "jsonl", "json", "dot", "mermaid", "graphml"):
        assert main(["export", "graph", "-f", form, "--store", graph.store]) == 0
        text = capsys.readouterr().out
        assert "\u202e" not in text
        if form == "graphml":
            nx.parse_graphml(text, force_multigraph=True)


def test_the_graph_of_networkx_is_the_whole_one(shop):
    index, graph = shop.snapshot().index, shop.to_networkx()
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (index.node_count, index.edge_count)
    assert nx.has_path(
        graph, *(index_key(index, name) for name in ("crm.users.email", "mart_marketing.audience.email"))
    )


def index_key(index, name: str) -> tuple[int, str]:
    dataset, _, path = name.rpartition(".")
    return index.find_dataset(dataset), path
