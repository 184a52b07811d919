"""Verdicts of ``drop``, ``rename`` and ``retype`` against what fails in DuckDB when the column is changed."""

from __future__ import annotations

import pytest

from bench.oracles import changes
from bench.oracles.contents import Contents
from govtool.query.changes import change as rules_of_changes

pytest.importorskip("duckdb")


def test_random_warehouses():
    report = changes.run(range(10))
    assert [(f.seed, f.change, f.subject, f.column, f.reason, f.sql) for f in report.of("missed")] == []
    assert sum(report.failing.values()) > 1000
    for change in ("drop", "rename"):  # a name that an outer query has as well: it means another column then
        assert len(report.of("false alarm", change)) <= 0.01 * report.broken[change]


def test_what_only_the_list_of_references_shows_is_noticed_when_it_is_missing(monkeypatch):
    """The oracle can see it: without the references, columns that fail are said to be unaffected."""
    monkeypatch.setattr(rules_of_changes, "_reference_actions", lambda change: ())
    report = changes.run(range(4), ["drop"])
    assert report.of("missed")


def test_a_name_that_is_found_elsewhere_shows_in_the_values():
    contents = Contents(changes.base_tables())
    contents.renew({"v": "SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM items WHERE qty > 1)"})
    assert contents.differing(("items", "qty", "new_name"), {"v"}) == {("v", "id")}
    assert contents.differing(("items", "sku", "new_name"), {"v"}) == set()
