"""The lines of a table: columns whose relation has their verdict as a whole have none, and the limit counts lines."""

from __future__ import annotations

import pytest
from depth import examples
from graph_samples import graph, random_graph, view
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.query.changes.change import CHANGES, Change
from govtool.query.changes.impact import ImpactResult, impact
from govtool.query.selection.select import Subject

WIDE = graph(
    view("b", "x y z", "a.x -> x identity", "a.x -> y identity", "a.x -> * filter"),
    view("c", "x", "b.x -> x identity"),
    view("d", "x", "b.y -> x identity"),
)
_changes = st.sampled_from([Change(c) for c in CHANGES if c not in ("rename", "retype")])


def lines(result: ImpactResult) -> list[tuple[str, tuple[str, ...]]]:
    return [(line.entry.column, line.columns) for line in result.lines]


def folded(result: ImpactResult) -> list[tuple[str, tuple[str, ...]]]:
    """The lines by the entries alone: each column against the rows of its relation, if they are listed."""
    whole = {e.dataset: e.verdict for e in result.columns if e.is_rows and result.direction == "down"}
    alike = [e for e in result.columns if not e.is_rows and whole.get(e.dataset) == e.verdict is not None]
    names = {d: tuple(e.column[len(d) + 1 :] for e in alike if e.dataset == d) for d in whole}
    return [(e.column, names.get(e.dataset, ()) if e.is_rows else ()) for e in result.columns if e not in alike]


def test_a_relation_that_breaks_as_a_whole_is_one_line():
    result = impact(WIDE, "a.x", change=Change("drop"))
    assert lines(result) == [("b.*", ("x", "y")), ("c.*", ("x",)), ("d.*", ("x",))]
    assert result.summary.entries == 7


@pytest.mark.parametrize("small", [0, 10**6])
def test_the_limit_counts_lines(small):
    result = impact(WIDE, "a.x", change=Change("drop"), limit=2, small=small)
    assert lines(result) == [("b.*", ("x", "y")), ("c.*", ("x",))]
    assert (result.truncated_lines, len(result.columns), result.truncated) == (1, 2, 5)


@pytest.mark.parametrize("direction", ["down", "up"])
@settings(deadline=None, max_examples=examples(150))
@given(
    derivations=random_graph(),
    numbers=st.sets(st.integers(0, 30), min_size=1, max_size=4),
    change=_changes,
    limit=st.integers(0, 6),
    datasets=st.booleans(),
)
def test_lines_against_the_entries(direction, derivations, numbers, change, limit, datasets):
    index = graph(*derivations)
    nodes = [n for n in range(index.node_count) if not index.is_unknown(n) and index.is_rows(n) <= datasets]
    chosen = sorted({nodes[number % len(nodes)] for number in numbers}) if nodes else []
    if not chosen:
        return
    about = [
        Subject(index.node_dataset[n], None if index.is_rows(n) else n, index.name(n).removesuffix(".*"))
        for n in chosen
    ]
    asked = {"direction": direction, "change": change if direction == "down" else None}
    for small in (0, 10**6):
        every = impact(index, about, small=small, **asked)
        first = impact(index, about, small=small, limit=limit, **asked)
        assert lines(every) == folded(every)
        assert lines(first) == folded(every)[:limit]
        assert [e.column for e in first.columns] == [e.column for e in every.columns][:limit]
        assert first.truncated_lines == len(every.lines) - len(first.lines)
