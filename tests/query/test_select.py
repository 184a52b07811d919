"""From what a person writes to the column that is meant."""

from __future__ import annotations

import pytest
from graph_samples import graph, view

from govtool.errors import AmbiguousNameError, UnknownNameError
from govtool.model import ColumnRef, Derivation, Edge, EdgeKind, OutputColumn, Statement
from govtool.query.selection.select import complete, select


def dataset(name: str, *columns: str, kind: str = "table") -> Derivation:
    return Derivation(
        name,
        kind,
        "declare",
        Statement(name, "create_table", "", f"{name}.sql"),
        tuple(OutputColumn(c) for c in columns),
    )


INDEX = graph(
    dataset("crm.users", "email", "id", "address.zip"),
    dataset("stg.users", "email", "only_here"),
    dataset("users", "email"),
    dataset('"Proj-1".ds."Table"', "id"),
    dataset("spark://host.example:7077/sales.orders", "id", "total"),
    dataset("s3://bucket/raw/events.csv", "payload['user'].id"),
    Derivation(
        "temp.s1.users",
        "temporary",
        "replace",
        Statement("x", "create_table_as", "", "j.sql"),
        (OutputColumn("email"),),
    ),
    view("mart.a", "x", Edge(ColumnRef("crm.users", "email"), "x", EdgeKind.IDENTITY)),
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("crm.users.email", "crm.users.email"),
        ("users.email", "users.email"),  # The full name of one wins over the ends of others.
        ("only_here", "stg.users.only_here"),
        ("users.only_here", "stg.users.only_here"),
        ("CRM.Users.EMAIL", "crm.users.email"),
        ("crm.users.*", "crm.users"),
        ("crm.users", "crm.users"),
        ("address.zip", "crm.users.address.zip"),
        ("zip", "crm.users.address.zip"),
        ("users.address", "crm.users.address"),
        ('ds."Table".id', '"Proj-1".ds."Table".id'),
        ("Proj-1.ds.Table.id", '"Proj-1".ds."Table".id'),
        ("orders.total", "spark://host.example:7077/sales.orders.total"),
        ("sales.orders", "spark://host.example:7077/sales.orders"),
        ("raw/events.csv", "s3://bucket/raw/events.csv"),
        ("payload['user'].id", "s3://bucket/raw/events.csv.payload['user'].id"),
        ("temp.s1.users.email", "temp.s1.users.email"),
        (" a.x ", "mart.a.x"),
    ],
)
def test_the_shortest_unambiguous_end_of_a_name_will_do(text: str, found: str) -> None:
    assert select(INDEX, text).text == found


def test_an_ambiguous_end_lists_its_candidates() -> None:
    with pytest.raises(AmbiguousNameError) as error:
        select(INDEX, "email")
    assert error.value.nearest == ("crm.users.email", "stg.users.email", "users.email")
    assert "crm.users.email" in (error.value.hint or "")


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("crm.users.emial", "crm.users.email"),
        ("crm.user.email", "crm.users.email"),
        ("stg.usres", "stg.users"),
        ("only_hre", "stg.users.only_here"),
    ],
)
def test_an_unknown_name_offers_the_nearest(text: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        select(INDEX, text)
    assert near in error.value.nearest


def test_the_most_alike_dataset_comes_first_and_none_beside_a_column_of_the_named_one() -> None:
    index = graph(*(view(f"mart.{name}", "x") for name in ("a", "b", "c", "customers")), view("crm.customers", "email"))
    with pytest.raises(UnknownNameError) as error:
        select(index, "mart.customerz")
    assert error.value.nearest[0] == "mart.customers"
    with pytest.raises(UnknownNameError) as error:
        select(index, "crm.customers.emial")
    assert error.value.nearest == ("crm.customers.email",)


@pytest.mark.parametrize(
    "text", ["", ".", "..", "*", '"', "a" * 10_000, "\x00", "x.*", "[", "\ud800", "crm..email", "?"]
)
def test_odd_names_are_unknown_and_nothing_worse(text: str) -> None:
    with pytest.raises(UnknownNameError):
        select(INDEX, text)


def test_the_empty_graph_says_what_to_do() -> None:
    with pytest.raises(UnknownNameError) as error:
        select(graph(), "a.b")
    assert "ingest" in (error.value.hint or "")


def test_completion_offers_datasets_then_columns() -> None:
    assert complete(INDEX, "crm") == ["crm.users"]
    assert complete(INDEX, "crm.users.e") == ["crm.users.email"]
    assert "stg.users.email" in complete(INDEX, "stg.users.")
    assert complete(INDEX, "temp") == []
    assert complete(INDEX, "nothing.") == []


def test_where_a_column_is_meant_columns_are_near():
    index = graph(
        dataset("crm.users", "id", "email"),
        dataset("mart.customers", "id", "email_domain"),
        dataset("mart.orders", "total"),
    )

    def error_about(text: str) -> UnknownNameError:
        with pytest.raises(UnknownNameError) as caught:
            select(index, text)
        return caught.value

    assert error_about("raw/customers.email").nearest == ("mart.customers.email_domain",)
    assert error_about("nowhere.email").nearest == ("crm.users.email",)
    lacking = error_about("mart.orders.zzz")  # no column is near: where to look for one
    assert (lacking.nearest[0], lacking.hint) == ("mart.orders", "govtool explain mart.orders lists its columns")
