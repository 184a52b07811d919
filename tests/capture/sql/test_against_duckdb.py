"""The extractor against DuckDB: what a query puts out, and what may change without changing it."""

from __future__ import annotations

import subprocess

import pytest
from depth import examples

from bench.oracles import perturb
from bench.oracles.corpora import written_queries
from bench.oracles.queries import Generator
from bench.oracles.schemas import compare_names
from govtool.model import EdgeKind

pytest.importorskip("duckdb")


def test_generated_queries():
    report = perturb.run(range(examples(400)))
    assert [(f.seed, f.what, f.detail) for f in report.findings] == []
    assert report.queries > examples(400) * 3 // 4  # the rest DuckDB does not take


def test_output_columns_of_tpc():
    try:
        found = compare_names()
    except subprocess.CalledProcessError:
        pytest.skip("sqlglot's source distribution, which holds the queries, cannot be downloaded")
    assert {name: names.queries for name, names in found.items()} == {"TPC-DS": 99, "TPC-H": 22}
    assert {name: names.different for name, names in found.items()} == {"TPC-DS": {}, "TPC-H": {}}


def test_hard_queries():
    report = perturb.Report()
    with perturb.Database() as database:
        for sql in written_queries():
            perturb.examine(database, sql, report)
    assert [(f.sql, f.what, f.detail) for f in report.findings] == []
    assert report.refused == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [
        EdgeKind.IDENTITY,
        EdgeKind.TRANSFORMATION,
        EdgeKind.AGGREGATION,
        EdgeKind.CONDITIONAL,
        EdgeKind.WINDOW,
        EdgeKind.JOIN,
        EdgeKind.FILTER,
        EdgeKind.GROUP_BY,
        EdgeKind.SORT,
        EdgeKind.DISTINCT,
        EdgeKind.SET_OPERATION,
    ],
    ids=lambda kind: kind.label,
)
def test_a_kind_of_edge_that_is_left_out_is_noticed(monkeypatch, kind):
    """The oracle can see every kind: an extractor without it is found out."""
    monkeypatch.setattr(perturb, "ROW_SET", perturb.ROW_SET - {kind})
    monkeypatch.setattr(perturb, "CONTRIBUTED", perturb.CONTRIBUTED - {kind})
    report = perturb.Report()
    with perturb.Database() as database:
        for seed in range(2000):
            perturb.examine(database, Generator(seed, "duckdb").draw(), report, seed)
            if report.findings:
                break
    assert report.findings[0].what == "unsound"
