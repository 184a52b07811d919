"""What ``depends`` says of a node that does not fall: why it does not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from govtool.app.workflow_graphs.questions import depends_answer, subgraph_answer
from govtool.cli.main import main
from govtool.render.workflow_graph import render_workflow
from govtool.workflow.formats.read_json import read_json
from govtool.workflow.modules.run_tuples import OutputTuples

BODY = {
    "nodes": [
        {"id": "m", "kind": "p", "type": "m", "label": "M", "module": "M", "inv": 1},
        *({"id": name, "kind": "p", "type": "wi", "label": f"R:{name}"} for name in "abc"),
        {"id": "p", "kind": "p", "type": "op", "label": "+"},
    ],
    "edges": [["a", "p"], ["b", "p"]],
}


@pytest.mark.parametrize(
    ("node", "on", "words"),
    [
        ("M#1", ["R:a"], "does not depend: no record leads to it"),
        ("c", ["R:a"], "does not depend: it comes from none of them"),
        ("p", ["R:c", "M#1"], "does not depend: it comes from none of them"),
        ("p", ["R:a"], "does not depend: it has another derivation without them"),
        ("p", ["R:a", "R:b"], "depends: it falls with them"),
        ("p", ["R:a"], "no record is necessary alone, 2 in the lineage; it falls without all of R:a, R:b"),
    ],
)
def test_the_reason_is_that_of_the_node(node, on, words, tmp_path, capsys):
    file = tmp_path / "g.json"
    file.write_text(json.dumps(BODY))
    assert main(["depends", node, "--graph", str(file), *(word for each in on for word in ("--on", each))]) == 0
    assert words in capsys.readouterr().out.splitlines()


def test_a_row_comes_from_what_its_computed_values_come_from():
    value = {"id": "v", "kind": "v", "type": "val", "label": "f", "module": "M", "inv": 1}
    graph = read_json(json.dumps({"nodes": [*BODY["nodes"], value], "edges": [["a", "p"], ["b", "v"]]}).encode(), "g")
    row, cell = (np.array([graph.with_id(each)]) for each in "pv")
    outputs = [OutputTuples(1, "end", "Out", ("k", "n"), [(1, 7)], 1, row, {"n": cell})]
    found = depends_answer("g", graph, "Out[1]", ["R:b"], lambda: outputs)
    assert (found.depends, [each.label for each in found.necessary]) == (False, ["R:a"])
    assert [each.label for each in found.lineage] == ["R:a", "R:b"]
    words = "does not depend: only values in it come from them; govtool whatif delete shows which change"
    assert words in str(render_workflow("table", found))
    around = subgraph_answer("g", graph, "Out[1]", lambda: outputs)
    assert [each.id for each in around.ancestors] == ["a", "b", "v"]
