"""The index that Spark builds: that of the local build, to the byte, and nothing where it fails."""

from __future__ import annotations

import sys

import pytest

from bench.graph import write_store
from govtool.app.ingest.sql import ingest_sql
from govtool.app.ingest.sql_options import SqlRequest
from govtool.app.project import spark_session
from govtool.app.upkeep.store import check
from govtool.app.versions import index as indexes
from govtool.app.versions.index import built_index, cached_index, index_on_spark, open_index
from govtool.app.versions.published import publish_index
from govtool.app.versions.spark_index.build import write_index
from govtool.app.versions.spark_index.frames import SETTINGS
from govtool.errors import EngineError, StoreError, UsageError
from govtool.store import Store

LOAD = """
CREATE TEMPORARY TABLE scratch AS SELECT a, b FROM raw.{0};
CREATE TABLE x.keep AS SELECT a AS k FROM scratch;
INSERT INTO x.log SELECT k FROM x.keep;
CREATE TABLE x.keep AS SELECT b AS k2 FROM scratch;
INSERT INTO x.log SELECT k2 FROM x.keep;
DROP TABLE IF EXISTS x.gone; CREATE TABLE x.gone AS SELECT * FROM raw.{0};
CREATE TABLE x.fin_{0} AS SELECT * FROM x.gone;
DROP TABLE x.gone;
ALTER TABLE x.fin_{0} RENAME TO x.final_{0};
SELECT max(k2) FROM x.keep WHERE k2 IN (SELECT a FROM raw.other);
"""
VIEWS = """
CREATE VIEW y.v_{0} AS SELECT t.*, o.z FROM raw.{0} t JOIN raw.other o ON t.a = o.a;
CREATE VIEW y.w AS SELECT v.q, lower(v.z) zz FROM y.v_{0} v;
CREATE TABLE y.decl(a int, b varchar(3));
CREATE TABLE y.decl(a bigint);
CREATE VIEW y.twice AS SELECT a AS x FROM raw.{0};
CREATE VIEW y.above AS SELECT x FROM y.twice;
CREATE OR REPLACE VIEW y.twice AS SELECT b AS x FROM raw.{0};
"""
EVENTS = """
CREATE TABLE `p.ds.events_20240101` (a INT64, r STRUCT<x INT64, y ARRAY<STRUCT<z STRING>>>);
CREATE TABLE `p.ds.events_20240102` AS SELECT 1 AS a, 2 AS c;
CREATE VIEW `p.o.v` AS SELECT a, r.x, r.y[0].z AS zz FROM `p.ds.events_*`;
CREATE VIEW `p.o.v2` AS SELECT * FROM `p.ds.events_*`;
CREATE VIEW `p.o.v3` AS SELECT r.y, r, STRUCT(r.x AS m) AS s FROM `p.ds.events_20240101`;
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def session(spark):
    with spark_session.session(None, "index", SETTINGS) as session:
        yield session


def read(store: Store, folder, files: dict[str, str], dialect: str) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    ingest_sql(store, SqlRequest((str(folder),), dialect=dialect, source=f"sql:{folder.name}"))


@pytest.fixture
def hard(tmp_path) -> Store:
    """Two sources with temporary tables of one name, tables that are replaced, dropped and renamed, wildcards, fields,
    open stars, a retraction, and letters beyond ASCII.
    """
    store = Store.init(str(tmp_path / "store"))
    for name in ("one", "two"):
        read(store, tmp_path / name, {"load.sql": LOAD.format(name), "view.sql": VIEWS.format(name)}, "postgres")
    read(store, tmp_path / "three", {"a.sql": EVENTS}, "bigquery")
    (tmp_path / "two" / "view.sql").unlink()
    read(store, tmp_path / "two", {"more.sql": "CREATE TABLE é.ü AS SELECT 'x' AS \"ß\" FROM raw.one;"}, "postgres")
    return store


def written(store: Store, spark, path) -> bytes:
    commit = store.head()
    write_index(store, [] if commit is None else indexes._derivations(store, commit), spark, path)
    return path.read_bytes()


def local(store: Store) -> bytes:
    commit = store.head()
    index = indexes.index_of(()) if commit is None else built_index(store, commit)
    return bytes(memoryview(index.buffer))


@pytest.mark.long
def test_the_index_is_that_of_the_local_build_and_can_be_published(spark, hard, tmp_path):
    commit = hard.head()
    index_on_spark(hard, commit, None)
    kept = cached_index(hard, commit)
    assert kept is not None
    assert bytes(memoryview(kept.buffer)) == local(hard)
    names = [kept.dataset_name(number) for number in range(kept.dataset_count)]
    assert any("x.keep@1" in name for name in names)  # ended generations are in it
    assert any(name.endswith('*"') for name in names)
    assert publish_index(hard, commit, kept).created
    assert check(hard, anchor=None, contents=True, deep=True, progress=None).problems == ()


@pytest.mark.long
def test_an_empty_graph(session, tmp_path):
    store = Store.init(str(tmp_path / "store"))
    assert written(store, session, tmp_path / "index") == local(store)


@pytest.mark.long
def test_a_generated_warehouse_in_many_partitions(session, tmp_path, monkeypatch):
    monkeypatch.setattr("govtool.app.versions.spark_index.build._OF_A_PARTITION", 8_000)
    write_store(str(tmp_path / "store"), 4_000)
    store = Store.open(str(tmp_path / "store"))
    assert written(store, session, tmp_path / "index") == local(store)


@pytest.mark.long
def test_a_build_that_fails_leaves_nothing(spark, hard, tmp_path, monkeypatch):
    commit = hard.head()

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("govtool.app.versions.spark_index.build.take_arrays", fail)
    with pytest.raises(StoreError) as error:
        index_on_spark(hard, commit, None)
    assert "space" in error.value.message.lower()
    assert cached_index(hard, commit) is None
    assert [path for path in (tmp_path / "cache" / "commits").rglob("*") if path.is_file()] == []
    assert bytes(memoryview(open_index(hard, commit).buffer)) == local(hard)


def test_executors_that_do_not_see_the_store_say_so(session, hard, tmp_path):
    hard.uri = str(tmp_path / "elsewhere")
    with pytest.raises(StoreError) as error:
        written(hard, session, tmp_path / "index")
    assert "executor" in error.value.message
    assert "all machines see" in (error.value.hint or "")


def test_engines_are_checked(hard, monkeypatch):
    for engine, master in (("sparc", None), ("local", "local[2]")):
        with pytest.raises(UsageError):
            spark_session.check_engine(engine, master)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(EngineError) as error:
        index_on_spark(hard, hard.head(), None)
    assert error.value.code == "engine.spark-missing"
    assert hard.head() is not None
