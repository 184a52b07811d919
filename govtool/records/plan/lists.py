"""Columns of lists that an aggregate collects: Spark gives their elements in any order."""

from __future__ import annotations

from collections.abc import Iterator

from govtool.functions.facts import COLLECTING
from govtool.records.plan.expressions import AggregateCall, Attribute, Named
from govtool.records.plan.nodes import Aggregate, Project
from govtool.records.plan.tree import Node, walk_nodes
from govtool.records.plan.types import Array


def unordered_lists(root: Node) -> frozenset[int]:
    """The ids of columns that are a collected list, passed on as it is; of those with an order of their own, none."""
    collected = {
        named.id for named in _named(root) if isinstance(named.value, AggregateCall) and _is_collected(named.value)
    }
    passed = [(named.value.id, named.id) for named in _named(root) if isinstance(named.value, Attribute)]
    before = -1
    while len(collected) != before:
        before = len(collected)
        collected |= {new for old, new in passed if old in collected}
    return frozenset(collected)


def _named(root: Node) -> Iterator[Named]:
    for node in walk_nodes(root):
        if isinstance(node, Project):
            yield from node.columns
        elif isinstance(node, Aggregate):
            yield from node.measures


def _is_collected(call: AggregateCall) -> bool:
    return call.name in COLLECTING and isinstance(call.type, Array) and not call.order
