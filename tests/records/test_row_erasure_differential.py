"""Erasures of random chains of queries equal the same programs, run again without the subject's rows."""

from __future__ import annotations

import pytest
from depth import examples

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

from erasures import Erasures, check


def test_erasures_are_the_programs_without_the_subject(tmp_path, monkeypatch):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    total = Erasures()
    for seed in range(examples(60)):
        total.add(check(seed, tmp_path / str(seed)))
    assert total.wrong == []
    assert total.rewritten > examples(60) // 3
    assert total.unknown * 10 < total.datasets
