"""Fingerprints merge what only differs in literals that decide rows, and nothing else; redaction keeps no one's
literals."""

from __future__ import annotations

import re

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one
from sqlglot.tokenizer_core import TokenType

from govtool.capture.sql.syntax.fingerprint import fingerprint, normalize, script_identity
from govtool.capture.sql.syntax.lexer import lexer, word_set
from govtool.capture.sql.syntax.redact import MAX_REDACTED, _without_dollars, identified, redact

STATEMENTS = [
    ("", "SELECT a, 1, 'x' AS l FROM t WHERE b = 1 AND c IN (1, 2, 'z') AND d BETWEEN 3 AND 4 GROUP BY 1 ORDER BY 2"),
    ("", "SELECT a FROM t WHERE f(b, '$.a') = 'x' AND NOT c LIKE '%y' OR d <> 2 LIMIT 10"),
    ("", "SELECT a FROM t JOIN u ON t.id = u.id AND u.kind = 'k' AND u.n > 5 HAVING COUNT(*) >= 5"),
    ("", "SELECT CASE WHEN a = 'x' THEN 'y' WHEN b > 2 THEN 'z' ELSE 'q' END AS c FROM t"),
    ("", "INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y')"),
    ("", "UPDATE t SET a = 'x', b = 2 WHERE c = 3"),
    ("", "DELETE FROM t WHERE a = 'x' AND b IN (SELECT c FROM u WHERE d = 1)"),
    ("", "SELECT a FROM t WHERE d > CURRENT_DATE - INTERVAL '7' DAY AND e = DATE '2020-01-01'"),
    ("postgres", "SELECT j->'a'->>'b' AS v FROM t WHERE j->>'k' = 'v' AND j @> '{\"a\": 1}'"),
    ("postgres", "SELECT a[1], b[2:3] FROM t WHERE a[1] = 2 AND s = $$x$$"),
    ("postgres", "SELECT * FROM crosstab('select a, b, c from t') AS ct(a int, b text)"),
    ("snowflake", "SELECT src:name.first::string, src['k'] FROM t WHERE src:kind = 'x'"),
    ("snowflake", "SELECT * FROM TABLE(FLATTEN(input => t.x, path => 'a.b')) WHERE value = 1"),
    ("snowflake", "SELECT * FROM t PIVOT(SUM(a) FOR b IN ('x', 'y')) AS p WHERE x = 1"),
    ("bigquery", "SELECT * FROM t UNPIVOT(v FOR k IN (a AS 'x', b AS 'y')) WHERE v = 'q'"),
    ("bigquery", "SELECT JSON_VALUE(j, '$.a.b') FROM `p.d.t` WHERE JSON_VALUE(j, '$.c') = \"x\" AND r = r'\\d'"),
    ("duckdb", "SELECT * FROM read_csv('people.csv', delim = ',', header = 1) WHERE age > 30"),
    ("duckdb", "SELECT * FROM 'people.parquet' WHERE a = 'x'"),
    ("athena", "CREATE TABLE t WITH (external_location = 's3://x', format = 'ORC') AS SELECT a FROM b WHERE c = 'x'"),
    ("snowflake", "COPY INTO t FROM 's3://x/y' FILE_FORMAT = (TYPE = 'CSV')"),
    ("tsql", "SELECT a = 'x', 'y' AS [b c] FROM t WHERE [d e] = 'z' AND f = N'q'"),
    ("mysql", "SELECT a AS 'name', \"x\" FROM t WHERE b = \"y\" AND c = 'it''s' AND d = 'a\\'b'"),
    ("hive", "INSERT OVERWRITE TABLE t PARTITION (ds = '2020-01-01') SELECT a FROM u WHERE ds = '2020-01-01'"),
    ("spark", "SELECT get_json_object(j, '$.a') FROM t LATERAL VIEW explode(split(b, ',')) x AS y WHERE y = 'z'"),
    ("redshift", "UNLOAD ('select a from t') TO 's3://x/y' FORMAT AS PARQUET"),
    ("trino", "SELECT element_at(m, 'k') FROM t WHERE element_at(m, 'k') = 'v' AND t.x IN ('a', 'b')"),
    ("oracle", "SELECT a FROM t WHERE b = 'x' AND ROWNUM <= 5"),
    ("", "SELECT a FROM (SELECT b AS a, 1 FROM t WHERE c = 1 GROUP BY 1, 2) WHERE a = 2 ORDER BY 1"),
    ("bigquery", "EXECUTE IMMEDIATE 'select 1'"),
    ("snowflake", "SET v = 'select a from t'"),
]  # fmt: skip

LITERALS = {
    TokenType.STRING,
    TokenType.NUMBER,
    TokenType.HEREDOC_STRING,
    TokenType.RAW_STRING,
    TokenType.NATIONAL_STRING,
}
COMPARISONS = (
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.Like,
    exp.ILike,
    exp.Between,
    exp.In,
    exp.NullSafeEQ,
)


def decides_rows_only(tree: exp.Expr, mark: str) -> bool:
    """Whether each literal with this value stands where it can change rows, and nothing about columns."""
    found = [
        n
        for n in tree.walk()
        if isinstance(n, (exp.Literal, exp.RawString, exp.National, exp.Heredoc)) and str(n.this) == mark
    ]
    return bool(found) and all(_rows_only(node) for node in found)


def _rows_only(node: exp.Expr) -> bool:
    parent = node.parent
    while isinstance(parent, (exp.Neg, exp.Paren)) or (isinstance(parent, exp.Cast) and isinstance(node, exp.Literal)):
        node, parent = parent, parent.parent
    if isinstance(parent, (exp.Limit, exp.Offset, exp.Fetch)):
        return True
    if isinstance(parent, exp.Tuple) and isinstance(parent.parent, exp.Values):
        return True
    if not isinstance(parent, COMPARISONS) or isinstance(parent.find_ancestor(exp.Pivot), exp.Pivot):
        return False
    while parent is not None:
        above = parent.parent
        if isinstance(above, (exp.Where, exp.Qualify)):
            return True
        if isinstance(above, exp.Join) and above.args.get("on") is parent:
            return True
        if isinstance(above, exp.If) and above.this is parent:
            return True
        if isinstance(above, exp.Whens | exp.When):
            return True
        if not isinstance(above, (exp.And, exp.Or, exp.Not, exp.Paren)):
            return False
        parent = above
    return False


@pytest.mark.parametrize(("dialect", "sql"), STATEMENTS)
def test_a_changed_literal_keeps_the_fingerprint_only_where_it_decides_rows(dialect: str, sql: str):
    tokens = [t for t in lexer(dialect).tokenize(sql) if t.token_type in LITERALS]
    assert tokens
    for token in tokens:
        raw = sql[token.start : token.end + 1]
        if token.token_type == TokenType.NUMBER:
            mark = new = "7654321"
        else:
            opening = re.match(r"[A-Za-z]*('|\"|\$\w*\$)", raw)
            assert opening
            mark = "q7654321"
            new = f"{opening[0]}{mark}{opening[1]}"
        changed = sql[: token.start] + new + sql[token.end + 1 :]
        if fingerprint(changed, dialect) == fingerprint(sql, dialect):
            assert decides_rows_only(parse_one(changed, read=dialect or None), mark), changed


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t WHERE b = 1", "select  a\nfrom t where b = 22 -- note"),
        ("SELECT a FROM t WHERE b = 'x'", "SELECT a FROM t WHERE b = 'it''s -- /* not a comment'"),
        ("SELECT a FROM t WHERE b IN (1, 2)", "SELECT a FROM t WHERE b IN (1, 2, 3, 4)"),
        ("SELECT a FROM t WHERE d BETWEEN DATE '2020-01-01' AND DATE '2020-02-01'",
         "SELECT a FROM t WHERE d BETWEEN DATE '2021-01-01' AND DATE '2021-02-01'"),
        ("INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (1, 'a'), (2, 'b')"),
        ("SELECT a FROM t LIMIT 5", "SELECT a FROM t LIMIT 50"),
        ("/* job 1 */ SELECT a FROM t WHERE b = 1", "/* job 2 */ SELECT a FROM t WHERE b = 2"),
        ("SELECT a FROM t WHERE b >= -1.5e3", "SELECT a FROM t WHERE b >= -2"),
    ],
)  # fmt: skip
def test_merged(one: str, other: str):
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(
    ("dialect", "one", "other"),
    [
        ("", "SELECT a, b FROM t GROUP BY 1", "SELECT a, b FROM t GROUP BY 2"),
        ("", "SELECT a FROM t HAVING COUNT(*) >= 5", "SELECT a FROM t HAVING COUNT(*) >= 6"),
        ("", 'SELECT "a b" FROM t', 'SELECT "a  b" FROM t'),
        ("", 'SELECT "A" FROM t', 'SELECT "a" FROM t'),
        ("", "SELECT 'a  b' FROM t", "SELECT 'a b' FROM t"),
        ("bigquery", "SELECT a FROM T", "SELECT a FROM t"),
        ("snowflake", "SELECT src:Key FROM t", "SELECT src:key FROM t"),
        ("snowflake", "SELECT a FROM t WHERE f(path => 'a') = 1", "SELECT a FROM t WHERE f(path => 'b') = 1"),
        ("mysql", "SELECT 'a\\'b' AS c, d FROM t", "SELECT 'a\\'c' AS c, d FROM t"),
        ("hive", "SELECT a FROM t WHERE x = 1a.b", "SELECT a FROM t WHERE x = 2a.b"),
        ("", "SELECT a FROM t WHERE x = 'a' 'b'", "SELECT a FROM u WHERE x = 'a' 'b'"),
        ("snowflake", "GET @s/t file:///dir/a.csv", "GET @s/t file:///dir/b.csv"),
        ("", "INSERT INTO t VALUES (1, f(NEW.j, '$.a'))", "INSERT INTO t VALUES (1, f(NEW.j, '$.b'))"),
        ("postgres", "SELECT a FROM t WHERE x = $1", "SELECT a FROM t WHERE x = $2"),
    ],
)  # fmt: skip
def test_kept_apart(dialect: str, one: str, other: str):
    assert fingerprint(one, dialect) != fingerprint(other, dialect)


_PARTS = st.lists(
    st.sampled_from(
        [
            '"d e"', "'y z'", 'GROUP BY',
            *sorted(word_set("""
            SELECT a b.c FROM t WHERE = > IN ( ) , 1 'x' AND LIKE LIMIT 5 ON JOIN VALUES BETWEEN -> =>
            CASE WHEN THEN END PIVOT FOR AS - [ ]
            """)),
        ]
    ),
    max_size=30,
)  # fmt: skip


@settings(max_examples=examples(300), deadline=None)
@given(_PARTS)
def test_what_is_left_determines_all_but_literals(parts: list[str]):
    """Taking the literals out of the text itself and out of its normal form leaves the same words in the same order."""
    text = "SELECT " + " ".join(parts)
    plain = [p for p in text.replace("'y z'", " ? ").replace("'x'", " ? ").split() if not re.fullmatch(r"[0-9?]+", p)]
    normal = normalize(text, "clickhouse").replace("'y\\x20;z'", " ? ").replace("'x'", " ? ")
    kept = [p for p in normal.split() if not re.fullmatch(r"[0-9?]+", p)]
    strip = str.maketrans("", "", "(), ?-")
    assert "".join(kept).translate(strip).replace("\\x20;", "") == "".join(plain).translate(strip)


@settings(max_examples=examples(300), deadline=None)
@given(st.text(max_size=80), st.sampled_from(["", "bigquery", "mysql", "postgres", "tsql", "snowflake"]))
def test_any_text_has_a_fingerprint(text: str, dialect: str):
    assert re.fullmatch("[0-9a-f]{32}", fingerprint(text, dialect))
    assert len(redact(text, dialect)) <= MAX_REDACTED


@settings(max_examples=examples(200), deadline=None)
@given(st.from_regex(r"[A-Z][a-z]{4,9}@[a-z]{5}\.org", fullmatch=True), st.integers(100_000_000, 999_999_999))
def test_people_do_not_survive_redaction(address: str, number: int):
    for template in (
        "SELECT a FROM t WHERE email = '{a}' AND ssn = {n} -- {a}",
        "INSERT INTO t VALUES ('{a}', {n}) /* {a} {n} */",
        "UPDATE t SET email = '{a}', ssn = {n}",
        "SELECT '{a}' AS x, {n} AS y, CASE WHEN b THEN '{a}' ELSE f({n}, '{a}') END FROM t",
        "SELECT a FROM t WHERE b IN ('x', '{a}', {n}) HAVING c > {n} ORDER BY f({n})",
        "SELECT * FROM t PIVOT (SUM(a) FOR b IN ('{a}'))",
        "CREATE USER u IDENTIFIED BY '{a}'",
        "SELECT j->>'{a}' FROM t",
        "COPY INTO t FROM 's3://b/f?token={a}' CREDENTIALS = (KEY = '{n}')",
    ):
        text = redact(template.format(a=address, n=number), "")
        assert address not in text, text
        assert str(number) not in text, text


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("", "SELECT a FROM t GROUP BY 1 ORDER BY 2 DESC LIMIT 10"),
        ("snowflake", "SELECT src['k'], src:a.b FROM t"),
        ("", "SELECT JSON_VALUE(j, '$.a.b[0]') FROM t"),
        ("", "SELECT a + INTERVAL '1 day', DATE_TRUNC('month', d) FROM t"),
        ("", "SELECT CAST(a AS VARCHAR(255)), CAST(b AS DECIMAL(10, 2)) FROM t"),
        ("snowflake", "COPY INTO t FROM 's3://bucket/path/'"),
        ("bigquery", "SELECT * FROM t PIVOT(SUM(a) FOR b IN ('x', 'y'))"),
    ],
)
def test_structure_survives_redaction(dialect: str, sql: str):
    assert redact(sql, dialect) == sql


@pytest.mark.parametrize("cut", ["'secret", "'secret\\", '"secret', "/* secret", "$$ secret", "'''secret"])
@pytest.mark.parametrize("dialect", ["", "bigquery", "postgres", "mysql", "snowflake"])
def test_a_literal_that_is_cut_off_is_redacted(cut: str, dialect: str):
    if cut[0] in "$\"'" and redact(f"select {cut[:1]}x{cut[:1]}", dialect) == f"select {cut[:1]}x{cut[:1]}":
        pytest.skip("no quote of a literal there")
    if cut.startswith("$") and dialect in ("", "bigquery", "mysql"):
        pytest.skip("no dollar quotes there")
    assert "secret" not in redact("select a from t where b = " + cut, dialect)


def test_amounts_of_money_are_literals_and_parameters_are_not():
    sql = "select a$1, $action from t where p > $20.00 and q < -$5 and r in ($1, $2.5)"
    assert redact(sql, "tsql") == "select a$1, $action from t where p > $? and q < -$? and r in ($?, $?)"
    assert fingerprint("select a$1 from t", "tsql") != fingerprint("select a$2 from t", "tsql")
    assert redact("select a from t where p > $1 and q > 7", "postgres") == "select a from t where p > $1 and q > ?"


DOLLARS = re.compile(r"\$(\w*)\$.*?\$\1\$", re.DOTALL)


@given(st.lists(st.sampled_from(["$$", "$a$", "$b", "$", "a", " ", "\n", "_"]), max_size=14).map("".join))
def test_text_between_dollars(text):
    assert _without_dollars(text) == DOLLARS.sub("'?'", text)


def test_many_tags_of_dollars_that_nothing_closes():
    text = " ".join(f"$a{number}$" for number in range(200_000))
    assert _without_dollars(text) == text


@pytest.mark.parametrize("end", ["'gs://b/x.csv'", '"Ann Lee"', "group by 1 order by 2", "in ('a', 'b')", "'it''s'"])
def test_a_text_that_is_cut_is_the_same_when_it_is_read_again(end):
    for size in range(MAX_REDACTED - 40, MAX_REDACTED + 1):
        text = f"SELECT {'a, ' * (size // 3)}{'b' * (size % 3 + 1)} FROM t WHERE c = 1 {end} and location = {end}"
        once = redact(text, "postgres")
        assert once.endswith("…")
        assert redact(once, "postgres") == once


_PIECES = [
    "SELECT a",
    " FROM t",
    " WHERE b = ",
    " IN (1, 2)",
    " ON ",
    " GROUP BY 1",
    " LIMIT 5",
    " VALUES (1), (2)",
    "'x'",
    "'x@y.z'",
    "$1",
    "$$q$$",
    " /* c */ ",
    "\n -- c\n",
    '"N n"',
    " HAVING count(*) > 5",
    " BETWEEN 1 AND 2",
    "'",
    "İ",
]


@given(
    st.lists(st.sampled_from(_PIECES), max_size=12).map("".join),
    st.sampled_from(["", "postgres", "snowflake", "bigquery", "tsql"]),
)
@settings(max_examples=examples(200), deadline=None)
def test_one_scan_yields_what_two_do(text: str, dialect: str):
    assert identified(text, dialect) == (*script_identity(text, dialect), redact(text, dialect))


@pytest.mark.parametrize(("dialect", "text"), STATEMENTS)
def test_one_scan_of_a_statement_yields_what_two_do(dialect: str, text: str):
    assert identified(text, dialect) == (*script_identity(text, dialect), redact(text, dialect))


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("duckdb", "select ['Ann Smith', 'x'], {'k': 'Ann Smith', n: 'Ann Smith'}, name: 'Ann Smith' from t"),
        (
            "postgres",
            "select id from t where n = any(array['Ann Smith']) or overlay(n placing x from 1 for 'Ann Smith')",
        ),
        ("postgres", "create function f() returns text language sql as 'select ''Ann Smith'' '"),
        ("spark", "select transform(a, x -> 'Ann Smith') from t"),
        ("snowflake", "select a:b['c'], {'k':'Ann Smith'} from t"),
    ],
)
def test_literals_within_lists_objects_and_functions_do_not_stay(dialect, sql):
    assert "Ann" not in redact(sql, dialect)


def test_keys_of_values_stay():
    sql = "select j->'name', j->>'name', j['name'], (j->'a')['b'], f(x)['c'] from t"
    assert redact(sql, "postgres") == sql
