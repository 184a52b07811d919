"""What ``depends`` says of a node that does not fall: why it does not."""

from __future__ import annotations

import json

import pytest

from govtool.cli.main import main

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
