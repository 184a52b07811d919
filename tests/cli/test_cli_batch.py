"""``govtool lineage --batch``: one answer an input, in order, whatever the input is."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest
from answers import check
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.app.lineage import batch


def answers(*inputs: object) -> list[dict]:
    data = b"".join((i if isinstance(i, bytes) else json.dumps(i).encode()) + b"\n" for i in inputs)
    return [check(json.loads(line), "batch-1") for line in batch.serve(io.BytesIO(data))]


def test_an_answer_has_exactly_the_keys_of_the_protocol():
    sql = "create view v as select lower(name) as n, case when age > 3 then id end as i from users where id > 3"
    [answer] = answers({"id": 1, "dialect": "snowflake", "sql": sql, "schema": {"users": ["id", "name", "age"]}})
    assert answer == {
        "id": 1,
        "edges": [["users.age", "v.i"], ["users.id", "v.i"], ["users.name", "v.n"]],
        "kinds": [["conditional"], answer["kinds"][1], ["transformation"]],
        "referenced": {"v": ["users.id"]},
        "unclear": [],
        "columns": {"v": ["n", "i"]},
        "tables": {"sources": ["users"], "targets": ["v"]},
        "diagnostics": [],
        "error": None,
    }


def test_what_could_be_an_edge_is_listed_with_its_reason():
    sql = "create view v as select id from a, b; create view w as select z from a; insert into t selec x from a"
    [answer] = answers({"id": 1, "dialect": "postgres", "sql": sql, "schema": {"a": ["id", "x"], "b": ["id"]}})
    assert (answer["edges"], answer["referenced"]) == ([], {})
    assert sorted(answer["unclear"]) == [
        ["a.*", "t.*", "parse-error"],
        ["a.*", "w.z", "unresolved"],
        ["a.id", "v.id", "ambiguous"],
        ["b.id", "v.id", "ambiguous"],
    ]


def test_statements_resolve_against_each_other_within_an_input_only():
    one, two = answers(
        {"id": "a", "dialect": "", "sql": "create view w as select * from v; create view v as select x from t"},
        {"id": "b", "dialect": "", "sql": "create view u as select * from v"},
    )
    assert ["v.x", "w.x"] in one["edges"]
    assert one["columns"] == {"v": ["x"], "w": ["x"]}
    assert two["columns"]["u"] != ["x"]


def test_each_line_has_the_schema_that_it_gives_and_no_other():
    sql = "create view v as select * from t; drop table t; create table t (z int)"
    lines = [
        {"id": 0, "dialect": "postgres", "sql": sql, "schema": {"t": ["a"]}},
        {"id": 1, "dialect": "postgres", "sql": "create view v as select * from t", "schema": {"t": ["a", "b"]}},
        {"id": 2, "dialect": "postgres", "sql": "create view v as select * from t", "schema": {"t": ["a", "b"]}},
        {"id": 3, "dialect": "postgres", "sql": "create view v as select * from t", "schema": {"t": 7}},
        {"id": 4, "dialect": "postgres", "sql": "create view v as select * from t", "schema": {"T": ["a", "b"]}},
        {"id": 5, "dialect": "snowflake", "sql": "create view v as select * from t", "schema": {"T": ["a", "b"]}},
        {"id": 6, "dialect": "snowflake", "sql": "create view v as select * from t", "schema": None},
        {"id": 7, "dialect": "postgres", "sql": sql, "schema": {"t": ["a"]}},
    ]
    alone = [answers(line)[0] for line in lines]
    assert answers(*lines) == alone
    assert [answer["columns"].get("v") for answer in alone[1:4]] == [["a", "b"], ["a", "b"], None]
    assert alone[3]["error"]["code"] == "usage.schema"
    assert answers(*reversed(lines)) == alone[::-1]


def test_temporary_tables_are_looked_through():
    [answer] = answers({"id": 1, "sql": "create temp table x as select a from t; create table u as select a from x"})
    assert answer["edges"] == [["t.a", "u.a"]]
    [answer] = answers({"id": 2, "sql": "create temp table x as select a from t"})
    assert answer["tables"]["targets"] == ["temp.batch.x"]


def test_default_names():
    [answer] = answers(
        {"id": 1, "dialect": "postgres", "sql": "select a from t", "default_db": "dw", "default_schema": "public"}
    )
    assert answer["edges"] == [["dw.public.t.a", ".a"]]


@pytest.mark.parametrize("identity", [None, 0, -1, 1.5, "x", "", "\ud800", [1, {"a": None}], {"k": [1]}, True])
def test_an_id_of_any_json_type_comes_back(identity):
    [answer] = answers({"id": identity, "dialect": "", "sql": "select 1"})
    assert answer["id"] == identity


BAD = [
    (b"{", "batch.invalid-json"),
    (b"nonsense", "batch.invalid-json"),
    (b"\xff\xfe", "batch.invalid-json"),
    (b"[1, 2]", "batch.invalid"),
    (b"null", "batch.invalid"),
    (b"{}", "batch.invalid"),
    (b'{"id": 1, "sql": 5}', "batch.invalid"),
    (b'{"id": 1, "sql": "select 1", "dialect": 5}', "batch.invalid"),
    (b'{"id": 1, "sql": "select 1", "dialect": "klingon"}', "usage.unknown-dialect"),
    (b'{"id": 1, "sql": "select 1", "schema": [1]}', "batch.invalid"),
    (b'{"id": 1, "sql": "select 1", "default_db": {}}', "batch.invalid"),
    (b'{"id": NaN, "sql": "select 1"}', "batch.invalid-json"),
    (b'{"id": 1e999, "sql": "select 1"}', "batch.invalid"),
    (b'{"id": ' + b"9" * 10000 + b', "sql": "select 1"}', "batch.invalid-json"),
    (b"[" * 100_000, "nesting"),
    (b'{"id": 1, "sql": "select (((", "dialect": ""}', "parse-error"),
]


@pytest.mark.parametrize(("line", "code"), BAD)
def test_bad_input_is_answered_in_its_place(line, code):
    before, bad, after = answers(
        {"id": "before", "dialect": "", "sql": "select 1"},
        line,
        {"id": "after", "dialect": "", "sql": "select a from t"},
    )
    assert before["id"] == "before"
    assert bad["error"]["code"] == code
    assert after["edges"] == [["t.a", ".a"]]


def test_a_line_that_is_too_long_is_skipped(monkeypatch):
    monkeypatch.setattr(batch, "MAX_LINE", 1000)
    found = answers({"id": 1, "sql": "select 1" + " " * 5000}, {"id": 2, "sql": "select 1"})
    assert found[0]["error"]["code"] == "batch.too-large"
    assert (found[1]["id"], found[1]["error"]) == (2, None)


def test_the_last_line_needs_no_end_and_blank_lines_are_not_inputs():
    found = list(batch.serve(io.BytesIO(b'\n  \n{"id": 1, "sql": "select 1"}\n\n{"id": 2, "sql": "select 2"}')))
    assert [json.loads(line)["id"] for line in found] == [1, 2]


@pytest.mark.parametrize(
    "sql",
    [
        "",
        ";;;",
        "\x00",
        "select '",
        "/*",
        "select " + "(" * 3000 + "1" + ")" * 3000,
        "select " + "-".join("a" * 2000),
        "select 1 from " + "(select * from " * 300 + "t" + ")" * 300,
        "with recursive a as (select * from a) select * from a",
        "select \ud800",
        "create view a as select * from b; create view b as select * from a",
    ],
)
def test_hostile_sql_is_answered(sql):
    found = answers({"id": 1, "dialect": "postgres", "sql": sql}, {"id": 2, "dialect": "", "sql": "select a from t"})
    assert [answer["id"] for answer in found] == [1, 2]
    assert found[1]["edges"] == [["t.a", ".a"]]


@settings(max_examples=examples(60), deadline=None)
@given(st.binary(max_size=80).filter(lambda line: b"\n" not in line and line.strip()))
def test_any_bytes_get_an_answer(line):
    assert len(answers(line, {"id": "after", "sql": "select 1"})) == 2


def test_answers_are_flushed_one_by_one_and_a_reader_may_leave(project):
    code = "import sys; from govtool.cli.main import main; sys.exit(main(['lineage', '--batch']))"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        for number in range(3):
            process.stdin.write(json.dumps({"id": number, "sql": "select a from t"}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdout.close()
        process.stdin.write(json.dumps({"id": 4, "sql": "select a from t"}) + "\n")
        process.stdin.close()
        assert process.stderr.read() == ""
        assert process.wait() == 0


def test_defaults_fold_as_names_in_sql_do():
    """``default_db: "DW"`` is what ``DW.S.T`` names in SQL; the supplied schema is found below it."""
    line = {"id": 1, "sql": "select * from t", "schema": {"t": ["A"]}, "default_db": "DW", "default_schema": "S"}
    assert [a["edges"] for a in answers({**line, "dialect": "snowflake"}, {**line, "dialect": "postgres"})] == [
        [["dw.s.t.a", ".a"]],
        [["dw.s.t.a", ".a"]],
    ]
    [answer] = answers({**line, "dialect": "bigquery", "default_db": "my-project"})
    assert answer["edges"] == [['"my-project"."S".t.a', ".a"]]


def test_a_database_is_the_schema_where_names_have_two_parts():
    line = {"id": 1, "sql": "select a from t join o.u on t.i = u.i", "default_db": "shop", "schema": {"t": ["a", "i"]}}
    mysql, postgres = answers({**line, "dialect": "mysql"}, {**line, "dialect": "postgres"})
    assert mysql["tables"]["sources"] == ["o.u", "shop.t"]
    assert postgres["tables"]["sources"] == ["shop.o.u", "t"]


def test_lines_are_utf_8_and_nothing_else():
    utf16, cut = answers(b"\xff\xfe{}", b'{"id": 1,')
    assert utf16["error"]["message"] == "not UTF-8 at byte 1"
    assert (cut["error"]["line"], cut["error"]["column"]) == (1, 10)


def test_text_that_is_no_sql_is_an_error():
    for sql in ("this is not sql", "selec a", "hello", "foo(bar)", "a = b"):
        [answer] = answers({"id": 1, "dialect": "postgres", "sql": f"select x from t;\n {sql}"})
        assert answer["edges"] == [["t.x", ".x"]]
        assert answer["error"] == {"code": "parse-error", "message": "not a SQL statement", "line": 2, "column": 2}
