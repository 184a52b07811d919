"""Selected columns that lie downstream of other selected ones have entries, and are counted."""

from __future__ import annotations

import itertools

import pytest
from depth import examples
from graph_samples import edge, graph, random_graph, view
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.errors import UsageError
from govtool.graph.index import Index
from govtool.model import ColumnRef, Edge, EdgeKind
from govtool.query.changes.change import CHANGES, Change
from govtool.query.changes.impact import ImpactResult, expand, impact
from govtool.query.selection.select import Subject, select

CHAIN = graph(
    view("b", "x y", "a.x -> x identity", "a.y -> y identity"),
    view("c", "x z", "b.x -> x identity", "b.y -> z transformation"),
)
_changes = st.sampled_from([Change(c) for c in CHANGES if c not in ("rename", "retype")])


def several(index: Index, *names: str) -> list[Subject]:
    return [select(index, name) for name in names]


def shown(result: ImpactResult) -> dict[str, str | None]:
    return {e.column: e.verdict.label if e.verdict is not None else None for e in result.columns}


def test_a_selected_column_downstream_of_another_has_an_entry_and_counts():
    result = impact(CHAIN, several(CHAIN, "a.x", "b.x", "c.x"))
    assert shown(result) == {"b.x": "changes", "c.x": "changes"}
    assert (result.reached_subjects, result.summary.columns, result.summary.datasets) == (("b.x", "c.x"), 2, 2)
    assert result.columns[0].path == ("a.x", "b.x")


def test_columns_beside_each_other_reach_nothing_of_each_other():
    result = impact(CHAIN, several(CHAIN, "a.x", "a.y"))
    assert result.reached_subjects == ()
    assert set(shown(result)) == {"b.x", "b.y", "c.x", "c.z"}


def test_a_selected_relation_downstream_of_another():
    result = impact(CHAIN, several(CHAIN, "a", "b"), change=Change("drop"))
    assert shown(result)["b.*"] == "breaks"
    assert result.reached_subjects == ("b",)
    assert {entry.column for entry in expand(CHAIN, result)} == {"b.*", "b.x", "b.y", "c.*", "c.x", "c.z"}


def test_a_selected_field_is_as_uncertain_as_the_rows_of_its_relation():
    opaque = Edge(ColumnRef("a", "*"), "*", EdgeKind.OPAQUE, reason="opaque")
    index = graph(view("a", "x y s s.f", opaque, "a.x -> s.f identity"))
    assert shown(impact(index, select(index, "a.x")))["a.s.f"] == "unknown"
    assert shown(impact(index, several(index, "a.x", "a.s.f")))["a.s.f"] == "unknown"
    index = graph(view("a", "x s s.f", edge("a.x -> * opaque", reason="opaque"), "a.s -> s.f identity"))
    assert shown(impact(index, several(index, "a.s", "a.s.f")))["a.s.f"] == "changes"
    for names in itertools.permutations(["a.s", "a.s.f", "a.x"]):
        assert shown(impact(index, several(index, *names)))["a.s.f"] == "unknown"


def test_the_limit_counts_them():
    whole = impact(CHAIN, several(CHAIN, "a.x", "b.x"))
    part = impact(CHAIN, several(CHAIN, "a.x", "b.x"), limit=1)
    assert (part.truncated, part.columns) == (len(whole.columns) - 1, whole.columns[:1])


@pytest.mark.parametrize("small", [0, 10**6])
@settings(deadline=None, max_examples=examples(40))
@given(derivations=random_graph(), numbers=st.sets(st.integers(0, 30), min_size=2, max_size=5), change=_changes)
def test_each_against_a_question_about_the_others(small, derivations, numbers, change):
    index = graph(*derivations)
    nodes = [n for n in range(index.node_count) if not index.is_rows(n) and not index.is_unknown(n)]
    chosen = sorted({nodes[number % len(nodes)] for number in numbers}) if nodes else []
    about = [Subject(index.node_dataset[node], node, index.name(node)) for node in chosen]
    if len(about) < 2:
        return
    result = impact(index, about, change=change, small=small)
    found = {entry.node: entry.verdict for entry in result.columns}
    for one in about:
        around = {one.node} if index.containers(one.node) else {one.node, index.rows(one.dataset)}
        others = impact(index, [other for other in about if other is not one], change=change, small=small)
        expected = [entry.verdict for entry in others.columns if entry.node in around]
        reached = min(expected, default=None)
        assert found.get(one.node) == reached, (one.text, [each.text for each in about])
        assert (one.text in result.reached_subjects) == (reached is not None)
    assert sum(number for _, number in result.summary.verdicts) == result.summary.columns


def test_a_selected_column_upstream_of_another_has_an_entry_and_counts():
    result = impact(CHAIN, several(CHAIN, "a.x", "b.x", "c.x"), direction="up")
    columns = [entry.column for entry in result.columns if not entry.is_rows]
    assert columns == ["b.x", "a.x"] or columns == ["a.x", "b.x"]
    assert result.reached_subjects == ("a.x", "b.x")


@pytest.mark.parametrize("small", [0, 10**6])
@settings(deadline=None, max_examples=examples(40))
@given(derivations=random_graph(), numbers=st.sets(st.integers(0, 30), min_size=2, max_size=5))
def test_upstream_against_walks_from_every_other_one(small, derivations, numbers):
    index = graph(*derivations)
    nodes = [n for n in range(index.node_count) if not index.is_rows(n) and not index.is_unknown(n)]
    chosen = sorted({nodes[number % len(nodes)] for number in numbers}) if nodes else []
    subjects = [Subject(index.node_dataset[node], node, index.name(node)) for node in chosen]
    about = list({one.text: one for one in subjects}.values())  # generations of a temporary table share their names
    if len(about) < 2:
        return
    alone = {one.node: impact(index, one, direction="up", small=small) for one in about}
    result = impact(index, about, direction="up", small=small)
    whole = {entry.node for answer in alone.values() for entry in answer.columns}
    assert {entry.node for entry in result.columns} == whole
    for one in about:
        read = any(one.node == entry.node for other in about if other is not one for entry in alone[other.node].columns)
        assert (one.text in result.reached_subjects) == read


@pytest.mark.parametrize("unit", ["a.", "9.", '"a".', "crm.", "a/b."])
def test_a_name_has_a_bounded_number_of_parts(unit):
    """Each may be where a dataset ends and a column begins: 50,000 of them took minutes."""
    for count in (400, 100_000):
        with pytest.raises(UsageError):
            select(CHAIN, unit * count + "x")
