"""Graphs of random runs: files give the same graph again, zooms keep their laws, deletions what a new run gives."""

from __future__ import annotations

import json
import random
from collections import Counter

import numpy as np
import pytest
from reference import graphs as reference
from sql_runs import SqlRun

from govtool.workflow.deletion import delete
from govtool.workflow.dependency import dependency
from govtool.workflow.formats.read_graphml import read_graphml
from govtool.workflow.formats.read_json import read_json
from govtool.workflow.formats.write import WRITERS
from govtool.workflow.modules.run_rows import output_deletions
from govtool.workflow.queries.statuses import key_of
from govtool.workflow.subgraph import subgraph
from govtool.workflow.zoom import GraphView

SEEDS = range(12)
READERS = {"json": read_json, "graphml": read_graphml}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs with their graphs."""
    made = [SqlRun(seed, tmp_path_factory.mktemp("run")) for seed in SEEDS]
    return [(each, each.graph()) for each in made]


@pytest.fixture(params=SEEDS)
def run(request, runs):
    """One of them."""
    return runs[request.param]


def written(view, form="json"):
    return "\n".join(WRITERS[form](view))


def plain(graph):
    """The graph for the reference."""
    body = json.loads(written(GraphView(graph)))
    nodes = {each["id"]: {"module": None, "inv": 0, **each} for each in body["nodes"]}
    return reference.PlainGraph(nodes, [(e[0], e[1], e[2] if len(e) > 2 else None) for e in body["edges"]])


def records(graph, seed, most=3):
    draw = random.Random(seed)
    tokens = graph.tokens().tolist()
    return draw.sample(tokens, min(len(tokens), draw.randint(1, most)))


def drawn(run, name):
    made, found = run
    return found.graph, random.Random(f"{made.seed} {name}")


@pytest.mark.parametrize("form", READERS)
def test_a_file_gives_the_same_graph_again_and_the_same_answers(run, form):
    graph, draw = drawn(run, form)
    again = READERS[form](written(GraphView(graph), form).encode(), "run")
    assert written(GraphView(again)).replace('"', "") == written(GraphView(graph)).replace('"', "")
    assert [again.label_of(node) for node in range(again.node_count)] == [
        graph.label_of(node) for node in range(graph.node_count)
    ]
    nodes = np.arange(graph.node_count)
    assert list(map(repr, again.values.of(nodes).items())) == list(map(repr, graph.values.of(nodes).items()))
    for column in ("kind", "type", "invocation", "black_box", "side"):
        assert (getattr(again, column) == getattr(graph, column)).all(), column
    for _ in range(4):
        gone, node = records(graph, draw.random()), draw.randrange(graph.node_count)
        first, second = (delete(each, gone) for each in (graph, again))
        assert (first.removed == second.removed).all()
        assert (first.unknown, first.gains_possible) == (second.unknown, second.gains_possible)
        assert repr(first.recomputed) == repr(second.recomputed)
        assert [repr(dependency(each, node, gone)) for each in (again,)] == [repr(dependency(graph, node, gone))]
        assert (subgraph(again, node).nodes == subgraph(graph, node).nodes).all()
        zoomed = draw.sample(graph.modules, 2)
        views = [GraphView(each).zoom_out(*zoomed) for each in (graph, again)]
        assert written(views[0]).replace('"', "") == written(views[1]).replace('"', "")


@pytest.mark.parametrize("form", ["dot", "prov-json"])
def test_other_forms_have_every_tuple(run, form):
    graph, _ = drawn(run, form)
    text = written(GraphView(graph), form)
    if form == "dot":
        assert text.count(" [shape=") == graph.node_count
        assert text.count(" -> ") == graph.edge_count
    else:
        kinds = [graph.kind[n] == 0 and graph.type[n] in (0, 1, 4, 6) for n in range(graph.node_count)]
        assert len(json.loads(text)["entity"]) == sum(kinds)


def test_zooms_keep_their_laws(run):
    graph, draw = drawn(run, "zoom")
    small = plain(graph)
    fine = written(GraphView(graph))
    for size in range(1, len(graph.modules) + 1):
        modules = draw.sample(graph.modules, size)
        view = GraphView(graph).zoom_out(*modules)
        step = GraphView(graph)
        for name in draw.sample(modules, size):
            step = step.zoom_out(name)
        assert written(step) == written(view)
        assert written(view.zoom_in(*modules)) == fine
        expected = reference.zoom_out(small, modules)
        body = json.loads(written(view))
        assert {each["id"] for each in body["nodes"]} == set(expected.nodes)
        assert sorted(map(repr, (e[:2] for e in body["edges"]))) == sorted(repr([s, t]) for s, t, _ in expected.edges)
    tagged = {each["id"] for each in small.nodes.values() if each["type"] in ("op", "val") and each["module"]}
    left = {each["id"] for each in json.loads(written(GraphView(graph, frozenset(graph.modules))))["nodes"]}
    # A value that no tuple leads to and that is handed out, such as a total over no rows, stays.
    assert all(reference.is_free(small, node) for node in tagged & left)


def test_deletion_is_the_reference_and_the_same_in_a_subgraph(run):
    graph, draw = drawn(run, "delete")
    small = plain(graph)
    for _ in range(4):
        gone = records(graph, draw.random())
        removed = set(delete(graph, gone).removed.tolist())
        assert removed == reference.delete(small, gone)
        if not gone:
            continue
        node = draw.choice(gone)
        part = subgraph(graph, node)
        below = reference.closure(small, node, backward=False)
        alone = reference.delete(reference.induced(small, set(part.nodes.tolist())), [node])
        assert alone & below == reference.delete(small, [node]) & below


def test_what_is_said_of_outputs_is_what_a_new_run_gives(runs):
    statuses: Counter[str] = Counter()
    for each in runs:
        statuses += judged(each)
    assert statuses["kept"] > 50
    assert statuses["deleted"] > 20


def judged(run, times=8):
    """Deletions in a run, compared with what the reference computes without the records; the statuses said."""
    made, found = run
    statuses: Counter[str] = Counter()
    graph, draw = drawn(run, "contract")
    for _ in range(times):
        gone = records(graph, draw.random(), 4)
        tokens = {graph.label_of(node) for node in gone}
        after = made.rerun(tokens)
        answer = output_deletions(graph, found.outputs, delete(graph, gone))
        for name in ("Out", "Flat"):
            own = answer[name]
            expected = Counter({(at, key_of(row)): n for (relation, at, row), n in after.items() if relation == name})
            said = Counter((at, key_of(row.after)) for at, row in own.rows if row.status in ("kept", "recomputed"))
            said.update((at, key_of(row)) for row, (at, _) in zip(own.gains, own.gained_by, strict=True))
            statuses.update(row.status for _, row in own.rows)
            assert not said - expected, (made.seed, name, tokens)
            if not own.gains_possible:
                open_ = sum(row.status == "unknown" for _, row in own.rows)
                assert sum((expected - said).values()) <= open_, (made.seed, name, tokens)
    return statuses
