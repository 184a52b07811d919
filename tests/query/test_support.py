"""Deletion propagation: examples in SQL terms, and its definition on random graphs with cycles."""

from __future__ import annotations

from itertools import pairwise

import pytest
from depth import examples
from graph_samples import edge, graph, random_graph, view
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.schemas.supplied import schema_from_mapping
from govtool.query.changes import support
from govtool.query.changes.region import Region
from govtool.query.changes.support import Conditions, Goal, losses, settle

SCHEMA = {"s": ["a", "k"], "t": ["a", "k"], "u": ["a", "k"]}


def lost(text: str, *deleted: str) -> tuple[set[str], set[str]]:
    options = Options(dialect="postgres", schema=schema_from_mapping(SCHEMA, "postgres"))
    index = index_of(extract([Script("q.sql", text)], options).derivations)
    nodes = []
    for name in deleted:
        dataset, _, path = name.partition(".")
        nodes.append(index.find_column(index.find_dataset(dataset), path))
    found = losses(index, nodes)
    return {index.name(n) for n in found.lost}, {index.name(n) for n in found.unknown}


@pytest.mark.parametrize(
    ("text", "deleted", "gone"),
    [
        ("create view v as select a from s", ["s.*"], {"v.*", "v.a"}),
        ("create view v as select a, k from s", ["s.a"], {"v.a"}),
        ("create view v as select a, k from s where k > 1", ["s.k"], {"v.*", "v.a", "v.k"}),
        ("create view v as select a from s union all select a from t", ["s.*"], set()),
        ("create view v as select a from s union select a from t", ["s.*"], set()),
        ("create view v as select a from s union all select a from t", ["s.*", "t.*"], {"v.*", "v.a"}),
        ("create view v as select s.a from s join t on s.k = t.k", ["t.*"], {"v.*", "v.a"}),
        ("create view v as select a from s intersect select a from t", ["t.*"], {"v.*", "v.a"}),
        (
            "create view v as select x.a from (select a, k from s union all select a, k from t) x join u on u.k = x.k",
            ["s.*"],
            set(),
        ),
        (
            "create view v as select x.a from (select a, k from s union all select a, k from t) x join u on u.k = x.k",
            ["u.*"],
            {"v.*", "v.a"},
        ),
        # An arm that is nothing but another UNION is as many alternatives; one that is more needs all in it.
        (
            "create view v as select a from (select a from s union all select a from t) x union all select a from s",
            ["s.*"],
            set(),
        ),
        (
            "create view v as (select a from s union select a from t) union all select a from s",
            ["s.*", "t.*"],
            {"v.*", "v.a"},
        ),
        (
            "create view v as select a from (select a from s union all select a from t) x where a > 1"
            " union all select a from (select a from s union all select a from u) y",
            ["s.*", "t.*"],
            set(),
        ),
        (
            "create view v as select x.a from (select a, k from s union all select a, k from t) x join u on u.k = x.k"
            " union all select a from s",
            ["s.*"],
            {"v.*", "v.a"},  # on the careful side
        ),
        ("insert into v (a) select a from s; insert into v (a) select a from t", ["s.*"], set()),
        ("insert into v (a) select a from s; insert into v (a) select a from t", ["s.*", "t.*"], {"v.*", "v.a"}),
        # A loop that only feeds itself dies; fed from elsewhere it lives.
        (
            "insert into v (a) select a from s; insert into w (a) select a from v; insert into v (a) select a from w",
            ["s.*"],
            {"v.*", "v.a", "w.*", "w.a"},
        ),
        (
            "insert into v (a) select a from s; insert into w (a) select a from v; insert into v (a) select a from w;"
            "insert into w (a) select a from t",
            ["s.*"],
            set(),
        ),
        ("insert into v (a) select a from s; insert into v (a) select a + 1 from v", ["s.*"], {"v.*", "v.a"}),
        ("create view v as select s.a || t.a as b, s.k from s, t", ["t.a"], {"v.b"}),
        ("create view v as select a from s order by k", ["s.k"], set()),
    ],
)
def test_what_a_deletion_takes_the_last_source_from(text, deleted, gone):
    assert lost(text, *deleted) == (gone, set())


def test_two_arms_that_share_a_join_partner_in_one_only():
    text = "create view v as select s.a from s join u on u.k = s.k union all select a from t"
    assert lost(text, "u.*") == (set(), set())
    assert lost(text, "u.*", "t.*") == ({"v.*", "v.a"}, set())


def test_a_union_that_is_all_of_an_arm_is_as_many_arms():
    inner = "select a from (select a from s union all select a from t) x"
    assert lost(f"create view v as {inner} union all select a from s", "s.*") == (set(), set())
    view = f"create view v as {inner} union all select a from u"
    assert lost(view, "s.*") == lost(view, "s.*", "u.*") == (set(), set())
    assert lost(view, "s.*", "t.*", "u.*") == ({"v.*", "v.a"}, set())


nodes_ = st.integers(0, 6)


@st.composite
def random_goals(draw) -> list[Goal]:
    goals = []
    for _ in range(draw(st.integers(1, 10))):
        needs = Conditions(draw(st.sets(nodes_, max_size=2)))
        for _ in range(draw(st.integers(0, 4))):
            needs.add(4096 * draw(st.integers(0, 1)) + draw(st.integers(1, 3)), draw(nodes_))
        goals.append(Goal(draw(nodes_), needs))
    return goals


def proved(node: int, goals: list[Goal], gone: frozenset[int], open_: frozenset[int] = frozenset()) -> bool:
    """The definition: there is a finite proof, and so one in which no branch comes back to what it is to prove."""
    if node in gone or node in open_:
        return False
    below = open_ | {node}
    for goal in goals:
        if goal.node == node and all(proved(n, goals, gone, below) for n in goal.needs.always):
            groups = goal.needs.groups.values()
            if all(
                any(all(proved(n, goals, gone, below) for n in needs) for needs in arms.values()) for arms in groups
            ):
                return True
    return False


@settings(deadline=None, max_examples=examples(200))
@given(random_goals(), st.frozensets(nodes_, max_size=3))
def test_support_is_what_has_a_finite_proof(goals, gone):
    assert settle(goals, gone) == {node for node in range(7) if proved(node, goals, gone)}


@settings(deadline=None, max_examples=examples(100))
@given(random_goals(), st.frozensets(nodes_, max_size=3), st.frozensets(nodes_, max_size=3))
def test_deleting_more_leaves_less(goals, gone, more):
    assert settle(goals, gone | more) <= settle(goals, gone)


@st.composite
def graph_with_arms(draw):
    """A random graph whose edges belong to arms, in part."""
    arms = st.sampled_from([0, 0, 4097, 4098, 8193, 8194])
    return [
        made._replace(edges=tuple(edge._replace(arm=draw(arms)) for edge in made.edges))
        for made in draw(random_graph())
    ]


@settings(deadline=None, max_examples=examples(300))
@given(graph_with_arms(), st.data())
def test_the_region_of_a_deletion_decides_what_the_whole_graph_does(derivations, data):
    index = index_of(derivations)
    deleted = data.draw(st.sets(st.integers(0, index.node_count - 1), min_size=1, max_size=3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(support, "SMALL", -1)
        regional = losses(index, deleted)
    assert regional == losses(index, deleted)


def test_a_region_is_what_hangs_on_the_deletion_and_what_may_not_be_grounded():
    names = [f"m{i}" for i in range(9)]
    chain = [view(b, "x", edge(f"{a}.x -> x identity"), edge(f"{a}.* -> * read")) for a, b in pairwise(names)]
    loop = [view("p", "x", edge("q.* -> * read")), view("q", "x", edge("p.* -> * read"))]
    join = view("end", "x", *(edge(f"{name}.* -> * join") for name in ("m8", "q", "other")))
    index = graph(*chain, *loop, join)
    around = Region(index, (), ("replace",)).around({index.rows(index.find_dataset("m6"))})
    assert {index.dataset_name(d) for d in around} == {"m6", "m7", "m8", "end", "p", "q"}
