"""What HAVING COUNT(…) >= k says of the groups of a SELECT is said of no aggregate that is over something else."""

from __future__ import annotations

import pytest

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script


def min_group(sql: str, dialect: str = "postgres") -> int | None:
    (derivation,) = extract([Script("a.sql", sql)], Options(dialect=dialect)).derivations
    return derivation.statement.min_group


@pytest.mark.parametrize(
    "columns",
    [
        "sum(a)",
        "sum(coalesce(a, 0)), count(DISTINCT a)",
        "CASE WHEN b = 1 THEN sum(a) END",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY a)",
        "(SELECT x FROM u LIMIT 1), sum(a)",
    ],
)
def test_aggregates_over_whole_groups_are_bounded(columns: str) -> None:
    assert min_group(f"SELECT b, {columns} FROM t GROUP BY b HAVING count(*) >= 5") == 5


@pytest.mark.parametrize(
    "columns",
    [
        "sum(a) FILTER (WHERE c = 1)",
        "sum(CASE WHEN c = 1 THEN a END)",
        "avg(nullif(a, 3))",
        "sum(a * (c = 1)::int)",
        "string_agg(CASE WHEN c = 1 THEN a END, ',')",
        "sum(a), (SELECT max(x) FROM u)",
        "sum(a), (SELECT string_agg(x, ',') FROM u)",
        "sum(a) OVER (PARTITION BY b)",
    ],
)
def test_partial_and_foreign_aggregates_take_the_bound_away(columns: str) -> None:
    assert min_group(f"SELECT b, {columns} FROM t GROUP BY b HAVING count(*) >= 5") is None


def test_an_aggregate_of_a_subquery_that_is_grouped_by() -> None:
    inner = "SELECT b, avg(a) AS m FROM t GROUP BY b"
    assert min_group(f"SELECT m FROM ({inner}) s GROUP BY m HAVING count(*) >= 5") is None
    assert min_group(f"WITH x AS ({inner}) SELECT upper(m), count(*) FROM x GROUP BY m HAVING count(*) >= 5") is None
    assert min_group(f"SELECT sum(m) FROM ({inner}) s HAVING count(*) >= 5") == 5


def test_a_choice_in_a_subquery() -> None:
    inner = "SELECT b, CASE WHEN c = 1 THEN a END AS v FROM t"
    assert min_group(f"SELECT b, sum(v) FROM ({inner}) s GROUP BY b HAVING count(*) >= 5") is None


def test_conditional_aggregates_of_dialects() -> None:
    having = "FROM t GROUP BY b HAVING count(*) >= 5"
    assert min_group(f"SELECT b, sumIf(a, c = 1) {having}", "clickhouse") is None
    assert min_group(f"SELECT b, count_if(a > 1) {having}", "snowflake") is None
    assert min_group(f"SELECT b, sum(iff(c = 1, a, 0)) {having}", "snowflake") is None
    assert min_group(f"SELECT b, sum(a) {having}", "clickhouse") == 5


def test_a_row_that_is_counted_bounds_no_column_of_it() -> None:
    sql = "SELECT count(*) AS n FROM t HAVING count(DISTINCT (a, b)) >= 5"
    (derivation,) = extract([Script("a.sql", sql)], Options(dialect="postgres")).derivations
    assert [(b.at_least, b.what, b.columns) for b in derivation.statement.min_group_of] == [(5, "distinct", ())]


@pytest.mark.parametrize(
    ("from_", "bound"),
    [
        ("t", 5),
        ("t JOIN u ON t.c = u.c", 5),
        ("t, (SELECT x FROM u) q", 5),
        ("t CROSS JOIN (VALUES (1), (2)) v(n)", None),
        ("t, unnest(ARRAY[1, 2]) n", None),
        ("t, LATERAL generate_series(1, 3) n", None),
        ("(t CROSS JOIN (VALUES (1), (2)) v(n))", None),
        ("(SELECT t.* FROM t, generate_series(1, 3)) t", None),
        ("t, n", None),
        ("w t", None),
        ("unnest(ARRAY[1, 2]) t(b, a)", 5),
    ],
)
def test_a_count_of_rows_says_nothing_where_rows_are_joined_that_are_made_in_place(
    from_: str, bound: int | None
) -> None:
    ctes = "WITH n AS (SELECT 1 AS n UNION ALL SELECT 2), w AS (SELECT t.* FROM t, n)"
    select = f"{ctes} SELECT t.b, sum(t.a) FROM {from_} GROUP BY t.b HAVING"
    assert min_group(f"{select} count(*) >= 5") == bound
    assert min_group(f"{select} count(t.a) >= 5") == bound
    assert min_group(f"{select} count(DISTINCT t.a) >= 5") == 5
