"""Columns that a * hands on by position: too few of them break the statement, and their names do not matter."""

from __future__ import annotations

import pytest
from depth import examples
from graph_samples import edge, graph, random_graph, view
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.schemas.supplied import schema_from_mapping
from govtool.graph.index import Index
from govtool.query.changes.change import Change
from govtool.query.changes.impact import expand, impact
from govtool.query.changes.whatif import whatif
from govtool.query.selection.select import Subject
from govtool.query.selection.selectors import Selection

THREE = {"crm.s": ("a", "b", "c"), "crm.u": ("a", "b", "c"), "crm.t": ("x", "y", "z")}
SCHEMA = {name: dict.fromkeys(columns, "int") for name, columns in THREE.items()}


def sql(text: str, dialect: str = "snowflake") -> Index:
    options = Options(dialect=dialect, schema=schema_from_mapping(SCHEMA, dialect))
    return index_of(extract([Script("t.sql", text)], options).derivations)


def verdicts(index: Index, change: str, subject: str = "crm.s.b", **more) -> dict[str, str]:
    found = expand(index, impact(index, subject, change=Change.parse(change), **more))
    return {e.column.rpartition(".")[2]: e.verdict.label for e in found if not e.is_rows}


ALL_OF_T = dict.fromkeys(THREE["crm.t"], "breaks")
ALL_OF_U = dict.fromkeys(THREE["crm.u"], "breaks")


@pytest.mark.parametrize("small", [0, 10**6])
@pytest.mark.parametrize(
    ("text", "dialect", "found"),
    [
        ("insert into crm.t select * from crm.s", "snowflake", ALL_OF_T),
        ("insert into crm.t (x, y, z) select * from crm.s", "postgres", ALL_OF_T),
        ("insert into crm.t (select * from crm.s)", "tsql", ALL_OF_T),
        # PostgreSQL fills the last columns with their defaults; which are the last is not known.
        ("insert into crm.t select * from crm.s", "postgres", {"x": "unknown", "y": "breaks", "z": "unknown"}),
        ("insert into crm.t (select * from crm.s)", "postgres", {"x": "unknown", "y": "breaks", "z": "unknown"}),
        ("insert into crm.u by name select * from crm.s", "duckdb", {"b": "breaks"}),
        ("create view crm.v as select * from crm.s", "snowflake", {"b": "breaks"}),
        ("create view crm.v as select * from crm.u union all select * from crm.s", "snowflake", ALL_OF_U),
        ("create view crm.v as select * from crm.s union select x, y, z from crm.t", "postgres", ALL_OF_U),
        ("create view crm.v as select * from crm.u union all by name select * from crm.s", "duckdb", {"b": "breaks"}),
        # Both arms have a column less.
        ("create view crm.v as select * from crm.s union all select * from crm.s where 1 = 2", "postgres", {"b": "breaks"}),
        ("create view crm.v as select q.* from (select * from crm.u union all select * from crm.s) q", "postgres", ALL_OF_U),
    ],
)  # fmt: skip
def test_a_column_less_breaks_what_goes_by_position(text, dialect, found, small):
    assert verdicts(sql(text, dialect), "drop", small=small) == found


@pytest.mark.parametrize("small", [0, 10**6])
@pytest.mark.parametrize(
    ("text", "dialect", "found"),
    [
        ("insert into crm.t select * from crm.s", "snowflake", {"y": "passes"}),
        ("insert into crm.u select * from crm.s", "postgres", {"b": "passes"}),
        ("insert into crm.u by name select * from crm.s", "duckdb", {"b": "breaks"}),
        ("insert into crm.t select * rename (b as y) from crm.s", "snowflake", dict.fromkeys("xyz", "breaks")),
        ("create view crm.v as select * from crm.s", "snowflake", {"b": "breaks"}),
        ("create view crm.v as select * from crm.u union all select * from crm.s", "snowflake", {"b": "passes"}),
        ("create view crm.v as select * from crm.s union all select * from crm.u", "snowflake", {"b": "breaks"}),
        ("create view crm.v as select * from crm.u union all by name select * from crm.s", "duckdb", {"b": "breaks"}),
    ],
)
def test_a_new_name_does_not_matter_to_what_goes_by_position(text, dialect, found, small):
    assert verdicts(sql(text, dialect), "rename:n", small=small) == found


@pytest.mark.parametrize(
    ("listed", "change", "found"),
    [
        ("", "rename:n", {"y": "breaks"}),  # of the view alone
        ("(x, y, z) ", "rename:n", dict.fromkeys("xyz", "breaks")),  # the list names it
        ("(x, z) ", "rename:n", {"y": "breaks"}),
        ("", "drop", dict.fromkeys("xyz", "breaks")),  # more values than columns
        ("(x, y, z) ", "drop", dict.fromkeys("xyz", "breaks")),
    ],
)
@pytest.mark.parametrize("small", [0, 10**6])
def test_a_statement_needs_the_columns_that_it_fills(listed, change, found, small):
    chosen = "a, c" if listed == "(x, z) " else "a, b, c"
    text = f"insert into crm.t {listed}select {chosen} from crm.s; create view crm.v as select y from crm.t"
    assert verdicts(sql(text), change, "crm.t.y", small=small) == found


@pytest.mark.parametrize("small", [0, 10**6])
def test_a_column_of_a_list_that_nobody_selects_minds_its_type_and_no_name(small):
    kept = "with q as (select coalesce(k, m) as n, x from crm.s as l(j, k, m), crm.t) select x from q"
    index = sql(f"create view crm.v as {kept}", "duckdb")
    assert verdicts(index, "retype:text", small=small) == {"x": "rows"}
    assert verdicts(index, "rename:n", small=small) == {}
    assert verdicts(index, "drop", small=small) == {"x": "breaks"}
    both = sql(f"create view crm.v as {kept.replace('crm.t)', 'crm.t where exists (select b from crm.s))')}", "duckdb")
    assert verdicts(both, "rename:n", small=small) == {"x": "breaks"}  # one of the two goes by its name


def test_a_name_that_only_a_union_all_hands_on_counts_beside_a_list():
    arms = "select y, sum(z) as n from crm.t group by 1 union all select a, b from crm.s"
    named = f"select q.i from ({arms} intersect select l.i, l.j from crm.t as l(i, j, k)) as q(i, n)"
    assert verdicts(sql(f"create view crm.v as {named}", "duckdb"), "rename:w", "crm.t.z") == {"i": "breaks"}


def test_behind_it_a_position_that_is_gone_is_gone():
    index = sql("create view crm.v as select * from crm.s; insert into crm.t select * from crm.v")
    assert verdicts(index, "drop") == {"b": "breaks", **ALL_OF_T}
    assert verdicts(index, "rename:n") == {"b": "breaks", "y": "passes"}


def test_without_the_text_the_others_are_not_known():
    star = [edge(f"s.{a} -> {b} identity", star=True) for a, b in zip("abc", "xyz", strict=True)]
    index = graph(view("t", "x y z", *star, mode="append", kind="insert", target_kind="table"))
    assert verdicts(index, "drop", "s.b") == {"x": "unknown", "y": "breaks", "z": "unknown"}
    assert verdicts(index, "rename:n", "s.b") == {"y": "unknown"}


def test_stars_that_make_one_value_of_many_have_no_positions():
    star = [edge(f"s.{a} -> x transformation", star=True, functions=("hash",)) for a in "abc"]
    index = graph(view("t", "x y", *star, "r.y -> y identity", mode="append", kind="insert", target_kind="table"))
    assert verdicts(index, "drop", "s.b") == {"x": "breaks"}
    assert verdicts(index, "rename:n", "s.b") == {"x": "breaks"}


@pytest.mark.parametrize(
    ("declared", "new", "same"),
    [
        ("int", "INTEGER", True),
        ("varchar(20)", "varchar( 20 )", True),
        ("varchar(20)", "varchar(30)", False),
        ("numeric(10, 2)", "decimal(10,2)", True),
        ("timestamp with time zone", "timestamptz", True),
        ("text", "int", False),
    ],
)
def test_the_type_that_a_column_is_declared_with_is_no_change(declared, new, same):
    text = f"create table crm.d (k {declared}); create view crm.v as select k from crm.d"
    index = sql(text, "postgres")
    answer = impact(index, "crm.d.k", change=Change("retype", new))
    assert answer.unchanged == (("crm.d.k",) if same else ())
    assert bool(answer.columns) is not same
    column = index.find_column(index.find_dataset("crm.d"), "k")
    reported = whatif(index, "retype", Selection((), (column,)), new)
    assert (reported.unchanged, bool(reported.affected)) == (answer.unchanged, not same)


def test_a_type_that_only_a_definition_gives_may_still_be_declared_otherwise():
    index = sql("create view crm.v as select cast(a as int) as k from crm.s; create view crm.w as select k from crm.v")
    assert impact(index, "crm.v.k", change=Change("retype", "int")).unchanged == ()


@settings(deadline=None, max_examples=examples(150))
@given(random_graph(), st.integers(0, 10**6), st.sampled_from(["logic", "drop", "rename", "retype"]))
def test_whatif_counts_as_impact_does(derivations, number, kind):
    index = graph(*derivations)
    columns = [
        n for n in range(index.node_count)
        if not index.is_rows(n) and not index.is_elided(index.node_dataset[n])
    ]  # fmt: skip
    if not columns:
        return
    node = columns[number % len(columns)]
    to = {"rename": "n", "retype": "geometry"}.get(kind)
    summary = impact(index, Subject(index.node_dataset[node], node, index.name(node)), change=Change(kind, to)).summary
    reported = whatif(index, "mask" if kind == "logic" else kind, Selection((), (node,)), to)
    assert {v.label: n for v, n in summary.verdicts} == {v: n for v, n in reported.counts.items() if v != "lost"}


@pytest.mark.parametrize("small", [0, 10**6])
def test_an_unused_column_of_an_arm_behind_a_list_of_names_is_named_all_the_same(small):
    arms = "select y, z as c from crm.t union all select p, min(substr(q, 1, 1)) from crm.s as l(p, q, r) group by p"
    index = sql(f"create view crm.v as select u.a from crm.u left join ({arms}) as s on u.a = s.y", "duckdb")
    assert verdicts(index, "retype:geometry", small=small) == {"a": "rows"}


NUMBERED = "create view crm.v as select * from crm.s join crm.u on true join crm.t on true join crm.u w on true"


@pytest.mark.parametrize("small", [0, 10**6])
@pytest.mark.parametrize("change", ["drop", "rename:n"])
def test_columns_that_duckdb_numbers_move_up(change, small):
    index = sql(f"{NUMBERED}; create view crm.w as select b_2, a_2 from crm.v", "duckdb")
    # b, b_1 and b_2 become b and b_1: the last is gone, and what reads it fails
    found = {"b": "breaks", "b_1": "changes", "b_2": "breaks", "a_2": "breaks"}
    assert verdicts(index, change, small=small) == found


def test_as_many_numbers_go_as_columns():
    index = sql("create view crm.v as select * from crm.s join crm.s x on true join crm.u on true", "duckdb")
    assert verdicts(index, "drop") == {"b": "breaks", "b_1": "breaks", "b_2": "breaks"}


@pytest.mark.parametrize("text", [NUMBERED.replace("*", "*, 1 as b_3"), "create view crm.v as select a, b from crm.s"])
def test_an_alias_with_a_number_does_not_move(text):
    assert "b_3" not in verdicts(sql(text, "duckdb"), "drop")


def test_other_dialects_do_not_number():
    assert "b_1" not in verdicts(sql(NUMBERED, "snowflake"), "drop")


ALL_OF_V = dict.fromkeys("abc", "breaks")


@pytest.mark.parametrize("small", [0, 10**6])
@pytest.mark.parametrize(
    ("query", "change", "found"),
    [
        # Without b there is no third column; `a` is lost by the statement as well.
        ("select * from crm.s order by 3", "drop", ALL_OF_V),
        ("select * from (select * from crm.s order by 3) q", "drop", ALL_OF_V),
        ("select a from (select * from crm.s order by 3) q", "drop", {"a": "breaks"}),
        ("select distinct on (3) * from crm.s", "drop", ALL_OF_V),
        ("select *, 1 as d from crm.s order by 4", "drop", {**ALL_OF_V, "d": "breaks"}),
        # There are enough: 2 means another column, so that LIMIT leaves other rows.
        ("select * from crm.s order by 2 limit 1", "drop", {"a": "rows", "b": "breaks", "c": "rows"}),
        ("select *, 1 as d from crm.s order by 3 limit 1", "drop", {"a": "rows", "b": "breaks", "c": "rows", "d": "rows"}),
        ("select * from crm.s order by all limit 1", "drop", {"a": "rows", "b": "breaks", "c": "rows"}),
        ("select * from crm.s order by 1, 2", "rename:n", {"a": "passes", "b": "breaks", "c": "passes"}),
        # Both lose their b: three columns are left of four.
        ("select * from crm.s, (select b from crm.s) q order by 3", "drop", {**ALL_OF_V, "b_1": "breaks"}),
        ("select * from crm.s p, crm.s q order by 5", "drop", dict.fromkeys(("a", "b", "c", "a_1", "b_1", "c_1"), "breaks")),
        ("select b, a, c from crm.s order by 1", "drop", ALL_OF_V),
    ],
)  # fmt: skip
def test_a_column_less_moves_what_is_sorted_by_position(query, change, found, small):
    assert verdicts(sql(f"create view crm.v as {query}", "duckdb"), change, small=small) == found
