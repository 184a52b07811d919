"""The extractor as a whole: order, usage, cycles, hostile input."""

from __future__ import annotations

import random

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.capture.sql.extract import Extraction, Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.options import relation_of
from govtool.capture.sql.schemas.supplied import schema_from_mapping
from govtool.errors import UnknownNameError
from govtool.model import HIDDEN, ROWS, Diagnostic, EdgeKind


def run(*texts: str, dialect: str = "postgres", **options: object) -> Extraction:
    scripts = [Script(f"f{i}.sql", text) for i, text in enumerate(texts)]
    return extract(scripts, Options(dialect=dialect, **options))  # type: ignore[arg-type]


def edges(extraction: Extraction) -> set[tuple[str, str, str]]:
    return {
        (edge.source.text, f"{derivation.target}.{edge.target_path}", edge.kind.label)
        for derivation in extraction.derivations
        for edge in derivation.edges
    }


def codes(extraction: Extraction) -> list[str]:
    return [note.code for note in extraction.diagnostics]


def test_arms_of_uneven_width_are_the_reason_of_what_may_be_meant():
    found = run("create table t (a int, b int); create view v as select a, b from t union all select 1 as a")
    reasons = {edge.reason for each in found.derivations for edge in each.edges if edge.kind is EdgeKind.OPAQUE}
    assert reasons == {"arity"}


# ---- order ----------------------------------------------------------------------------------------


@st.composite
def warehouses(draw: st.DrawFn) -> list[str]:
    """Views in layers over one base table, each over one or two earlier ones, by column, by ``*`` or by UNION."""
    count = draw(st.integers(2, 8))
    columns = {"base": ["k", "a", "b"]}
    statements = ["CREATE TABLE base (k int, a int, b int)"]
    for i in range(count):
        name = f"v{i}"
        left = draw(st.sampled_from(sorted(columns)))
        right = draw(st.sampled_from(sorted(columns)))
        shape = draw(st.sampled_from(["star", "columns", "join", "union"]))
        mine = columns[left]
        if shape == "star":
            query = f"SELECT * FROM {left}"
        elif shape == "columns":
            picked = draw(st.lists(st.sampled_from(mine), min_size=1, unique=True))
            query = f"SELECT {', '.join(picked)} FROM {left} WHERE {mine[0]} > 1"
            mine = picked
        elif shape == "join":
            query = f"SELECT l.*, r.{columns[right][0]} AS x{i} FROM {left} l JOIN {right} r ON l.{mine[0]} = r.{columns[right][0]}"
            mine = [*mine, f"x{i}"]
        else:
            query = f"SELECT {mine[0]} AS u FROM {left} UNION ALL SELECT {columns[right][0]} FROM {right}"
            mine = ["u"]
        columns[name] = mine
        statements.append(f"CREATE VIEW {name} AS {query}")
    return statements


@settings(max_examples=examples(60), deadline=None)
@given(warehouses(), st.randoms(use_true_random=False))
def test_statements_may_come_in_any_order_in_one_file_or_several(
    statements: list[str], shuffler: random.Random
) -> None:
    in_order = run(";\n".join(statements))
    shuffled = list(statements)
    shuffler.shuffle(shuffled)
    assert edges(run(";\n".join(shuffled))) == edges(in_order)
    assert edges(run(*shuffled)) == edges(in_order)
    assert in_order.partial == in_order.opaque == 0


@settings(max_examples=examples(25), deadline=None)
@given(warehouses())
def test_extraction_is_deterministic(statements: list[str]) -> None:
    assert run(*statements).derivations == run(*statements).derivations


# ---- usage ------------------------------------------------------------------------------------------


def test_a_column_that_another_statement_shows_is_resolved() -> None:
    alone = run("SELECT page FROM users, web")
    assert "ambiguous" in codes(alone)
    shown = run("SELECT page FROM users, web", "SELECT web.page FROM web")
    assert "ambiguous" not in codes(shown)
    assert any(source == "web.page" and kind == "identity" for source, _, kind in edges(shown))


def test_types_of_other_names_are_told_apart() -> None:
    (table,) = run("create table t (a my.kind, b other, c numeric(3), d numeric(4))").derivations
    assert [column.type for column in table.columns] == ["my.kind", "other", "DECIMAL(3)", "DECIMAL(4)"]


def test_an_ambiguous_column_has_no_value_edge_but_candidates() -> None:
    extraction = run("CREATE VIEW v AS SELECT page FROM users, web")
    (note,) = [n for n in extraction.diagnostics if n.code == "ambiguous"]
    assert note.candidates == ("users.page", "web.page")
    assert note.target == "v.page"
    assert (note.line, note.column) == (1, 25)
    assert {kind for _, target, kind in edges(extraction) if target == "v.page"} == {"opaque"}


def test_columns_that_are_named_of_a_view_pass_through_its_star() -> None:
    extraction = run("CREATE VIEW v AS SELECT * FROM t", "CREATE VIEW w AS SELECT v.a FROM v")
    assert ("t.a", "v.a", "identity") in edges(extraction)
    view = next(d for d in extraction.derivations if d.target == "v")
    assert not view.columns_complete
    assert any(edge.target_path == HIDDEN and edge.kind is EdgeKind.OPAQUE for edge in view.edges)


def test_star_edges_are_marked_and_named_ones_are_not() -> None:
    extraction = run(
        "CREATE TABLE t (a int, b int); CREATE VIEW v AS SELECT * FROM t; CREATE VIEW w AS SELECT a FROM v"
    )
    stars = {
        (d.target, e.target_path): e.star
        for d in extraction.derivations
        for e in d.edges
        if e.kind is EdgeKind.IDENTITY
    }
    assert stars == {("v", "a"): True, ("v", "b"): True, ("w", "a"): False}


# ---- definitions ------------------------------------------------------------------------------------


def test_views_that_define_each_other_are_a_cycle() -> None:
    extraction = run("CREATE VIEW a AS SELECT x FROM b", "CREATE VIEW b AS SELECT x FROM a")
    assert "cycle" in codes(extraction)
    assert {("b.x", "a.x", "identity"), ("a.x", "b.x", "identity")} <= edges(extraction)


def test_two_files_that_define_one_relation_are_both_kept() -> None:
    extraction = run("CREATE VIEW v AS SELECT a FROM t", "CREATE VIEW v AS SELECT b FROM u")
    assert codes(extraction).count("duplicate-definition") == 2
    assert {("t.a", "v.a", "identity"), ("u.b", "v.b", "identity")} <= edges(extraction)


def test_tables_of_two_files_whose_schema_has_no_value_may_be_two() -> None:
    created = "CREATE TABLE {{ owner }}.t (a int)"
    assert codes(run(created, "CREATE TABLE public.u (a int)")) == []
    assert codes(run(created, created.replace("a int", "b int"))) == ["duplicate-definition"] * 2


def test_the_last_definition_of_a_file_counts() -> None:
    extraction = run("CREATE VIEW v AS SELECT a FROM t; CREATE OR REPLACE VIEW v AS SELECT b FROM u")
    assert not any(source.startswith("t.") for source, _, _ in edges(extraction))


def test_what_passed_through_a_dropped_table_is_not_lost() -> None:
    extraction = run("CREATE TABLE s AS SELECT a FROM t; CREATE TABLE u AS SELECT a FROM s; DROP TABLE s")
    kinds = {d.target: d.target_kind for d in extraction.derivations}
    assert kinds["s"] == "temporary"
    assert {("t.a", "s.a", "identity"), ("s.a", "u.a", "identity")} <= edges(extraction)


def test_alternatives_are_told_apart() -> None:
    extraction = run("CREATE VIEW v AS SELECT a FROM t UNION ALL SELECT b FROM u")
    arms = {e.source.text: e.arm for d in extraction.derivations for e in d.edges if e.target_path == "a"}
    assert arms["t.a"] != arms["u.b"]
    assert 0 not in arms.values()


def test_having_count_is_a_fact_on_the_statement() -> None:
    extraction = run(
        "CREATE VIEW v AS SELECT c, avg(x) FROM t GROUP BY c HAVING count(distinct id) >= 10 AND max(x) > 1"
    )
    assert extraction.derivations[0].statement.min_group == 10


@pytest.mark.parametrize(
    ("having", "counted"),
    [
        ("count(*) >= 20", [(20, "rows", [])]),
        ("count(1) > 19", [(20, "rows", [])]),
        ("count(o.user_id) >= 20", [(20, "values", ["shop.orders.user_id"])]),
        ("20 <= count(distinct o.user_id)", [(20, "distinct", ["shop.orders.user_id"])]),
        ("count(distinct lower(o.user_id)) >= 20", [(20, "distinct", [])]),
        ("count(distinct o.user_id, o.day) >= 20", [(20, "distinct", [])]),
        ("count(distinct 7) >= 20", [(20, "distinct", [])]),
        (
            "count(*) >= 50 and (count(distinct o.user_id) >= 20)",
            [(50, "rows", []), (20, "distinct", ["shop.orders.user_id"])],
        ),
        ("count(distinct o.user_id) >= 20 or count(*) > 1", []),
        ("count(distinct o.user_id) <= 20", []),
    ],
)
@pytest.mark.parametrize(
    "orders",
    [
        "shop.orders o",
        "(select user_id, day, amount from shop.orders) o",
        "(select x as user_id, day, amount from (select user_id as x, day, amount from shop.orders) i) o",
    ],
)
def test_what_a_having_counts(having, counted, orders) -> None:
    extraction = run(f"CREATE VIEW v AS SELECT o.day, sum(o.amount) AS s FROM {orders} GROUP BY o.day HAVING {having}")
    statement = extraction.derivations[0].statement
    reported = [(b.at_least, b.what, [ref.text for ref in b.columns]) for b in statement.min_group_of]
    assert reported == counted
    assert statement.min_group == max((k for k, _, _ in counted), default=None)


@pytest.mark.parametrize(
    ("people", "columns"),
    [
        ("SELECT id FROM crm.users", ["crm.users.id"]),
        ("SELECT DISTINCT id FROM crm.users WHERE id > 3", ["crm.users.id"]),
        ("SELECT id FROM crm.users UNION ALL SELECT 99", []),
        ("SELECT max(id) AS id FROM crm.users GROUP BY region", []),
        ("SELECT coalesce(id, 0) AS id FROM crm.users", []),
        ("SELECT row_number() OVER (ORDER BY id) AS id FROM crm.users", []),
    ],
)
def test_what_a_having_counts_through_a_cte(people, columns) -> None:
    extraction = run(
        f"CREATE VIEW v AS WITH p AS ({people}) SELECT o.day, count(*) AS n FROM shop.orders o JOIN p ON p.id = o.user_id "
        "GROUP BY o.day HAVING count(DISTINCT p.id) >= 20"
    )
    (bound,) = extraction.derivations[0].statement.min_group_of
    assert (bound.at_least, bound.what, [ref.text for ref in bound.columns]) == (20, "distinct", columns)


def test_a_having_inside_says_nothing_of_what_is_outside() -> None:
    extraction = run(
        "CREATE VIEW v AS SELECT day, sum(n) AS n FROM (SELECT day, user_id, count(*) AS n FROM shop.orders "
        "GROUP BY day, user_id HAVING count(DISTINCT user_id) >= 20) o GROUP BY day"
    )
    statement = extraction.derivations[0].statement
    assert (statement.min_group, statement.min_group_of) == (None, ())


def test_masking_functions_are_marked() -> None:
    extraction = run("CREATE VIEW v AS SELECT md5(lower(email)) AS h, lower(email) AS e FROM t")
    masking = {
        e.target_path: e.masking for d in extraction.derivations for e in d.edges if e.kind is EdgeKind.TRANSFORMATION
    }
    assert masking == {"h": True, "e": False}


def test_functions_are_listed_innermost_first() -> None:
    extraction = run("WITH c AS (SELECT trim(email) AS m FROM t) SELECT upper(m) AS u FROM c")
    (edge,) = [e for d in extraction.derivations for e in d.edges if e.target_path == "u"]
    assert edge.functions == ("trim", "upper")


# ---- names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "file", "relation"),
    [
        ("{schema}/{table}.sql", "models/mart/users.sql", "mart.users"),
        ("{catalog}/{schema}/{table}/query.sql", "p/d/t_v1/query.sql", "p.d.t_v1"),
        ("{table}.sql", "users.sql", "users"),
        ("{table}.sql", "users.py", None),
        ("{schema}/{table}/query.sql", "users/query.sql", None),
    ],
)
def test_a_bare_select_is_named_by_its_path(pattern: str, file: str, relation: str | None) -> None:
    assert relation_of(file, Options(relation_from=pattern)) == relation


def test_a_namespace_prefixes_every_dataset() -> None:
    extraction = run("CREATE VIEW v AS SELECT a FROM t", namespace="postgres://h:5432")
    assert ("postgres://h:5432/t.a", "postgres://h:5432/v.a", "identity") in edges(extraction)


def test_bare_selects_with_equal_text_but_for_literals_are_one_query() -> None:
    extraction = run("SELECT a FROM t WHERE b = 1", "SELECT a FROM t WHERE b = 2")
    assert len({d.target for d in extraction.derivations}) == 1


# ---- what cannot be understood --------------------------------------------------------------------------


def test_one_bad_statement_costs_only_itself() -> None:
    extraction = run(
        "CREATE VIEW a AS SELECT x FROM t; CREATE VIEW b AS SELECT FROM WHERE ((; CREATE VIEW c AS SELECT x FROM a"
    )
    assert {"a", "c"} <= {d.target for d in extraction.derivations}
    (note,) = [n for n in extraction.diagnostics if n.code == "parse-error"]
    assert (note.file, note.line) == ("f0.sql", 1)
    assert extraction.opaque == 1


def test_diagnostics_of_unreadable_files_are_passed_on() -> None:
    note = Diagnostic("unreadable", "error", "no", "x.sql")
    assert extract([note], Options()).diagnostics == (note,)


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(UnknownNameError) as error:
        run("SELECT 1", dialect="postgers")
    assert "postgres" in error.value.nearest


DEEP = {
    "parentheses": "SELECT " + "(" * 3000 + "1" + ")" * 3000,
    "subqueries": "SELECT a FROM " + "(SELECT a FROM " * 300 + "t" + ") s" * 300,
    "or": "SELECT a FROM t WHERE " + " OR ".join(f"a = {i}" for i in range(5000)),
    "unions": " UNION ALL ".join(f"SELECT a{i % 7} FROM t" for i in range(1500)),
    "case": "SELECT " + "CASE WHEN a THEN " * 800 + "b" + " END" * 800 + " FROM t",
    "ctes": "WITH c0 AS (SELECT a FROM t)"
    + "".join(f", c{i} AS (SELECT a FROM c{i - 1})" for i in range(1, 400))
    + " SELECT a FROM c399",
    "functions": "SELECT " + "f(" * 1200 + "a" + ")" * 1200 + " FROM t",
    "not": "SELECT " + "NOT " * 5000 + "a FROM t",
}


@pytest.mark.parametrize("sql", DEEP.values(), ids=DEEP.keys())
def test_deep_statements_end_in_an_answer_or_a_reason(sql: str) -> None:
    extraction = run(sql)
    assert extraction.statements == 1
    assert extraction.understood or extraction.diagnostics


def test_long_chains_of_views_resolve_from_the_last() -> None:
    views = [f"CREATE VIEW v{i} AS SELECT * FROM v{i - 1}" for i in range(400, 0, -1)]
    extraction = run("CREATE VIEW top AS SELECT a FROM v400", *views, "CREATE TABLE v0 (a int)")
    assert ("v0.a", "v1.a", "identity") in edges(extraction)
    assert ("v400.a", "top.a", "identity") in edges(extraction)
    assert extraction.opaque == 0


SEEDS = (
    "MERGE INTO t USING (SELECT * FROM s) x ON t.id = x.id WHEN MATCHED THEN UPDATE SET a = x.a WHEN NOT MATCHED THEN INSERT (id) VALUES (x.id)",
    "WITH RECURSIVE r(n, p) AS (SELECT id, parent FROM t UNION ALL SELECT t.id, r.p FROM t JOIN r ON t.parent = r.n) SELECT * FROM r",
    "SELECT a, sum(b) OVER w, CASE WHEN c THEN d ELSE (SELECT max(e) FROM u WHERE u.i = t.i) END x FROM t JOIN v USING (k) WINDOW w AS (PARTITION BY f)",
    "INSERT INTO t (a, b) SELECT * FROM (VALUES (1, 2)) v(a, b) ON CONFLICT (a) DO UPDATE SET b = excluded.b",
    "CREATE TABLE x AS SELECT t.*, u.j -> 'k' ->> 'l' AS m FROM t NATURAL JOIN u, LATERAL unnest(t.arr) AS e(y) GROUP BY 1, ROLLUP (2)",
    "UPDATE t SET (a, b) = (SELECT c, d FROM s WHERE s.id = t.id), e = f FROM g WHERE g.h = t.h",
)


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(SEEDS), st.data())
def test_mutilated_statements_never_raise(sql: str, data: st.DataObject) -> None:
    words = sql.split(" ")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(words) - 1))
        action = data.draw(st.sampled_from(["drop", "repeat", "swap", "junk"]))
        if action == "drop" and len(words) > 1:
            del words[at]
        elif action == "repeat":
            words.insert(at, words[at])
        elif action == "swap":
            other = data.draw(st.integers(0, len(words) - 1))
            words[at], words[other] = words[other], words[at]
        else:
            words.insert(
                at,
                data.draw(
                    st.sampled_from(["(", ")", "*", "FROM", "''", '"', ",", "\x1b[31m", "SELECT", "ON", "a.b.c.d.e"])
                ),
            )
    dialect = data.draw(st.sampled_from(["postgres", "bigquery", "snowflake", "tsql", "spark"]))
    extraction = run(" ".join(words), dialect=dialect)
    assert not any("could not be analysed" in note.message for note in extraction.diagnostics)


@settings(max_examples=examples(40), deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_answered(text: str) -> None:
    extraction = run(text)
    assert extraction.understood + extraction.partial + extraction.opaque == extraction.statements


def test_schema_columns_are_used_in_order() -> None:
    schema = schema_from_mapping({"t": ["b", "a"]}, "postgres")
    extraction = run("INSERT INTO u SELECT * FROM t; CREATE TABLE u (x int, y int)", schema=schema)
    assert {("t.b", "u.x", "identity"), ("t.a", "u.y", "identity")} <= edges(extraction)


def test_rows_of_everything_read_are_reached() -> None:
    extraction = run("CREATE VIEW v AS SELECT count(*) AS n FROM t WHERE EXISTS (SELECT 1 FROM u)")
    reads = {source for source, target, kind in edges(extraction) if kind == "read" and target == f"v.{ROWS}"}
    assert reads == {"t.*", "u.*"}


def test_every_bare_select_of_a_script_is_a_query_of_its_own() -> None:
    extraction = run("SELECT a FROM t; SELECT b FROM u")
    assert [[c.path for c in d.columns] for d in extraction.derivations] == [["a"], ["b"]]


def test_variants_of_a_template_are_one_query() -> None:
    extraction = run("SELECT a FROM t {% if x %} WHERE b = 1 {% else %} WHERE c = 2 {% endif %}")
    assert len({d.target for d in extraction.derivations}) == 1
    assert {"t.b", "t.c"} <= {source for source, _, _ in edges(extraction)}


def test_reads_are_of_the_arm_that_they_stand_in() -> None:
    sql = "WITH c AS (SELECT a FROM t) SELECT a FROM c UNION ALL SELECT c.a FROM c JOIN u ON true"
    (derivation,) = run(sql).derivations
    arms = {(e.source.dataset, e.arm) for e in derivation.edges if e.kind is EdgeKind.READ}
    assert arms == {("t", 1), ("t", 2), ("u", 2)}
    (derivation,) = run("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u UNION SELECT 1 FROM t)").derivations
    assert {(e.source.dataset, e.arm) for e in derivation.edges if e.kind is EdgeKind.READ} == {("t", 0), ("u", 1)}


def test_an_alias_of_a_correlated_expression_gives_way_to_the_enclosing_query() -> None:
    schema = "create table o (k int, a int); create table p (r int); create view v as select l.q from o cross join"
    outer = run(f"{schema} lateral (select k as a, a as q from p) as l", dialect="duckdb")
    assert ("o.a", "v.q", "identity") in edges(outer)
    own = run(f"{schema} lateral (select r as a, a as q from p) as l", dialect="duckdb")
    assert ("p.r", "v.q", "identity") in edges(own)


@pytest.mark.parametrize(("command", "dialect"), [("\\i :file", "postgres"), ("@&file", "oracle")])
def test_the_note_of_an_included_script_that_a_variable_names_stays(command: str, dialect: str) -> None:
    (note,) = extract([Script("f.sql", f"{command}\n")], Options(dialect=dialect)).diagnostics
    name = command.lstrip("\\i@ ")
    assert (note.code, note.message) == ("opaque", f"includes a script that only a variable names: {name}")
