"""Rows of a run's outputs after a deletion, on graphs made by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import jsonschema
import numpy as np

from govtool.answers.run_deletion import RunDeletionAnswer
from govtool.workflow.builder import GraphBuilder
from govtool.workflow.deletion import delete
from govtool.workflow.modules.run_rows import output_deletions
from govtool.workflow.modules.run_tuples import OutputTuples
from govtool.workflow.storage.outputs import outputs_from, outputs_text

SCHEMA = Path(__file__).parents[3] / "docs" / "schemas" / "whatif-run-1.json"


def made(build, rows, present, cells=None):
    """The graph and the output ``R(k, v)`` of the tuples that a function makes of two records."""
    graph = GraphBuilder()
    first, second = (graph.nodes("wi", name) for name in ("a", "b"))
    own = {"module": "M", "invocation": 1}
    module = graph.nodes("m", "M", **own)
    nodes = []
    for source in build(graph, first, second, own):
        node = graph.nodes("o", "·", **own)
        graph.edges(source, node)
        graph.edges(module, node)
        nodes.append(int(node[0]))
    columns = {} if cells is None else {"v": np.array(cells(graph, own), np.int64)}
    output = OutputTuples(1, "n", "R", ("k", "v"), rows, present, np.array(nodes), columns)
    return graph.build(), output


def deleted(graph, output, *tokens):
    numbers = np.concatenate([graph.with_tokens([token])[token] for token in tokens])
    outputs = outputs_from(outputs_text([output]))
    found = output_deletions(graph, outputs, delete(graph, numbers))["R"]
    return [(row.status, row.after) for _, row in found.rows], list(found.gains)


def unless(graph, first, second, own):
    """The tuple of ``a``, and ``b ⊖ a``: there only without ``a``."""
    difference = graph.nodes("op", "⊖", **own)
    graph.edges(second, difference)
    graph.edges(first, difference)
    return first, difference


def test_a_candidate_with_the_values_of_a_row_that_falls_keeps_it():
    graph, output = made(unless, [("x", 1), ("x", 1)], 1)
    assert deleted(graph, output, "a") == ([("kept", ("x", 1))], [])
    assert deleted(graph, output, "b") == ([("kept", ("x", 1))], [])
    assert deleted(graph, output, "a", "b") == ([("deleted", None)], [])


def test_a_candidate_of_the_same_key_recomputes_the_row():
    def cells(graph, own):
        return [int(graph.nodes("val", "const", values=[value], **own)[0]) for value in (1, 2)]

    graph, output = made(unless, [("x", Decimal("1.5")), ("x", Decimal("2.5"))], 1, cells)
    assert deleted(graph, output, "a") == ([("recomputed", ("x", "2.5"))], [])
    graph, output = made(unless, [("x", 1), ("y", 2)], 1, cells)
    assert deleted(graph, output, "a") == ([("deleted", None)], [("y", 2)])


def test_a_row_is_unknown_if_one_of_its_key_may_appear():
    def build(graph, first, second, own):
        # A black box over ``a``: what it lets through without it is not known.
        box = graph.nodes("op", "f", black_box=True, **own)
        graph.edges(np.concatenate([first, second]), box)
        both = graph.nodes("op", "·", **own)
        graph.edges(np.concatenate([box, second]), both)
        return first, both

    graph, output = made(build, [("x", 1), ("x", 1)], 1)
    assert deleted(graph, output, "a") == ([("unknown", None)], [])
    graph, output = made(build, [("x", 1), ("y", 1)], 1)
    assert deleted(graph, output, "a") == ([("deleted", None)], [])


def test_equal_rows_of_one_tuple_are_counted_again():
    def build(graph, first, second, own):
        either = graph.nodes("op", "+", **own)
        graph.edges(np.concatenate([first, second]), either)
        return either, either

    graph, output = made(build, [("x", 1), ("x", 1)], 2)
    assert [status for status, _ in deleted(graph, output, "a")[0]] == ["unknown", "unknown"]
    assert [status for status, _ in deleted(graph, output, "a", "b")[0]] == ["deleted", "deleted"]


def test_rows_and_gains_name_the_execution_and_node_that_they_are_of():
    graph, output = made(unless, [("x", 1), ("y", 2)], 1)
    other = replace(output, execution=2, node="m")
    (gone,) = graph.with_tokens(["a"]).values()
    relations = output_deletions(graph, [output, other], delete(graph, gone))
    answer = RunDeletionAnswer("w", "propagate", ("a",), relations)
    body = json.loads(json.dumps(answer.to_dict()))
    jsonschema.validate(body, json.loads(SCHEMA.read_text(encoding="utf-8")))
    found = body["relations"]["R"]
    assert [(each["execution"], each["node"], each["status"]) for each in found["tuples"]] == [
        (1, "n", "deleted"),
        (2, "m", "deleted"),
    ]
    assert found["gains"] == [["y", 2], ["y", 2]]
    assert found["gained_by"] == [{"execution": 1, "node": "n"}, {"execution": 2, "node": "m"}]
    assert [row[1] for row in answer.rows() if row[2] == "gained"] == [1, 2]
