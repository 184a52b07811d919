"""Operators that plans have in common, and the nodes of them that are found again."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import pyarrow as pa

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call, Literal, Named, passed
from govtool.records.plan.from_sql import table
from govtool.records.plan.nodes import Filter, Project
from govtool.workflow.modules.shared_operators import SharedNodes, SharedOperators

READ = table("r", t.Struct((t.Field("x", t.LONG),)))
(X,) = READ.columns
SPARE = X.id + 10
PART = (0, 0, "", "·")


def above(least):
    return Filter(READ, Call(">", (X, Literal(least, t.LONG)), t.BOOLEAN))


def doubled(child, number):
    """A column under an id that is not the program's."""
    made = Named(Call("+", (X, X), t.LONG), number, "y")
    return Project(Project(child, (made,)), (passed(Attribute(number, "y", t.LONG)),))


def test_equal_subplans_are_one_operator():
    first, second = doubled(above(1), SPARE), doubled(replace(above(1), child=replace(READ, leaf=7)), SPARE + 1)
    other = above(2)
    shared = SharedOperators([(first, SPARE), (second, SPARE + 1), (other, SPARE)])
    assert shared.number(first) == shared.number(second) is not None
    assert shared.number(first.child) != shared.number(first)
    assert shared.number(other) is None
    assert shared.number(other.child) == shared.number(first.child.child.child)


def drawn(nodes, numbers, sources, owners, values=None):
    """Draw nodes that read others; return their names, those of new ones in capitals."""
    number = max(owners) + 1
    distinct = None if values is None else (pa.array(values), np.arange(number))
    edges = [(np.array(sources), np.array(owners), 0)]
    found, fresh = nodes.nodes(PART, number, edges, distinct, lambda new: np.array([next(numbers) for _ in new], int))
    names = ["abcdef"[node] for node in found]
    return "".join(name.upper() if at in fresh else name for at, name in enumerate(names))


def test_what_reads_the_same_is_found_again_in_any_order():
    nodes, numbers = SharedNodes(), count()
    assert drawn(nodes, numbers, [1, 2, 3], [0, 0, 1]) == "AB"
    assert drawn(nodes, numbers, [3, 2, 1, 9], [0, 1, 1, 2]) == "baC"
    assert drawn(nodes, numbers, [1], [0]) == "D"  # it reads less


def test_two_nodes_of_one_plan_are_never_one():
    nodes, numbers = SharedNodes(), count()
    assert drawn(nodes, numbers, [1], [0]) == "A"
    assert drawn(nodes, numbers, [1, 1], [0, 1]) == "aB"
    assert drawn(nodes, numbers, [1, 1, 1], [0, 1, 2]) == "abC"


def test_values_tell_nodes_apart():
    nodes, numbers = SharedNodes(), count()
    assert drawn(nodes, numbers, [1, 1], [0, 1], ["a", None]) == "AB"
    assert drawn(nodes, numbers, [1, 1, 1], [0, 1, 2], [None, "b", "a"]) == "bCa"
