"""Scripts to statements: what is split, flattened, rescued and reported, and where."""

from __future__ import annotations

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from govtool.capture.sql.scripts.script import parse_script
from govtool.capture.sql.scripts.statement import ParsedStatement
from govtool.capture.sql.syntax.lexer import word_set
from govtool.errors import UnknownNameError


def heads(text: str, dialect: str = "") -> list[str]:
    """``status head`` of each statement."""
    return [f"{s.status} {s.head}" for s in parse_script(text, dialect)]


def parsed(text: str, dialect: str = "") -> list[str]:
    """The texts of the statements that parse."""
    return [" ".join(s.text.split()) for s in parse_script(text, dialect) if s.status == "parsed"]


def only(text: str, dialect: str = "") -> ParsedStatement:
    (statement,) = parse_script(text, dialect, file="q.sql")
    return statement


@pytest.mark.parametrize(
    ("text", "dialect", "column"),
    [
        ("select a,, b from t", "", 10),
        ("select a, /* x,y */ -- z\n , b from t", "snowflake", 2),
        ("create view v as select , a from t", "postgres", 25),
        ("select a, from t", "postgres", 9),
        ("select a, from t", "bigquery", None),
        ("select ',,' as a, \"x,,y\" from t -- ,,", "postgres", None),
    ],
)
def test_a_comma_without_an_item_is_noted(text, dialect, column):
    statement = only(text, dialect)
    assert statement.status == "parsed"
    assert [(note.code, note.severity, note.column) for note in statement.diagnostics] == (
        [("parse-error", "warning", column)] if column else []
    )


def test_many_comments_behind_a_comma_are_passed_at_once():
    assert only(f"select a,{' /* c */' * 60} b from t", "postgres").diagnostics == ()


def test_a_message_quotes_no_literal():
    statement = only("selec 'ann' frm t")
    assert [note.message for note in statement.diagnostics] == ["Invalid expression / Unexpected token near a literal"]


# -- splitting
# ------------------------------------------------------------------------------------------------------------


def test_statements_keep_their_place():
    text = "-- head\nselect 1;\n\n  create view v as\n  select a from t;;\n;"
    assert [(s.line, s.column, s.text) for s in parse_script(text, "")] == [
        (2, 1, "select 1"),
        (4, 3, "create view v as\n  select a from t"),
    ]


def test_one_bad_statement_does_not_cost_the_others():
    statements = parse_script("select 1;\nselect a from;\nselect 2", "", file="q.sql")
    assert [s.status for s in statements] == ["parsed", "failed", "parsed"]
    (diagnostic,) = statements[1].diagnostics
    assert (diagnostic.code, diagnostic.severity, diagnostic.file) == ("parse-error", "error", "q.sql")
    assert (diagnostic.line, diagnostic.column) == (2, 10)


def test_semicolons_in_literals_and_comments_do_not_split():
    assert parsed("select ';' as a /* ; */ from t -- ;\n; select 2") == ["select ';' as a /* ; */ from t", "select 2"]


def test_an_open_quote_costs_one_statement():
    statements = parse_script("select 'a;\nselect 2;\nselect 3;", "")
    assert [(s.status, s.line) for s in statements] == [("failed", 1), ("parsed", 2), ("parsed", 3)]


def test_a_literal_over_several_lines_survives_a_broken_neighbour():
    statements = parse_script("select 'x;\ny' as a from t;\nselect \"b;\n", "postgres")
    assert [s.status for s in statements] == ["parsed", "failed"]


def test_lines_are_those_of_the_original():
    (statement,) = parse_script("\n\nselect a b c d", "", line_of=lambda line: line + 100)
    assert statement.line == 103
    assert statement.diagnostics[0].line == 103


@pytest.mark.parametrize("text", ["", " \n", ";", ";;\n;", "-- only a comment", "/* a */ ; -- b"])
def test_nothing_in_it(text: str):
    assert parse_script(text, "") == []


def test_unknown_dialect_names_the_nearest():
    with pytest.raises(UnknownNameError) as caught:
        parse_script("select 1", "postgress")
    assert caught.value.nearest[0] == "postgres"
    assert caught.value.code == "usage.unknown-dialect"


def test_messages_carry_no_terminal_escapes():
    statement = only("select \x1b[31mred from where \x1b]0x\x07")
    assert statement.status == "failed"
    assert "\x1b" not in statement.diagnostics[0].message


# -- bounds
# ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 50_000 + "1" + ")" * 50_000,
        "SELECT * FROM " + "(" * 20_000 + "t" + ")" * 20_000,
        "SELECT " + "NOT " * 20_000 + "a",
        "SELECT " + "- " * 20_000 + "a",
        "SELECT " + "CASE WHEN " * 5_000 + "a" + " THEN 1 END" * 5_000,
        "SELECT a" + "[0]" * 50_000,
        "SELECT CAST(a AS " + "ARRAY<" * 20_000 + "INT" + ">" * 20_000 + ")",
        "SELECT 1 FROM t " + "JOIN t " * 200,
        "SELECT " + "f(" * 20_000,
        "SELECT " + "{'a':" * 20_000,
        "BEGIN " * 20_000,
    ],
    ids=lambda text: text[:24],
)
def test_deep_nesting_is_reported(text: str):
    statements = parse_script(text + "; SELECT 2", "")
    assert statements[-1].text == "SELECT 2"
    assert statements[-1].status == "parsed"
    codes = {d.code for s in statements for d in s.diagnostics}
    assert codes <= {"nesting", "parse-error"}


def test_long_chains_are_not_deep():
    assert only("SELECT " + "a + " * 20_000 + "a FROM t").status == "parsed"
    assert only("SELECT 1 UNION ALL " * 3_000 + "SELECT 1").status == "parsed"


# -- routines and control flow
# -------------------------------------------------------------------------------------------


def test_plpgsql_body_is_flattened():
    text = """
CREATE OR REPLACE PROCEDURE crm.load(x int) LANGUAGE plpgsql AS $$
DECLARE v int; c CURSOR FOR SELECT q FROM cc;
BEGIN
  SELECT a INTO v FROM t WHERE b = x;
  IF v > 1 THEN
    INSERT INTO u SELECT a FROM t;
  ELSIF EXISTS (SELECT 1 FROM t) THEN UPDATE u SET a = 1;
  ELSE DELETE FROM u; END IF;
  FOR r IN SELECT a FROM z LOOP INSERT INTO y VALUES (r.a); END LOOP;
  v := (SELECT max(a) FROM t);
  RETURN QUERY SELECT a FROM t;
EXCEPTION WHEN others THEN INSERT INTO err SELECT now();
END $$;
SELECT 1
"""
    statements = [s for s in parse_script(text, "postgres") if s.status == "parsed"]
    assert [(s.line, s.head, s.routine) for s in statements] == [
        (3, "select", "crm.load"),
        (5, "select", "crm.load"),
        (7, "insert", "crm.load"),
        (8, "update", "crm.load"),
        (9, "delete", "crm.load"),
        (10, "select", "crm.load"),
        (10, "insert", "crm.load"),
        (11, "select", "crm.load"),
        (12, "select", "crm.load"),
        (13, "insert", "crm.load"),
        (15, "select", None),
    ]
    assert statements[1].tree is not None
    assert statements[1].tree.args.get("into") is None, "INTO names a variable there, not a table"


def test_bigquery_script():
    text = """CREATE PROCEDURE d.p(IN x INT64)
BEGIN
  DECLARE v INT64 DEFAULT (SELECT max(a) FROM t);
  WHILE v > 0 DO
    INSERT INTO u SELECT a FROM tt;
    SET v = v - 1;
  END WHILE;
  BEGIN TRANSACTION;
  EXECUTE IMMEDIATE '''INSERT INTO z
    SELECT q FROM w''';
  COMMIT TRANSACTION;
END;
SELECT 5"""
    statements = parse_script(text, "bigquery")
    inserts = [s for s in statements if s.head == "insert"]
    assert [(s.line, s.routine) for s in inserts] == [(5, "d.p"), (9, "d.p")]
    assert (statements[-1].line, statements[-1].routine, statements[-1].status) == (13, None, "parsed")
    assert not [s for s in statements if s.status in ("failed", "opaque")]


def test_tsql_needs_no_semicolons():
    text = """USE sales
GO
CREATE PROCEDURE dbo.p @a int = 1 WITH EXECUTE AS OWNER AS
SET NOCOUNT ON
IF @a > 1 AND EXISTS (SELECT 1 FROM x)
BEGIN
  INSERT INTO t (a) SELECT a FROM u
  UPDATE t SET a = 1 FROM t JOIN u ON t.a = u.a WHERE 1 = 1 DELETE FROM x
END ELSE
  SELECT a INTO #tmp FROM t
WITH q AS (SELECT 1 a) INSERT INTO z SELECT a FROM q
MERGE t AS a USING u AS b ON a.x = b.x WHEN MATCHED THEN UPDATE SET a.y = b.y
WHEN NOT MATCHED THEN INSERT (x) VALUES (b.x);
RETURN 0
GO
SELECT 1
"""
    statements = parse_script(text, "tsql")
    assert not [s for s in statements if s.status in ("failed", "opaque")]
    kinds = [(type(s.tree).__name__, s.line) for s in statements if s.routine == "dbo.p" and s.tree is not None]
    assert kinds == [
        ("Set", 4), ("Insert", 7), ("Update", 8), ("Delete", 8), ("Select", 10), ("Insert", 11), ("Merge", 12),
    ]  # fmt: skip
    assert statements[-1].routine is None


def test_tsql_ctes_and_case_are_not_split():
    for text in (
        "INSERT INTO a WITH q AS (SELECT 1 x) SELECT x FROM q",
        "CREATE VIEW v AS WITH q AS (SELECT 1 AS c) SELECT c FROM q",
        "SELECT CASE WHEN a = 1 THEN 2 ELSE 3 END AS b FROM t WITH (NOLOCK)",
        "ALTER TABLE t DROP COLUMN a",
        "SELECT a FROM t ORDER BY a OFFSET 5 ROWS FETCH NEXT 5 ROWS ONLY",
    ):
        assert parsed(text, "tsql") == [text]


def test_mysql_delimiter():
    text = """DELIMITER //
CREATE PROCEDURE p()
BEGIN
 DECLARE done INT DEFAULT 0;
 DECLARE cur CURSOR FOR SELECT a FROM t;
 DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1;
 read_loop: LOOP
   FETCH cur INTO x;
   IF done THEN LEAVE read_loop; END IF;
   REPLACE INTO b SELECT * FROM a;
 END LOOP;
END//
DELIMITER ;
RENAME TABLE a TO b, c TO d;
"""
    statements = parse_script(text, "mysql")
    assert [(s.head, s.line, s.routine) for s in statements if s.status == "parsed"] == [
        ("select", 5, "p"),
        ("set", 6, "p"),
        ("fetch", 8, "p"),
        ("insert", 10, "p"),
        ("rename", 14, None),
        ("rename", 14, None),
    ]
    assert not [s for s in statements if s.status in ("failed", "opaque")]


def test_oracle_package():
    text = """CREATE OR REPLACE PACKAGE BODY pk IS
 PROCEDURE a (x NUMBER) IS
   v NUMBER;
   CURSOR c IS SELECT q FROM cc;
 BEGIN
   SELECT a, b BULK COLLECT INTO v, w FROM t;
   EXECUTE IMMEDIATE 'truncate table x';
 END a;
 FUNCTION b RETURN NUMBER IS BEGIN RETURN 1; END;
END pk;
/
SELECT 1 FROM dual
/
"""
    statements = parse_script(text, "oracle")
    assert [(s.head, s.line, s.routine) for s in statements if s.status == "parsed"] == [
        ("select", 4, "pk"),
        ("select", 6, "pk"),
        ("truncate", 7, "pk"),
        ("select", 12, None),
    ]
    assert not [s for s in statements if s.status in ("failed", "opaque")]


def test_sql_functions_keep_their_body_for_inlining():
    for text, dialect in (
        ("CREATE FUNCTION f(a int) RETURNS int AS $$ select a + 1 $$ LANGUAGE sql", "postgres"),
        ("CREATE FUNCTION f(a int) RETURNS int AS 'select a + 1' LANGUAGE sql", "postgres"),
        ("CREATE TEMP FUNCTION f(a INT64) AS (a + 1)", "bigquery"),
        ("CREATE FUNCTION f(a int) RETURNS int AS 'a + 1'", "snowflake"),
    ):
        tree = only(text, dialect).tree
        assert isinstance(tree, exp.Create)
        assert tree.expression.find(exp.Add), text


def test_other_languages():
    statement = only("CREATE TEMP FUNCTION f(a STRING) RETURNS STRING LANGUAGE js AS '''return a;'''", "bigquery")
    assert (statement.status, statement.diagnostics[0].severity) == ("parsed", "info")
    statement = only("CREATE PROCEDURE p(a INT) RETURNS INT LANGUAGE PYTHON AS $$ x $$", "snowflake")
    assert (statement.status, statement.diagnostics[0].code) == ("opaque", "opaque")


def test_inline_functions_of_trino():
    text = (
        "WITH FUNCTION f(a BIGINT) RETURNS BIGINT BEGIN DECLARE r BIGINT DEFAULT 1; RETURN a * r; END "
        "SELECT f(b) FROM t; SELECT 2"
    )
    assert [s.status for s in parse_script(text, "trino")] == ["parsed", "parsed"]


@pytest.mark.parametrize(
    "text",
    [
        "EXECUTE IMMEDIATE 'insert into t select a from b'",
        "EXECUTE IMMEDIATE 'insert into t ' || 'select a from b'",
        "BEGIN EXECUTE IMMEDIATE 'insert into t select a from b'; END",
    ],
)
def test_constant_dynamic_sql_is_read(text: str):
    assert [s.head for s in parse_script(text, "snowflake") if s.status == "parsed"] == ["insert"]


def test_other_dynamic_sql_is_opaque():
    for text, dialect in (
        ("EXECUTE IMMEDIATE 'insert into ' || name", "snowflake"),
        ("EXECUTE IMMEDIATE FORMAT('x %s', y)", "bigquery"),
        ("EXEC sp_executesql @payload", "tsql"),
        ("EXEC(@sql)", "tsql"),
    ):
        statement = only(text, dialect)
        assert (statement.status, statement.diagnostics[0].code) == ("opaque", "opaque"), text


# -- clients
# --------------------------------------------------------------------------------------------------------------


def test_psql_commands_and_copy_data():
    text = "\\set x 1\nCOPY t (a, b) FROM stdin;\n1\t2; '\n\\.\n\\c dw\nSELECT 1;\n\\i more.sql\n"
    statements = parse_script(text, "postgres")
    assert [(s.head, s.status, s.line) for s in statements] == [
        ("copy", "parsed", 2),
        ("connect", "ignored", 6),
        ("select", "parsed", 6),
        ("include", "ignored", 7),
    ]
    assert statements[1].session is not None
    assert statements[1].session.catalog == "dw"


def test_lineage_free_statements_are_no_failures():
    text = "GRANT SELECT ON t TO u; COMMIT; VACUUM t; SHOW TABLES; ANALYZE t; SET x = 1; BEGIN; LOCK TABLE t; CALL p(1)"
    assert {s.status for s in parse_script(text, "postgres")} <= {"ignored", "parsed"}


@pytest.mark.parametrize(
    ("text", "dialect", "change"),
    [
        ("USE db", "snowflake", ("db", None, ())),
        ("USE SCHEMA a.b", "snowflake", ("a", "b", ())),
        ("USE WAREHOUSE w", "snowflake", None),
        ("USE sales", "mysql", (None, "sales", ())),
        ("USE CATALOG c", "databricks", ("c", None, ())),
        ("USE c.s", "trino", ("c", "s", ())),
        ('SET search_path TO a, "B", public', "postgres", (None, "a", ("a", '"B"', "public"))),
        ("SET search_path = 'a'", "postgres", (None, "a", ("a",))),
        ("ALTER SESSION SET CURRENT_SCHEMA = hr", "oracle", (None, "hr", ())),
    ],
)
def test_session_changes(text: str, dialect: str, change: tuple[object, ...] | None):
    session = only(text, dialect).session
    assert (None if session is None else tuple(session)) == change


# -- rescues
# --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "dialect", "kind"),
    [
        ("UNLOAD ('select a from t') TO 's3://x' IAM_ROLE 'r'", "redshift", exp.Copy),
        ("REPLACE INTO b SELECT * FROM a", "mysql", exp.Insert),
        ("CREATE STREAM s ON TABLE t", "snowflake", exp.Create),
        ("CREATE PIPE p AS COPY INTO t FROM @s", "snowflake", exp.Copy),
        ("CREATE TASK x SCHEDULE = '1 minute' AS INSERT INTO a SELECT a FROM t", "snowflake", exp.Insert),
        ("CREATE LIVE TABLE t COMMENT 'x' AS SELECT a FROM LIVE.b", "databricks", exp.Create),
        ("CREATE VIEW v AS SELECT a FROM t WITH CHECK OPTION", "mysql", exp.Create),
        ("ALTER VIEW v WITH SCHEMABINDING AS SELECT a FROM t", "tsql", exp.Create),
        ("ALTER TABLE t EXCHANGE PARTITION (d = '1') WITH TABLE u", "hive", exp.Insert),
        ("CREATE SNAPSHOT TABLE a.b CLONE c.d", "bigquery", exp.Create),
        ("ALTER TABLE t APPEND FROM stage", "redshift", exp.Insert),
        ("CREATE OR REPLACE TABLE t DEEP CLONE s", "databricks", exp.Create),
        ("LOAD DATA LOCAL INFILE '/in/t.csv' INTO TABLE t FIELDS TERMINATED BY ','", "mysql", exp.LoadData),
        ("EXEC sp_rename 'dbo.a', 'b'", "tsql", exp.Alter),
        ("INSERT INTO t (id) OVERRIDING SYSTEM VALUE SELECT a FROM s", "postgres", exp.Insert),
        ("INSERT OVERWRITE DIRECTORY '/x' USING csv OPTIONS (sep ';') SELECT a FROM s", "spark", exp.Insert),
        ("CREATE MATERIALIZED VIEW m BUILD IMMEDIATE REFRESH FAST AS SELECT a FROM t", "oracle", exp.Create),
        ("SELECT a FROM t WHERE b >= 100_000", "trino", exp.Select),
        ("SELECT a FROM t SOMETHING NEW 1 2 3", "postgres", exp.Select),
    ],
)
def test_what_carries_lineage_is_rescued(text: str, dialect: str, kind: type[exp.Expr]):
    statements = [s for s in parse_script(text, dialect) if s.tree is not None]
    assert [type(s.tree) for s in statements] == [kind]


def test_a_clause_left_out_is_said():
    statement = only("CREATE LIVE TABLE t FROBNICATE x AS SELECT a FROM LIVE.b", "databricks")
    assert [(d.code, d.severity) for d in statement.diagnostics] == [("dropped", "warning")]


def test_a_tail_that_reads_is_never_left_out():
    assert only("SELECT a FROM t FROBNICATE x FROM secret", "postgres").status == "failed"


# -- laws
# -----------------------------------------------------------------------------------------------------------------

_WORDS = st.sampled_from(
    [
        "\n",
        *sorted(
            word_set(r"""
    SELECT FROM WHERE a b t , ( ) ; ' " ` $$ -- /* */ BEGIN END IF THEN ELSE CASE WHEN LOOP WHILE DO FOR
    IN DECLARE AS WITH CREATE PROCEDURE FUNCTION TABLE VIEW INSERT INTO VALUES UPDATE SET DELETE MERGE
    USING EXECUTE IMMEDIATE EXEC RETURN CURSOR := << >> LANGUAGE js UNLOAD RENAME ALTER TO [ ] { } : @ ?
    # \ 1 'x' = . * UNION JOIN ON GO / DELIMITER // COPY stdin \. CALL OPEN PERFORM LET PREPARE EXCHANGE
    STREAM TASK PACKAGE IS
    """)
        ),
    ]
)
_DIALECTS = st.sampled_from(
    [
        "",
        "bigquery",
        "snowflake",
        "postgres",
        "tsql",
        "oracle",
        "mysql",
        "spark",
        "trino",
        "duckdb",
        "hive",
        "redshift",
        "databricks",
    ]
)


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(_WORDS, max_size=40).map(" ".join) | st.text(max_size=60), _DIALECTS)
def test_no_text_raises_and_nothing_is_silent(text: str, dialect: str):
    for statement in parse_script(text, dialect, file="f"):
        assert statement.line >= 1
        assert statement.column >= 1
        assert statement.status in ("parsed", "ignored", "opaque", "failed")
        assert (statement.tree is not None) or statement.status != "parsed"
        assert statement.diagnostics or statement.status in ("parsed", "ignored")


@settings(max_examples=examples(50), deadline=None)
@given(
    st.lists(
        st.sampled_from(["select a from t", "insert into u select b from t", "drop table x", "grant x to y"]),
        max_size=6,
    )
)
def test_splitting_a_joined_script_gives_its_statements(parts: list[str]):
    statements = parse_script(";\n".join(parts), "")
    assert [s.text for s in statements] == parts
    assert [s.line for s in statements] == list(range(1, len(parts) + 1))


@pytest.mark.parametrize("text", ["this is not sql", "selec a", "garbage", "(a, b)", "*", "x in (select y from z)"])
def test_an_expression_is_no_statement(text: str):
    statement = only(text, "postgres")
    assert statement.status == "failed"
    assert [d.message for d in statement.diagnostics] == ["not a SQL statement"]


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("checkpoint", "postgres"),
        ("unlock tables", "mysql"),
        ("sp_help t", "tsql"),
        ("BEGIN\n  refresh_all(1);\n  pkg.go;\nEND;", "oracle"),
    ],
)
def test_commands_and_calls_by_name_are_statements(text: str, dialect: str):
    assert "failed" not in {s.status for s in parse_script(text, dialect)}


@pytest.mark.parametrize("dialect", ["postgres", "snowflake", "mysql", "tsql", ""])
def test_a_parameter_does_not_shift_the_lines_below(dialect: str):
    text = "select a\nfrom t where b = $1;\n\nselect c from t;\nselect\n  (d from t;"
    statements = parse_script(text, dialect, file="f.sql")
    assert [s.line for s in statements] == [1, 4, 5]
    assert statements[-1].diagnostics[0].line in (5, 6)


def test_lines_of_a_body_are_mapped_once():
    text = "create function f() returns int as $$\nbegin\n  insert into t select a from u;\nend $$ language plpgsql"
    (insert,) = [s for s in parse_script(text, "postgres", line_of=lambda line: line + 100) if s.status == "parsed"]
    assert insert.line == 103
