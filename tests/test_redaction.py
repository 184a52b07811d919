"""Secrets in text: none stays, and what names data does."""

from __future__ import annotations

import pytest

from govtool.redaction import clean_location, clean_message, clean_text, clean_value, masked_line

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
    """A pattern that looks at the rest of the text from each place would take hours here."""
    text = unit * 100_000
    for clean in (clean_text, clean_message, masked_line):
        assert len(clean(text)) > 0
    assert clean_value(text, text)
    assert clean_location(f"https://host/x?{text}").startswith("https://host/x")


def test_a_block_that_is_not_closed_is_no_comment() -> None:
    assert clean_message("no /* bob\n*/ s3://b/*.csv -- ann\nof it") == "no *** s3://b/*.csv ***\nof it"
