"""Rows that come from something opaque: a procedure, another server, a view without a definition. Any class may be in."""

from __future__ import annotations

import pytest
from policy_samples import checked, policy, reported, sql

from govtool.app.versions.index import index_of
from govtool.capture.sql.walk.queries.table_functions import REMOTE
from govtool.model import ColumnRef, Derivation, Edge, EdgeKind, OutputColumn, Statement
from govtool.policy.classes.unknown_columns import CALLS

RULES = """
classes: {personal: {}, personal.email: {}}
classify: [{class: personal.email, columns: ["crm.u.email"]}]
zones:
  share: {datasets: ["share.**"], region: us}
  home: {datasets: ["crm.**"], region: eu, optional: true}
rules:
  - {id: F, title: none in share, deny: {flow: {class: personal, to: {zone: share}%s}}}
"""
TABLE = "create table share.t(id int, x varchar(9)); "
UNKNOWN = [("F", "share.t.?", "unknown"), ("F", "share.t.id", "unknown"), ("F", "share.t.x", "unknown")]


def rules(more: str = ""):
    return policy(RULES % more)


@pytest.mark.parametrize(
    "rows",
    [
        "exec crm.get_users",
        "exec (@text)",
        "exec sp_executesql @text",
        "select * from openquery(remote, 'select id, email from crm.u')",
        "select * from openrowset('SQLNCLI', 'x', 'select id, email from crm.u') q",
    ],
)
@pytest.mark.parametrize("more", ["", ", from: {zone: home}", ", from: {region: eu}", ", via: any"])
def test_what_a_procedure_or_another_server_returns_may_be_of_any_class(rows, more):
    assert reported(checked(sql(f"{TABLE} insert into share.t {rows};", dialect="tsql"), rules(more))) == UNKNOWN


def test_columns_that_are_named_are_no_better_known():
    text = f"{TABLE} insert into share.t(x) select q.a from openquery(remote, 'select 1') q;"
    assert reported(checked(sql(text, dialect="tsql"), rules())) == [("F", "share.t.x", "unknown")]


def test_it_is_told_behind_further_statements_and_why():
    text = "create table stg.a(x int); insert into stg.a exec crm.p; select x into share.t from stg.a;"
    (finding,) = checked(sql(text, dialect="tsql"), rules()).findings
    assert finding.path == ('"exec(crm.p)".?', "stg.a.x", "share.t.x")
    assert finding.why == "what exec(crm.p) returns is not known: personal.email may be in it"


@pytest.mark.parametrize(
    ("dialect", "select"),
    [
        ("postgres", "select g as x from generate_series(1, 2) g"),
        ("postgres", "select * from generate_series(1, 2) g"),
        ("postgres", "select e from crm.v, unnest(v.names) e"),
        ("postgres", "select * from json_each('{}')"),
        ("snowflake", "select f.value from crm.v, lateral flatten(input => v.names) f"),
        ("tsql", "select value from string_split('a,b', ',')"),
        ("bigquery", "select e from crm.v, unnest(v.names) as e"),
        ("spark", "select explode(names) as e from crm.v"),
    ],
)
def test_rows_that_a_function_makes_of_its_arguments_are_not_opaque(dialect, select):
    schema = {"crm.v": {"id": "int", "names": "text[]" if dialect == "postgres" else "array<string>"}}
    assert reported(checked(sql(f"create table share.t as {select}", schema, dialect), rules())) == []


@pytest.mark.parametrize("name", ["exec", "openquery", "crm.openrowset", '"exec.csv"'])
def test_a_table_that_is_called_like_a_call_is_a_table(name):
    index = sql(f"create table share.t as select q.x from {name} as q", dialect="duckdb")
    assert reported(checked(index, rules())) == []


def made(status: str, kind: str = "view", edges: tuple[Edge, ...] = ()) -> list[Derivation]:
    """crm.h as a catalog tells it, and a table that copies it."""
    view = Derivation(
        "crm.h", kind, "declare", Statement("v", "create_view", "postgres", "c"), (OutputColumn("a"),), edges=edges, status=status
    )  # fmt: skip
    copy = Edge(ColumnRef("crm.h", "a"), "x", EdgeKind.IDENTITY)
    return [view, Derivation("share.t", "table", "replace", Statement("t", "create_table", "postgres", "t.sql"), (OutputColumn("x"),), edges=(copy,))]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "kind", "found"),
    [
        ("opaque", "view", [("F", "share.t.x", "unknown")]),
        ("understood", "function", [("F", "share.t.x", "unknown")]),
        ("understood", "table", []),
        ("partial", "table", []),
    ],
)
def test_what_nobody_says_the_making_of_is_told_by_its_kind_and_status(status, kind, found):
    result = checked(index_of(made(status, kind)), rules())
    assert reported(result) == found
    assert [f.why for f in result.findings] == ["what crm.h is made of is not known: personal.email may be in it"] * len(found)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ('"crm.get_users(…)"', "unknown"),
        ('"exec(crm.get_users)"', "unknown"),
        ('postgres://db:5432/"crm.get_users(…)"', "unknown"),
        ('"""Crm"".""Get Users""(…)"', "unknown"),
        ('"s3://lake/users (1).csv"', None),
        ("crm.get_users", None),
    ],
)
def test_what_a_call_returns_is_told_by_its_name(name, found):
    rows = Edge(ColumnRef(name, "?"), "x", EdgeKind.OPAQUE, reason="star-unresolved")
    statement = Statement("t", "insert", "postgres", "t.sql")
    index = index_of([Derivation("share.t", "table", "append", statement, (OutputColumn("x"),), edges=(rows,))])
    assert reported(checked(index, rules())) == ([("F", "share.t.x", found)] if found else [])


def test_once_something_says_what_it_is_made_of_that_counts():
    reads = (Edge(ColumnRef("crm.u", "id"), "a", EdgeKind.IDENTITY),)
    assert reported(checked(index_of(made("opaque", edges=reads)), rules())) == []


def test_a_call_is_no_place_and_has_no_owner():
    text = """
classes: {personal: {}}
classify: [{class: personal, columns: ["crm.u.email"]}]
zones: %s
rules:
  - {id: R, title: region, deny: {flow: {class: personal, to: {region: us}}}}
  - {id: P, title: purpose, require: {purpose: {class: personal, any_of: [care]}}}
  - {id: M, title: owner, require: {metadata: {class: personal, keys: [owner]}}}
"""
    index = sql("insert into share.t(x) exec crm.p;", dialect="tsql")
    elsewhere = policy(text % "{lab: {datasets: [share.t], region: eu, purposes: [ads]}}")
    assert {(r, c) for r, c, _ in reported(checked(index, elsewhere))} == {
        ("P", "share.t.?"), ("P", "share.t.x"), ("M", "share.t")
    }  # fmt: skip
    (region, *_) = (f for f in checked(index, policy(text % "{}")).findings if f.rule == "R")
    assert (region.column, region.why.partition(": ")[2]) == ("any dataset", "not known of 2 columns (1 dataset)")


def test_what_a_star_leaves_out_by_name_may_come_from_a_call_by_another():
    schema_less = sql("create table share.t as select * except (email) from crm.u", dialect="bigquery")
    assert reported(checked(schema_less, rules())) == []
    hidden = Edge(ColumnRef('"exec(crm.p)"', "?"), "?", EdgeKind.OPAQUE, reason="star-unresolved")
    star = Edge(ColumnRef("stg.a", "?"), "?", EdgeKind.OPAQUE, reason="star-unresolved: except email")
    statement = Statement("a", "insert", "tsql", "a.sql")
    graph = [
        Derivation("stg.a", "table", "append", statement, (), False, (hidden,)),
        Derivation("share.t", "table", "append", Statement("b", "insert", "tsql", "b.sql"), (), False, (star,)),
    ]
    policies = policy(RULES.replace("crm.u.email", "**.email") % "")
    assert reported(checked(index_of(graph), policies)) == [("F", "share.t.?", "unknown")]


def test_the_names_of_calls_are_those_that_the_extractor_gives():
    assert CALLS == REMOTE


MASKED = """
classes: {personal: {}, personal.email: {}, pseudo: {}}
classify: [{class: personal.email, columns: ["crm.u.email"]}]
declassify:
  - {name: cut, kind: mask, functions: [substr], from: [personal], to: pseudo}
zones:
  share: {datasets: ["share.**"]}
rules:
  - id: F
    title: none in share
    deny: {flow: {class: personal, to: {zone: share}}}
    unless: [{declassified: [cut]}]
"""


def test_what_is_not_known_is_not_declassified():
    """A mask is for values; of what may be in columns that are not known nobody can say that it was masked."""
    text = "insert into share.t(x) select substring(q.a, 1, 3) from (select * from openquery(r, 'select 1')) q;"
    told_of = reported(checked(sql(f"{TABLE} {text}", dialect="tsql"), policy(MASKED)))
    assert told_of == [("F", "share.t.x", "unknown")]


def test_values_are_declassified_beside_what_is_not_known():
    text = (
        "create table crm.u(id int, email text); create table share.a as select substr(email, 1, 3) e from crm.u; "
        "create table share.b as select * from crm.hidden(1) h;"
    )
    assert [found for found in reported(checked(sql(text), policy(MASKED))) if found[1].startswith("share.a")] == []


def test_what_a_caller_hands_to_a_procedure_may_be_of_any_class():
    text = f"""{TABLE}
    create type crm.ids as table (a varchar(9));
    go
    create procedure share.fill @given crm.ids readonly as insert into share.t (x) select a from @given
    """
    assert ("F", "share.t.x", "unknown") in reported(checked(sql(text, dialect="tsql"), rules()))
