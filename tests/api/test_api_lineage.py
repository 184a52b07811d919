"""``govtool.lineage()``."""

from __future__ import annotations

import io
from threading import Thread

import pytest

import govtool
from govtool.errors import EvidenceError, UnknownNameError, UsageError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_text():
    answer = govtool.lineage("create view v as select lower(name) as n from users where id > 3")
    assert list(answer.rows()) == [
        ("v.n", "users.name", ("transformation",), "<stdin>"),
        ("v.*", "users.id", ("filter",), "<stdin>"),
    ]
    assert answer.coverage.share() == 1.0


def test_paths_and_stdin(folder):
    (folder / "a.sql").write_text("create view a as select x from t")
    answer = govtool.lineage(paths=[folder / "a.sql", "-"], stdin=io.BytesIO(b"create view b as select x from a"))
    assert sorted((target, source) for target, source, _, _ in answer.rows()) == [("a.x", "t.x"), ("b.x", "a.x")]


@pytest.mark.parametrize("schema", [{"t": ["a", "b"]}, {"t": {"a": "int", "b": "text"}}])
def test_schema_as_a_mapping_resolves_stars(schema):
    answer = govtool.lineage("create view v as select * from t", schema=schema)
    assert answer.results[0].columns == {"v": ("a", "b")}


def test_a_mapping_goes_before_the_files_of_the_project(folder):
    (folder / "ddl.sql").write_text("create table t (old int)")
    (folder / "govtool.toml").write_text('[sql]\nschema = ["ddl.sql"]\ndialect = "postgres"\n')
    assert govtool.lineage("create view v as select * from t").results[0].columns == {"v": ("old",)}
    answer = govtool.lineage("create view v as select * from t", schema={"t": ["new"]})
    assert answer.results[0].columns == {"v": ("new",)}


def test_variables_are_a_mapping_or_texts(folder):
    (folder / "a.sql").write_text("create view v as select {{ column }} from t")
    for var in ({"column": "a"}, ["column=a"], "column=a"):
        assert [row[:2] for row in govtool.lineage(paths="a.sql", var=var).rows()] == [("v.a", "t.a")]


def test_arrow_and_pandas():
    answer = govtool.lineage("create view v as select a, b from t")
    table = answer.to_arrow()
    assert table.column_names == ["target", "source", "kinds", "file"]
    assert table["kinds"].to_pylist() == [["identity"], ["identity"]]
    assert list(answer.to_pandas()["source"]) == ["t.a", "t.b"]


def test_a_table_without_rows_has_its_columns():
    assert govtool.lineage("set x = 1").to_arrow().column_names == ["target", "source", "kinds", "file"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "usage.arguments"),
        ({"paths": []}, "usage.arguments"),
        ({"sql": "select 1", "paths": "a.sql"}, "usage.arguments"),
        ({"paths": "-"}, "usage.stdin"),
        ({"sql": "select 1", "var": ["nonsense"]}, "usage.arguments"),
        ({"sql": "select 1", "dialect": "postgress"}, "usage.unknown-dialect"),
        ({"sql": "select 1", "semantics": "precis"}, "usage.unknown-semantics"),
    ],
)
def test_mistakes(arguments, code):
    with pytest.raises(UsageError) as caught:
        govtool.lineage(**arguments)
    assert caught.value.code == code


def test_a_near_name_is_given():
    with pytest.raises(UnknownNameError) as caught:
        govtool.lineage("select 1", semantics="precis")
    assert caught.value.nearest == ("precise",)


def test_coverage_is_checked_on_request():
    answer = govtool.lineage("create view v as select a from t; create view w as select foo( from")
    assert [d.code for d in answer.diagnostics] == ["parse-error"]
    answer.check_coverage(min_coverage=50)
    for demand in ({"strict": True}, {"min_coverage": 51}):
        with pytest.raises(EvidenceError):
            answer.check_coverage(**demand)


def test_answers_are_equal_whatever_thread_asks():
    sql = "create view v as select a, b from t; create view w as select * from v"
    answers = []
    threads = [Thread(target=lambda: answers.append(govtool.lineage(sql))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert all(answer == answers[0] for answer in answers)
