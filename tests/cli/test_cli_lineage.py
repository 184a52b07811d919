"""``govtool lineage`` on files and stdin."""

from __future__ import annotations

import csv
import io
import json

import pytest
from answers import check


def test_json_of_a_query(govtool):
    done = govtool("lineage", "-", "--format", "json", stdin=b"select lower(name) as n from users where id > 3")
    assert done.code == 0
    answer = json.loads(done.out)
    check(answer, "lineage-1")
    [result] = answer["results"]
    assert result["id"] == "<stdin>"
    assert result["edges"] == [["users.name", ".n"]]
    assert result["kinds"] == [["transformation"]]
    assert result["referenced"] == {"": ["users.id"]}
    assert result["tables"] == {"sources": ["users"], "targets": []}


def test_the_paper_s_example_over_three_files_in_any_order(govtool, project):
    (project / "1.sql").write_text(
        "CREATE VIEW info AS SELECT c.name, c.age, o.oid, w.* FROM customers c JOIN orders o ON c.cid = o.cid "
        "JOIN webact w ON c.cid = w.wcid"
    )
    (project / "2.sql").write_text(
        "CREATE VIEW webact AS SELECT w.wcid, w.wdate, w.wpage, w.wreg FROM webinfo w "
        "INTERSECT SELECT w1.cid, w1.date, w1.page, w1.reg FROM web w1"
    )
    (project / "3.sql").write_text(
        "CREATE VIEW webinfo AS SELECT c.cid AS wcid, w.date AS wdate, w.page AS wpage, w.reg AS wreg "
        "FROM customers c JOIN web w ON c.cid = w.cid WHERE EXTRACT(YEAR FROM w.date) = 2022"
    )
    answer = json.loads(govtool("lineage", ".", "-f", "json").out)
    by_file = {result["id"]: result for result in answer["results"]}
    assert by_file["1.sql"]["columns"] == {"info": ["name", "age", "oid", "wcid", "wdate", "wpage", "wreg"]}
    assert ["webact.wpage", "info.wpage"] in by_file["1.sql"]["edges"]
    assert "web.page" in by_file["2.sql"]["referenced"]["webact"]


def test_what_is_not_known_does_not_look_like_what_has_no_source(govtool):
    sql = b"create view v as select x, 1 as one from t join u on t.id = u.id; create view w as select * from nowhere"
    done = govtool("lineage", "-", "--dialect", "postgres", stdin=sql)
    assert done.out.splitlines() == [
        " column  from       kinds",
        " v.x     t.x        ambiguous",
        "         u.x        ambiguous",
        " v.one",
        " w.?     nowhere.?  star-unresolved",
        " v.*     t.id       join",
        "         u.id       join",
        "",
        "0 edges into 2 relations from 3 relations · coverage 0.0% (0/2 statements)",
    ]
    for form, shown in (
        ("csv", "v.x,u.x,ambiguous,<stdin>"),
        ("markdown", "| v.x | t.x | ambiguous |"),
        ("mermaid", '-.->|"star-unresolved"|'),
        ("dot", '[label="ambiguous", style=dotted]'),
    ):
        assert shown in govtool("lineage", "-", "--dialect", "postgres", "-f", form, stdin=sql).out
    answer = json.loads(govtool("lineage", "-", "--dialect", "postgres", "-f", "json", stdin=sql).out)
    assert answer["results"][0]["edges"] == []


def test_table_in_a_pipe(govtool):
    done = govtool("lineage", "-", stdin=b"create view v as select a, b + 1 as c from t")
    assert done.out.splitlines() == [
        " column  from  kinds",
        " v.a     t.a   identity",
        " v.c     t.b   transformation",
        "",
        "2 edges into 1 relation from 1 relation · coverage 100.0% (1/1 statement)",
    ]


def test_csv(govtool):
    done = govtool("lineage", "-", "-f", "csv", stdin=b"create view v as select a from t")
    assert list(csv.reader(io.StringIO(done.out))) == [
        ["target", "source", "kinds", "file"],
        ["v.a", "t.a", "identity", "<stdin>"],
    ]


@pytest.mark.parametrize(("form", "start"), [("dot", "digraph lineage {"), ("mermaid", "flowchart LR")])
def test_drawings(govtool, form, start):
    assert govtool("lineage", "-", "-f", form, stdin=b"create view v as select a from t").out.startswith(start)


def test_several_formats_at_once(govtool, project):
    sql = b"create view v as select a from t"
    done = govtool("lineage", "-", "-f", "table", "-f", "json", "-o", "out.json", stdin=sql)
    assert done.out.startswith(" column")
    check(json.loads((project / "out.json").read_text()), "lineage-1")
    govtool("lineage", "-", "-o", "out.mmd", stdin=sql)
    assert (project / "out.mmd").read_text().startswith("flowchart")
    assert sorted(path.name for path in project.iterdir()) == ["out.json", "out.mmd"]


def test_an_unparsable_file_is_a_pointed_error_and_the_rest_is_answered(govtool, project):
    (project / "bad.sql").write_text("create view ok as select a from t;\nselect (((\nfrom;\n")
    done = govtool("lineage", "bad.sql", "-f", "json")
    assert done.code == 0
    [result] = json.loads(done.out)["results"]
    assert result["edges"] == [["t.a", "ok.a"]]
    assert result["error"]["line"] in (2, 3)
    assert "bad.sql:" in done.err
    assert "^" in done.err


def test_nothing_understood_is_insufficient_evidence(govtool):
    done = govtool("lineage", "-", stdin=b"select (((")
    assert done.code == 3
    assert "evidence.coverage" in done.err


def test_strict_asks_for_everything(govtool, project):
    (project / "a.sql").write_text("create view ok as select a from t;\nselect (((\n")
    assert govtool("lineage", "a.sql", "--strict").code == 3
    assert govtool("lineage", "a.sql", "--min-coverage", "90").code == 3
    assert govtool("lineage", "a.sql", "--min-coverage", "50").code == 0


def test_a_folder_without_sql(govtool, project):
    (project / "empty").mkdir()
    done = govtool("lineage", "empty")
    assert done.code == 2
    assert "usage.no-sql" in done.err
    assert "hint" in done.err


def test_a_binary_file_is_named_and_the_rest_is_answered(govtool, project):
    (project / "a.sql").write_bytes(b"\x00\x01\x02" * 100)
    (project / "b.sql").write_text("create view v as select a from t")
    done = govtool("lineage", ".", "-f", "json")
    assert done.code == 0
    assert "a.sql" in done.err
    by_file = {result["id"]: result for result in json.loads(done.out)["results"]}
    assert by_file["a.sql"]["error"]["code"] == "not-sql"
    assert by_file["b.sql"]["edges"] == [["t.a", "v.a"]]


def test_schema_and_variables(govtool, project):
    (project / "ddl.sql").write_text("create table t (a int, b text)")
    sql = b"create view v as select * from {{ relation }}"
    assert "v.b" not in govtool("lineage", "-", "--schema", "ddl.sql", "-f", "csv", stdin=sql).out
    done = govtool("lineage", "-", "--schema", "ddl.sql", "--var", "relation=t", "-f", "csv", stdin=sql)
    assert "v.b,t.b,identity" in done.out


def test_defaults_of_the_project(govtool, project):
    (project / "govtool.toml").write_text("[sql]\ndialect = 'bigquery'\ndefault_schema = 'mart'\n")
    assert "mart.t.a" in govtool("lineage", "-", "-f", "csv", stdin=b"select `a` from `t`").out


def test_escapes_in_names_never_reach_the_terminal(govtool):
    sql = b'create view "v\x1b[31m" as select "a\x1b[2J" from t'
    for form in ("table", "json", "csv", "markdown", "dot", "mermaid", "jsonl"):
        done = govtool("lineage", "-", "-d", "postgres", "-f", form, stdin=sql)
        assert "\x1b" not in done.out + done.err


def test_what_is_not_known_of_a_temporary_table_is_not_known_of_its_readers(govtool):
    sql = b"create temp table x as select k from t join u on t.id = u.id; create table y as select upper(k) m from x"
    done = govtool("lineage", "-", "--dialect", "postgres", "-f", "csv", stdin=sql)
    assert {line for line in done.out.splitlines() if line.startswith("y.m")} == {
        "y.m,t.k,ambiguous,<stdin>",
        "y.m,u.k,ambiguous,<stdin>",
    }


def test_the_result_of_a_bare_select_has_a_name_in_tables(govtool, project):
    (project / "q.sql").write_text("select a, count(*) as n from t group by a")
    done = govtool("lineage", "q.sql")
    assert [line.split() for line in done.out.splitlines()[1:4]] == [
        ["(query).a", "t.a", "identity"],
        ["(query).n"],
        ["(query).*", "t.a", "group_by"],
    ]
    assert "1 edge into 1 query from 1 relation" in done.out
    assert "(query).a" in govtool("lineage", "q.sql", "-f", "markdown").out
    assert ".a,t.a,identity,q.sql" in govtool("lineage", "q.sql", "-f", "csv").out.splitlines()  # lineage/1 stays
    assert json.loads(govtool("lineage", "q.sql", "-f", "json").out)["results"][0]["edges"] == [["t.a", ".a"]]


def test_results_of_several_files_are_told_apart(govtool, project):
    (project / "p.sql").write_text("select a from t")
    (project / "q.sql").write_text("select a from t; create view v as select a from t")
    done = govtool("lineage", ".", "-f", "plain")
    assert {line.split()[0] for line in done.out.splitlines()[1:4]} == {"(p.sql).a", "(q.sql).a", "v.a"}
    assert "3 edges into 1 relation and 2 queries from 1 relation" in done.out


def test_a_file_that_cannot_be_read_has_no_hint_about_a_store_or_a_dialect(govtool, project):
    (project / "a.sql").mkdir()
    (project / "a.sql" / "b.sql").write_bytes(b"\x00\x01\x02" * 100)
    done = govtool("lineage", "a.sql/b.sql")
    assert done.code == 3
    assert "dialect" not in done.err
    assert "earlier" not in done.err
    assert "dialect" in govtool("lineage", "-", stdin=b"select (((").err
