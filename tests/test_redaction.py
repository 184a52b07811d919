"""Secrets in text: none stays, and what names data does."""

from __future__ import annotations

import pytest

from govtool.redaction import (
    clean_failure,
    clean_location,
    clean_message,
    clean_text,
    clean_value,
    failure_of,
    is_secret_name,
    masked_line,
)

LOCATIONS = [
    ("s3://AKIA1:tops3cret@bucket/x.parquet", "s3://bucket/x.parquet"),
    ("s3a://key@bucket/x", "s3a://bucket/x"),
    ("https://ann:tops3cret@host:8443/x.csv", "https://host:8443/x.csv"),
    ("https://host/x.csv?sp=r&se=2027-01-01&sig=tops3cret%3D", "https://host/x.csv"),
    ("https://b.s3.amazonaws.com/x?X-Amz-Credential=A&X-Amz-Signature=tops3cret", "https://b.s3.amazonaws.com/x"),
    ("https://host/api?table=x&token=tops3cret&page=2", "https://host/api?table=x&page=2"),
    ("https://host/api?table=x", "https://host/api?table=x"),
    ("https://host/api?code=tops3cret&table=x&auth=tops3cret", "https://host/api?table=x"),
    ("abfss://raw@account.dfs.core.windows.net/x", "abfss://raw@account.dfs.core.windows.net/x"),
    ("abfss://raw:tops3cret@account/x", "abfss://account/x"),
    ("jdbc:postgresql://ann:tops3cret@db:5432/shop?password=tops3cret", "jdbc:postgresql://db:5432/shop"),
    ("postgresql://ann:a@b:tops3cret@db/shop", "postgresql://db/shop"),
    ("folder/file@2.csv", "folder/file@2.csv"),
    ("https://host/x.csv?sig=tops3cret#part", "https://host/x.csv#part"),
    ("https://host/x#access_token=tops3cret&page=2", "https://host/x#page=2"),
    ("/x.parquet?sp=r&sig=tops3cret", "/x.parquet"),
    ("what? ever", "what? ever"),
    ("jdbc:sqlserver://h;user=u;password=tops3cret;databaseName=d", "jdbc:sqlserver://h;user=u;databaseName=d"),
    ("jdbc:oracle:thin:scott/tops3cret@//h:1521/db", "jdbc:oracle:thin:***@//h:1521/db"),
]


@pytest.mark.parametrize(("written", "named"), LOCATIONS)
def test_an_address_names_its_data_and_holds_no_secret(written: str, named: str) -> None:
    assert clean_location(written) == named
    assert clean_location(named) == named


LINES = [
    "copy t from 's3://b/x' credentials 'aws_access_key_id=tops3cret;aws_secret_access_key=tops3cret'",
    "create stage s url='s3://b' credentials=(aws_key_id='tops3cret' aws_secret_key='tops3cret')",
    "select * from dblink('host=h user=u password=tops3cret', 'select 1')",
    "select * from openrowset('SQLNCLI', 'Server=s;Uid=u;Pwd=tops3cret;', 'select 1')",
    "create user ann identified by 'tops3cret'",
    "alter user ann with password 'tops3cret'",
    'create user ann password "tops3cret"',
    "select * from s3('https://h/x.csv', 'AKIA', 'tops3cret', 'CSV')",
    "insert into function s3('https://h/x.csv','AKIA','tops3cret') select 1",
    "select * from mysql('h:3306', 'db', 't', 'u', 'tops3cret')",
    "create secret s (type s3, key_id 'tops3cret', secret 'tops3cret')",
    "options (url 'jdbc:x', password 'tops3cret')",
    "attach 'postgresql://u:tops3cret@h/db'",
    "set my.api_key = 'tops3cret'",
    "curl -H 'authorization: Bearer tops3cret'",
    "create server s options (password 'tops3cret",
    "open symmetric key k decryption by password = N'tops3cret'",
    "select * from 'https://h/x?sig=tops3cret'",
    "select * from t where n = q'[tops3cret]'",
    "do $x$ begin insert into a select 'tops3cret' from b",
    "create view v as select $$ tops3cret $$",
    "select id from users where token = $$ tops3cret $$",
    "alter user ann identified by tops3cret replace tops3cret",
    "exec xp_cmdshell 'bcp t out x -P tops3cret'",
    "query => 'select 1 where token = ''tops3cret''",
    "https:/ann:tops3cret@host/x.sql does not exist",
    "insert into t values ('ann.tops3cret@example.org')",
]


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_source_is_masked_in_its_place(line: str) -> None:
    masked = masked_line(line)
    assert "tops3cret" not in masked
    assert len(masked) == len(line)
    assert masked[:7] == line[:7]


def test_what_is_no_secret_is_left() -> None:
    for line in (
        "select token_count, signed from t where a = 'x'",
        "select 'a', \"b\" from s3_events",
        "-- see ann@x.org",
        "select to_char(d, 'YYYY-MM-DD'), 'warehouse/a1.sql', 'lower case' from t where d = '2026'",
    ):
        assert masked_line(line) == line


def test_settings_called_like_secrets_show_nothing() -> None:
    assert clean_value("sql.variables.password", "x") == "***"
    assert clean_value("store", "s3://a:b@bucket/p") == "s3://bucket/p"
    assert clean_value("sql.default_schema", "public") == "public"
    assert clean_value("sql.schema", []) == []
    assert clean_text("connect to https://u:p@h failed: token=abc") == "connect to https://***@h failed: token=***"


HOSTILE = ("a.", "a-", "sig-", "sig", "/*", '"@', "$a", "password  ", "mysql('a',", "&sig", "identified by ")


@pytest.mark.parametrize("unit", HOSTILE)
def test_long_text_of_others_takes_time_in_proportion(unit: str) -> None:
    """A pattern that looks at the rest of the text from each place would take many minutes here."""
    text = unit * 25_000
    for clean in (clean_text, clean_message, masked_line):
        assert len(clean(text)) > 0
    assert clean_value(text, text)
    assert clean_location(f"https://host/x?{text}").startswith("https://host/x")


def test_a_block_that_is_not_closed_is_no_comment() -> None:
    assert clean_message("no /* bob\n*/ s3://b/*.csv -- ann\nof it") == "no *** s3://b/*.csv ***\nof it"


VALUE = "Zoe O'Hara"
"""A value of a row, with a quote in it."""


def duckdb_failures() -> list[str]:
    """Statements that fail in DuckDB on a value ``?``."""
    return [
        *(
            f"select cast(? as {kind})"
            for kind in ("int", "date", "timestamp", "time", "uuid", "boolean", "decimal(3,1)")
        ),
        *(f"select cast(? as {kind})" for kind in ("interval", "int[]", "json", "bit")),
        "select strptime(?, '%Y')",
        "select error('no ' || ?)",
        "select unhex(?)",
        "select from_base64(?)",
        "select date_part(?, date '2020-01-01')",
        "select regexp_matches('a', '(' || ?)",
        "select timestamp '2020-01-01' at time zone ?",
        "insert into people values (?), (?)".replace("(?)", "($1)"),
        "select cast('\\xZoe' || ? as blob)",
        "select printf('%d', ?)",
    ]


@pytest.mark.parametrize("statement", duckdb_failures())
def test_errors_of_duckdb_do_not_repeat_a_value(statement: str) -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute("create table people (name varchar primary key)")
    with pytest.raises(duckdb.Error) as failed:
        connection.execute(statement, [VALUE])
    text = clean_failure(failed.value)
    assert "Zoe" not in text
    assert "Hara" not in text
    assert " Error: " in text  # what kind of error it is stays


@pytest.mark.parametrize("number", ["31415926", "-27182818.5"])
def test_errors_of_duckdb_do_not_repeat_a_number(number: str) -> None:
    import duckdb

    for statement in ("select cast(? as tinyint)", "select cast(? as decimal(3,1))", "select cast('x' || ? as int)"):
        with pytest.raises(duckdb.Error) as failed:
            duckdb.execute(statement, [float(number) if "." in number else int(number)])
        assert number.strip("-")[:6] not in clean_failure(failed.value)


def test_errors_of_pyarrow_and_python_do_not_repeat_a_value() -> None:
    import io
    from datetime import datetime

    import pyarrow as pa
    import pyarrow.csv

    def csv(text: str) -> object:
        options = pyarrow.csv.ConvertOptions(column_types={"a": pa.int64()})
        return pyarrow.csv.read_csv(io.BytesIO(text.encode()), convert_options=options)

    for work in (
        lambda: csv(f"a,b\n1,2\n{VALUE},x,y\n"),
        lambda: csv(f"a,b\n1,2\n{VALUE},x\n"),
        lambda: pa.array([VALUE]).cast(pa.date32()),
        lambda: pa.array([1, VALUE]),
        lambda: int(VALUE),
        lambda: datetime.strptime(VALUE, "%Y"),
    ):
        with pytest.raises(ValueError, match=r".") as failed:
            work()
        text = failure_of(failed.value)
        assert "Zoe" not in text
        assert "Hara" not in text
        assert ": " in text


@pytest.mark.parametrize(
    ("message", "cleaned"),
    [
        (
            """[CAST_INVALID_INPUT] The value 'Zoe O'Hara' of the type "STRING" cannot be cast to "INT". SQLSTATE: 22018""",
            """[CAST_INVALID_INPUT] The value '***' of the type "STRING" cannot be cast to "INT". SQLSTATE: 22018""",
        ),
        ("[DUPLICATED_MAP_KEY] Duplicate map key Zoe O'Hara was found.\nSQLSTATE: 23505", "[DUPLICATED_MAP_KEY]"),
        ("[USER_RAISED_EXCEPTION] no Zoe SQLSTATE: P0001", "[USER_RAISED_EXCEPTION]"),
        ("[INVALID_FORMAT.MISMATCH_INPUT] Zoe does not match. SQLSTATE: 42601", "[INVALID_FORMAT.MISMATCH_INPUT]"),
        (
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `a` cannot be resolved. SQLSTATE: 42703; line 1 pos 7",
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `a` cannot be resolved. SQLSTATE: 42703; line 1 pos 7",
        ),
        ('java.lang.NumberFormatException: For input string: "Zoe"', 'java.lang.NumberFormatException: For input string: "***"'),
        ("Binder Error: Referenced column \"a\" not found in FROM clause!\nLINE 1: select 'Zoe'", "Binder Error: Referenced column \"a\" not found in FROM clause!"),
        ("Invalid Input Error: No magic bytes found at end of file '/data/a.csv'", "Invalid Input Error: No magic bytes found at end of file '/data/a.csv'"),
        ("KeyError: 'amount'", "KeyError: 'amount'"),
        ("cannot connect: password=tops3cret", "cannot connect: password=***"),
    ],
)  # fmt: skip
def test_an_error_says_what_failed_and_where(message: str, cleaned: str) -> None:
    assert clean_failure(message) == cleaned
    assert clean_failure(cleaned) == cleaned


def test_the_engine_of_rows_refuses_without_values() -> None:
    from govtool.records.execute.duckdb import DuckExecutor
    from govtool.records.plan.nodes import Session
    from govtool.records.sql.dialect import NotExact

    with pytest.raises(NotExact) as refused:
        DuckExecutor(Session("", True, "UTC"), threads=1).stream("select cast('Zoe' as int)")
    assert str(refused.value) == "DuckDB: Conversion Error: Could not convert string '***' to INT32"


def test_a_bug_says_no_value() -> None:
    from govtool.render.errors import unexpected_lines

    (first, *_) = unexpected_lines(ValueError("invalid literal for int() with base 10: 'Zoe'"))
    assert "".join(span.text for span in first).endswith("with base 10: '***'")


@pytest.mark.parametrize(
    "name",
    ["fs.s3a.secret.key", "dbPass", "encryption.key", "parquet.encryption.key.list", "fs.azure.sas.c.a", "DB_PASSWORD"],
)
def test_names_of_secrets(name):
    assert is_secret_name(name)
    assert clean_value(name, "x") == "***"


@pytest.mark.parametrize("name", ["sep", "passengers", "spark.sql.shuffle.partitions", "monkey", "basePath", "key"])
def test_other_names(name):
    assert clean_value(name, "x") == "x"
