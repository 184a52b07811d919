"""Multiplicities of tuples, as sums and products of those that they are made of."""

from __future__ import annotations

import json

import pytest

from govtool.workflow.evaluation import World
from govtool.workflow.formats.read_json import read_json


def squared(times):
    """A graph of a tuple with multiplicity 2 that is multiplied with itself again and again."""
    nodes = [{"id": "r", "kind": "p", "type": "st", "label": "A:0"}]
    nodes += [{"id": f"u{at}", "kind": "p", "type": "op", "label": "·" if at else "+"} for at in range(times + 1)]
    edges = [["r", "u0"]] * 2 + [[f"u{at}", f"u{at + 1}"] for at in range(times) for _ in "ab"]
    return read_json(json.dumps({"nodes": nodes, "edges": edges}).encode(), "g")


@pytest.mark.parametrize(("times", "expected"), [(0, 2), (1, 4), (5, 1 << 32), (60, None)])
def test_products_too_long_to_be_computed_are_unknown(times, expected):
    graph = squared(times)
    assert World(graph).times(graph.node_count - 1) == expected
