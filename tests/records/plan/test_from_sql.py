"""SQL text to the plan form: what a query means, and what is refused by name and place."""

from __future__ import annotations

import decimal

import pytest

from govtool.errors import UnknownNameError, UsageError
from govtool.records.plan import codec
from govtool.records.plan import types as t
from govtool.records.plan.expressions import AggregateCall, Attribute, Call, Cast, Literal, Outer, WindowCall
from govtool.records.plan.from_sql import condition_from_sql, from_sql, table
from govtool.records.plan.nodes import (
    Aggregate,
    Distinct,
    Expand,
    Filter,
    Generate,
    Join,
    LateralJoin,
    Limit,
    LocalRows,
    Plan,
    Project,
    Reference,
    Relation,
    Session,
    SetOperation,
    Sort,
    Union,
    Window,
    With,
    outputs,
)
from govtool.records.plan.tree import walk, walk_nodes

SCHEMA = t.Struct(
    (
        t.Field("k", t.INTEGER),
        t.Field("g", t.STRING),
        t.Field("x", t.LONG),
        t.Field("d", t.Decimal(10, 2)),
        t.Field("f", t.DOUBLE),
        t.Field("day", t.DATE),
        t.Field("l", t.Array(t.INTEGER)),
    )
)
RELATIONS = {"r": table("r", SCHEMA), "s": table("s", SCHEMA)}


def plan_of(sql):
    plan = from_sql(sql, RELATIONS)
    written = Plan(plan, Session("4.0", ansi=True, zone="UTC"))
    assert codec.loads(codec.dumps(written)) == written
    return plan


def kinds(plan):
    return [type(node) for node in walk_nodes(plan)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT k FROM r", [Project, Relation]),
        ("SELECT k FROM r WHERE x > 1", [Project, Filter, Relation]),
        ("SELECT DISTINCT g FROM r", [Distinct, Project, Relation]),
        ("SELECT g, count(*) FROM r GROUP BY g", [Project, Aggregate, Relation]),
        ("SELECT g FROM r GROUP BY g HAVING max(x) > 1", [Project, Filter, Aggregate, Relation]),
        ("SELECT sum(x) FROM r GROUP BY CUBE (g, k)", [Project, Aggregate, Expand, Relation]),
        ("SELECT k FROM r UNION ALL SELECT k FROM s", [Union, Project, Relation, Project, Relation]),
        ("SELECT k FROM r UNION SELECT k FROM s", [Distinct, Union, Project, Relation, Project, Relation]),
        ("SELECT k FROM r EXCEPT SELECT k FROM s", [SetOperation, Project, Relation, Project, Relation]),
        ("SELECT * FROM r JOIN s ON r.k = s.k", [Project, Join, Relation, Relation]),
        ("SELECT * FROM r, LATERAL (SELECT k FROM s WHERE s.k = r.k) z", [Project, LateralJoin, Relation, Project, Filter, Relation]),
        ("SELECT rank() OVER (ORDER BY k) FROM r", [Project, Window, Relation]),
        ("SELECT k FROM r ORDER BY x LIMIT 3", [Project, Limit, Sort, Project, Relation]),
        ("SELECT e FROM r LATERAL VIEW explode(l) v AS e", [Project, Generate, Relation]),
        ("WITH v AS (SELECT k FROM r) SELECT * FROM v", [With, Project, Relation, Project, Reference]),
        ("SELECT 1", [Project, LocalRows]),
    ],
)  # fmt: skip
def test_queries_become_operators(sql, expected):
    found = kinds(plan_of(sql))
    assert [kind for kind in found if kind.__name__ != "Definition"] == expected


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("k + x", t.LONG),
        ("k / 2", t.DOUBLE),
        ("k % 2", t.INTEGER),
        ("k div 2", t.LONG),
        ("d + 1", t.Decimal(11, 2)),
        ("d + k", t.Decimal(13, 2)),
        ("d * 2.5", t.Decimal(13, 3)),
        ("d * k", t.Decimal(21, 2)),
        ("d / -3", t.Decimal(14, 6)),
        ("0.2 / x", t.Decimal(22, 22)),
        ("d % 100", t.Decimal(5, 2)),
        ("d * NULL", t.Decimal(21, 4)),
        ("NULL / d", t.DOUBLE),
        ("coalesce(CAST(k AS decimal(38,0)), d)", t.Decimal(38, 0)),
        ("d * d", t.Decimal(21, 4)),
        ("d / d", t.Decimal(23, 13)),
        ("d + f", t.DOUBLE),
        ("1.50", t.Decimal(3, 2)),
        ("1e2", t.DOUBLE),
        ("3000000000", t.LONG),
        ("-k", t.INTEGER),
        ("CASE WHEN k > 1 THEN k ELSE d END", t.Decimal(12, 2)),
        ("coalesce(k, x)", t.LONG),
        ("if(k > 1, 'a', g)", t.STRING),
        ("nullif(g, 'a')", t.STRING),
        ("g || 'a'", t.STRING),
        ("year(day)", t.INTEGER),
        ("substring(g, 2)", t.STRING),
        ("DATE '2024-02-29'", t.DATE),
        ("CAST(g AS decimal(5,1))", t.Decimal(5, 1)),
        ("array(1, x)", t.Array(t.LONG)),
        ("k IN (1, 2)", t.BOOLEAN),
        ("k IN (SELECT x FROM s)", t.BOOLEAN),
        ("(SELECT max(d) FROM s)", t.Decimal(10, 2)),
        ("g BETWEEN 'a' AND 'b' OR NOT k IS NULL AND g LIKE 'a%'", t.BOOLEAN),
    ],
)
def test_types_are_those_of_spark(expression, kind):
    plan = plan_of(f"SELECT {expression} AS v FROM r")
    assert outputs(plan)[0].type == kind


def test_operands_beside_a_decimal_keep_their_digits():
    (value,) = plan_of("SELECT k * d AS v FROM r").columns
    left, right = value.value.arguments
    assert (left.type, right.type) == (t.Decimal(10, 0), t.Decimal(10, 2))


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("count(*)", t.LONG), ("count(DISTINCT g)", t.LONG), ("sum(k)", t.LONG), ("sum(d)", t.Decimal(20, 2)),
        ("avg(k)", t.DOUBLE), ("avg(d)", t.Decimal(14, 6)), ("min(g)", t.STRING), ("max(day)", t.DATE),
        ("sum(CAST(k AS decimal(38,10)))", t.Decimal(38, 10)), ("avg(CAST(k AS decimal(38,10)))", t.Decimal(38, 14)),
        ("collect_list(k)", t.Array(t.INTEGER, nullable=False)), ("count_if(k > 1)", t.LONG),
        ("sum(k) FILTER (WHERE g = 'a')", t.LONG),
    ],
)  # fmt: skip
def test_aggregates_are_typed(call, kind):
    assert outputs(plan_of(f"SELECT {call} AS v FROM r"))[0].type == kind


def test_operands_are_cast_to_their_common_type():
    (condition,) = [node.condition for node in walk_nodes(plan_of("SELECT 1 FROM r WHERE k = d")) if isinstance(node, Filter)]  # fmt: skip
    assert isinstance(condition.arguments[0], Cast)
    assert condition.arguments[0].type == condition.arguments[1].type == t.Decimal(12, 2)


def test_literals_have_their_values():
    plan = plan_of("SELECT 1.50, 'a', DATE '1970-01-03', TRUE, NULL, -2")
    assert [named.value for named in plan.columns] == [
        Literal(decimal.Decimal("1.50"), t.Decimal(3, 2)),
        Literal("a", t.STRING),
        Literal(2, t.DATE),
        Literal(True, t.BOOLEAN),
        Literal(None, t.VOID),
        Literal(-2, t.INTEGER),
    ]


def test_each_reading_of_a_relation_is_a_leaf_with_ids_of_its_own():
    leaves = [node for node in walk_nodes(plan_of("SELECT a.k FROM r a JOIN r b ON a.k = b.k")) if isinstance(node, Relation)]  # fmt: skip
    assert [leaf.leaf for leaf in leaves] == [0, 1]
    assert not {c.id for c in leaves[0].columns} & {c.id for c in leaves[1].columns}


def test_names_are_resolved_inside_out():
    plan = plan_of("SELECT (SELECT max(x) FROM s WHERE s.k = r.k AND g = 'a') AS m FROM r")
    outer = [term for node in walk_nodes(plan) for term in walk(node) if isinstance(term, Outer)]
    names = {c.id: "r" for node in walk_nodes(plan) if isinstance(node, Relation) and node.dataset == "r" for c in node.columns}  # fmt: skip
    assert [(each.attribute.name, names[each.attribute.id]) for each in outer] == [("k", "r")]


def test_using_merges_columns():
    assert [c.name for c in outputs(plan_of("SELECT * FROM r JOIN s USING (k)"))].count("k") == 1
    full = plan_of("SELECT k FROM r FULL JOIN s USING (k)")
    assert any(isinstance(term, Call) and term.name == "coalesce" for node in walk_nodes(full) for term in walk(node))


def test_group_keys_may_be_positions_names_and_expressions():
    for sql in (
        "SELECT upper(g) AS u, count(*) FROM r GROUP BY 1",
        "SELECT upper(g) AS u, count(*) FROM r GROUP BY u",
        "SELECT upper(g) AS u, count(*) FROM r GROUP BY upper(g)",
    ):
        (node,) = [node for node in walk_nodes(plan_of(sql)) if isinstance(node, Aggregate)]
        assert [key.value.name for key in node.keys] == ["upper"]


def test_aggregates_and_windows_are_found_once():
    plan = plan_of("SELECT sum(x), sum(x) + 1, sum(sum(x)) OVER (ORDER BY g) FROM r GROUP BY g")
    calls = [term for node in walk_nodes(plan) for term in walk(node) if isinstance(term, AggregateCall)]
    windows = [term for node in walk_nodes(plan) for term in walk(node) if isinstance(term, WindowCall)]
    assert (len(calls), len(windows)) == (2, 1)


def test_pivot_counts_are_null_where_no_row_has_the_value():
    plan = plan_of("SELECT * FROM (SELECT g, k, x FROM r) PIVOT (count(x) AS n, sum(x) AS s FOR k IN (1, 2 AS two))")
    assert [c.name for c in outputs(plan)] == ["g", "1_n", "1_s", "two_n", "two_s"]


@pytest.mark.parametrize(
    ("sql", "construct", "place"),
    [
        ("SELECT k FROM r TABLESAMPLE (10 PERCENT)", "SAMPLE", "1:15"),
        ("SELECT\n  percentile(x, 0.5) FROM r", "QUANTILE", "2:14"),
        ("SELECT rand() FROM r", "RAND", None),
        ("SELECT k,\n  try_cast(g AS int) FROM r", "TRY_CAST", "2:3"),
        ("WITH RECURSIVE v AS (SELECT 1) SELECT * FROM v", "recursive", "1:16"),
        ("SELECT my_udf(k) FROM r", "MY_UDF", "1:8"),
        ("SELECT sum(x) FROM r GROUP BY ALL", "GROUP BY ALL", None),
        ("SELECT * EXCEPT (k) FROM r", "EXCEPT", "1:8"),
        ("SELECT k FROM r CLUSTER BY k", "CLUSTER", "1:8"),
        ("SELECT * FROM r LATERAL VIEW posexplode(l) v AS p, e", "explode", "1:30"),
        ("SELECT * FROM range(10)", "table function", None),
        ("SELECT sum(x) OVER w FROM r WINDOW w AS (ORDER BY k)", "WINDOW", "1:36"),
        ("SELECT sum(DISTINCT x) OVER (ORDER BY k) FROM r", "DISTINCT in a window", "1:8"),
        ("SELECT * FROM r PIVOT (sum(x) FOR k IN (SELECT 1))", "PIVOT", "1:48"),
        ("SELECT trim(LEADING 'x' FROM g) FROM r", "trim with", "1:21"),
        ("SELECT rank(k) OVER (ORDER BY k) FROM r", "rank with arguments", "1:8"),
        ("SELECT k BETWEEN SYMMETRIC 2 AND 1 FROM r", "BETWEEN with SYMMETRIC", "1:8"),
        ("SELECT max(k, 2) FROM r", "max of several", "1:8"),
        ("SELECT exists(l, e -> e > 1) FROM r", "function EXISTS", None),
        ("SELECT nth_value(k, 2) OVER (ORDER BY k) FROM r", "NTH_VALUE", "1:8"),
        ("SELECT lag(k) IGNORE NULLS OVER (ORDER BY k) FROM r", "LAG", "1:8"),
        ("SELECT g LIKE 'a' ESCAPE 'b' FROM r", "ESCAPE", "1:8"),
        ("SELECT * FROM r LIMIT k", "LIMIT", "1:23"),
        ("SELECT transform(l, e -> e + 1) FROM r", "TRANSFORM", "1:8"),
    ],
)
def test_what_is_not_covered_is_refused_by_construct_and_place(sql, construct, place):
    with pytest.raises(UsageError) as caught:
        from_sql(sql, RELATIONS)
    assert construct.lower() in caught.value.message.lower()
    assert caught.value.exit_code == 2
    if place:
        assert caught.value.location == place


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT g, x FROM r GROUP BY g", "column 'x' is neither grouped nor aggregated"),
        ("SELECT k FROM r JOIN s ON r.k = s.k", "column 'k' is ambiguous"),
        ("SELECT max(x) FROM r WHERE max(x) > 1", "aggregate may not stand here"),
        ("SELECT rank() OVER (ORDER BY k) FROM r WHERE rank() OVER (ORDER BY k) = 1", "window function may not stand here"),
        ("SELECT (SELECT k, x FROM s) FROM r", "scalar subquery with 2 columns"),
        ("SELECT k FROM r UNION SELECT k, x FROM s", "columns: 1 and 2"),
        ("SELECT k FROM r WHERE x", "condition is expected"),
        ("SELECT k = l FROM r", "no common type"),
        ("SELECT k FROM r ORDER BY 2", "position 2 of 1 columns"),
        ("SELECT DISTINCT k FROM r ORDER BY x", "ORDER BY may only use selected columns"),
        ("SELECT DATE '2024-02-30'", "is no date"),
        ("SELECT k FROM (SELECT k FROM r) AS q (a, b)", "2 names for 1 columns"),
        ("SELECT k FROM", "does not parse"),
        ("selec * FROM r", "the query does not parse near 'FROM': something is missing"),
        ("SELECT k form r", "the query does not parse near 'r'$"),
        ("SELECT (k FROM r", "near 'FROM': a closing parenthesis is expected"),
        ("SELECT k FROM r JOIN", "near 'JOIN': the name of a relation is expected"),
        ("SELECT CAST(k AS) FROM r", "near '\\)': a type is expected"),
        ("SELECT 'abc FROM r", "a quote or a comment is not closed"),
        ("SELECT k FROM r JOIN s ON", "near 'on': something is missing"),
        ("SELECT k FROM (SELECT r.k FROM r JOIN s ON /* r.k = s.k */) x", "near 'on': something is missing"),
        ("SELECT k FROM r JOIN s ON WHERE true", "near 'on': something is missing"),
        ("SELECT k FROM r JOIN s ON LEFT JOIN s t ON true", "near 'on': something is missing"),
        ("SELECT k FROM r LEFT JOIN s USING", "near 'using': something is missing"),
        ("SELECT k FROM r JOIN s USING ()", "near 'using': something is missing"),
        ("SELECT sum(k) OVER (PARTITION BY ORDER BY k) FROM r", "near 'partition by': something is missing"),
        ("SELECT count(*) FROM r GROUP BY HAVING true", "near 'group by': something is missing"),
        ("SELECT sum(k) OVER FROM r", "near 'over': something is missing"),
        ("SELECT k FROM r AS", "near 'as': something is missing"),
        ("SELECT k FROM (SELECT k FROM r) AS, s", "near 'as': something is missing"),
        ("SELECT sum(k) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING) FROM r", "near 'between': something is missing"),
        ("SELECT sum(k) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND) FROM r", "near 'between': something is missing"),
        ("SELECT count(DISTINCT) FROM r", "count of nothing"),
        ("SELECT count() FROM r", "count of nothing"),
        ("SELECT map(1) FROM r", "a function lacks an argument"),
        ("SELECT k,, l FROM r", "missing beside a comma"),
        ("SELECT k, FROM r", "missing beside a comma"),
        ("SELECT , k FROM r", "missing beside a comma"),
        ("SELECT k FROM r WHERE k IN (1, /* two */ )", "missing beside a comma"),
        ("SELECT", "nothing is selected"),
        ("SELECT DISTINCT FROM r", "nothing is selected"),
        ("SELECT 1; SELECT 2", "one query is expected"),
        ("DELETE FROM r", "one query is expected"),
        ("", "one query is expected"),
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused(sql, message):
    with pytest.raises(UsageError, match=message):
        from_sql(sql, RELATIONS)


def test_unknown_names_come_with_the_nearest():
    with pytest.raises(UnknownNameError) as caught:
        from_sql("SELECT dayy\nFROM r", RELATIONS)
    assert (caught.value.nearest[0], caught.value.location) == ("day", "1:8")
    with pytest.raises(UnknownNameError) as caught:
        from_sql("SELECT 1 FROM rr", RELATIONS)
    assert (caught.value.nearest, caught.value.location) == (("r",), "1:15")


def test_conditions_over_columns():
    columns = (Attribute(7, "land", t.STRING), Attribute(8, "n", t.INTEGER))
    assert condition_from_sql("land = 'de'", columns) == Call("=", (columns[0], Literal("de", t.STRING)), t.BOOLEAN)
    with pytest.raises(UnknownNameError) as caught:
        condition_from_sql("n > 1 AND\n  lnd = 'de'", columns)
    assert (caught.value.location, caught.value.nearest) == ("2:3", ("land",))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("land = 'it''s'", "it's"),
        (r"land = 'it\'s'", "it's"),
        ('land = "a""b" -- it\'s', 'a"b'),
        ("land = ''''", "'"),
        ("land = ''", ""),
    ],
)
def test_a_doubled_quote_is_one(text, value):
    columns = (Attribute(7, "land", t.STRING),)
    assert condition_from_sql(text, columns) == Call("=", (columns[0], Literal(value, t.STRING)), t.BOOLEAN)


def test_places_are_those_in_a_short_text():
    with pytest.raises(UnknownNameError) as caught:
        condition_from_sql("t", (Attribute(7, "n", t.STRING),))
    assert caught.value.location == "1:1"


@pytest.mark.parametrize("text", ["((((", "n >", "n > 1 GROUP BY n", "n > 1; SELECT 1", "", "SELECT", "n > 1 UNION SELECT 1", "x'"])  # fmt: skip
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(UsageError):
        condition_from_sql(text, (Attribute(8, "n", t.INTEGER),))


@pytest.mark.parametrize(
    "text",
    [
        "s = 5", "n = '5.0'", "n in ('5', 6)", "n in (s)", "coalesce(n, s) = 1", "n = f", "n + f > 1", "size(ns) = 0",
        "case when n = 1 then '1' else n end = 1", "n between s and 7",
    ],
)  # fmt: skip
def test_what_depends_on_ansi_mode_is_not_read_without_it(text):
    kinds = {"n": t.INTEGER, "s": t.STRING, "f": t.FLOAT, "ns": t.Array(t.LONG)}
    columns = tuple(Attribute(number, name, kind) for number, (name, kind) in enumerate(kinds.items()))
    condition_from_sql(text, columns)
    with pytest.raises(UsageError, match="without ANSI mode") as caught:
        condition_from_sql(text, columns, ansi=False)
    assert caught.value.code == "usage.sql-unsupported"  # Spark reads it, where it is there


def test_types_that_only_ansi_mode_does_not_compare_are_left_to_spark_without_it():
    columns = (Attribute(7, "n", t.INTEGER),)
    for ansi, code in ((True, "usage.sql-meaning"), (False, "usage.sql-unsupported")):
        with pytest.raises(UsageError) as caught:
            condition_from_sql("n = true", columns, ansi=ansi)
        assert caught.value.code == code


def test_a_condition_has_the_mode_of_its_session():
    columns = (Attribute(7, "n", t.INTEGER), Attribute(8, "d", t.DATE))
    text = "n / 0 is null and cast(n + 1 as tinyint) > '5' and -n < 3 and d < '2024-01-01'"
    condition_from_sql(
        "f > 5 and f < 0.5 and n = '7' and f / n > 1", (*columns, Attribute(9, "f", t.FLOAT)), ansi=False
    )
    for ansi, mode in ((True, "ansi"), (False, "legacy")):
        found = condition_from_sql(text, columns, ansi=ansi)
        assert {term.mode for term in walk(found) if isinstance(term, (Call, Cast))} == {"", mode}
