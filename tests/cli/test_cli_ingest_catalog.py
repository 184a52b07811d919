"""``govtool ingest catalog`` and SQL read with a catalog, from the outside."""

from __future__ import annotations

import json
import sqlite3

import pytest

SETUP = """
CREATE TABLE users (id int, email text, "Since" date);
CREATE TABLE orders (user_id int, total int);
CREATE TABLE target (n int, label text);
CREATE VIEW contacts (who, "E mail") AS SELECT id, lower(email) FROM users WHERE "Since" > '2020-01-01';
CREATE TYPE address AS (street text, zip text);
CREATE TABLE people (id int, home address);
CREATE FUNCTION numbers() RETURNS TABLE(n int, label text) LANGUAGE plpgsql AS $$BEGIN RETURN QUERY SELECT 1, 'x'; END$$;
COMMENT ON COLUMN users.email IS 'where to write';
"""

ETL = """\
CREATE OR REPLACE VIEW everything AS
SELECT * FROM later JOIN numbers() ON n = who;

CREATE VIEW later AS SELECT *, "E mail" AS again FROM contacts;

INSERT INTO target SELECT total, label FROM numbers(), orders WHERE total = n;

CREATE VIEW zips AS SELECT (home).* FROM people;

CREATE VIEW wrong AS SELECT * FROM numbers(), nowhere;
"""


@pytest.fixture(scope="module")
def shop(postgres):
    postgres.run("CREATE DATABASE shop_cli")
    postgres.run(SETUP, "shop_cli")
    return postgres.url_of("shop_cli")


def edges(govtool, subject):
    """What a column is made of, and how that is known."""
    answer = json.loads(govtool("explain", subject, "-f", "json").out)
    found = {step["source"].rpartition("/")[2] for step in answer["made_of"]}
    return found, {definition["how"] for definition in answer["definitions"]}


def test_views_become_lineage_and_comments_facts(govtool, project, shop):
    govtool("init")
    done = govtool("ingest", "catalog", shop)
    assert done.code == 0
    assert "coverage 100.0% (1/1 statement)" in done.out
    answer = json.loads(govtool("impact", "users.email", "-f", "json").out)
    (reached,) = answer["columns"]
    assert reached["column"] == 'postgres://localhost:5432/shop_cli.public.contacts."E mail"'
    assert "where to write" in govtool("explain", "users.email").out
    assert json.loads(govtool("explain", "contacts.who", "-f", "json").out)["type"] == "integer"
    assert "nothing new" in govtool("ingest", "catalog", shop).out


def test_sql_with_a_catalog_has_the_names_of_the_catalog(govtool, project, shop):
    (project / "report.sql").write_text("CREATE VIEW report AS SELECT email, total FROM users, orders")
    govtool("init")
    govtool("ingest", "catalog", shop)
    done = govtool("ingest", "sql", "report.sql", "--catalog", shop)
    assert (done.code, "100.0% (1/1 statement)" in done.out) == (0, True)
    answer = json.loads(govtool("impact", "users.email", "-f", "json").out)
    assert {entry["column"].rpartition("/")[2] for entry in answer["columns"]} == {
        'shop_cli.public.contacts."E mail"',
        "shop_cli.public.report.email",
    }


def test_postgres_explains_what_the_text_leaves_open(govtool, project, shop, postgres):
    (project / "etl.sql").write_text(ETL)
    before = postgres.run("SELECT relname FROM pg_class ORDER BY 1", "shop_cli")
    govtool("init")
    open_ones = govtool("ingest", "sql", "etl.sql", "--catalog", shop)
    assert "2/5 statements" in open_ones.out
    done = govtool("ingest", "sql", "etl.sql", "--catalog", shop, "--explain", "-v")
    assert done.code == 0
    assert "4/5 statements" in done.out
    assert 'relation "nowhere" does not exist' in done.err
    assert postgres.run("SELECT relname FROM pg_class ORDER BY 1", "shop_cli") == before
    columns = json.loads(govtool("explain", "everything", "-f", "json").out)["columns"]
    assert {column["path"] for column in columns} == {"who", '"E mail"', "again", "n", "label"}
    assert edges(govtool, 'everything."E mail"') == ({'shop_cli.public.later."E mail"'}, {"explain"})
    assert edges(govtool, "later.again")[1] == {"sql"}
    assert edges(govtool, "target.n")[0] == {"shop_cli.public.orders.total"}
    assert edges(govtool, "zips.zip") == ({"shop_cli.public.people.home.zip"}, {"explain"})
    assert json.loads(govtool("explain", "wrong", "-f", "json").out)["definitions"][0]["how"] == "sql"


def test_catalog_and_sql_together(govtool, project, shop):
    (project / "etl.sql").write_text(ETL)
    govtool("init")
    done = govtool("ingest", "catalog", shop, "--sql", "etl.sql", "--explain", "--source", "dw")
    assert (done.code, "coverage 83.3% (5/6 statements)" in done.out) == (0, True)
    answer = json.loads(govtool("impact", "users.email", "-f", "json").out)
    assert {entry["column"].rpartition(".")[2] for entry in answer["columns"]} == {'"E mail"', "again"}


def test_lineage_with_a_catalog(govtool, project, shop):
    done = govtool("lineage", "-", "--catalog", shop, "--explain", "-f", "json", stdin=ETL.encode())
    (result,) = json.loads(done.out)["results"]
    assert ["shop_cli.public.people.home", "shop_cli.public.zips.zip"] in result["edges"]
    assert result["columns"]["shop_cli.public.zips"] == ["street", "zip"]


def test_what_the_parser_cannot_read_has_the_tables_of_its_plan(govtool, project, shop):
    text = "CREATE VIEW odd AS SELECT count(*) AS n FROM orders WHERE total OPERATOR(pg_catalog.>) ALL (SELECT 1) IS NOT FALSE"
    (project / "odd.sql").write_text(text)
    govtool("init")
    govtool("ingest", "sql", "odd.sql", "--catalog", shop, "--explain")
    answer = json.loads(govtool("impact", "orders.total", "-f", "json").out)
    assert {entry["column"].rpartition("/")[2] for entry in answer["columns"]} & {
        "shop_cli.public.odd.*",
        "shop_cli.public.odd.n",
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ("ingest", "sql", "a.sql", "--explain"),
        ("ingest", "sql", "a.sql", "--catalog", "a.sqlite", "--explain"),
        ("ingest", "catalog", "a.sqlite", "--explain"),
        ("ingest", "catalog", "postgresql://h/d", "--explain"),
        ("ingest", "catalog", "nothing"),
        ("lineage", "--batch", "--catalog", "a.sqlite"),
    ],
)
def test_what_does_not_go_together(govtool, project, arguments):
    (project / "a.sql").write_text("select 1")
    govtool("init")
    assert govtool(*arguments).code == 2


@pytest.mark.parametrize("command", [("ingest", "catalog"), ("ingest", "sql", "a.sql", "--catalog")])
def test_a_server_that_is_not_there(govtool, project, command):
    (project / "a.sql").write_text("select 1")
    govtool("init")
    done = govtool(*command, "postgresql://me:p4ssw0rd@127.0.0.1:1/db", "--debug")
    assert done.code == 4
    assert "127.0.0.1:1" in done.err
    assert "p4ssw0rd" not in done.err + done.out


def test_a_view_without_a_definition_is_among_the_reasons_for_incomplete_coverage(govtool, project, monkeypatch):
    from govtool.capture.catalog import read
    from govtool.capture.catalog.model import Catalog, CatalogDefinition, CatalogRelation

    known = CatalogRelation("known", "view", (), CatalogDefinition("CREATE VIEW known AS SELECT 1 AS n", None, None))
    shop = Catalog("sqlite", "shop", "shop", relations=(known, CatalogRelation("hidden", "view")))
    monkeypatch.setattr(read, "read_catalog", lambda url, only: shop)
    assert govtool("init", "--no-sources").code == 0
    assert govtool("ingest", "catalog", "sqlite:///shop.db").code == 0
    (reason,) = json.loads(govtool("coverage", "-f", "json").out)["reasons"]
    assert (reason["code"], reason["message"]) == ("opaque", "the catalog does not give its definition")


def test_sqlite_from_the_outside(govtool, project):
    with sqlite3.connect("shop.sqlite") as connection:
        connection.executescript(
            "CREATE TABLE users (email TEXT); CREATE VIEW v AS SELECT lower(email) AS e FROM users"
        )
    connection.close()
    govtool("init")
    assert govtool("ingest", "catalog", "shop.sqlite", "--namespace", "default").code == 0
    answer = json.loads(govtool("impact", "users.email", "-f", "json").out)
    assert [entry["column"] for entry in answer["columns"]] == ["v.e"]
