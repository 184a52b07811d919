"""Oracle: scripts for SQL*Plus, and clauses that the parser does not know. Lineage: ``fixtures/lineage/oracle``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.capture.sql.scripts.clauses.table import simplified
from govtool.capture.sql.scripts.clients.sqlplus import read_sqlplus
from govtool.capture.sql.scripts.script import parse_script
from govtool.capture.sql.syntax.lexer import lexer


def kept(text: str) -> list[str]:
    """The lines of a script that are left for the server, without those that are blank."""
    return [line for line in read_sqlplus(text).text.split("\n") if line.strip()]


def simple(text: str) -> str:
    """What is left of a statement's tokens."""
    return " ".join(token.text for token in simplified(lexer("oracle").tokenize(text), "oracle"))


# -- SQL*Plus
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "REM =======",
        "rem (it's)",
        "PRO done",
        "prompt",
        "conn hr/hr@db",
        "CONNECT / AS SYSDBA",
        "disc",
        "col a format a30",
        "COLUMN a NEW_VALUE v NOPRINT",
        "COLUMN a FORMAT 9.9;",
        "ho ls",
        "! ls",
        "$ dir",
        "var n number",
        "set serveroutput on size unlimited",
        "@?/rdbms/admin/x.sql &1",
        "@@sub",
        "start sub.sql",
        "WHENEVER SQLERROR EXIT FAILURE ROLLBACK",
        "break on report",
        "ttitle 'it''s'",
        "Run this script",
        "show errors",
        "def x = 1",
        "undef x",
        "# comment",
        "ORADEBUG setospid 1",
        'define _if = "/* no */ --"',
        "999 insert this line",
        "l",
    ],
)
def test_a_command_of_the_client_is_blanked_out(line: str) -> None:
    assert kept(f"{line}\nSELECT 1 FROM dual;\n{line}") == ["SELECT 1 FROM dual;"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a\nFROM t\nSTART WITH b IS NULL\nCONNECT BY PRIOR c = d;",
        "UPDATE t\nSET heading = 'x';",
        "SET ROLE all;",
        "SET TRANSACTION READ ONLY;",
        "BEGIN\nexit;\nprompt('x');\nEND;",
        "DECLARE\nhost VARCHAR2(10);\nBEGIN\nNULL;\nEND;",
        "CREATE OR REPLACE\nPACKAGE BODY p IS\n\nrem NUMBER;\nEND;",
        "/* a comment;\nprompt x\n*/\nSELECT 1 FROM dual;",
        "SELECT a -- ;\n, list\nFROM t;",
        "run := 1;",
        "list(1);",
        "host_name VARCHAR2(10);",
        "l_total NUMBER;",
        "set# NUMBER;",
    ],
)
def test_what_is_no_command_stays(text: str) -> None:
    assert read_sqlplus(text).text == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("SELECT a\nFROM t\nPROMPT b", "SELECT a\nFROM t\nPROMPT b"),
        ("SELECT a\nFROM t\n\nPROMPT b", "SELECT a\nFROM t\n\n;"),
        ("SELECT a\r\nFROM t\r\n\r\nPROMPT b", "SELECT a\r\nFROM t\r\n\r\n;"),
        ("WITH q AS (SELECT 1 FROM dual)\nSELECT a\n/", "WITH q AS (SELECT 1 FROM dual)\nSELECT a\n;"),
        ("\n select a from t where b = &c", "\n select a from t where b = :c"),
    ],
)
def test_one_statement_may_still_be_a_script(text: str, left: str) -> None:
    assert read_sqlplus(text).text == left


def test_a_command_ends_a_statement_that_nothing_else_ended() -> None:
    assert kept("SELECT 1 FROM dual\n\nPROMPT x\nSELECT 2 FROM dual\n/") == [
        "SELECT 1 FROM dual",
        ";",
        "SELECT 2 FROM dual",
        ";",
    ]


def test_a_block_without_a_slash_ends_before_the_next_definition() -> None:
    text = "CREATE PROCEDURE p IS\nBEGIN\n NULL;\nEND p;\nSHOW ERRORS\nCREATE VIEW v AS SELECT a FROM t;\nPROMPT x"
    assert kept(text)[-2:] == [";", "CREATE VIEW v AS SELECT a FROM t;"]


def test_execute_ends_with_its_line() -> None:
    assert kept("exec f(1)\nexec f(2, -\n 3)\nexec f(4);\nSELECT 1 FROM dual;") == [
        "exec f(1);",
        "exec f(2, ",
        " 3);",
        "exec f(4);",
        "SELECT 1 FROM dual;",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DEFINE x = hr\nSELECT a FROM &x..t;", "SELECT a FROM hr.t;"),
        ("DEFINE x = 'a, b'\nSELECT &x FROM t;", "SELECT a, b FROM t;"),
        ("DEFINE x = hr\nDEFINE y = &x._2\nSELECT a FROM &Y;", "SELECT a FROM hr_2;"),
        ("DEFINE x = '&1'\nSELECT a FROM &x..t;", "SELECT a FROM arg1.t;"),
        ("DEFINE x = &1\nSELECT a FROM t WHERE b = &x;", "SELECT a FROM t WHERE b = :arg1;"),
        ("SELECT a FROM\n-- which\n\n &x;", " x;"),
        ("SELECT a FROM t,\n &x u, &y;", " x u, y;"),
        ("SELECT a,\n &x, &y FROM t;", " :x, :y FROM t;"),
        ("SELECT a FROM t WHERE b IN (1, &x);", "SELECT a FROM t WHERE b IN (1, :x);"),
        ("SELECT a FROM t WHERE b = &x;", "SELECT a FROM t WHERE b = :x;"),
        ("SELECT a FROM t WHERE b = &&1;", "SELECT a FROM t WHERE b = :arg1;"),
        ("SELECT a FROM pre_&x._suf;", "SELECT a FROM pre_x_suf;"),
        ("SELECT 'R&D', '&x..t' FROM t;", "SELECT 'R&D', 'x.t' FROM t;"),
        ("GRANT SELECT ON &x TO &y;", "GRANT SELECT ON x TO y;"),
        ("SELECT a FROM t JOIN u ON &x;", "SELECT a FROM t JOIN u ON :x;"),
        ("ALTER SESSION SET CURRENT_SCHEMA = &x;", "ALTER SESSION SET CURRENT_SCHEMA = x;"),
        ("SET DEFINE OFF\nSELECT a FROM &x;", "SELECT a FROM &x;"),
        ("SET DEFINE OFF\nSET DEFINE ON\nSELECT a FROM &x;", "SELECT a FROM x;"),
        ("SELECT a -- &x\nFROM t;", "FROM t;"),
    ],
)
def test_substitution_variables(text: str, expected: str) -> None:
    assert kept(text)[-1] == expected


def test_variables_without_a_value_are_told_of_once() -> None:
    statements = parse_script("SELECT a\nFROM &x..t WHERE b = &Y AND c = &x;\nDEFINE z = 1\n", "oracle", file="q.sql")
    (note,) = [note for s in statements for note in s.diagnostics]
    assert (note.code, note.severity, note.file, note.line, note.column) == ("template", "info", "q.sql", 2, 6)
    assert note.message == "no value for &x, &Y: give one with --var x=…"


def test_included_scripts() -> None:
    text = "DEFINE dir = lib\n@&dir/a.sql x\nSELECT 1 FROM dual;\n@@&2\n"
    statements = parse_script(text, "oracle", file="q.sql")
    notes = [(s.status, note.code, note.message, note.line) for s in statements for note in s.diagnostics]
    assert notes == [
        ("ignored", "dropped", "includes lib/a.sql, which is read only if it is ingested too", 2),
        ("opaque", "opaque", "includes a script that only a variable names: &2", 4),
    ]


def test_statements_keep_their_lines() -> None:
    text = (
        "PROMPT x\nDEFINE s = a_long_schema\nHOST a -\n b\nSELECT a FROM &s..t;\n/\nBEGIN\n x;\nEND;\n/\nDELETE FROM t;"
    )
    assert [(s.line, s.head) for s in parse_script(text, "oracle") if s.status == "parsed" or s.head == "call"] == [
        (5, "select"),
        (8, "call"),
        (11, "delete"),
    ]


_LINES = st.lists(
    st.sampled_from(
        [
            "SELECT a", "FROM t;", "/", ".", "", "REM x", "HOST a -", "BEGIN", "END;", "DECLARE", "/* x", "*/", "'", "--",
            "PROMPT '", "@&f", "DEFINE a = b", "exec f -", "exec f", "-", "&a..t", "$IF x", "$THEN a $END", ";",
            "CREATE PACKAGE p IS", "CREATE JAVA SOURCE x AS", "/* x */ CREATE JAVA", "/* x */ a;", "SET DEFINE OFF",
        ]
    ),
    max_size=12,
)  # fmt: skip


@settings(deadline=None)
@given(_LINES)
def test_lines_and_offsets_hold_for_any_script(lines: list[str]) -> None:
    text = "\n".join(lines)
    read = read_sqlplus(text)
    assert read.text.count("\n") == text.count("\n")
    assert all(read.text[offset] == ";" for offset in read.batches)
    assert all(offset <= len(read.text) for offset, _ in (*read.included, *read.unknown))
    parse_script(text, "oracle")


# -- clauses
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a -\n b FROM t",
        "SELECT a -\n (b) FROM t",
        "SELECT a - -- sign\n , b FROM t",
        "SELECT enable, disable FROM t USING index",
        "CREATE TABLE t (enable NUMBER, disable NUMBER)",
        "CREATE TABLE t (a NUMBER) ORGANIZATION EXTERNAL (LOCATION ('x'))",
        "SELECT TRANSLATE(a, 'b', 'c'), EXTRACT(YEAR FROM d), NTH_VALUE(a, 2) OVER (ORDER BY b) FROM last",
        "SELECT :new FROM t",
        "SELECT a FROM t WHERE b < c AND d = e",
        "INSERT INTO t (log, errors) SELECT log, errors FROM s",
        "SELECT a FROM member",
    ],
)
def test_what_says_something_stays(text: str) -> None:
    tokens = lexer("oracle").tokenize(text)
    assert simplified(tokens, "oracle") is tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("VALUES ('AR'-\n,1)", "VALUES ( AR , 1 )"),
        ("SELECT a -\n FROM t -\n WHERE b = 1 -\n AND c - \n d = 2", "SELECT a FROM t WHERE b = 1 AND c - d = 2"),
        ("SELECT a FROM -\n t", "SELECT a FROM t"),
        ("SELECT :1, :2 FROM t", "SELECT : p1 , : p2 FROM t"),
        ("ALTER TABLE t ADD CONSTRAINT c UNIQUE (a) ENABLE NOVALIDATE", "ALTER TABLE t ADD CONSTRAINT c UNIQUE ( a )"),
        ("CREATE TABLE t (a INT) TABLESPACE x ENABLE ROW MOVEMENT", "CREATE TABLE t ( a INT )"),
        ("CREATE TABLE t (a INT) PCTFREE 1 AS SELECT enable FROM s", "CREATE TABLE t ( a INT ) AS SELECT enable FROM s"),
        ("CREATE MATERIALIZED VIEW v ENABLE QUERY REWRITE AS SELECT 1", "CREATE MATERIALIZED VIEW v AS SELECT 1"),
        ("SELECT PREDICTION(m USING a.b, c + 1 d, (e) f) x FROM t", "SELECT PREDICTION ( a . b , c + 1 , ( e ) ) x FROM t"),
        ("SELECT F(PREDICTION(m USING a)) FROM t", "SELECT F ( PREDICTION ( a ) ) FROM t"),
        ("SELECT NTH_VALUE(a, 2) FROM LAST OVER (ORDER BY b) FROM t", "SELECT NTH_VALUE ( a , 2 ) OVER ( ORDER BY b ) FROM t"),
        ("UPDATE t SET a = NEW typ(1), b = :NEW.c", "UPDATE t SET a = typ ( 1 ) , b = : NEW . c"),
    ],
)  # fmt: skip
def test_what_says_nothing_is_left_out(text: str, expected: str) -> None:
    assert simple(text) == expected


def test_values_that_double_without_end_are_given_up():
    text = "define a0=xx\n" + "".join(f"define a{i + 1}=&a{i}&a{i}\n" for i in range(60))
    found = read_sqlplus(f"{text}select &a5 from &a60;")
    last = found.text.split("\n")[-1]
    assert last.startswith(f"select {'xx' * 32} from a")
    assert len(last) < 3_000
    long = read_sqlplus(f"define a={'x' * 2000}\n" + "select &a from t;\n" * 6000)
    assert len(long.text) < 11_000_000
    assert long.text.endswith("select :a from t;\n")
