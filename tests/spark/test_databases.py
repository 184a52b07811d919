"""Tables of databases over JDBC, with the database that Spark brings: their names, their lineage, and no login kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorders import own_recorder

import govtool.spark
from bench import programs
from govtool.spark.live import process

URL = "jdbc:derby:memory:govtool_shop;create=true"
LOGIN = {"driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver", "user": "chief", "password": "open-sesame"}
CATALOG = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"


@pytest.fixture(scope="module")
def job(spark, spark_home, tmp_path_factory):
    """What a job with a database did, by source; its folder; the text of all that its recorder wrote."""
    folder = tmp_path_factory.mktemp("databases")
    session = spark.newSession()
    catalog = {"": CATALOG, ".url": f"{URL};user=chief;password=open-sesame", ".driver": LOGIN["driver"]}
    catalog |= {".pushDownAggregate": "true", ".pushDownLimit": "true"}
    with own_recorder():
        for key, value in catalog.items():
            session.conf.set(f"spark.sql.catalog.shopdb{key}", value)
        govtool.spark.attach(session, spool=str(folder / "spool"), records=True)
        session.range(6).selectExpr("id", "id * 2 AS price", "id % 2 AS cat").write.jdbc(URL, "items", properties=LOGIN)
        items = session.read.jdbc(URL, "items", properties=LOGIN)

        def write(name, frame):
            frame.write.parquet(f"{folder}/{name}")

        write("plain", items.where("cat = 1").select("id"))
        query = '(SELECT "id", "price" FROM items WHERE "cat" <> 77) t'
        write("query", session.read.jdbc(URL, query, properties=LOGIN))
        write("other", session.read.jdbc(URL, query.replace("77", "78"), properties=LOGIN))
        write("alias", session.read.jdbc(URL, "items i", properties=LOGIN))
        write("joined", session.read.jdbc(URL, "items NATURAL JOIN items j", properties=LOGIN))
        write("listed", session.sql("SELECT id FROM shopdb.CHIEF.ITEMS WHERE cat = 1 AND price IN (2, 6)"))
        write(
            "grouped", session.sql("SELECT cat, max(price) AS top, count(*) AS n FROM shopdb.CHIEF.ITEMS GROUP BY cat")
        )
        settings = ", ".join(f"{key} '{value}'" for key, value in {"url": URL, "dbtable": "items", **LOGIN}.items())
        session.sql(f"CREATE TABLE default.shop_items USING jdbc OPTIONS ({settings})")
        write("named", session.table("default.shop_items").select("price"))
        session.sql("INSERT INTO default.shop_items SELECT id + 100, price, cat FROM shopdb.CHIEF.ITEMS")
        session.sql("DROP TABLE default.shop_items")
        assert process._recorder.drain(60)
    written = "".join(file.read_text() for file in Path(folder, "spool").rglob("*.jsonl"))
    found = {"live": programs.live(folder / "spool"), "log": programs.logged(spark_home / "events")}
    return found, folder, written


def found(job, source, name):
    """One write as a source has it."""
    actions, folder, _ = job
    (executed,) = [
        each for each in actions[source] if each.derivation and each.derivation.target == f"file://{folder}/{name}"
    ]
    return executed


CATALOGUED = "shopdb.chief.items"
LINEAGE = {
    "plain": ["* <- {}.* read", "* <- {}.cat filter", "id <- {}.id identity"],
    "alias": ["* <- {}.* read", "cat <- {}.cat identity", "id <- {}.id identity", "price <- {}.price identity"],
    "listed": [
        *("* <- shopdb.chief.items.* read", "* <- shopdb.chief.items.cat filter"),
        *("* <- shopdb.chief.items.price filter", "id <- shopdb.chief.items.id identity"),
    ],
    "grouped": [
        *("* <- shopdb.chief.items.* read", "* <- shopdb.chief.items.cat group_by"),
        *("cat <- shopdb.chief.items.cat identity", "top <- shopdb.chief.items.price aggregation"),
    ],
    "named": ["* <- default.shop_items.* read", "price <- default.shop_items.price identity"],
}
"""``{}`` is the table without a catalog: an event log does not say which database it is of."""


@pytest.mark.parametrize("name", LINEAGE)
@pytest.mark.parametrize(("source", "place"), [("live", "jdbc:derby:memory:govtool_shop/items"), ("log", "jdbc/items")])
def test_tables_have_lineage_whatever_the_database_answers_itself(job, source, place, name):
    executed = found(job, source, name)
    edges = executed.derivation.edges
    shown = sorted(f"{edge.target_path} <- {edge.source.text} {edge.kind.label}" for edge in edges)
    assert shown == sorted(line.format(place) for line in LINEAGE[name])
    assert not executed.run.breaks


@pytest.mark.parametrize("name", ["query", "other", "joined"])
@pytest.mark.parametrize("source", ["live", "log"])
def test_a_query_of_a_database_is_a_break_and_no_table(job, source, name):
    executed = found(job, source, name)
    assert [note.code for note in executed.run.breaks] == ["break.query"]
    assert not executed.derivation.edges
    assert not executed.run.inputs


def test_queries_that_differ_are_told_apart_by_digests(job):
    one, other = (found(job, "live", name).run.reproduction.signature for name in ("query", "other"))
    assert one.split("‹")[0] == other.split("‹")[0]
    assert one != other


@pytest.mark.parametrize("source", ["live", "log"])
def test_an_insert_into_a_table_of_a_database_has_its_columns(job, source):
    """Spark writes by a command of its own for it, into ``default.shop_items``, which is ``items``."""
    targets = {"default.shop_items", "jdbc/items"}
    written = [each for each in job[0][source] if each.derivation and each.derivation.target in targets]
    edges = [f"{e.target_path} <- {e.source.text} {e.kind.label}" for each in written for e in each.derivation.edges]
    assert {line for line in edges if "shopdb" in line} >= {
        "id <- shopdb.chief.items.id transformation",
        "price <- shopdb.chief.items.price identity",
    }
    assert not [note.code for each in written for note in each.run.breaks]


def test_no_login_is_written_down_not_even_for_a_moment(job):
    """The recorder's files, those of the exact plans among them, before anything is committed."""
    written = job[2]
    assert "govtool_shop" in written
    assert "SaveIntoDataSourceCommand" in written
    assert not {word for word in ("open-sesame", "chief", '\\"cat\\" <>') if word in written.replace(CATALOGUED, "")}
