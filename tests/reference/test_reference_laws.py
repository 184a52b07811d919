"""The reference itself: the specification's laws, and small examples that were published."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.algebra import (
    Aggregate,
    Call,
    Col,
    Distinct,
    Exists,
    Explode,
    Filter,
    In,
    Join,
    Limit,
    Lit,
    Op,
    Over,
    Project,
    Scalar,
    Scan,
    SetOp,
    Union,
    Up,
    Window,
    bag,
    evaluate,
    present,
    without,
)
from reference.generate import Plans, random_data
from reference.polynomial import ONE, ZERO, Agg, delta, number, token, traced

polynomials = st.recursive(
    st.sampled_from("abcd").map(token) | st.integers(0, 2).map(number),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] * pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] - pair[1]),
        inner.map(delta),
    ),
    max_leaves=6,
)
counts = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3))


@given(polynomials, polynomials, polynomials)
def test_polynomials_are_a_commutative_semiring(p, q, r):
    assert p + q == q + p
    assert p * q == q * p
    assert (p + q) + r == p + (q + r)
    assert (p * q) * r == p * (q * r)
    assert p * (q + r) == p * q + p * r
    assert p + ZERO == p
    assert p * ONE == p
    assert p * ZERO == ZERO


@given(polynomials, polynomials, counts)
def test_evaluation_in_natural_numbers_is_a_homomorphism(p, q, at):
    assert (p + q).count(at) == p.count(at) + q.count(at)
    assert (p * q).count(at) == p.count(at) * q.count(at)
    assert (p - q).count(at) == max(0, p.count(at) - q.count(at))
    assert delta(p).count(at) == min(1, p.count(at))


@given(polynomials)
def test_delta_and_monus_keep_their_laws(p):
    assert delta(delta(p)) == delta(p)
    assert delta(ZERO) == ZERO
    assert delta(number(3)) == ONE
    assert ZERO - p == ZERO
    assert p - ZERO == p


def test_canonical_strings():
    a, b, c = map(token, "abc")
    assert str(b * a * a + number(2) * c) == "a^2*b + 2*c"
    assert str(delta(a + b) * c) == "c*δ(a + b)"
    assert str(a - (b + c)) == "(a ⊖ b + c)"
    assert str(ZERO) == "0"
    assert str(Agg("SUM", ((a, 20), (b + c, 10)))) == "SUM((b + c)⊗10 + a⊗20)"


def test_provenance_semirings_figure_5():
    """Green, Karvounarakis and Tannen, PODS 2007: π_AC(π_AB R ⋈ π_BC R ∪ π_AC R ⋈ π_BC R)."""
    data = {"R": [("p", ("a", "b", "c")), ("r", ("d", "b", "e")), ("s", ("f", "g", "e"))]}
    r = Scan("R", ("A", "B", "C"))

    def pairs(left, on):
        joined = Join(
            "inner", Project(r, (Col(0), Col(left))), Project(r, (Col(1), Col(2))), Op("=", (Col(1), Col(on)))
        )
        return Project(joined, (Col(0), Col(3 if left == 1 else 1)))

    query = Union(pairs(1, 2), pairs(2, 3))
    values = {}
    for row in evaluate(query, data):
        values[row.values] = values.get(row.values, ZERO) + row.annotation
    assert {key: str(poly) for key, poly in values.items()} == {
        ("a", "c"): "2*p^2",
        ("a", "e"): "p*r",
        ("d", "c"): "p*r",
        ("d", "e"): "2*r^2 + r*s",
        ("f", "e"): "r*s + 2*s^2",
    }


DATA = {
    "r": [("r0", (1, "a")), ("r1", (1, "a")), ("r2", (2, None)), ("r3", (None, "b"))],
    "s": [("s0", (1, 10)), ("s1", (None, 20)), ("s2", (3, None))],
}
R, S = Scan("r", ("k", "g")), Scan("s", ("k", "v"))
EQUAL = Op("=", (Col(0), Col(2)))


def annotations(plan, data=DATA):
    return Counter((row.values, str(row.annotation)) for row in present(plan, data))


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (Join("inner", R, S, EQUAL), {((1, "a", 1, 10), "r0*s0"): 1, ((1, "a", 1, 10), "r1*s0"): 1}),
        (
            Join("left", R, S, EQUAL),
            {
                ((1, "a", 1, 10), "r0*s0"): 1,
                ((1, "a", 1, 10), "r1*s0"): 1,
                ((2, None, None, None), "r2"): 1,
                ((None, "b", None, None), "r3"): 1,
            },
        ),
        (Join("semi", R, S, EQUAL), {((1, "a"), "r0*δ(s0)"): 1, ((1, "a"), "r1*δ(s0)"): 1}),
        (Join("anti", R, S, EQUAL), {((2, None), "r2"): 1, ((None, "b"), "r3"): 1}),
        (Distinct(R), {((1, "a"), "δ(r0 + r1)"): 1, ((2, None), "δ(r2)"): 1, ((None, "b"), "δ(r3)"): 1}),
        (Project(R, (Col(1),)), {(("a",), "r0"): 1, (("a",), "r1"): 1, ((None,), "r2"): 1, (("b",), "r3"): 1}),
        (
            SetOp("except", True, Project(R, (Col(0),)), Project(S, (Col(0),))),
            {((1,), "(r0 + r1 ⊖ s0)"): 1, ((2,), "r2"): 1},
        ),
        (SetOp("except", False, Project(R, (Col(0),)), Project(S, (Col(0),))), {((2,), "δ(r2)"): 1}),
        (
            SetOp("intersect", False, Project(R, (Col(0),)), Project(S, (Col(0),))),
            {((1,), "δ(r0 + r1)*δ(s0)"): 1, ((None,), "δ(r3)*δ(s1)"): 1},
        ),
        (
            SetOp("intersect", True, Project(R, (Col(0),)), Project(S, (Col(0),))),
            {((1,), "(r0 + r1 ⊖ (r0 + r1 ⊖ s0))"): 1, ((None,), "(r3 ⊖ (r3 ⊖ s1))"): 1},
        ),
        (Filter(R, Op("NOT", (Exists(Filter(S, Op("=", (Col(0), Up(0))))),))), {((2, None), "r2"): 1, ((None, "b"), "r3"): 1}),
        (Filter(R, In(Col(0), Project(S, (Col(0),)))), {((1, "a"), "r0*δ(s0)"): 1, ((1, "a"), "r1*δ(s0)"): 1}),
        (Filter(R, Op("NOT", (In(Col(0), Project(S, (Col(0),))),))), {}),
    ],
)  # fmt: skip
def test_operators_annotate_as_specified(plan, expected):
    assert annotations(plan) == Counter(expected)


def test_groups_aggregates_and_guards():
    plan = Aggregate(S, (0,), (Call("COUNT", Col(1)), Call("SUM", Col(1))))
    rows = {row.values: row for row in present(plan, DATA)}
    assert {key: str(row.annotation) for key, row in rows.items()} == {
        (1, 1, 10): "δ(s0)",
        (None, 1, 20): "δ(s1)",
        (3, 0, None): "δ(s2)",
    }
    assert str(rows[3, 0, None].cells[2]) == "SUM()"
    guarded = Filter(plan, Op(">", (Col(2), Lit(15))))
    assert [str(row.annotation) for row in present(guarded, DATA)] == ["[SUM(s1⊗20) > 15]*δ(s1)"]
    candidates = [row.values for row in evaluate(guarded, DATA) if not row.annotation.count()]
    assert sorted(candidates, key=repr) == [(1, 1, 10), (3, 0, None)]


def test_an_aggregate_without_keys_has_one_row_always():
    plan = Aggregate(Scan("s", ("k", "v")), None, (Call("COUNT"), Call("MAX", Col(1)), Call("AVG", Col(1))))
    (row,) = present(plan, DATA)
    assert row.values == (3, 20, Fraction(15))
    assert str(row.annotation) == "1"
    assert row.trace.rows == {"s0", "s1", "s2"}
    assert bag(plan, without(DATA, {"s0", "s1", "s2"})) == [(0, None, None)]


def test_null_cells_are_no_terms():
    (row,) = present(Aggregate(S, None, (Call("MAX", Col(1)),)), DATA)
    assert row.trace.rows == {"s0", "s1"}


def test_windows_scalars_and_lists():
    total = Window(S, (Over("SUM", Col(1), (), (0,), ("ROWS", -1, 0)),))
    assert {row.values[2]: row.trace.rows for row in present(total, DATA)} == {
        20: {"s1"},
        30: {"s0", "s1"},
        10: {"s0", "s2"},
    }
    ranked = Window(S, (Over("RANK", None, (), (0,)),))
    assert all(row.trace.rows == {"s0", "s1", "s2"} for row in present(ranked, DATA))
    scalar = Project(R, (Col(0), Scalar(Aggregate(Filter(S, Op("=", (Col(0), Up(0)))), None, (Call("MAX", Col(1)),)))))
    assert [sorted(row.trace.rows) for row in present(scalar, DATA)] == [["r0", "s0"], ["r1", "s0"], ["r2"], ["r3"]]
    lists = {"l": [("l0", ([1, 2],)), ("l1", ([],)), ("l2", (None,))]}
    exploded = Explode(Scan("l", ("l",)), 0, outer=True)
    assert [(row.values[1], str(row.annotation)) for row in present(exploded, lists)] == [
        (1, "l0"), (2, "l0"), (None, "l1"), (None, "l2"),
    ]  # fmt: skip
    assert [row.trace.rows for row in present(Limit(S, (1,), 1), DATA)] == [{"s2"}]


def test_right_operands_of_monus_stand_against():
    taken = SetOp("except", False, Project(R, (Col(0),)), Project(S, (Col(0),)))
    plan = Join("anti", Project(R, (Col(0),)), taken, Op("=", (Col(0), Col(1))))
    rows = {row.values: row.trace for row in present(plan, DATA)}
    assert rows[(1,)].rows <= {"r0", "r1"}
    assert rows[(1,)].against == {"r0", "r1", "s0"}


def test_candidates_are_no_part_of_the_trace():
    a, b = token("a"), token("b")
    assert traced(a + b * (ONE - ONE)).rows == {"a"}
    assert traced(a * (ONE - b)).rows == frozenset()


@pytest.mark.parametrize("seed", range(60))
def test_a_deletion_evaluates_the_annotations_where_nothing_steers(seed):
    """For a plan without computed values, the annotations at 0 for what is gone count what a re-run gives."""
    rng = Random(seed)
    data = random_data(rng)
    plan = Plans(rng).plan(rng.randint(1, 3)).plan
    rows = evaluate(plan, data)
    if any("[" in str(row.annotation) or any(hasattr(cell, "get") for cell in row.cells) for row in rows):
        return
    gone = {tok for relation in data.values() for tok, _ in relation if rng.random() < 0.3}
    kept = Counter()
    for row in rows:
        kept[repr(row.values)] += row.annotation.count(dict.fromkeys(gone, 0))
    assert +kept == Counter(repr(values) for values in bag(plan, without(data, gone)))
