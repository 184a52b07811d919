"""What is not understood is never called unaffected; ``--strict`` means the same in every command that answers."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import govtool as package
from govtool.errors import EvidenceError

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
TABLES = "create table s (c int, k int);\ncreate table d (x int, y int);\n"
READS = TABLES + "insert into d (x) select k from s;\n"
HOLE = TABLES + "insert into d (x) select {{ my_macro('c') }} from s;\n"
LOST = TABLES + "INSERT INTO d SELECT c FRM s WHER;\n"
DYNAMIC = TABLES + "DO $$ BEGIN EXECUTE 'insert into d select ' || x; END $$;\n"
ENCRYPTED = (
    "create table crm.users (email text);\ncreate table share.p (id int);\n"
    "create table share.t as select encrypt(email) as w from crm.users;\n"
)
COMMANDS = {
    "impact": ("impact", "s.c", "--change", "drop"),
    "whatif": ("whatif", "drop", "s.c"),
    "path": ("path", "s.c", "d.x"),
    "check": ("check", "--policy", "pack:hipaa"),
    "erase plan": ("erase", "plan", "--subject", "s.c"),
}


@pytest.fixture
def ingested(govtool, project):
    """Make a store of one file; the command line."""

    def make(text: str, dialect: str = "postgres"):
        (project / "a.sql").write_text(text)
        assert govtool("init").code == 0
        govtool("ingest", "sql", "a.sql", "--dialect", dialect)
        return govtool

    return make


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_strict_refuses_where_a_statement_was_not_understood(ingested, command):
    govtool = ingested(LOST)
    assert govtool(*command).code == 0
    strict = govtool(*command, "--strict")
    assert strict.code == 3
    assert "1 statement not understood" in strict.err
    assert strict.out == govtool(*command).out  # the answer is shown all the same


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_strict_takes_an_answer_where_everything_was_understood(ingested, command):
    strict = ingested(READS)(*command, "--strict")
    if command[0] == "check":  # all statements are, but no rule had anything to judge
        assert (strict.code, "evidence.nothing-judged" in strict.err) == (3, True)
    else:
        assert strict.code == 0


def test_what_a_row_access_policy_reads_is_not_unaffected(ingested):
    govtool = ingested(
        "create table crm.users (id int, region text);\ncreate table sec.mapping (region text, role text);\n"
        "create table sec.other (k int);\n"
        "create row access policy sec.p as (r varchar) returns boolean -> "
        "exists (select 1 from sec.mapping m where m.region = r);\n"
        "alter table crm.users add row access policy sec.p on (region);\n",
        "snowflake",
    )
    assert "2 opaque" in (told := govtool("coverage", "--details").out)
    assert "a row access policy: the tables and columns by which it decides on rows are not followed" in told
    for column, unaffected in (("sec.mapping.role", False), ("crm.users.region", False), ("sec.other.k", True)):
        summary = govtool("impact", column, "--change", "drop").out.splitlines()[-1]
        assert ("unaffected" in summary) == unaffected
        assert ("not understood could read it" in summary) != unaffected


def test_findings_go_before_what_is_unclear(ingested):
    govtool = ingested(READS + LOST)
    assert govtool("impact", "s.k", "--change", "drop", "--fail-on", "breaks", "--strict").code == 1


def test_unaffected_is_said_only_where_it_is_known(ingested):
    govtool = ingested(DYNAMIC)
    lines = govtool("impact", "s.c", "--change", "drop").out.splitlines()
    assert lines[-1].startswith(
        "3 with no path found · 1 statement not understood could read it: govtool coverage --details · coverage 66.7%"
    )
    answer = json.loads(govtool("impact", "s.c", "-f", "json").out)
    jsonschema.validate(answer, json.loads((SCHEMAS / "impact-1.json").read_text()))
    summary = answer["summary"]
    assert (summary["no_path"], summary["not_understood"]) == (3, 1)
    assert "unaffected" not in summary
    assert "no path found" in govtool("whatif", "drop", "s.c").out
    graph = package.open()
    assert graph.impact("s.c").unaffected is None
    with pytest.raises(EvidenceError) as refused:
        graph.impact("s.c", strict=True)
    assert refused.value.code == "evidence.unclear"


def test_a_hole_in_a_statement_is_an_opaque_edge_from_all_that_it_reads(ingested):
    govtool = ingested(HOLE)
    answer = json.loads(govtool("impact", "s.c", "--change", "drop", "-f", "json").out)
    found = {entry["column"]: (entry["verdict"], entry["via"]) for entry in answer["columns"]}
    assert found["d.x"] == ("unknown", ["template"])
    assert govtool("impact", "s.c", "--change", "drop", "--strict").code == 3


TWO = "create table t (c int);\ncreate table e (x int);\n"


@pytest.mark.parametrize(
    ("text", "opaque"),
    [
        ("insert into d (x) select {{ m('c') }} from s; insert into e (x) select c from t;", {"s"}),  # one line
        ("insert into d (x) select {{ m('c') }} from s;\ninsert into e (x) select {{ m('c') }} from t;", {"s", "t"}),
        ("insert into d (x) select\n{{ m('c') }} from s; insert into e (x) select c\nfrom t;", {"s"}),
    ],
)
def test_a_hole_costs_the_statements_that_it_is_in_and_no_other(ingested, text, opaque):
    govtool = ingested(TABLES + TWO + text)
    for table in ("s", "t"):
        entries = json.loads(govtool("impact", f"{table}.c", "-f", "json").out)["columns"]
        assert {entry["verdict"] for entry in entries} == {"unknown" if table in opaque else "changes"}
    assert json.loads(govtool("coverage", "-f", "json").out)["coverage"]["opaque"] == len(opaque)


@pytest.mark.parametrize(
    ("select", "known"),
    [
        ("{{ var('q') }}", False),
        ("o.{{ column }}", False),
        ("{{ column }}_name", False),
        ("k, {% for c in columns %}{{ c }}{% endfor %}", False),
        ("k from o where day >= {{ ds }} and t = 'a {{ ds }} b' limit {{ n }} --", True),
        ("k as {{ alias }}", True),
        ("{{ aggregate }}(k)", True),
    ],
)
def test_a_value_that_nobody_gave_may_be_any_column(ingested, select, known):
    """Of ``o`` no columns are known, so that the name which the value renders to was taken for one of them."""
    govtool = ingested(f"insert into e (x) select c from o;\ninsert into d (x) select {select} from o;")
    answer = json.loads(govtool("impact", "o.c", "-f", "json").out)
    verdicts = {entry["column"]: entry["verdict"] for entry in answer["columns"]}
    assert ("unknown" in verdicts.values()) == (not known)
    assert govtool("impact", "o.c", "--strict").code == (0 if known else 3)


def test_a_check_with_strict_does_not_pass_over_what_was_not_parsed(ingested):
    govtool = ingested(ENCRYPTED.replace("from crm.users", "frm crm.people wher"))
    assert govtool("check", "--policy", "pack:starter").code == 0
    assert govtool("check", "--policy", "pack:starter", "--strict").code == 3
    assert package.open().check(policy="pack:starter").is_unclear()


def test_a_check_finds_what_an_unparsed_statement_may_have_carried(ingested):
    govtool = ingested(ENCRYPTED.replace("from crm.users", "frm crm.users wher"))
    found = json.loads(govtool("check", "--policy", "pack:starter", "-f", "json").out)["findings"]
    assert {(f["rule"], f["verdict"]) for f in found} >= {("START004", "violated"), ("START001", "unknown")}


def test_what_an_unparsed_statement_reads_may_be_in_what_it_writes(ingested):
    """PostgreSQL's encrypt wants more arguments: the statement does not parse, and may have leaked anything."""
    govtool = ingested(ENCRYPTED)
    answer = json.loads(govtool("impact", "crm.users.email", "--change", "drop", "-f", "json").out)
    assert {entry["column"]: entry["verdict"] for entry in answer["columns"]} == {"share.t.*": "unknown"}
    changed = govtool("whatif", "drop", "crm.users.email").out
    assert "1 dataset unknown" in changed
    assert "nothing is affected" not in changed
    found = json.loads(govtool("check", "--policy", "pack:starter", "-f", "json").out)["findings"]
    assert {(f["rule"], f["verdict"]) for f in found} >= {("START004", "violated"), ("START001", "unknown")}


@pytest.mark.parametrize(
    ("statement", "opaque"),
    [
        ("INSERT INTO d SELECT c FRM s WHER", {"s"}),
        ("INSERT INTO d (x) SELECT c FRM o.t WHER o.t.c = (", {"o.t"}),
        ("INSERT INTO d (x) SELECT c FROM s JON o.t ON o.t.c = s.c", {"s", "o.t"}),
        ("UPDATE d SET x = frm s.c WHERE (", {"s"}),
        ("CREATE TABLE d2 AS SELECT c FRM s", {"s"}),
        ("INSERT INTO d SELECT c FRM q WHER", set()),  # nothing else says that q is a table
    ],
)
def test_what_an_unparsed_statement_names_and_is_a_table_may_be_in_what_it_writes(ingested, statement, opaque):
    govtool = ingested(f"{TABLES}create table o.t (c int);\ncreate table p (c int);\n{statement};\n")
    for table in ("s", "o.t", "p"):
        answer = json.loads(govtool("impact", f"{table}.c", "--change", "drop", "-f", "json").out)
        verdicts = {entry["verdict"] for entry in answer["columns"]}
        assert ("unknown" in verdicts) == (table in opaque), table
        assert govtool("impact", f"{table}.c", "--fail-on", "unknown").code == (table in opaque)
    assert json.loads(govtool("impact", "p.c", "-f", "json").out)["summary"]["not_understood"] == 0


def test_a_dataset_of_unknown_columns_counts_in_the_summary_and_for_exit_codes(ingested):
    govtool = ingested(f"{TABLES}create table d2 as select * from s where (;\n")
    question = ("impact", "s.c", "--change", "drop")
    last = govtool(*question).out.splitlines()[-1]
    assert last.startswith("1 dataset of unknown columns: unknown, 3 with no path found")
    answer = json.loads(govtool(*question, "-f", "json").out)
    jsonschema.validate(answer, json.loads((SCHEMAS / "impact-1.json").read_text()))
    assert (answer["summary"]["unknown"], answer["summary"]["of_unknown_columns"]) == (0, {"unknown": 1})
    assert govtool(*question, "--fail-on", "unknown").code == 1
    assert govtool(*question, "--fail-on", "unknown", "--limit", "0").code == 1


FAR = "create table a.p (i int); create view a.q as select i from a.p;\n"


@pytest.mark.parametrize(
    ("unread", "question", "near"),
    [
        (LOST, ("s.c", "--change", "drop"), 1),
        (LOST, ("d.x", "--upstream"), 1),
        (LOST, ("a.p.i",), 0),
        ("INSERT INTO d SELECT c FRM s JION q WHER;", ("a.p.i",), 1),  # a view of it
        ("DO $$ BEGIN EXECUTE 'select ' || x; END $$;", ("a.p.i",), 1),
        ("INSERT INTO d SELECT c FRM s, '/data/p.csv' WHER;", ("a.p.i",), 1),
        ("INSERT INTO d SELECT 'a text without an end FROM a.p;", ("a.p.i",), 1),
        ("INSERT INTO d SELECT c FRM p2 WHER; ALTER TABLE p2 RENAME TO p;", ("a.p.i",), 1),
    ],
)
def test_statements_not_understood_count_where_they_name_what_a_question_reaches(ingested, unread, question, near):
    answer = json.loads(ingested(FAR + unread)("impact", *question, "-f", "json").out)
    assert answer["summary"]["not_understood"] == near
    assert ("unaffected" in answer["summary"]) == (not near)


@pytest.mark.parametrize(
    ("options", "told", "filter_"),
    [
        (("--depth", "1"), "1 break + 1 beyond depth 1, 1 unaffected", {"depth": 1, "kinds": []}),
        (("--kind", "join"), "+ 2 by other kinds than join, 1 unaffected", {"depth": None, "kinds": ["join"]}),
    ],
)
def test_what_a_filter_hides_is_not_called_unaffected(ingested, options, told, filter_):
    govtool = ingested(
        "create table t (a int, b int);\ncreate view v as select a from t;\ncreate view w as select a from v;\n"
    )
    question = ("impact", "t.a", "--change", "drop", *options)
    assert govtool(*question).out.splitlines()[-1].startswith(told)
    answer = json.loads(govtool(*question, "-f", "json").out)
    jsonschema.validate(answer, json.loads((SCHEMAS / "impact-1.json").read_text()))
    assert answer["filter"] == filter_
    assert answer["summary"]["hidden"] == int(told.split("+ ")[1][0])
    assert answer["summary"]["no_path"] == 1
    assert "filter" not in json.loads(govtool("impact", "t.a", "-f", "json").out)


def test_rules_that_judged_nothing_are_not_held(ingested):
    govtool = ingested(READS)
    done = govtool("check", "--policy", "pack:hipaa")
    assert "0 rules held, 4 not applicable" in done.out
    answer = json.loads(govtool("check", "--policy", "pack:hipaa", "-f", "json").out)
    assert {rule["verdict"] for rule in answer["rules"]} == {"not_applicable"}
    assert answer["summary"]["not_applicable"] == 4


@pytest.mark.parametrize(
    ("text", "pack", "rule"),
    [
        ("create table prod.share.t as select email as w from prod.crm.users", "starter", "START001"),
        ("create table prod.share.t as select email as w from prod.crm.users", "gdpr", "GDPR-ART5-SHARE"),
        ("create table prod.research.cohort as select mrn as who from prod.ehr.patients", "hipaa", "HIPAA-SAFE-HARBOR"),
        ("create table prod.mart.t as select card_number as w from prod.cde.cards", "pci", "PCI-3-5"),
        ("copy (select email as w from crm.users) to 's3://share/x'", "starter", "START001"),
    ],
)
def test_zones_of_packs_match_names_of_any_depth_and_exports(ingested, text, pack, rule):
    done = ingested(text + ";\n")("check", "--policy", f"pack:{pack}", "-f", "json")
    assert rule in {f["rule"] for f in json.loads(done.out)["findings"] if f["verdict"] == "violated"}


NOT_UNDERSTOOD = {
    "a parse error": ("postgres", "INSERT INTO d SELECT c FRM s WHER;"),
    "a CREATE that no parser reads": ("postgres", "CREATE TABLE e AS SELECT c FROM s WHERE c ??? 1 FROM;"),
    "dynamic SQL": ("postgres", "DO $$ BEGIN EXECUTE 'INSERT INTO d SELECT c FROM ' || f(); END $$;"),
    "dynamic SQL of SQL Server": ("tsql", "EXEC('INSERT INTO d SELECT c FROM ' + @t)"),
    "EXECUTE IMMEDIATE of a variable": ("snowflake", "EXECUTE IMMEDIATE $stmt;"),
    "generated statements": ("postgres", "select 'insert into d select c from s' \\gexec\n"),
    "an unknown macro": ("postgres", "INSERT INTO d(x) SELECT {{ my_macro('c') }} FROM s;"),
    "an unknown relation": ("postgres", "INSERT INTO d(x) SELECT c FROM {{ tab }};"),
    "a procedure in Python": ("snowflake", "create procedure p() returns string language python as 'x'"),
    "a block in Python": ("postgres", "do language plpython3u $$ plpy.execute('insert into d select c from s') $$;"),
    "the result of another query": ("snowflake", "insert into d(x) select * from table(result_scan(last_query_id()));"),
    "a query in a text": ("postgres", "create table z as select query_to_xml('SELECT c FROM s', true, true, '') q;"),
    "a table in a text": ("postgres", "create table z as select table_to_xml('s', true, true, '') q;"),
    "a remote query": ("postgres", "insert into d(x) select * from dblink('x', 'select c from s') as t(c int);"),
    "a query for another server": ("tsql", "insert into d(x) select c from openquery(other, 'select c from s')"),
    "a dictionary": ("clickhouse", "insert into d(x) select dictGet('dict_of_s', 'c', 1);"),
    "a table by an expression": ("snowflake", "INSERT INTO d(x) SELECT c FROM IDENTIFIER($tbl);"),
    "a clone of a schema": ("snowflake", "create schema share clone public;"),
    "an updatable query": ("oracle", "UPDATE (SELECT s.c a, d.x b FROM s, d) SET b = a;"),
    "a target by an expression": ("snowflake", "INSERT INTO IDENTIFIER($tbl) SELECT c FROM s;"),
    "a policy of rows": (
        "snowflake",
        "create row access policy p as (a int) returns boolean -> exists(select c from s);",
    ),
    "a call of an unknown procedure": ("postgres", "CALL refresh_d();"),
    "a call without EXEC": ("tsql", "go\nrefresh_d;"),
    "a call by a variable": ("tsql", "EXEC @p;"),
    "a call in a block of PL/SQL": ("oracle", "begin refresh_d; end;\n/\n"),
    "a procedure that runs a statement later": ("tsql", "EXEC msdb.dbo.sp_add_jobstep @command = 'x';"),
    "a function in Python that may run SQL": (
        "postgres",
        "create function f() returns int language plpython3u as 'x';",
    ),
    "a script that another includes": ("postgres", "\\i :file\n"),
    "a function that is called for what it does": ("postgres", "select refresh_d();"),
    "a function of a scheduler": (
        "postgres",
        "select cron.schedule('x', '* * * * *', 'insert into d select c from s');",
    ),
    "PERFORM": ("postgres", "do $$ begin perform refresh_d(); end $$;"),
    "PERFORM over a table": ("postgres", "do $$ begin perform f(c) from s; end $$;"),
    "a trigger that runs an unknown function": (
        "postgres",
        "create trigger t after insert on s for each row execute function copy_to_d();",
    ),
    "a program that rows come from": ("postgres", "copy d from program 'psql -c \"select c from s\"';"),
    "a foreign table": (
        "postgres",
        "create foreign table f (c int) server here options (table_name 's');\ninsert into d(x) select c from f;",
    ),
    "a virtual table": (
        "sqlite",
        "create virtual table v using fts5(c, content='s');\ninsert into d select c, c from v;",
    ),
    "a table of another server": (
        "mysql",
        "create table f (c int) engine=federated connection='mysql://h/db/s';\ninsert into d(x) select c from f;",
    ),
    "rows of other tables by a pattern": (
        "clickhouse",
        "create table m (c int) engine = Merge(default, '^s');\ninsert into d(x) select c from m;",
    ),
    "a table of a cluster": (
        "clickhouse",
        "create table m (c int) engine = Distributed(cl, default, s);\ninsert into d(x) select c from m;",
    ),
    "a remote table": ("clickhouse", "insert into d(x) select c from remote('localhost', default, s);"),
    "a query passed through": (
        "trino",
        "insert into d select * from table(system.query(query => 'select c, k from s'));",
    ),
    "a table of what a prepared statement returns": (
        "postgres",
        "prepare p as select c from s;\ncreate table x as execute p;",
    ),
    "a CREATE of nothing that is known": ("postgres", "create tabel x like s;"),
    "a trigger of DDL that runs an unknown function": (
        "postgres",
        "create event trigger et on ddl_command_end execute function f();",
    ),
    "a variable that a procedure sets": (
        "tsql",
        "create procedure p @t int output as select @t = max(c) from s;\ngo\n"
        "declare @x int; exec p @x output; insert d(x) values (@x);",
    ),
    "rows of dynamic SQL": (
        "postgres",
        "do $$ declare q text := f(); r record; begin for r in execute q loop insert into d(x) values (r.c); end loop;"
        " end $$;",
    ),
    "a table function over a table": (
        "bigquery",
        "create view v as select base.k from vector_search(table s, 'c', table d, 'x');",
    ),
    "a table with the columns that a query returns": (
        "snowflake",
        "create table x using template (select array_agg(object_construct(*)) from s);",
    ),
    "a name without the schema that it has": ("tsql", "create view v as select c from dbo.s;"),
    "a change through a name with its schema": ("postgres", "update public.s set k = 1;"),
    "a part of a trigger": (
        "mysql",
        "create trigger t after insert on s for each row begin insert into d frob set values (new.c) y; end",
    ),
    "a part of a routine": (
        "postgres",
        "create procedure p(v int) language plpgsql as $$ begin insert into d frob values (v) x; end $$;\n"
        "do $$ declare r record; begin for r in select c from s loop call p(r.c); end loop; end $$;",
    ),
    "a statement with a variable": (
        "bigquery",
        "declare v int64; set v = (select max(c) from s);\ninsert into d frob values (v) x;",
    ),
    "a query of a load": (
        "mysql",
        "load data infile 'x' into table d (x, @k) set y = (select max(c) from s where k = @k);",
    ),
    "an item that is left out": ("duckdb", "insert into d(x) select columns('(') from s;"),
    "an export to a computed place": (
        "bigquery",
        "export data options (uri = concat('gs://', f())) as select c from s;",
    ),
    "a script that is not there": ("postgres", "\\i missing.sql\n"),
    "a value in the name of a target": ("postgres", "INSERT INTO d_{{ day }}(x) SELECT c FROM s;"),
    "a value in the name of what is read": ("postgres", "INSERT INTO d(x) SELECT c FROM ${env}s;"),
    "the rows that dynamic SQL has touched": (
        "postgres",
        "DO $$ DECLARE n int; BEGIN EXECUTE 'UPDATE ' || f(); GET DIAGNOSTICS n = ROW_COUNT; "
        "INSERT INTO d(x) VALUES (n); END $$;",
    ),
    "the unused value of a macro": ("postgres", "{% set r = m() %}\nselect 1 as one;"),
}
"""Statements that may read or write what they do not say, by what they are; each is alone in a store with two tables."""


@pytest.mark.parametrize(("dialect", "text"), NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD)
def test_beside_a_statement_that_is_not_understood_nothing_is_called_unaffected(govtool, project, dialect, text):
    (project / "a.sql").write_text(TABLES + text)
    govtool("init")
    govtool("ingest", "sql", "a.sql", "--dialect", dialect)
    name = "S.C" if dialect in ("snowflake", "oracle") and '"S"."C"' in govtool("ls", "-f", "json").out else "s.c"
    summary = json.loads(govtool("impact", name, "--change", "drop", "-f", "json").out)["summary"]
    assert summary["unknown"] or ("unaffected" not in summary and summary["not_understood"])


@pytest.mark.parametrize(
    "text",
    [
        "create view v as select k from s where {{ m('x') }};",
        "create view v as select k from s where k = 1 and k in ({{ m('x') }});",
        "create view v as select k, coalesce({{ other.m('x') }}, 1) as y from s;",
        "create view v as select k from s join d on {{ m('x') }};",
        "create view v as select k from s {{ m('x') }};",
        "create view v as select k from s having {{ flt }};",
        "create view v as with q as ({{ body }}) select * from q;",
    ],
)
def test_what_a_macro_makes_may_read_any_table(ingested, text):
    govtool = ingested(FAR + text)
    assert govtool("impact", "a.p.i", "--strict").code == 3
    summary = json.loads(govtool("impact", "a.p.i", "-f", "json").out)["summary"]
    assert (summary["not_understood"], "unaffected" in summary) == (1, False)


def test_what_a_macro_makes_as_a_type_reads_nothing(ingested):
    govtool = ingested(FAR + "create view v as select cast(k as {{ m() }}) as k from s where k = {{ var('day') }};")
    assert govtool("impact", "a.p.i", "--strict").code == 0


def test_the_first_place_of_an_entry_is_that_of_the_functions_that_are_named(ingested):
    """Both branches of a template make an edge; the way names the function of one of them."""
    govtool = ingested(
        "create view v as select\n{% if a %}\n  upper(c) as x\n{% else %}\n  lower(c) as x\n{% endif %}\nfrom s"
    )
    (entry,) = json.loads(govtool("impact", "s.c", "-f", "json").out)["columns"]
    assert (entry["via"], entry["evidence"][0]["expression"]["line"]) in ((["upper()"], 3), (["lower()"], 5))
    assert len(entry["evidence"]) == 2


@pytest.mark.parametrize(
    ("text", "question", "near"),
    [
        ("insert into p_{{ day }} select c from s;", "a.p_1.i", 1),
        ("insert into p_${day} select c from s;", "a.p_1.i", 1),
        ("create table {schema}.p_{day}_x as select c from s;", "a.p_1.i", 0),
        ("create view w as select k from p_{{ day }};", "a.p_1.i", 1),
        ("create view w as select k from {{ env }}_q;", "a.p_1.i", 0),
        ("insert into p_{{ day }} select c from s;", "s.c", 1),
        ("insert into {{ day }} select c from s;", "a.r.i", 1),
    ],
)
def test_a_value_in_a_name_may_be_each_relation_that_fits(ingested, text, question, near):
    govtool = ingested("create table a.p_1 (i int); create table a.r (i int);\n" + text)
    summary = json.loads(govtool("impact", question, "-f", "json").out)["summary"]
    assert summary["not_understood"] == near
    assert govtool("impact", question, "--strict").code == (3 if near else 0)


def test_a_script_that_another_includes_is_missing_until_it_is_read(govtool, project):
    (project / "main.sql").write_text(TABLES + "\\ir parts/views.sql\n")
    govtool("init")
    govtool("ingest", "sql", ".", "--dialect", "postgres")
    assert govtool("impact", "s.c", "--strict").code == 3
    (project / "parts").mkdir()
    (project / "parts" / "views.sql").write_text("create view v as select k from s;")
    govtool("ingest", "sql", ".", "--dialect", "postgres")
    assert govtool("impact", "s.c", "--strict").code == 0
    (project / "parts" / "views.sql").unlink()
    govtool("ingest", "sql", ".", "--dialect", "postgres")
    assert govtool("impact", "s.c", "--strict").code == 3
