"""Names of datasets in Spark plans, and what of settings may be kept."""

import doctest

import pytest

from govtool.capture.openlineage.redact import SECRET
from govtool.capture.spark import identity
from govtool.capture.spark.identity import (
    DatasetPlace,
    alias_derivations,
    column_path,
    declarations,
    path_name,
    split_table,
    table_name,
    topic_name,
)
from govtool.capture.spark.jdbc import table_behind
from govtool.capture.spark.redact import clean_config, clean_value, first_line
from govtool.model import ROWS, EdgeKind
from govtool.spark.live.job.cleaned import clean_setting


def test_the_examples_of_the_module() -> None:
    assert doctest.testmod(identity).failed == 0


@pytest.mark.parametrize(
    ("uri", "id"),
    [
        ("file:/tmp/a", "file:///tmp/a"),
        ("file:///tmp/a/", "file:///tmp/a"),
        ("/tmp/a", "file:///tmp/a"),
        ("FILE:/tmp/a", "file:///tmp/a"),
        ("file:/tmp/a%20b", "file:///tmp/a b"),
        ("s3n://lake/a/day=1/h=2", "s3://lake/a"),
        ("S3A://lake/a/*/x.csv", "s3://lake/a"),
        ("hdfs://nn:8020/warehouse/a", "hdfs://nn:8020/warehouse/a"),
        ("hdfs:///warehouse/a", "hdfs:///warehouse/a"),
        ("dbfs:/mnt/a", "dbfs:///mnt/a"),
        ("abfss://c@acct.dfs.core.windows.net/a/b", "abfss://c@acct.dfs.core.windows.net/a/b"),
        ("gs://bucket/a", "gs://bucket/a"),
    ],
)
def test_paths_have_one_name(uri: str, id: str) -> None:
    assert path_name(uri).id == id


@pytest.mark.parametrize(
    ("table", "id"),
    [
        ("spark_catalog.default.T", "default.t"),
        ("`spark_catalog`.`shop`.`orders`", "shop.orders"),
        ("orders", "default.orders"),
        ("lake.db.orders", "lake.db.orders"),
        ("`shop`.`odd name`", 'shop."odd name"'),
    ],
)
def test_tables_are_named_as_in_sql(table: str, id: str) -> None:
    assert table_name(table).id == id


def test_two_metastores_are_kept_apart_by_namespace() -> None:
    assert table_name("shop.orders", namespace="hive://a:9083").id == "hive://a:9083/shop.orders"
    assert table_name("shop.Orders", case_sensitive=True).id == 'shop."Orders"'


def test_backquotes_hold_dots_and_backquotes() -> None:
    assert split_table("`a.b`.`c``d`.e") == ("a.b", "c`d", "e")


@pytest.mark.parametrize(
    ("url", "table", "id"),
    [
        ("jdbc:postgresql://db:99/erp", "items", "postgres://db:99/erp.public.items"),
        ("jdbc:mysql://u:secret@h/shop", "orders", "mysql://h:3306/shop.orders"),
        ("jdbc:sqlserver://h:1433;databaseName=x;user=sa;password=p", "dbo.t", "mssql://h:1433/x.dbo.t"),
        ("jdbc:oracle:thin:scott/tiger@//h:1521/svc", "s.t", "oracle://h:1521/svc.s.t"),
        ("jdbc:sqlite:/data/x.db?password=p", "t", "jdbc:sqlite:/data/x.db/t"),
        ("jdbc:postgresql:erp?user=u", "items", "postgres://localhost:5432/erp.public.items"),
        ("jdbc:postgresql:///erp", '"Odd Name"', 'postgres://localhost:5432/erp.public."Odd Name"'),
        ("jdbc:postgresql://[::1]:5433/erp", "items", "postgres://%5B::1%5D:5433/erp.public.items"),
        ("jdbc:postgresql://a:1,b:2/erp?targetServerType=any", "items", "postgres://a:1/erp.public.items"),
        ("jdbc:postgresql://h/erp?currentSchema=sales,public", "items", "postgres://h:5432/erp.sales.items"),
        ("jdbc:mysql://address=(host=h)(port=1)(user=u)(password=p)/db", "t", "mysql://h:1/db.t"),
        ("jdbc:mysql:///db", "t", "mysql://localhost:3306/db.t"),
        ("jdbc:oracle:thin:scott/ti@ger@h:1521:sid", "t", "oracle://h:1521/sid.t"),
        ("jdbc:sqlserver://h;databaseName=x", "[dbo].[odd t]", 'mssql://h:1433/x.dbo."odd t"'),
        ("jdbc:snowflake://acc/?db=d&schema=s", "t", "snowflake://acc/d.s.t"),
    ],
)
def test_tables_behind_jdbc(url: str, table: str, id: str) -> None:
    assert table_behind(url, table).id == id


def test_topics_and_columns() -> None:
    assert topic_name("b1:9092,b2:9092", "clicks").id == "kafka://b1:9092/clicks"
    assert column_path("User Id") == '"user id"'
    assert column_path("UserId", case_sensitive=True) == '"UserId"'


def test_a_table_and_its_path_are_one_dataset() -> None:
    table, path = table_name("shop.orders"), path_name("file:/wh/shop.db/orders")
    place = DatasetPlace(table, "table", (path,))
    made = alias_derivations([place], {table.id: ["a"], path.id: ["b"]}, how="plan-text", source="s")
    assert {(d.target, d.mode, d.target_kind) for d in made} == {
        (table.id, "update", "table"),
        (path.id, "update", "file"),
    }
    for derivation in made:
        assert {(e.target_path, e.kind) for e in derivation.edges} == {
            ("a", EdgeKind.IDENTITY),
            ("b", EdgeKind.IDENTITY),
            (ROWS, EdgeKind.READ),
        }
    (declared, *_) = declarations({table.id: place}, {table.id: [("a", "int")]}, how="plan-text", source="s")
    assert declared.mode == "declare"
    assert not declared.columns_complete


def test_settings_lose_secrets_and_what_is_another_in_every_run() -> None:
    kept = clean_config(
        {
            "spark.sql.shuffle.partitions": "8",
            "spark.app.id": "local-1",
            "spark.driver.port": "4321",
            "spark.hadoop.fs.s3a.secret.key": "hunter2",
            "spark.hadoop.fs.s3a.access.key": "AKIA",
            "spark.my.apiKey": "k",
            "spark.driver.extraJavaOptions": "-Ddb.password=hunter2 -Dx=1",
            "spark.some.url": "jdbc:postgresql://u:hunter2@h/db?password=hunter2",
            "spark.redacted": "*********(redacted)",
            "java.home": "/usr",
        }
    )
    assert "hunter2" not in repr(kept)
    assert kept["spark.sql.shuffle.partitions"] == "8"
    assert kept["spark.hadoop.fs.s3a.access.key"] == kept["spark.my.apiKey"] == kept["spark.redacted"] == SECRET
    assert "-Dx=1" in kept["spark.driver.extraJavaOptions"]
    assert not {"spark.app.id", "spark.driver.port", "java.home"} & kept.keys()
    assert list(kept) == sorted(kept)


def test_options_of_the_jvm_that_spark_adds_itself_are_left_out() -> None:
    added = (
        "-Djava.net.preferIPv6Addresses=false -XX:+IgnoreUnrecognizedVMOptions --add-modules=jdk.incubator.vector "
        "--add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED "
        "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED "
        "-Djdk.reflect.useDirectMethodHandle=false -Dio.netty.tryReflectionSetAccessible=true "
        "-Dio.netty.allocator.type=pooled -Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE"
    )
    kept = clean_config(
        {
            "spark.driver.extraJavaOptions": added,
            "spark.executor.extraJavaOptions": f"{added} -Xss4m  --add-opens=java.base/my.own=mine",
        }
    )
    assert kept == {"spark.executor.extraJavaOptions": "-Xss4m --add-opens=java.base/my.own=mine"}
    as_chosen = {"spark.driver.extraJavaOptions": "-Dx='a  b'", "spark.executor.extraJavaOptions": ""}
    assert clean_config(as_chosen) == as_chosen


def test_long_values_are_cut_and_errors_are_one_line() -> None:
    assert len(clean_value("spark.x", "y" * 10_000)) == 4000
    assert first_line("\n  boom password=abc\nat x") == f"boom password={SECRET}"


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("x.url", "jdbc:postgresql://u:p1@h/e?user=me&password=p2", "jdbc:postgresql://h/e?user=***&password=***"),
        ("x.url", "jdbc:sqlserver://h;user=sa;password={p;w};x=1", "jdbc:sqlserver://h;user=***;password=***;x=1"),
        ("x.url", "jdbc:mysql://(host=h,user=u,password=p)/db", "jdbc:mysql://(host=h,user=***,password=***)/db"),
        ("x.url", "jdbc:oracle:thin:scott/ti@ger@h:1521:sid", "jdbc:oracle:thin:@h:1521:sid"),
        ("spark.driver.extraJavaOptions", "-Da=1 -DtrustStorePassword=p -Db=2", "-Da=1 -DtrustStorePassword=*** -Db=2"),
        ("spark.driver.extraJavaOptions", "-Dx.signature=p -Db=2", "-Dx.signature=*** -Db=2"),
        ("spark.hadoop.fs.s3a.access.key", "AKIA", "***"),
        ("spark.jars", "s3://b/key=1/a.jar,file:/c.jar", "s3://b/key=1/a.jar,file:/c.jar"),
    ],
)
def test_settings_are_clean_before_the_recorder_writes_them(name: str, value: str, kept: str) -> None:
    assert clean_setting(name, value) == kept
