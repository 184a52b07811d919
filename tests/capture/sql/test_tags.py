"""Comments, tags and options of DDL, dialect by dialect."""

from __future__ import annotations

import pytest

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.properties.tag_texts import comment_tags
from govtool.capture.sql.properties.tags import facts_of

CASES = [
    (
        "snowflake",
        "create table crm.u (id int, email string with masking policy pii.m using (email, id), ssn string masking"
        " policy X) with row access policy pii.r on (id); alter table crm.u modify column id set masking policy pii.n;"
        "alter table crm.u add row access policy pii.q on (id); alter table crm.u drop row access policy pii.r;"
        "alter table crm.u alter ssn unset masking policy",
        {
            "crm.u.email masking_policy pii.m",
            "crm.u.id masking_policy pii.n",
            "crm.u row_access_policy pii.q",
        },
    ),
    (
        "snowflake",
        "create table t (masking int, policy int, mask string comment 'mask'); create row access policy r as (v string)"
        " returns boolean -> true; create view v with row access policy r on (a) as select a from t;"
        "alter view v add row access policy s on (a); alter view v drop all row access policies",
        {"t.mask description mask"},
    ),
    (
        "databricks",
        "create table u (id int, ssn string mask pii.s using columns (id), n string) with row filter pii.f on (id);"
        "alter table u alter column n set mask pii.n; alter table u alter column ssn drop mask;"
        "create table w (mask string, a string mask f); alter table w set row filter g on (a);"
        "alter table w drop row filter",
        {"u row_access_policy pii.f", "u.n masking_policy pii.n", "w.a masking_policy f"},
    ),
    (
        "bigquery",
        "create row access policy if not exists apac on d.s grant to ('group:x') filter using (r = 'apac');"
        "create or replace row access policy us on d.s grant to ('group:x') filter using (r = 'us');"
        "drop row access policy apac on d.s",
        {"d.s row_access_policy us"},
    ),
    (
        "bigquery",
        "create table d.u (a string options (data_policies = [\"{'name': 'p.us.old'}\"], description = 'x'), b string);"
        "alter table d.u alter column a set options (data_policies = [\"{'name':'p.us.m'}\", \"{'name':'p.us.n'}\"])",
        {"d.u.a description x", "d.u.a masking_policy p.us.m", "d.u.a masking_policy p.us.n"},
    ),
    (
        "postgres",
        "set search_path to crm; comment on column users.email is '[pii:email] where to write';"
        "comment on table users is 'all of us #people'; comment on column users.id is 'x';"
        "comment on column users.id is null; comment on function f(int) is 'tag: no'",
        {
            "crm.users.email description [pii:email] where to write",
            "crm.users.email tag pii:email",
            "crm.users description all of us #people",
            "crm.users tag people",
        },
    ),
    (
        "snowflake",
        "use schema crm; create table T (EMAIL varchar not null with tag (PII='email', gov.c='x') comment 'hi', b int"
        " tag (k='true'), \"Odd\" number(10,2) comment 'a, b') comment='all' with tag (a='b')",
        {
            "crm.t.email tag pii:email",
            "crm.t.email tag gov.c:x",
            "crm.t.email tag c:x",
            "crm.t.email description hi",
            "crm.t.b tag k:true",
            "crm.t.b tag k",
            'crm.t."Odd" description a, b',
            "crm.t description all",
            "crm.t tag a:b",
        },
    ),
    (
        "snowflake",
        "alter table a.b.t modify column email set tag pii='email', c='d', column x set tag pii='id';"
        "alter table a.b.t modify column email unset tag c; alter view if exists v set comment = 'seen'",
        {"a.b.t.email tag pii:email", "a.b.t.x tag pii:id", "v description seen"},
    ),
    (
        "snowflake",
        "create table t (a int comment 'old'); create or replace table t (a int);"
        "create table u (a int comment 'gone'); drop table u; create temporary table w (a int comment 'x')",
        set(),
    ),
    (
        "databricks",
        "create table t (email string comment 'hi', s struct<a:int comment 'no', b: array<int>> comment 'tag: nested')"
        " comment 'old' partitioned by (d string comment 'day') tblproperties('comment'='new');"
        "alter table t alter column email set tags ('pii'='email', 'gold'); alter table t set tags ('silver');"
        "alter table t unset tags ('silver'); set tag on column t.s secret; set tag on table main.x.t k = v",
        {
            "t.email description hi",
            "t.s description tag: nested",
            "t.s tag nested",
            "t.s tag secret",
            "t.d description day",
            "t description new",
            "t.email tag pii:email",
            "t.email tag gold",
            "main.x.t tag k:v",
        },
    ),
    (
        "bigquery",
        "create table `my-p.d.t` (Email string options(description='hi', policy_tags=['taxonomies/1/policyTags/2']),"
        " s struct<x string options(description='no')>) options(labels=[('k','v'),('l','w')], description='all')"
        " as select 1; alter table my-p.d.t alter column email set options(description='new [pii]'),"
        " alter column s set options(description='deep'); alter table d.u set options(labels=[('a','b')]);"
        " alter table d.u set options(labels=[('c','d')])",
        {
            '"my-p".d.t.email description new [pii]',
            '"my-p".d.t.email tag pii',
            '"my-p".d.t.email tag taxonomies/1/policyTags/2',
            '"my-p".d.t.s description deep',
            '"my-p".d.t tag k:v',
            '"my-p".d.t tag l:w',
            '"my-p".d.t description all',
            "d.u tag c:d",
        },
    ),
    (
        "mysql",
        "create table t (email varchar(10) comment 'hi', tag int, comment text, index i(email) comment 'no')"
        " engine=innodb comment='all'; alter table t modify column email varchar(10) comment 'new',"
        " change a b int comment 'renamed', comment = 'table', add column c int comment 'added'",
        {
            "t.email description new",
            "t description table",
            "t.b description renamed",
            "t.c description added",
        },
    ),
    ("spark", "alter table t alter column s.Email comment 'x'", {"t.s.email description x"}),
    ("spark", "alter table t add columns (a int comment 'y', b int)", {"t.a description y"}),
    (
        "oracle",
        "comment on column HR.EMP.NAME is 'it''s tags: pii, raw.'",
        {"hr.emp.name tag pii", "hr.emp.name tag raw"},
    ),
    ("", "{% if x %}comment on column t.c is 'tag: a';{% endif %}", {"t.c tag a"}),
    ("snowflake", "create table u comment='c' as select 'x' as comment, tag('x') from t", {"u description c"}),
    ("postgres", "select comment('x'), tag ('y') from t; update t set comment = 'tag: x'", set()),
]


def stated(facts) -> set[str]:
    return {f"{f.dataset}{'.' + f.column if f.column else ''} {f.name} {f.value}" for f in facts}


@pytest.mark.parametrize(("dialect", "sql", "expected"), CASES)
def test_statements_to_facts(dialect, sql, expected):
    found = stated(facts_of([Script("a.sql", sql)], dialect=dialect, source="s"))
    if dialect in ("oracle", ""):
        found = {one for one in found if " tag " in one}
    assert found == expected


@pytest.mark.parametrize(("dialect", "sql", "expected"), CASES)
def test_a_text_that_is_cut_off_anywhere_is_read_up_to_there(dialect, sql, expected):
    for end in range(0, len(sql), 3):
        facts_of([Script("a.sql", sql[:end])], dialect=dialect)


def test_names_take_defaults_and_the_first_schema_of_the_path_that_has_the_table():
    sql = "comment on table t is 'x'; set search_path to a, b; comment on table t is 'y'"
    found = facts_of(
        [Script("a.sql", sql)],
        dialect="postgres",
        namespace="wh",
        default_catalog="db",
        default_schema="s",
        known={"wh/db.b.t"},
    )
    assert [(f.dataset, f.value, f.how, f.file) for f in found] == [
        ("wh/db.s.t", "x", "sql", "a.sql"),
        ("wh/db.b.t", "y", "sql", "a.sql"),
    ]


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#pii", ["pii"]),
        ("see issue #12, the # of items", []),
        ("[pii:email, secret]", ["pii:email", "secret"]),
        ("[not a tag]", []),
        ("of customers; tags: a, b", ["a", "b"]),
        ("tag=pii the address", ["pii"]),
        ("tag: pii, the address", ["pii"]),
        ("price-tag: none of ours", []),
        ("pii", []),
    ],
)
def test_tags_in_comments(text, tags):
    assert comment_tags(text) == tags


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (
            "snowflake",
            "create masking policy m as (v string) returns string -> case when is_role_in_session('A') then v end",
        ),
        ("snowflake", "create or replace row access policy r as (v string) returns boolean -> true"),
        ("snowflake", "alter table t drop row access policy q"),
        ("snowflake", "alter table t modify column a set masking policy m force"),
        ("databricks", "create table t (mask string mask f using columns (a), a int) with row filter g on (a)"),
        ("databricks", "alter table t alter column a drop mask"),
    ],
)
def test_statements_of_access_are_understood(dialect, text):
    found = extract([Script("t.sql", text)], Options(dialect=dialect))
    assert [note.message for note in found.diagnostics] == []


def test_columns_are_known_beside_their_masks():
    text = "create table t (mask string mask f using columns (id), id int, ssn string mask g) with row filter h on (id)"
    made, *rules = extract([Script("t.sql", text)], Options(dialect="databricks")).derivations
    assert [column.path for column in made.columns] == ["mask", "id", "ssn"]
    assert [edge.source.text for rule in rules for edge in rule.edges] == ["t.id"]


@pytest.mark.parametrize(
    "text",
    [
        "alter table t add row access policy r on (a)",
        "create masking policy m as (v string) returns string -> case when exists(select 1 from r) then v end",
    ],
)
def test_rules_that_name_columns_or_read_relations_are_not_understood(text):
    found = extract([Script("t.sql", f"create table t (a int, b int); {text}")], Options(dialect="snowflake"))
    assert [note.code for note in found.diagnostics] == ["opaque"]
