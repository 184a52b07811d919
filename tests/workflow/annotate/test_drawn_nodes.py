"""Nodes as the paper draws them change no polynomial: with them, equal rows are one that is there as often."""

from __future__ import annotations

from collections import Counter

import pytest

from govtool.app.why.rows import why
from govtool.workflow.annotate import query
from govtool.workflow.annotate.drawn import DRAWN

QUERIES = [
    "select t from r",
    "select a.t, b.x from r a join r b on a.k = b.k",
    "select k, count(*) as n, sum(x) as s from (select k, x from r) p group by k",
    "select t from (select t, k from r) p where exists (select 1 from r q where q.k = p.k and q.x > 5)",
    "select k from (select k from r) p except all select k from r where t = 'a'",
    "select distinct k from (select k, t from r) p",
    "select n, count(*) as c from (select k, count(*) as n from r group by k) g group by n",
    "select p.t, q.x from (select t, k from r) p left join (select x, k from r where t = 'b') q on p.k = q.k",
    "select k, (select count(*) from r q where q.k = p.k) as n from (select k from r) p",
]


@pytest.fixture
def folder(tmp_path):
    rows = ["r1,1,a,3", "r2,1,a,3", "r3,2,b,7", "r4,,a,3", "r5,2,b,7", "r6,3,,"]
    (tmp_path / "r.csv").write_text("\n".join(["_tok,k,t,x", *rows]))
    return tmp_path


def counts(sql, folder):
    """How often each row is there, and the parts of its sums: rows with computed cells may stand apart."""
    times, parts = Counter(), {}
    for row in why(sql, folder, ("polynomial",)).tuples:
        times[row.values] += row.multiplicity
        parts[row.values] = sorted([*parts.get(row.values, ()), *row.annotations["polynomial"].split(" + ")])
    return times, parts


@pytest.mark.parametrize("sql", QUERIES)
def test_drawn_rows_are_there_as_often_and_of_the_same_records(sql, folder, monkeypatch):
    plain = counts(sql, folder)
    monkeypatch.setattr(query, "RULES", DRAWN)
    assert counts(sql, folder) == plain
