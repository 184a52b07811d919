"""A few of the random queries of ``semirings_differential.py``, in every semiring against brute force."""

from __future__ import annotations

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

from semirings_differential import run, without_spark

from govtool.app.records import engines


@pytest.mark.parametrize("first", [0, 3042, 3169])  # casts of set operations
def test_every_semiring_is_brute_force(monkeypatch, first):
    monkeypatch.setattr(engines, "engines", engines.engines)  # and back afterwards
    without_spark()
    wrong, report = run(range(first, first + 4))
    assert wrong == []
    assert report["answered: where"] == 4
