"""Expressions that fail on rows that a query leaves out: they fail neither the query nor a question about it."""

from __future__ import annotations

import pytest
from annotated_differential import run

import govtool
from govtool.workflow.annotate import query

SALES = "k,x\n1,2\n1,0\n2,3\n2,-3\n3,0\n4,1\n"
RETURNS = "k,y\n1,1\n2,0\n3,5\n"


@pytest.fixture
def data(tmp_path):
    (tmp_path / "a.csv").write_text(SALES)
    (tmp_path / "b.csv").write_text(RETURNS)
    return str(tmp_path)


SUMS = "(select k, sum(x) as s from a group by k)"


@pytest.mark.parametrize(
    "query",
    [
        f"select k, 10 / s as r from {SUMS} where s <> 0",
        f"select k, r from (select k, 10 / s as r, s from {SUMS}) where s <> 0",  # the filter comes first
        "select k, 10 / sum(x) as r from a group by k having sum(x) <> 0",
    ],
)
@pytest.mark.parametrize("mode", ["propagate", "auto"])
def test_a_group_that_a_filter_leaves_out_is_not_divided(data, query, mode):
    answer = govtool.whatif_delete(query, data, ["a:0", "a:2"], mode=mode)
    statuses = {row.before: row.status for row in answer.result.rows}
    assert statuses == {(1, 5.0): "deleted", (4, 10.0): "kept"}
    assert [(k, round(r, 3)) for k, r in answer.result.gains] == [(2, -3.333)]
    assert answer.result.is_certain


def test_a_row_that_would_fail_if_it_appeared_leaves_the_answer_open(data):
    query = "select k, 10 / x as r from a where not exists (select 1 from b where b.k = a.k and y > 0)"
    (opened, kept) = (govtool.whatif_delete(query, data, [token], mode="propagate") for token in ("b:2", "b:1"))
    assert {row.status for row in opened.result.rows} == {"kept"}
    assert opened.result.gains_possible  # a new run divides by zero
    assert kept.result.is_certain


def test_why_leaves_out_candidates_whose_values_are_not_known(data):
    found = govtool.why(f"select k, 10 / s as r from {SUMS} where s <> 0", data, semirings=["count"])
    assert sorted(row.values for row in found.tuples) == [(1, 5.0), (4, 10.0)]
    assert found.to_dict()["gains_possible"]


def test_a_condition_is_not_evaluated_for_rows_that_another_one_leaves_out(data):
    query = f"select u.k from {SUMS} u join b on 10 / u.s = b.y where u.s <> 0 and b.y > 0"
    answer = govtool.whatif_delete(query, data, ["a:1"])
    assert [(row.before, row.status) for row in answer.result.rows] == [((1,), "kept")]
    assert answer.result.is_certain


@pytest.mark.parametrize("seed", [910025, 910051])
def test_random_queries_are_annotated_alike_where_filters_come_first(seed, monkeypatch):
    once = query._annotated
    monkeypatch.setattr(query, "_annotated", lambda *given, is_careful: once(*given, is_careful=True))
    assert run(range(seed, seed + 1)).wrong == []
