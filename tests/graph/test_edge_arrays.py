"""What the build of an index computes in whole columns, against the same in plain Python."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from govtool.arrays.sets import stable_order
from govtool.graph.builder.columns import Strings
from govtool.graph.builder.edge_arrays import labels, missing_reads
from govtool.graph.builder.node_numbers import number_nodes

PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=40)
PATHS = ("*", "a", "b", "b.c", "b.c.d", "e[]", "e[].f", '"g.h"')


def columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Pairs as two arrays."""
    found = np.array(pairs, np.int32).reshape(-1, 2)
    return found[:, 0].copy(), found[:, 1].copy()


@given(st.lists(st.integers(0, 1 << 62), max_size=20) | st.lists(st.integers(0, 3), max_size=60))
def test_equal_values_keep_their_order(values: list[int]) -> None:
    assert stable_order(np.array(values, np.int64)).tolist() == sorted(range(len(values)), key=values.__getitem__)


@pytest.mark.parametrize("few", [1 << 20, -1000])
@given(pairs=PAIRS)
def test_labels_are_numbered_by_functions_then_reason(few: int, pairs: list[tuple[int, int]]) -> None:
    with mock.patch("govtool.graph.builder.edge_arrays._FEW_PAIRS", few):  # or so many that they are sorted
        number, functions, reasons = labels(*columns(pairs))
    known = list(zip(functions.tolist(), reasons.tolist(), strict=True))
    assert known == sorted(set(pairs))
    assert [known[i] for i in number.tolist()] == pairs


@given(PAIRS, PAIRS)
def test_missing_reads_are_a_difference_of_sets(needed: list[tuple[int, int]], known: list[tuple[int, int]]) -> None:
    found = missing_reads(columns(needed), columns(known))
    assert list(zip(*(part.tolist() for part in found), strict=True)) == sorted(set(needed) - set(known))


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(PATHS)), max_size=40))
def test_nodes_are_numbered_by_dataset_row_set_and_path(names: list[tuple[int, str]]) -> None:
    strings = Strings()
    numbers = [(dataset, strings.add(path)) for dataset, path in names]
    found = number_nodes(strings, 5, [columns(numbers)])
    nodes = [(int(d), strings.texts[p]) for d, p in zip(found.dataset, found.path, strict=True)]
    above = {"b.c": ["b"], "b.c.d": ["b", "b.c"], "e[].f": ["e[]", "e"], "e[]": ["e"]}
    expected = {(d, "*") for d in range(5)} | {(d, p) for d, path in names for p in (path, *above.get(path, ()))}
    assert nodes == sorted(expected, key=lambda node: (node[0], node[1] != "*", node[1]))
    assert [nodes[i] for i in found.ends[0].tolist()] == names
    assert found.base.tolist() == [sum(d < number for d, _ in nodes) for number in range(6)]
    parents = {nodes[n]: nodes[p] for n, p in zip(*(part.tolist() for part in found.nested), strict=True)}
    assert parents == {(d, p): (d, above[p][0] if p == "e[].f" else above[p][-1]) for d, p in nodes if p in above}
