"""Catalogs, read over connections to real databases."""

from __future__ import annotations

import sqlite3
import sys

import pytest

from govtool.capture.catalog.address import parse_address
from govtool.capture.catalog.explain import creation, cut
from govtool.capture.catalog.model import CatalogRemark
from govtool.capture.catalog.read import read_catalog
from govtool.errors import SourceError, UsageError

SHOP = """
CREATE SCHEMA "Crm";
CREATE TABLE "Crm"."Odd Name" (id int PRIMARY KEY, "E mail" text, n numeric(10,2), gone int);
ALTER TABLE "Crm"."Odd Name" DROP COLUMN gone;
ALTER TABLE "Crm"."Odd Name" ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON "Crm"."Odd Name" USING (n > 0);
COMMENT ON TABLE "Crm"."Odd Name" IS 'people''s';
COMMENT ON COLUMN "Crm"."Odd Name"."E mail" IS 'where to write';
CREATE VIEW v(p, "Q") AS SELECT id, lower("E mail") FROM "Crm"."Odd Name" WHERE n > 3;
CREATE MATERIALIZED VIEW mv AS SELECT count(*) c, p FROM v GROUP BY p;
CREATE TABLE z (q int, r text);
CREATE FUNCTION f(x int) RETURNS TABLE(a int, b text) LANGUAGE sql
    AS 'SELECT id, "E mail" FROM "Crm"."Odd Name" WHERE id = x';
CREATE FUNCTION g() RETURNS TABLE(x int, y int) LANGUAGE plpgsql AS $$BEGIN RETURN QUERY SELECT 1, 2; END$$;
CREATE VIEW vf AS SELECT f.*, o.n FROM "Crm"."Odd Name" o, LATERAL f(o.id) f;
CREATE TABLE part (d date, x int) PARTITION BY RANGE (d);
CREATE TABLE part_2020 PARTITION OF part FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE FOREIGN DATA WRAPPER wrapper;
CREATE SERVER other FOREIGN DATA WRAPPER wrapper;
CREATE FOREIGN TABLE far (a int, "B" text) SERVER other;
GRANT SELECT ON "Crm"."Odd Name" TO analyst;
GRANT UPDATE (n) ON "Crm"."Odd Name" TO public;
"""


@pytest.fixture(scope="module")
def shop(postgres):
    """The address of a database with one of everything."""
    postgres.run("CREATE DATABASE shop")
    postgres.run("CREATE ROLE analyst")
    postgres.run(SHOP, "shop")
    return postgres.url_of("shop")


def relations(catalog):
    return {relation.name: relation for relation in catalog.relations}


# ---- PostgreSQL --------------------------------------------------------------------------------------


def test_names_types_and_kinds(shop):
    catalog = read_catalog(shop)
    found = relations(catalog)
    assert {name: relation.kind for name, relation in found.items()} == {
        'shop."Crm"."Odd Name"': "table",
        "shop.public.far": "table",
        "shop.public.mv": "materialized_view",
        "shop.public.part": "table",
        "shop.public.part_2020": "table",
        "shop.public.v": "view",
        "shop.public.vf": "view",
        "shop.public.z": "table",
    }
    columns = found['shop."Crm"."Odd Name"'].columns
    assert [(c.name, c.type) for c in columns] == [("id", "integer"), ('"E mail"', "text"), ("n", "numeric(10,2)")]
    assert (catalog.default_catalog, catalog.default_schema) == ("shop", "public")
    assert catalog.namespace == "postgres://localhost:5432"


def test_comments_grants_policies_and_what_kind_of_table(shop):
    found = relations(read_catalog(shop))
    stated = set(found['shop."Crm"."Odd Name"'].remarks)
    assert stated >= {
        CatalogRemark(None, "description", "people's"),
        CatalogRemark('"E mail"', "description", "where to write"),
        CatalogRemark(None, "grant", "analyst: SELECT"),
        CatalogRemark("n", "grant", "public: UPDATE"),
        CatalogRemark(None, "owner", "postgres"),
        CatalogRemark(None, "row_policy", "few: (n > (0)::numeric)"),
    }
    assert CatalogRemark(None, "server", "other") in found["shop.public.far"].remarks
    assert CatalogRemark(None, "partition_of", "public.part") in found["shop.public.part_2020"].remarks


def test_only_some_schemas(shop):
    assert list(relations(read_catalog(shop, ["C*"]))) == ['shop."Crm"."Odd Name"']


def test_the_transaction_cannot_write(shop):
    from govtool.capture.catalog.postgres import connected

    with pytest.raises(SourceError, match="read-only transaction"), connected(parse_address(shop)) as connection:
        connection.execute("CREATE TABLE public.never (a int)")


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("sqlite://shop.db", "sqlite:///shop.db"),
        ("duckdb://data/shop.duckdb", "duckdb:///data/shop.duckdb"),
        ("sqlite://u:s3cret@shop.db", "sqlite:///FILE"),
    ],
)
def test_a_file_behind_two_slashes_is_named_in_the_error(url, hint):
    with pytest.raises(UsageError) as caught:
        parse_address(url)
    assert (caught.value.hint, "s3cret" in f"{caught.value}") == (hint, False)


def test_no_secret_in_an_error():
    url = "postgresql://reader:hunter%402secret@127.0.0.1:1/shop?sslpassword=alsosecret"
    with pytest.raises(SourceError) as caught:
        read_catalog(url)
    assert caught.value.exit_code == 4
    shown = (
        f"{caught.value} {caught.value.location} {caught.value.hint} {caught.value.__cause__} {parse_address(url)!r}"
    )
    assert "127.0.0.1:1" in shown
    for secret in ("hunter", "alsosecret"):
        assert secret not in shown


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("cannot log in with s3cret", "cannot log in with ***"),
        ("password=abcd host=x", "password=*** host=x"),
        ("one\n  line", "one line"),
    ],
)
def test_messages_of_drivers_are_cleaned(text, clean):
    assert parse_address("mysql://u:s3cret@h/db").clean(text) == clean


def test_a_password_too_short_to_find_hides_the_message():
    assert "u7" not in parse_address("mysql://u:7@h/db").clean("no u7 here")


@pytest.mark.parametrize("url", ["shop", "postgresql://host:port/db"])
def test_no_address(url):
    with pytest.raises(UsageError):
        parse_address(url)


# ---- statements cut and made harmless ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "head", "body", "first"),
    [
        ("create view v (a, b) as select 1, 2;", "create view v (a, b) as", "select 1, 2", "SELECT"),
        ("create view v as select 1 with local check option", "create view v as", "select 1", "SELECT"),
        ("create table t as (select 'as') with no data", "create table t as", "(select 'as')", "SELECT"),
        ('create view "as" as table t', 'create view "as" as', "table t", "TABLE"),
        ("with x as (select 1) insert into t table x", "", "with x as (select 1) insert into t table x", "INSERT"),
        ("(select 1) union select 2", "", "(select 1) union select 2", "SELECT"),
    ],
)
def test_cutting(text, head, body, first):
    parts = cut(text)
    assert parts is not None
    assert (parts.head, parts.body, parts.first) == (head, body, first)


@pytest.mark.parametrize(
    "text", ["drop table t", "create table t (a int)", "grant select on t to u", "call p()", "", "'"]
)
def test_nothing_to_plan(text):
    assert cut(text) is None


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("create or replace view v as select 1", "create  view v as select 1"),
        ("create table t as select 1", "create table t as select 1 WITH NO DATA"),
        ("create materialized view m as select 1 with data", "create materialized view m as select 1 WITH NO DATA"),
        (
            'create table t (a int primary key references u (x) on delete cascade, "B" text default now(), check (a > 0))',
            'CREATE TABLE t (a INT, "B" TEXT)',
        ),
        ("create or replace function f() returns int language sql as 'select 1'", None),
        ("insert into t values (1)", ""),
        ("drop table t", ""),
    ],
)
def test_creating_no_more_than_names(text, made):
    found = creation(text) or ""
    if made is None:
        assert "replace" not in found
    else:
        assert found == made


# ---- others ------------------------------------------------------------------------------------------


def test_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "shop.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(
            "CREATE SCHEMA s; CREATE TABLE s.Users (Id INT, name TEXT); COMMENT ON TABLE s.Users IS 'who'"
        )
        connection.execute("CREATE VIEW v AS SELECT Id AS i, upper(name) AS n FROM s.Users")
    for url in (str(file), f"duckdb:///{file}", f"duckdb://{file}"):
        catalog = read_catalog(url)
        found = relations(catalog)
        assert set(found) == {"shop.main.v", "shop.s.users"}
        assert [c.name for c in found["shop.s.users"].columns] == ["id", "name"]
        assert found["shop.s.users"].remarks == (CatalogRemark(None, "description", "who"),)
        assert found["shop.main.v"].kind == "view"
        assert catalog.namespace == "duckdb:shop.duckdb"


def test_sqlite(tmp_path):
    file = tmp_path / "shop.sqlite"
    connection = sqlite3.connect(file)
    connection.executescript(
        "CREATE TABLE users (id INTEGER, email TEXT); CREATE VIEW v (e) AS SELECT email FROM users"
    )
    connection.close()
    catalog = read_catalog(f"sqlite:///{file}")
    found = relations(catalog)
    assert [(c.name, c.type) for c in found["users"].columns] == [("id", "INTEGER"), ("email", "TEXT")]
    assert found["v"].definition is not None
    assert catalog.dialect == "sqlite"


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_a_file_that_is_not_there_is_not_made(tmp_path, scheme):
    with pytest.raises(SourceError, match="no such file"):
        read_catalog(f"{scheme}:///{tmp_path}/none.db")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database(tmp_path):
    file = tmp_path / "a.sqlite"
    file.write_bytes(b"not a database at all" * 100)
    with pytest.raises(SourceError):
        read_catalog(str(file))


def test_any_database_of_sqlalchemy(tmp_path):
    pytest.importorskip("sqlalchemy")
    file = tmp_path / "shop.db"
    connection = sqlite3.connect(file)
    connection.executescript("CREATE TABLE users (id INTEGER, email TEXT); CREATE VIEW v AS SELECT email FROM users")
    connection.close()
    found = relations(read_catalog(f"sqlite+pysqlite:///{file}"))
    assert found["users"].kind == "table"
    assert found["v"].definition is not None
    assert "CREATE VIEW" in found["v"].definition.statement


def test_a_dialect_that_is_not_installed():
    pytest.importorskip("sqlalchemy")
    with pytest.raises(SourceError, match="not installed"):
        read_catalog("nosuchdatabase://host/db")


def test_a_driver_that_is_not_installed(monkeypatch):
    pytest.importorskip("sqlalchemy")
    monkeypatch.setitem(sys.modules, "pymysql", None)
    with pytest.raises(SourceError, match=r"mysql\+pymysql:// needs the Python module pymysql") as caught:
        read_catalog("mysql+pymysql://host/db")
    assert caught.value.code == "source.driver"
    assert "mysql+DRIVER://" in caught.value.hint


def test_a_spark_session(spark):
    from govtool.capture.catalog.spark import read_session

    spark.sql("CREATE DATABASE catalogued COMMENT 'for the test'")
    try:
        spark.sql("CREATE TABLE catalogued.users (id INT COMMENT 'a key', address STRUCT<zip: STRING>) USING parquet")
        spark.sql("USE catalogued")
        spark.sql("CREATE VIEW zips (`The Zip`, n) AS SELECT address.zip, count(*) AS c FROM users GROUP BY 1")
        spark.sql("USE default")
        catalog = read_session(spark, "spark:test")
    finally:
        spark.sql("USE default")
        spark.sql("DROP DATABASE catalogued CASCADE")
    found = relations(catalog)
    users = found["spark_catalog.catalogued.users"]
    assert [(c.name, c.type) for c in users.columns] == [("id", "int"), ("address", "struct<zip:string>")]
    assert CatalogRemark("id", "description", "a key") in users.remarks
    zips = found["spark_catalog.catalogued.zips"]
    assert zips.kind == "view"
    assert zips.definition is not None
    assert (zips.definition.catalog, zips.definition.schema) == ("spark_catalog", "catalogued")
    assert "(`The Zip`, `n`)" in zips.definition.statement


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("spark:///no/such/folder", SourceError),
        ("spark:///tmp?colour=red", UsageError),
        ("spark:///tmp?metastore=/no/such", SourceError),
    ],
)
def test_a_warehouse_that_cannot_be_read(url, error):
    pytest.importorskip("pyspark")
    from govtool.capture.catalog.spark import _settings

    with pytest.raises(error):
        _settings(parse_address(url)) if "?" in url else read_catalog(url)
