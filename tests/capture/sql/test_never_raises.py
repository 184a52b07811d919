"""Texts of sqlglot's own tests, in all dialects, whole and as parts of a query: nothing of them may raise."""

from __future__ import annotations

import subprocess

import pytest

from bench.oracles.strings import sqlglot_texts
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script

FORMS = ("SELECT {} AS x FROM t", "SELECT * FROM t WHERE {}", "CREATE VIEW v AS SELECT * FROM ({}) AS s")


def test_sqlglots_own_texts():
    try:
        texts = list(sqlglot_texts())
    except subprocess.CalledProcessError:
        pytest.skip("sqlglot's source distribution, which holds the texts, cannot be downloaded")
    assert len(texts) > 10_000
    failed = []
    for number, (dialect, text) in enumerate(texts):
        for sql in (text, FORMS[number % len(FORMS)].replace("{}", text)):
            extraction = extract([Script("text.sql", sql)], Options(dialect=dialect, evidence=False))
            failed += [
                (dialect, sql, n.message) for n in extraction.diagnostics if "could not be analysed" in n.message
            ]
    assert failed == []
