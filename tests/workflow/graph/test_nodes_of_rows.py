"""Nodes named by the row of an output that they are of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from govtool.app.workflow_graphs.rows import nodes_of_row
from govtool.errors import AmbiguousNameError, UnknownNameError
from govtool.workflow.modules.run_tuples import OutputTuples


def output(execution, rows, nodes, candidates=0):
    columns = ("id", "city")
    return OutputTuples(execution, "end", "Best", columns, rows, len(rows) - candidates, np.array(nodes), {})


OUTPUTS = (
    output(1, [(1, "Rome"), (2, "a]b")], [10, 11]),
    output(2, [(1, "Rome"), (1, "Oslo"), (3, None)], [20, 21, 22], candidates=1),
)


@pytest.mark.parametrize(
    ("text", "node"),
    [("Best@1[1]", 10), ("Best[2,'a]b']", 11), ("end/Best@2[1, Oslo]", 21), ("Best[city=Oslo]", 21)],
)
def test_an_address_names_the_node_of_its_row(text, node):
    assert nodes_of_row(text, OUTPUTS) == (node,)


def test_a_dataset_of_a_program_may_be_called_by_its_folders():
    shop = replace(OUTPUTS[0], node="0", relation="run-2/log", path="file:///made/run-2/log@1")
    other = replace(OUTPUTS[1], node="1", relation="top", path="file:///out/top@3")
    for text, node in (("run-2/log[1]", 10), ("out/top[city=Oslo]", 21), ("1/top[1, Rome]", 20)):
        assert nodes_of_row(text, (shop, other)) == (node,)
    with pytest.raises(UnknownNameError, match="no output in/top"):
        nodes_of_row("in/top[1]", (shop, other))


def test_the_nodes_of_computed_cells_follow():
    cells = {"n": np.array([-1, 31]), "total": np.array([32, 33])}
    assert nodes_of_row("Best[2]", (replace(OUTPUTS[0], cells=cells),)) == (11, 31, 33)


def test_rows_that_there_are_not_and_rows_alike_are_refused():
    with pytest.raises(AmbiguousNameError) as several:
        nodes_of_row("Best[1]", OUTPUTS)
    assert several.value.nearest == ("end/Best@1: node 10", "end/Best@2: node 20", "end/Best@2: node 21")
    with pytest.raises(UnknownNameError, match=r"has the key \[3\]"):  # a candidate
        nodes_of_row("Best@2[3]", OUTPUTS)
    with pytest.raises(UnknownNameError, match="no output Bst@2") as unknown:
        nodes_of_row("Bst@2[3]", OUTPUTS)
    assert unknown.value.nearest[0] == "end/Best@2"
    assert "govtool why" in unknown.value.hint
