"""Columns that a statement names and hands nothing on of: ``drop``, ``rename``, ``retype``, ``unused:``."""

from __future__ import annotations

import pytest

from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.graph.index import Index
from govtool.model import ColumnRef
from govtool.model.columnar import decode, encode
from govtool.query.changes.change import Change
from govtool.query.changes.impact import expand, impact
from govtool.query.changes.whatif import whatif
from govtool.query.selection.selectors import Selection, select_many

TABLE = "create table raw.t (id int, email text, name text, z int);\n"

NAMING = {
    "cte": "with src as (select id, email, name from raw.t) select id from src",
    "cte in a cte": "with a as (with b as (select id, name from raw.t) select * from b) select id from a",
    "derived table": "select x.id from (select id, name from raw.t) x",
    "exists": "select 1 as one where exists (select name from raw.t)",
    "count": "select count(*) as n from (select name from raw.t) x",
    "lateral": "select t.id from raw.t t, lateral (select t.name as l) q",
    "arm of union all": "select p from (select id as p, name as q from raw.t union all select 1, 'a') x",
    "recursive": "with recursive w(p, q) as (select id, name from raw.t union all select p, q from w) select p from w",
    "list of some columns": "select x.a from raw.t as x(a, b, c)",
}
LISTS = {
    "exclude": "select * exclude (name) from raw.t",
    "qualified exclude": "select t.* exclude (name) from raw.t",
    "exclude in a cte": "with a as (select * exclude (name) from raw.t) select id from a",
    "replace": "select id from (select * replace (1 as name) from raw.t) x",
}


def graph(*views: str, dialect: str = "postgres") -> Index:
    text = TABLE + "".join(f"create view v{number} as {view};\n" for number, view in enumerate(views))
    derivations = extract([Script("a.sql", text)], Options(dialect=dialect)).derivations
    return index_of(decode(encode(derivations)))


def verdicts(index: Index, change: str, subject: str = "raw.t.name", **more) -> dict[str, str]:
    found = expand(index, impact(index, subject, change=Change.parse(change), **more))
    return {e.column: e.verdict.label for e in found if not e.is_rows}


@pytest.mark.parametrize("small", [0, 10**6])
@pytest.mark.parametrize(
    ("view", "dialect"),
    [*((view, "postgres") for view in NAMING.values()), *((view, "duckdb") for view in LISTS.values())],
    ids=[*NAMING, *LISTS],
)
def test_a_statement_fails_without_a_column_that_it_only_names(view, dialect, small):
    index = graph(view, dialect=dialect)
    for change in ("drop", "rename:n2"):
        found = verdicts(index, change, small=small)
        assert found
        assert set(found.values()) == {"breaks"}
    assert set(verdicts(index, "retype:int", small=small).values()) == {"rows"}
    assert not verdicts(index, "logic", small=small)


@pytest.mark.parametrize("small", [0, 10**6])
@pytest.mark.parametrize(
    ("view", "renamed"),
    [
        ("select x.a from raw.t as x(a, b, c, d)", {}),
        ("select x.c from raw.t as x(a, b, c, d)", {"v0.c": "passes"}),
        ("select max(x.c) as n from raw.t as x(a, b, c, d)", {"v0.n": "passes"}),
        ("select x.a from raw.t as x(a, b, c, d) where c = 'x'", {"v0.a": "passes"}),
        ("select x.a from raw.t as x(a, b, c, d) join raw.t as y on x.c = y.email", {"v0.a": "passes"}),
        ("select s.c from (select t.* from raw.t) as s(a, b, c, d)", {"v0.c": "passes"}),
        ("with q(a, b, c, d) as (select * from raw.t) select c from q", {"v0.c": "passes"}),
        ("select s.c from (select id, name from raw.t) as s(a, c)", {"v0.c": "breaks"}),
        ("select x.a from raw.t as x(a, b, c, d) where exists (select name from raw.t)", {"v0.a": "breaks"}),
        ("select x.c, y.* from raw.t as x(a, b, c, d), raw.t as y", "breaks"),  # which of the two is not in the graph
    ],
)
def test_columns_behind_a_list_of_names_go_by_their_position(view, renamed, small):
    index = graph(view)
    assert set(verdicts(index, "drop", small=small).values()) == {"breaks"}
    found = verdicts(index, "rename:n2", small=small)
    assert set(found.values()) == {renamed} if isinstance(renamed, str) else found == renamed
    if "(a, c)" not in view:  # the list would not fit without any column of the table
        assert not any(index.name(node).startswith("raw.t.") for node in select_many(index, ["unused:"]).nodes(index))


@pytest.mark.parametrize(
    "view",
    [
        "select x.a from lake.t as x(a, b)",
        "with q(a, b) as (select * from lake.t) select a from q",
        "select a from (select * from lake.t) as q(a, b)",
    ],
)
def test_a_list_of_names_over_unknown_columns_may_mean_any_of_them(view):
    index = graph(view, "select id from lake.t")
    assert verdicts(index, "drop", "lake.t.id") == {"v0.a": "unknown", "v1.id": "breaks"}


def test_via_and_evidence_of_a_reference():
    index = graph(NAMING["cte"], "select id from v0")
    first, second = impact(index, "raw.t.name", change=Change("drop")).columns
    assert (first.column, first.via, first.kinds) == ("v0.*", ("reference",), ())
    assert [proof.place for proof in first.evidence] == ["a.sql:2"]
    assert (second.column, second.via[0]) == ("v1.*", "reference")


def test_a_reference_further_down():
    """A view hands the column on by its star; what reads that view names it and nothing more."""
    index = graph("select * from raw.t", "select id from (select id, name from v0) x")
    assert verdicts(index, "drop") == {"v0.name": "breaks", "v1.id": "breaks"}
    assert verdicts(index, "rename:n2") == {"v0.name": "breaks", "v1.id": "breaks"}


@pytest.mark.parametrize(("dialect", "named"), [("postgres", True), ("duckdb", False)])
def test_a_cte_that_nobody_reads(dialect, named):
    """DuckDB does not look at it, PostgreSQL does."""
    index = graph("with u as (select name from raw.t) select z from raw.t", dialect=dialect)
    assert verdicts(index, "drop") == ({"v0.z": "breaks"} if named else {})


def test_the_other_columns_of_select_distinct_star_stay():
    index = graph("select distinct * from raw.t")
    found = verdicts(index, "drop")
    assert found == {"v0.id": "rows", "v0.email": "rows", "v0.name": "breaks", "v0.z": "rows"}


def test_a_natural_join_goes_without_one_of_its_columns():
    index = graph("select id from raw.t natural join raw.t as u")
    assert verdicts(index, "drop") == {"v0.id": "rows"}


def test_a_subquery_in_limit_and_a_window_that_nothing_uses():
    index = graph(
        "select id from raw.t limit (select max(z) from raw.t)", "select id from raw.t window w as (order by name)"
    )
    assert verdicts(index, "drop", "raw.t.z") == {"v0.id": "breaks"}
    assert verdicts(index, "drop") == {"v1.id": "breaks"}


def test_a_field_of_a_struct():
    text = (
        "create table t (id int, s struct<a: int, b: int>);\ncreate view v as select id from (select id, s.a from t) x;"
        "create view w as select s.b from t;"
    )
    index = index_of(extract([Script("a.sql", text)], Options(dialect="spark")).derivations)
    for subject in ("t.s.a", "t.s"):
        assert verdicts(index, "drop", subject)["v.id"] == "breaks"
    assert verdicts(index, "drop", "t.s.b") == {"w.b": "breaks"}


def test_references_are_those_columns_alone_that_no_edge_names():
    (derivation,) = extract(
        [Script("a.sql", "create view v as select a from (select a, b, c from t where c > 1) x")],
        Options(dialect="postgres"),
    ).derivations
    assert derivation.references == (ColumnRef("t", "b"),)


def test_other_kinds_of_edges_alone_leave_references_out():
    index = graph(NAMING["cte"])
    assert not verdicts(index, "drop", kinds=[index.kind(0)])


def test_what_if_and_unused():
    index = graph(NAMING["cte"], "select email from raw.t")
    name = index.find(ColumnRef("raw.t", "name"))
    assert name is not None
    answer = whatif(index, "drop", Selection((), (name,)))
    assert {(a.column, a.verdict, a.via) for a in answer.affected} == {
        (column, "breaks", ("reference",)) for column in ("v0.*", "v0.id")
    }
    email = index.find(ColumnRef("v1", "email"))
    assert email is not None
    # Without v1.email the column that it is made of still has v0, which names it.
    assert whatif(index, "drop", Selection((), (email,))).unused == ()


def test_a_deletion_takes_the_rows_that_foreign_keys_tie_to_it_and_what_reads_these():
    index = index_of(
        extract(
            [
                Script(
                    "a.sql",
                    "create table p (id int primary key); create table k (i int primary key,"
                    " p int references p (id) on delete cascade); create table g (k int references k (i));"
                    " create view v as select k from g; create policy c on k using (p in (select id from p));",
                )
            ],
            Options(dialect="postgres"),
        ).derivations
    )
    found = {a.column: (a.verdict, a.via) for a in whatif(index, "delete", select_many(index, ["p"])).affected}
    assert found["k.*"][0] == "rows"
    assert found["g.*"] == ("rows", ("foreign key",))
    assert found["v.k"] == ("rows", ("foreign key", "rows"))
    assert {a.dataset for a in whatif(index, "delete", select_many(index, ["g"])).affected} == {"v"}


@pytest.mark.parametrize(
    ("script", "reached"),
    [
        ("insert into d(x) select name from raw.t; truncate table d", {"d.*"}),
        ("insert into d select name from raw.t where id > 0; truncate table d; insert into d select 1", {"d.*"}),
        ("create view v as select name from raw.t; create or replace view v as select id from raw.t", {"v.*"}),
        ("create table x as select id from raw.t where name = ''; drop table x", {"query:"}),
        ("create table x as select * from raw.t; drop table x", set()),
        ("create table if not exists x (a text); insert into x select name from raw.t; drop table x", {"query:"}),
    ],
)
def test_a_script_fails_where_a_later_statement_removes_what_an_earlier_one_wrote(script, reached):
    found = index_of(
        decode(encode(extract([Script("a.sql", TABLE + script)], Options(dialect="postgres")).derivations))
    )
    for change in ("drop", "rename:n2"):
        entries = impact(found, "raw.t.name", change=Change.parse(change)).columns
        assert {e.column if e.column.startswith(("d.", "v.")) else "query:" for e in entries} == reached
    assert not impact(found, "raw.t.name", change=Change.parse("logic")).columns


@pytest.mark.parametrize("between", ["", "create view w as select x from v;\n"], ids=["alone", "read"])
def test_a_view_that_is_replaced_further_down_still_names_its_columns(between):
    text = TABLE + "create view v as select name as x from raw.t;\n" + between
    text += "create or replace view v as select email as x from raw.t;\ncreate view above as select x from v;\n"
    index = index_of(extract([Script("a.sql", text)], Options(dialect="postgres")).derivations)
    assert "v.x" in verdicts(index, "drop")
    assert {"v.x", "above.x"} <= set(verdicts(index, "logic", "raw.t.email"))
    if between:  # a view shows what the view below it is now
        assert "w.x" in verdicts(index, "logic", "raw.t.email")
        assert not verdicts(index, "logic")
