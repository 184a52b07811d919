"""Names of datasets and columns: normalised, canonical, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from govtool.capture.openlineage.identity import DatasetName, Fields, field_name, normalise, parse_id


@pytest.mark.parametrize(
    ("namespace", "name", "expected"),
    [
        ("s3a://lake", "/raw/orders/", "s3://lake/raw/orders"),
        ("S3N://lake", "raw//orders", "s3://lake/raw/orders"),
        ("s3://lake", "raw/orders/day=2026-11-20/hour=3/part-0.parquet", "s3://lake/raw/orders"),
        ("s3://lake/raw", "orders", "s3://lake/raw/orders"),
        ("gs://lake", "raw/orders/*.json", "gs://lake/raw/orders"),
        ("gs://lake", "raw/my%20orders", "gs://lake/raw/my orders"),
        ("file", "/tmp/a.csv", "file:///tmp/a.csv"),
        ("file:///", "/tmp/a.csv", "file:///tmp/a.csv"),
        ("file", "file:/tmp/a.csv", "file:///tmp/a.csv"),
        ("hdfs://nn:8020", "/data/x/", "hdfs://nn:8020/data/x"),
        ("abfss://box@account.dfs.core.windows.net", "/a/b", "abfss://box@account.dfs.core.windows.net/a/b"),
        ("postgres://dw:5432", "shop.public.orders", "postgres://dw:5432/shop.public.orders"),
        ("POSTGRES://dw:5432/", "shop.public.Orders", 'postgres://dw:5432/shop.public."Orders"'),
        ("postgres://ann:secret@dw:5432", "a.b", "postgres://dw:5432/a.b"),
        ("kafka://broker:9092", "my-topic", 'kafka://broker:9092/"my-topic"'),
        ("arn:aws:glue:eu-west-1:1", "table/shop/orders", "arn:aws:glue:eu-west-1:1/table/shop/orders"),
        ("default", "crm.users", "crm.users"),
        ("default", "query:0123abcd", "query:0123abcd"),
    ],
)
def test_one_place_has_one_name(namespace, name, expected):
    assert normalise(namespace, name).id == expected


text = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=12)
namespaces = st.sampled_from(
    [
        "default",
        "file",
        "s3://b",
        "hdfs://h:1",
        "postgres://h:1",
        "bigquery",
        "a.b/c",
        "x y",
        "s3://a%27b",
        "x%2527",
        "y%0A%5b%2F",
    ]
)


@given(namespaces, text)
def test_normalising_again_changes_nothing(namespace, name):
    once = normalise(namespace, name)
    assert normalise(*once) == once


@given(namespaces, text.filter(str.strip))
def test_an_id_leads_back_to_its_name(namespace, name):
    named = normalise(namespace, name)
    if named.namespace == "default" and "://" in named.name:
        return  # a path in SQL: exported as the place that it is
    assert parse_id(named.id, {namespace, named.namespace}).id == named.id


def test_nested_fields():
    fields = Fields(
        [
            {"name": "id", "type": "long"},
            {"name": "Address", "type": "struct", "fields": [{"name": "zip", "type": "string"}]},
            {"name": "items", "type": "array", "fields": [{"name": "_element", "fields": [{"name": "price"}]}]},
            {"name": "a.b"},
        ]
    )
    assert {path for path, _ in fields.columns} == {
        "id", '"Address"', '"Address".zip', "items", "items[]", "items[].price", '"a.b"',
    }  # fmt: skip
    assert fields.path("Address.zip") == '"Address".zip'
    assert fields.path("items._element.price") == "items[].price"
    assert fields.path("a.b") == '"a.b"'
    assert fields.path("unheard.of") == '"unheard.of"'
    assert [field_name(p) for p in ('"Address".zip', "items[].price", '"a.b"', "*")] == [
        "Address.zip", "items._element.price", "a.b", "*",
    ]  # fmt: skip


@pytest.mark.parametrize("fields", [None, 7, "x", [None], [{}], [{"name": 3}], [{"name": "a", "fields": "b"}]])
def test_a_schema_of_wrong_types_has_no_fields(fields):
    assert [path for path, _ in Fields(fields).columns] in ([], ["a"])


def test_a_dataset_may_lie_in_a_namespace_within_another():
    known = {"postgres://h", "postgres://h/x"}
    assert parse_id("postgres://h/x/a.b", known) == DatasetName("postgres://h/x", "a.b")
