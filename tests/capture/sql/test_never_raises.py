"""Texts of sqlglot's own tests, in all dialects, whole and as parts of a query: nothing of them may raise.

An ordinary run takes every eighth of them.
"""

from __future__ import annotations

import subprocess

import pytest
from depth import LONG

from bench.oracles.strings import sqlglot_texts
from govtool.build_form import COMPILED, form
from govtool.capture.sql import extract as extractor
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script

FORMS = ("SELECT {} AS x FROM t", "SELECT * FROM t WHERE {}", "CREATE VIEW v AS SELECT * FROM ({}) AS s")


def test_sqlglots_own_texts():
    try:
        texts = list(sqlglot_texts())
    except subprocess.CalledProcessError:
        pytest.skip("sqlglot's source distribution, which holds the texts, cannot be downloaded")
    assert len(texts) > 10_000
    if not LONG:
        texts = texts[::8]
    failed = []
    for number, (dialect, text) in enumerate(texts):
        for sql in (text, FORMS[number % len(FORMS)].replace("{}", text)):
            extraction = extract([Script("text.sql", sql)], Options(dialect=dialect, evidence=False))
            failed += [(dialect, sql, n.message) for n in extraction.diagnostics if "could not be" in n.message]
    assert failed == []


@pytest.mark.skipif(form() == COMPILED, reason="compiled functions cannot be replaced")
@pytest.mark.parametrize(("part", "code"), [("render", "template"), ("parse_script", "unreadable")])
def test_a_file_that_cannot_be_read_does_not_cost_the_others(part, code, monkeypatch):
    real = getattr(extractor, part)

    def broken(text, *args, **kwargs):
        if "odd" in text:
            raise RecursionError("too deep")
        return real(text, *args, **kwargs)

    monkeypatch.setattr(extractor, part, broken)
    scripts = [
        Script("a.sql", "create view v as select odd from t"),
        Script("b.sql", "create view w as select x from t"),
    ]
    found = extract(scripts, Options(dialect="postgres"))
    assert "w" in [d.target for d in found.derivations]
    [note] = [d for d in found.diagnostics if d.severity == "error"]
    assert (note.code, note.file) == (code, "a.sql")
    assert note.message.endswith("(RecursionError: too deep)")
