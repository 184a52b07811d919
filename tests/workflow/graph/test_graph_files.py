"""Files of graphs: what is read comes back, what is mistaken is refused with its line and the reason."""

from __future__ import annotations

import json
import os
import threading
import xml.etree.ElementTree as ElementTree
from decimal import Decimal

import pytest
from depth import examples
from drawn_graphs import Drawing, bodies, graph_of, plain
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.app.workflow_graphs.graph_files import read_graph
from govtool.errors import IntegrityError, UsageError
from govtool.workflow.builder import GraphBuilder
from govtool.workflow.formats.read_graphml import read_graphml
from govtool.workflow.formats.read_json import read_json
from govtool.workflow.formats.write import WRITERS
from govtool.workflow.storage.mapped import opened, pack
from govtool.workflow.storage.parquet import edge_parts, graph_from, node_parts
from govtool.workflow.zoom import GraphView

TOKEN = {"id": "a", "kind": "p", "type": "wi", "label": "t"}
PLUS = {"id": "b", "kind": "p", "type": "op", "label": "+"}


def written(view, form="json"):
    return "\n".join(WRITERS[form](view))


def as_plain(graph):
    """Nodes and edges, without the order of the edges."""
    body = json.loads(written(GraphView(graph)))
    return body["nodes"], sorted(body["edges"], key=json.dumps)


@settings(max_examples=examples(40), deadline=None)
@given(bodies)
def test_every_form_gives_the_same_graph_again(body):
    graph = graph_of(body)
    expected = as_plain(graph)
    assert expected[0] == [{k: v for k, v in node.items() if k != "bb" or v} for node in body["nodes"]]
    assert as_plain(read_json(written(GraphView(graph)).encode(), "g.json")) == expected
    assert as_plain(read_graphml(written(GraphView(graph), "graphml").encode(), "g.graphml")) == expected
    fragments = [[data for data, _ in parts(graph, 7)] for parts in (node_parts, edge_parts)]
    again = graph_from(fragments[0][::-1], fragments[1][::-1])
    assert as_plain(again) == expected
    assert as_plain(opened(b"".join(bytes(piece) for piece in pack(again)))) == expected


def test_sides_of_edges_survive_every_form():
    body = {
        "nodes": [TOKEN, {**TOKEN, "id": "c", "label": "u"}, {**PLUS, "label": "⊖"}],
        "edges": [["c", "b"], ["a", "b"]],
    }
    marked = [["a", "b", "right"], ["c", "b", "left"]]
    graph = graph_of(body)
    assert as_plain(graph)[1] == marked
    for form, read in (("json", read_json), ("graphml", read_graphml)):
        assert as_plain(read(written(GraphView(graph), form).encode(), "g"))[1] == marked


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 7, -(1 << 80), 2.5, Decimal("12.30"), float("inf"), "", "12.30", "<&\"'\n\t\r>"),
        *(["a", None, 1.5], {"k": [True]}, "\u202e\x1b[31m", "Ünïcödé ⊗"),
    ],
)
def test_values_survive_every_form(value):
    builder = GraphBuilder()
    builder.nodes("val", "const", values=[value])
    graph = builder.build()
    forms = [
        read_json(written(GraphView(graph)).encode(), "g"),
        graph_from((d for d, _ in node_parts(graph)), (d for d, _ in edge_parts(graph))),
        read_graphml(written(GraphView(graph), "graphml").encode(), "g"),
    ]
    for again in forms:
        assert again.value_of(0) == value
        assert type(again.value_of(0)) is type(value)


def test_views_are_written_with_their_zoom_nodes_and_read_again():
    graph = graph_of(Drawing(3, 6).body())
    view = GraphView(graph, frozenset(graph.modules))
    again = read_json(written(view).encode(), "g.json")
    assert (again.node_count, again.edge_count) == (view.node_count, view.edge_count)
    assert again.modules


def test_names_cannot_leave_their_quotes():
    hostile = 'x"]; evil -> y [label="<script>&\u202e\n'
    graph = graph_of({"nodes": [{**TOKEN, "label": hostile}], "edges": []})
    dot = written(GraphView(graph), "dot")
    assert "\u202e" not in dot
    assert '\\"]; evil' in dot
    xml = written(GraphView(graph), "graphml")
    assert "<script>" not in xml
    assert ElementTree.fromstring(xml) is not None
    assert "\u202e" not in written(GraphView(graph))
    assert json.loads(written(GraphView(graph)))["nodes"][0]["label"] == hostile


@pytest.mark.parametrize("character", ["\x01", "\x1b", "\ufffe"])
def test_names_that_xml_cannot_hold_are_refused_and_stay_apart_elsewhere(character):
    nodes = [{**TOKEN, "id": f"a{one}", "label": f"t{one}"} for one in (character, "\x02")]
    view = GraphView(graph_of({"nodes": nodes, "edges": []}))
    with pytest.raises(UsageError, match=rf"U\+{ord(character):04X} in the id of node") as caught:
        next(iter(WRITERS["graphml"](view)))
    assert caught.value.code == "usage.graphml"
    dot = written(view, "dot")
    assert (len({line for line in dot.splitlines() if "[shape" in line}), character in dot) == (2, False)
    assert as_plain(read_json(written(view).encode(), "g.json")) == as_plain(view.graph)


@pytest.mark.parametrize("character", ["\x01", "\x1b", "\ufffe", "\x7f", "\u202e", "\t", "\r"])
def test_values_with_control_characters_come_back_from_graphml(character):
    value = {"id": "v", "kind": "v", "type": "val", "label": "const", "value": f"x{character}y"}
    graph = graph_of({"nodes": [value], "edges": []})
    xml = written(GraphView(graph), "graphml")
    assert as_plain(read_graphml(xml.encode(), "g.graphml")) == as_plain(graph)


def test_prov_has_used_and_generated_and_derived():
    graph = graph_of(Drawing(5, 6).body())
    document = json.loads(written(GraphView(graph), "prov-json"))
    plain_graph = plain(Drawing(5, 6).body())
    calls = [n for n, node in plain_graph.nodes.items() if node["type"] == "m"]
    outputs = [n for n, node in plain_graph.nodes.items() if node["type"] == "o" and node["kind"] == "p"]
    assert set(document["activity"]) == {f"gt:{n}" for n in calls}
    assert len(document["wasGeneratedBy"]) == len(outputs)
    known = document["entity"].keys()
    assert document["used"]
    for relation in document["used"].values():
        assert relation["prov:entity"] in known
        assert relation["prov:activity"] in document["activity"]
    for relation in document["wasDerivedFrom"].values():
        assert {relation["prov:generatedEntity"], relation["prov:usedEntity"]} <= known


def test_prov_is_read_by_the_library_of_prov():
    model = pytest.importorskip("prov.model", reason="prov is not installed: pip install govtool[prov]")
    written_ = written(GraphView(graph_of(Drawing(5, 6).body())), "prov-json")
    read = model.ProvDocument.deserialize(content=written_, format="json")
    again = read.serialize(format="json")
    own, found = (json.loads(text) for text in (written_, again))
    assert model.ProvDocument.deserialize(content=again, format="json") == read
    assert (found["entity"].keys(), found["activity"].keys()) == (own["entity"].keys(), own["activity"].keys())
    for kind in ("used", "wasGeneratedBy", "wasDerivedFrom"):  # a tuple that is used twice is used
        distinct, kept = ({json.dumps(each, sort_keys=True) for each in body[kind].values()} for body in (own, found))
        assert len(kept) == len(distinct)


def lines(*nodes, edges=()):
    """A file with a node or an edge a line; nodes begin in line 2."""
    parts = [",\n".join(json.dumps(each) for each in part) for part in (nodes, edges)]
    return f'{{"nodes": [\n{parts[0]}\n], "edges": [\n{parts[1]}\n]}}'.encode()


CALL = {"id": "m", "kind": "p", "type": "m", "label": "M", "module": "M", "inv": 1}
MISTAKES = [
    (lines(TOKEN, TOKEN), 3, "two nodes have the id a"),
    (lines({**TOKEN, "id": 1}, {**TOKEN, "id": "1"}), 3, "two nodes have the id 1"),
    (lines(TOKEN, {**TOKEN, "id": "b"}), 3, "two records have the token t: node b, and node a in line 2"),
    (lines(TOKEN, {**TOKEN, "id": "b", "type": "st"}), 3, "two records have the token t"),
    (lines({**TOKEN, "id": None}), 2, "missing"),
    (lines({**TOKEN, "id": True}), 2, "true or false"),
    (lines({**TOKEN, "id": ""}), 2, "empty"),
    (lines({**TOKEN, "type": "tuple"}), 2, "the unknown type tuple"),
    (lines({**TOKEN, "type": ["wi"]}), 2, "the unknown type"),
    (lines({**TOKEN, "kind": "v"}), 2, "cannot be of kind v"),
    (lines({**TOKEN, "label": 3}), 2, "a number, not a text"),
    (lines({**TOKEN, "label": "x" * 70_000}), 2, "more than 65,536 characters"),
    (b'{"nodes": [\n{"id": "a", "type": "wi", "label": "\\ud800"}], "edges": []}', 2, "surrogate"),
    (b'{"nodes": [\n{"id": "a", "type": "val", "label": "const", "value": ["\\ud800"]}], "edges": []}', 2, "surrogate"),
    (lines({**PLUS, "label": "SUM"}), 2, "not that of a value"),
    (lines({**PLUS, "label": "×"}), 2, "the name of a function"),
    (lines({**PLUS, "label": "[COUNT >= 2"}), 2, "a comparison in brackets"),
    (lines({**PLUS, "type": "val", "kind": "v"}), 2, "not that of a tuple"),
    (lines({**CALL, "type": "i", "label": "+"}), 2, "has to be · or value"),
    (lines({**CALL, "label": "N"}), 2, "has to be that of its module"),
    (lines({**CALL, "module": None}), 2, "lacks its module"),
    (lines({**CALL, "inv": 0}), 2, "lacks inv"),
    (lines({**CALL, "inv": -1}), 2, "not a whole number"),
    (lines({**CALL, "inv": 1 << 40}), 2, "not a whole number"),
    (lines({**CALL, "module": "M#2", "label": "M#2"}), 2, "names an invocation"),
    (lines(CALL, {**CALL, "id": "n"}), 3, "two nodes of type m are of the invocation M#1"),
    (lines({**TOKEN, "module": "M"}), 2, "belongs to no module"),
    (lines({**PLUS, "bb": "no"}), 2, "not true or false"),
    (lines({**TOKEN, "value": "x", "value_type": "decimal"}), 2, "unknown type"),
    (lines(["a"]), 2, "a node is an object"),
    (lines(TOKEN, edges=[["a", "z"]]), 4, "not in the file: z"),
    (lines({**TOKEN, "id": "Cars"}, edges=[["Cars", "Car"]]), 4, "not in the file: Car"),
    (lines(TOKEN, PLUS, edges=[["b", "a"]]), 5, "nodes of type wi have no inputs"),
    (lines(TOKEN, CALL, edges=[["a", "m"]]), 5, "nodes of type m have no inputs"),
    (
        lines(TOKEN, {**TOKEN, "id": "s", "type": "st", "label": "u"}, edges=[["a", "s"]]),
        5,
        "nodes of type st have no inputs",
    ),
    (lines(TOKEN, PLUS, edges=[["a", "b", "left"]]), 5, "no difference and no comparison"),
    (lines(TOKEN, PLUS, edges=[["a", "b", "up"]]), 5, "the side up"),
    (lines(TOKEN, {**PLUS, "label": "⊖"}, edges=[["a", "b", "left"], ["a", "b", "left"]]), 6, "two left operands"),
    (lines(TOKEN, PLUS, edges=[["a", None]]), 5, "missing, not the id of a node"),
    (lines(TOKEN, PLUS, edges=[["a"]]), 5, "an edge is"),
    (lines(TOKEN, PLUS, edges=[["b", "b"]]), 5, "edges form a cycle: b → b"),
    (lines(PLUS, {**PLUS, "id": "c"}, edges=[["b", "c"], ["c", "b"]]), 6, "edges form a cycle"),
    (b"", 1, "{ is missing: the file ends"),
    (b"[]", 1, "{ is missing"),
    (b'{"nodes": []}', 1, "the file has no edges"),
    (b'{"nodes": [],\n"nodes": [], "edges": []}', 2, "two parts have one name"),
    (b'{"nodes": [\n{"id": "a", "id": "b"}], "edges": []}', 2, "two values of one name"),
    (b'{"nodes": [\n{"id": NaN}], "edges": []}', 2, "NaN is no number"),
    (b'{"nodes": [\n\n{"id": "a",}], "edges": []}', 3, "no JSON"),
    (b'{"nodes": [], "edges": []}\nmore', 2, "behind the end"),
    (b'{"nodes": [\n' + b"[" * 200_000, 2, "nested too deeply"),
    (b'{"nodes": [\n{"id": ' + b"9" * 5000 + b"}]", 2, "no JSON"),
    (b'{"nodes": [\n\xff', 2, "not UTF-8"),
]


@pytest.mark.parametrize(("data", "line", "reason"), MISTAKES, ids=[reason[:40] for _, _, reason in MISTAKES])
def test_mistakes_are_refused_with_line_and_reason(data, line, reason):
    with pytest.raises(UsageError) as refused:
        read_json(data, "g.json")
    assert reason in refused.value.message
    assert refused.value.location == f"g.json:{line}"
    assert refused.value.code == "usage.graph"
    assert refused.value.nearest == (("Cars",) if reason.endswith(": Car") else ())


GRAPHML = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="t" for="node" attr.name="type"/>\n'
    '<key id="l" for="node" attr.name="label"/><key id="v" for="node" attr.name="value"/><graph edgedefault="{0}">\n{1}'
    "</graph></graphml>"
)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('<!DOCTYPE x [<!ENTITY a "b">]><x/>', 1, "a document type is declared"),
        ("<graphml>", 1, "no XML"),
        ('<?xml version="1.0" encoding="none"?><graphml/>', 1, "no XML: unknown encoding: none"),
        (GRAPHML.format("undirected", ""), 2, "not directed"),
        (GRAPHML.format("directed", '<node id="a"/>'), 3, "has no type"),
        (GRAPHML.format("directed", '<edge source="a" target="b"/>'), 3, "not in the file: a"),
        (GRAPHML.format("directed", "<hyperedge/>"), 3, "a hyperedge"),
        ('<svg><node id="a"/></svg>', 1, "the file begins with <svg>"),
        ("<graphml>\n</graphml>", 2, "the file has no <graph>"),
        (
            GRAPHML.format("directed", '<edge source="a" target="b" directed="false"/>'),
            3,
            "an edge is not directed, and edges of a provenance graph lead from",
        ),
        (
            GRAPHML.format("directed", '<node id="a"><data key="t">wi</data><data key="t">st</data></node>'),
            3,
            "the attribute type is there twice",
        ),
        (
            GRAPHML.format("directed", '<node id="a"><data key="t">wi</data><data key="v">{</data></node>'),
            3,
            "the attribute value",
        ),
    ],
)
def test_graphml_is_refused_with_line_and_reason(text, line, reason):
    with pytest.raises(UsageError, match=reason) as refused:
        read_graphml(text.encode(), "g.graphml")
    assert refused.value.location == f"g.graphml:{line}"


def test_graphml_has_the_defaults_of_its_keys():
    text = (
        '<graphml><key id="t" for="node" attr.name="type"><default>op</default></key>'
        '<key id="l" for="node" attr.name="label"/><key id="b" for="node" attr.name="bb"><default>true</default></key>'
        '<key id="s" for="edge" attr.name="side"><default/></key><graph><node id="a"><data key="l">f</data></node>'
        '<node id="b"><data key="t">wi</data><data key="l">t</data><data key="b">false</data></node>'
        '<edge source="b" target="a"/></graph></graphml>'
    )
    (first, second), _ = as_plain(read_graphml(text.encode(), "g.graphml"))
    assert (first["type"], first["bb"], second["type"], "bb" in second) == ("op", True, "wi", False)


def test_no_node_has_the_id_of_an_invocation_zoomed_out():
    other = {**PLUS, "id": "zoom:M#1"}
    assert read_json(lines(other), "g.json").node_count == 1
    with pytest.raises(UsageError, match="gets where its module is zoomed out") as refused:
        read_json(lines(CALL, other), "g.json")
    assert refused.value.location == "g.json:3"


def test_nodes_may_come_after_edges():
    data = b'{"edges": [["a", "b"]], "nodes": [' + ",".join(map(json.dumps, (TOKEN, PLUS))).encode() + b"]}"
    assert read_json(data, "g").edge_count == 1


def test_a_token_may_have_the_name_of_an_operator():
    nodes = [{**TOKEN, "label": "·"}, {**TOKEN, "id": "c", "label": "⊖"}, {**PLUS, "label": "·"}]
    graph = graph_of({"nodes": nodes, "edges": [["a", "b"], ["c", "b"]]})
    again = graph_from((d for d, _ in node_parts(graph)), (d for d, _ in edge_parts(graph)))
    for each in (graph, again):
        assert each.labelled("·", "⊖").tolist() == [False, False, True]


@pytest.mark.parametrize("part", [0, 1])
def test_damaged_fragments_are_refused(part):
    graph = graph_of(Drawing(1, 5).body())
    files = [[data for data, _ in parts(graph, 9)] for parts in (node_parts, edge_parts)]
    files[part] = files[part][1:]
    with pytest.raises(IntegrityError):
        graph_from(*files)
    with pytest.raises(IntegrityError):
        graph_from([b"PAR1"], [])


@settings(max_examples=examples(60), deadline=None)
@given(st.binary(max_size=40), st.integers(0, 400))
def test_damaged_files_are_refused_or_read(noise, place):
    data = written(GraphView(graph_of(Drawing(2, 3).body()))).encode()
    damaged = data[:place] + noise + data[place + len(noise) :]
    try:
        read_json(damaged, "g.json")
    except UsageError as error:
        refused = (error.code, error.location)
    else:
        refused = ("usage.graph", "read")
    assert refused[0] == "usage.graph"
    assert refused[1]


@pytest.mark.parametrize(
    ("type_", "label", "word"), [("op", "Plus", "+"), ("op", "monus", "⊖"), ("val", "cuont", "COUNT")]
)
def test_a_label_that_is_nearly_a_word_is_refused_unless_it_is_marked_as_a_function(type_, label, word):
    node = {"id": "b", "type": type_, "label": label}
    with pytest.raises(UsageError, match=f"the unknown label {label}") as refused:
        read_json(lines(node), "g.json")
    assert (refused.value.location, refused.value.nearest) == ("g.json:2", (word,))
    assert graph_of({"nodes": [{**node, "bb": True}], "edges": []}).label_of(0) == label
    assert graph_of({"nodes": [{**node, "label": f"{label}()"}], "edges": []}).label_of(0) == f"{label}()"


def test_functions_with_the_name_of_an_operator_stay_functions():
    """Files of version 0.2 have ``x + 1`` as a black box with the label ``+``."""
    nodes = [
        {"id": "s", "type": "val", "label": "SUM"},
        {"id": "p", "type": "val", "label": "+", "bb": True, "value": 4},
        {"id": "c", "type": "val", "label": "const", "bb": True},
        {"id": "m", "type": "op", "label": "COUNT", "bb": True},
    ]
    graph = graph_of({"nodes": nodes, "edges": [["s", "p"], ["p", "c"]]})
    assert [graph.label_of(node) for node in range(4)] == ["SUM", "+()", "const()", "COUNT()"]
    assert graph.is_opaque.tolist() == [False, True, True, True]
    assert as_plain(read_json(written(GraphView(graph)).encode(), "g")) == as_plain(graph)


@pytest.mark.parametrize("value", [[1, float("nan")], {"a": [float("-inf")]}, {"value_type": "decimal", "value": "1"}])
def test_values_that_json_has_not_survive_every_form(value):
    builder = GraphBuilder()
    builder.nodes("val", "const", values=[value])
    for form, read in (("json", read_json), ("graphml", read_graphml)):
        again = read(written(GraphView(builder.build()), form).encode(), "g")
        assert repr(again.value_of(0)) == repr(value)


def test_a_device_is_no_file_of_a_graph(tmp_path):
    (tmp_path / "graph.json").symlink_to("/dev/zero")
    with pytest.raises(UsageError, match="it is no file"):
        read_graph(str(tmp_path / "graph.json"))


@pytest.mark.parametrize("size", [999, 1_001])
def test_a_graph_from_a_pipe_is_bounded_as_one_from_a_file(tmp_path, monkeypatch, size):
    monkeypatch.setattr("govtool.workflow.formats.read_json.MAX_BYTES", 1_000)
    pipe = tmp_path / "graph.json"
    os.mkfifo(pipe)
    text = b'{"nodes": [], "edges": []}'.ljust(size)
    writer = threading.Thread(target=lambda: pipe.write_bytes(text))
    writer.start()
    try:
        if size > 1_000:
            with pytest.raises(UsageError, match="larger than"):
                read_graph(str(pipe))
        else:
            assert read_graph(str(pipe)).node_count == 0
    finally:
        writer.join()


@pytest.mark.parametrize("encoding", ["utf-7", "idna", "zip", "rot13", "utf-32", "no such"])
def test_encodings_that_xml_does_not_have_are_refused(encoding):
    with pytest.raises(UsageError, match="no XML"):
        read_graphml(f'<?xml version="1.0" encoding="{encoding}"?><graphml/>'.encode(), "g.graphml")


def test_a_drawing_is_no_graph_to_read(tmp_path):
    (tmp_path / "g.dot").write_text('digraph "g" { a -> b; }')
    with pytest.raises(UsageError, match="DOT is written and not read") as error:
        read_graph(str(tmp_path / "g.dot"))
    assert error.value.code == "usage.graph"
