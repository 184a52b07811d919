"""The extractor against PostgreSQL: views made for real, their parse trees read, every column compared."""

from __future__ import annotations

import subprocess

import pytest
from depth import examples

from bench.oracles import routines, trees
from bench.oracles.compare import ASPECTS, View, compare_views
from bench.oracles.corpora import EXPLAINED, ONE_WIDTH, generated_views, tpc_views, written_views
from bench.oracles.objects import cases, run
from govtool.capture.sql.files import Script

TABLES = {"t": {"a": "int", "b": "int", "c": "text"}, "u": {"a": "int", "d": "int"}}


@pytest.fixture(scope="module")
def tpc():
    try:
        return tpc_views()
    except subprocess.CalledProcessError:
        pytest.skip("sqlglot's source distribution, which holds the queries, cannot be downloaded")


@pytest.mark.parametrize(("corpus", "queries"), [("TPC-DS", 99), ("TPC-H", 22)])
def test_tpc(postgres, tpc, corpus, queries):
    tables, views = tpc[corpus]
    outcome = compare_views(postgres, tables, views)
    assert outcome.refused == {}
    assert outcome.different() == {}
    assert len(outcome.verdicts) == queries


def test_hard_statements(postgres):
    outcome = compare_views(postgres, *written_views())
    assert outcome.refused == {}
    different = {v.view.query: v.differences for v in outcome.verdicts if v.differences}
    assert different.keys() == EXPLAINED.keys(), different


def test_generated_views(postgres):
    outcome = compare_views(postgres, *generated_views(range(examples(500))), ONE_WIDTH)
    assert outcome.different() == {}
    assert len(outcome.verdicts) > examples(500) * 4 // 5  # the rest PostgreSQL does not take


@pytest.mark.parametrize(
    ("query", "aspects"),
    [
        # The extractor reads the first statement and PostgreSQL the second: every sort of difference is noticed.
        (("select a from t", "select a as x from t"), {"names", "contributed", "contributed kinds"}),
        (("select a as x from t", "select b as x from t"), {"contributed", "contributed kinds", "depends", "named"}),
        (("select a + b as x from t", "select case a when 1 then b end as x from t"), {"contributed kinds"}),
        (
            ("select a from t where b > 0", "select a from t where c > ''"),
            {"referenced", "referenced kinds", "depends", "named"},
        ),
        (("select a from t where b > 0", "select a from t order by b"), {"referenced kinds"}),
    ],
)
def test_differences_are_noticed(postgres, monkeypatch, query, aspects):
    read = Script("v.sql", f"CREATE VIEW v AS {query[0]}")
    monkeypatch.setattr("bench.oracles.compare.Script", lambda file, text: read)
    outcome = compare_views(postgres, TABLES, [View("v", query[1])])
    assert set(outcome.verdicts[0].differences) == aspects
    assert aspects <= ASPECTS.keys()


def test_what_minds_a_changed_column_has_a_verdict(postgres):
    report = run(postgres, cases())
    assert (report.broken, report.missed) == ([], [])
    assert report.dependants > 200


def test_text_of_parse_trees_is_read():
    text = r'({A :n 1 :name a\ b :list (i 1 2) :const 4 [ 1 0 -1 0 ] :none <> :names ("x" "y\)") :sub {B :t true}})'
    (node,) = trees.read(text)
    assert node.kind == "A"
    assert node.number("n") == 1
    assert node["name"] == "a b"
    assert node["none"] is None
    assert node["names"] == ["x", "y)"]
    assert node["sub"] == {"t": "true"}
    assert node["const"] == "4"


def test_what_routines_decide(postgres):
    """Functions that count rows, leave early and decide by queries, on changed data and without columns."""
    found = {
        case.title: {each for each in routines.missed(postgres, case, 1, 2) if each.relation not in case.without}
        for case in routines.cases()
    }
    assert {title: missed for title, missed in found.items() if missed} == {}


def test_what_routines_decide_is_noticed(postgres):
    (case,) = (case for case in routines.cases() if case.without == {"u"})
    assert {each.relation for each in routines.missed(postgres, case, 1)} == {"u"}
