"""``govtool export graph``: the same edges in every format, and hostile names in none of them as markup."""

from __future__ import annotations

import csv
import io
import json
import re

import jsonschema
import networkx as nx
import pyarrow.parquet as pq
import pytest
from test_report_data import SCHEMA

from govtool.app.report import graph as report
from govtool.cli.main import main
from govtool.render.graph_files import render


@pytest.fixture
def export(shop, capsys):
    """The lines that the command writes in a format."""

    def run(form: str, *selectors: str) -> str:
        capsys.readouterr()
        assert main(["export", "graph", *selectors, "-f", form, "--store", shop.store]) == 0
        return capsys.readouterr().out

    return run


def test_every_format_has_the_same_edges(shop, export, tmp_path):
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
    edges = pq.read_table(io.BytesIO(exported_parquet(shop, tmp_path))).to_pylist()
    assert [{name: str(value) for name, value in edge.items()} for edge in edges] == rows
    body = json.loads(export("json"))
    jsonschema.validate(body, SCHEMA)
    assert len(body["graph"]["edges"]) == len(rows)
    pairs = {(source, target) for source, target, _ in truth}
    assert len(re.findall(r"n\d+ -> n\d+ ", export("dot"))) == len(pairs)
    assert len(re.findall(r"n\d+ -(?:->|\.->)", export("mermaid"))) == len(pairs)


def exported_parquet(shop, folder) -> bytes:
    assert main(["export", "graph", "-o", str(folder / "edges.parquet"), "--store", shop.store]) == 0
    return (folder / "edges.parquet").read_bytes()


def test_duckdb_reads_the_parquet(shop, export, tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    exported_parquet(shop, tmp_path)
    found = duckdb.sql(f"select source, target, kind, line from '{tmp_path}/edges.parquet' where star").fetchall()
    rows = csv.DictReader(io.StringIO(export("csv")))
    stars = [(r["source"], r["target"], r["kind"], int(r["line"])) for r in rows if r["star"] == "True"]
    assert found == stars
    assert stars


def test_the_prov_library_reads_prov_json_and_writes_the_same(shop, export):
    prov = pytest.importorskip("prov.model", reason="prov is not installed: pip install govtool[prov]")
    text = export("prov-json")
    document = prov.ProvDocument.deserialize(content=text, format="json")
    again = prov.ProvDocument.deserialize(content=document.serialize(format="json"), format="json")
    assert again == document
    labels = {record.identifier: str(record.label) for record in document.get_records(prov.ProvEntity)}
    found = {
        (labels[record.args[1]], labels[record.args[0]], str(next(iter(record.get_attribute("gt:kind")))))
        for record in document.get_records(prov.ProvDerivation)
    }
    rows = list(csv.DictReader(io.StringIO(export("csv"))))
    assert found == {(row["source"], row["target"], row["kind"]) for row in rows}
    statements = {str(record.label) for record in document.get_records(prov.ProvActivity)}
    assert statements == {f"{row['file']}:{row['line']}" for row in rows}
    members = document.get_records(prov.ProvMembership)
    assert {labels[record.args[1]] for record in members} >= {row["target"] for row in rows}


def unquoted(text: str) -> str:
    return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pydot's own use of pyparsing
def test_pydot_reads_the_dot(shop, export):
    pydot = pytest.importorskip("pydot", reason="pydot is not installed")
    (read,) = pydot.graph_from_dot_data(export("dot", "crm.users+"))
    pairs = {(row["source"], row["target"]) for row in csv.DictReader(io.StringIO(export("csv", "crm.users+")))}
    label = {
        node.get_name(): f"{unquoted(box.get_label())}.{unquoted(node.get_label())}"
        for box in read.get_subgraphs()
        for node in box.get_nodes()
    }
    assert {(label[edge.get_source()], label[edge.get_destination()]) for edge in read.get_edges()} == pairs


@pytest.mark.parametrize("form", ["csv", "jsonl", "dot", "mermaid", "graphml", "prov-json"])
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
    graph = ingest({"a.sql": 'create view "a""><b>\u202e\ufffe]]>" as select "x;\n-->" from "t"'})
    for form in ("csv", "jsonl", "json", "dot", "mermaid", "graphml", "prov-json"):
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
