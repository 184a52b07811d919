"""Plan text of every notation: what operators and expressions mean, and what is done where the text is cut or odd."""

from __future__ import annotations

import random
import re

import pytest
from spark_logs import write_plan

from govtool.capture.spark import plan as p
from govtool.capture.spark.plantext import lists
from govtool.capture.spark.plantext.expressions import TextExpressionReader, written_conditions
from govtool.capture.spark.plantext.read import PlanText, read_plan
from govtool.capture.spark.plantext.scans import Names
from govtool.capture.spark.plantext.tree import PlanTextError

SCAN = """({id}) Scan parquet shop.{table}
Output [{n}]: [{columns}]
Batched: true
Location: InMemoryFileIndex [file:/wh/shop.db/{table}]
ReadSchema: struct<>
"""


def scan(id: int, table: str, *columns: str) -> str:
    return SCAN.format(id=id, table=table, n=len(columns), columns=", ".join(columns))


def stated(plan: PlanText) -> dict[str, list[str]]:
    found = {
        c.name: sorted(f"{d.source.text} {d.kind.label} {'.'.join(d.functions)}".rstrip() for d in c.dependencies)
        for c in plan.flow.columns
    }
    found["*"] = sorted(f"{d.source.text} {d.kind.label}" for d in plan.flow.rows)
    return found


def plan_of(drawn: str, *details: str) -> PlanText:
    return read_plan("== Physical Plan ==\n" + drawn + "\n\n\n" + "\n".join(details))


# ---- lists and expressions -------------------------------------------------------------------------------------


def test_lists_end_where_elements_end() -> None:
    assert lists.split("[a#1, (b#2 + 1) AS c#3]").items == ("a#1", "(b#2 + 1) AS c#3")
    assert lists.split("[]").items == ()
    cut = lists.split("[a#1, b#2, ... 15 more fields]", 17)
    assert (cut.items, cut.more, cut.certain) == (("a#1", "b#2"), 15, True)
    # A literal with a comma and a bracket that never opens: the count tells, the ids find the ends.
    odd = lists.split("[a#1, concat(b#2, x), y) AS c#3, d#4]", 3)
    assert (odd.items, odd.certain) == (("a#1", "concat(b#2, x), y) AS c#3", "d#4"), True)
    assert not lists.split("[a, b, c]", 2).certain


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("((a#1 AND b#2) AND NOT (c#3 = 4))", ["a#1", "b#2", "NOT (c#3 = 4)"]),
        ("(a#1 OR b#2)", ["(a#1 OR b#2)"]),
        ("a#1", ["a#1"]),
    ],
)
def test_conditions_are_taken_apart(text: str, parts: list[str]) -> None:
    assert lists.conjuncts(text) == parts


def test_what_the_optimizer_adds_is_no_condition() -> None:
    text = "((isnotnull(a#1) AND (a#1 > 5)) AND (isnotnull(b#2) AND isnotnull(c#3)))"
    assert written_conditions(text, {2}) == ["(a#1 > 5)", "isnotnull(c#3)"]
    assert written_conditions("(size(xs#4, false) > 0)", (), generates=True) == []
    assert written_conditions("dynamicpruningexpression(d#1 IN dynamicpruning#9)", ()) == []


READER = [(1, "a"), (2, "b"), (3, "odd name, (x)"), (45, "n"), (7, "sum(a)")]
A, B = p.Attribute(1, "a"), p.Attribute(2, "b")


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("cast(a#1 as decimal(10,2))", {1}),
        ("CASE WHEN (a#1 = O'Brien, x) and THEN b#2 ELSE y END", {1, 2}),
        ("if ((a#1 > 5)) b#2 else null", {1, 2}),
        ("odd name, (x)#3", {3}),
        ("concat(odd name, (x)#3, -, b#2)", {2, 3}),
        ("sum(a)#7", {7}),
        ("A#1", {1}),
        ("replace(A#1, x, y, B#2)", {1, 2}),
        ("a#1 IN (x,b#2,y z)", {1, 2}),
        ("HiveGenericUDF#com.udf.Multiply(b#2)", {2}),
        ("regexp_replace(a#1, x,y b#2, z)", {1, 2}),
        ("concat(Pa#1, b#2)", {2}),
        ("(n#45 = Brand#45)", {45}),
        ("concat(Brand#45, a#1)", {1}),
        ("transform(b#2, lambdafunction((lambda x#99 + a#1), lambda x#99, false))", {1, 2}),
        ("named_struct(k, a#1, l, b#2).k", {1}),
        ("a#1.b.c[0]", {1}),
        ("NOT a#1 IN (1,2,3)", {1}),
        ("a#1 INSET 1, 2, 3", {1}),
        ("a#1 LIKE %x, y% ESCAPE '!'", {1}),
        ("-a#1", {1}),
        ("rank(b#2) windowspecdefinition(a#1, b#2 DESC NULLS LAST, specifiedwindowframe(RowFrame, unboundedpreceding$(), currentrow$()))", {1, 2}),
        ("sum(a#1) FILTER (WHERE (b#2 = 1))", {1, 2}),
        ("INTERVAL '1' DAY", set()),
        ("[1,2,3]", set()),
        ("", set()),
    ],
)  # fmt: skip
def test_expressions_name_what_they_depend_on(text: str, ids: set[int]) -> None:
    reader = TextExpressionReader(READER)
    assert mentioned(reader.expression(text)) == ids


def mentioned(root: p.Expression) -> set[int]:
    match root:
        case p.Attribute(id=number):
            return {number}
        case p.Apply(arguments=items) | p.Opaque(arguments=items) | p.Elements(items=items):
            return {i for item in items for i in mentioned(item)}
        case p.Conditional(value=value, by=by):
            return mentioned(value) | {i for item in by for i in mentioned(item)}
        case p.Field(base=p.StructValue(fields=fields), step=step):
            return mentioned(dict(fields)[step])
        case p.Field(base=base):
            return mentioned(base)
        case p.StructValue(fields=fields):
            return {i for _, item in fields for i in mentioned(item)}
        case _:
            return set()


def test_case_steers_and_windows_steer() -> None:
    reader = TextExpressionReader(READER)
    case = reader.expression("CASE WHEN (a#1 > 1) THEN b#2 END")
    assert isinstance(case, p.Conditional)
    assert mentioned(case.value) == {2}
    over = reader.expression("sum(a#1) windowspecdefinition(b#2, specifiedwindowframe(RowFrame, -1, 0))")
    assert isinstance(over, p.Conditional)
    assert mentioned(over.value) == {1}
    assert reader.uncertain == 0


def test_expressions_of_any_text_never_raise_and_never_lose_an_attribute() -> None:
    rng = random.Random(5)
    pieces = [
        "a#1",
        "b#2",
        "(",
        ")",
        ", ",
        " AND ",
        "CASE WHEN ",
        " THEN ",
        " ELSE ",
        " END",
        "x",
        "[",
        "]",
        ".",
        "#",
        " AS ",
        "f(",
        "'",
        "#45",
        "1",
    ]
    for _ in range(3000):
        text = "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 14)))
        reader = TextExpressionReader(READER)
        found = mentioned(reader.expression(text))
        assert found <= {int(number) for number in re.findall(r"#(\d+)", text)}
        if " AS " not in text and not re.search(r"#\d+#", text):  # an alias names what it makes
            assert found >= {int(number) for number in re.findall(r"(?<!\w)[ab]#([12])(?!\w)", text)}, text


def test_deep_nesting_is_flat_and_not_fatal() -> None:
    reader = TextExpressionReader(READER)
    text = "(" * 5000 + "a#1" + " + b#2)" * 5000
    assert mentioned(reader.expression(text)) == {1, 2}
    assert reader.uncertain == 1


# ---- operators ---------------------------------------------------------------------------------------------------------


def test_photon_and_gpu_plans_are_spark_plans() -> None:
    for prefix in ("Photon", "Gpu"):
        drawn = f"AdaptiveSparkPlan (4)\n+- {prefix}ColumnarToRow (3)\n   +- {prefix}Project (2)\n      +- {prefix}Scan parquet shop.t (1)"
        details = scan(1, "t", "a#1", "b#2").replace("Scan", f"{prefix}Scan", 1)
        plan = plan_of(drawn, details, f"(2) {prefix}Project\nOutput [1]: [upper(a#1) AS c#3]\nInput [2]: [a#1, b#2]\n")
        assert stated(plan) == {"c": ["shop.t.a transformation upper"], "*": []}
        assert not plan.flow.breaks
    photon = plan_of(
        "PhotonGroupingAgg (3)\n+- PhotonGroupingAgg (2)\n   +- PhotonScan parquet shop.t (1)",
        scan(1, "t", "a#1", "b#2").replace("Scan", "PhotonScan", 1),
        "(2) PhotonGroupingAgg\nInput [2]: [a#1, b#2]\nKeys [1]: [a#1]\nFunctions [1]: [partial_sum(b#2)]\n"
        "Aggregate Attributes [1]: [sum#8]\nResults [2]: [a#1, sum#9]\n",
        "(3) PhotonGroupingAgg\nInput [2]: [a#1, sum#9]\nKeys [1]: [a#1]\nFunctions [1]: [finalmerge_sum(merge sum#9) AS sum(b)#7]\n"
        "Aggregate Attributes [1]: [sum(b#2)#7]\nResults [2]: [a#1, sum(b#2)#7 AS s#10]\n",
    )
    assert stated(photon)["a"] == ["shop.t.a identity"]
    assert stated(photon)["*"] == ["shop.t.a group_by"]


def test_an_unknown_operator_is_a_break() -> None:
    plan = plan_of(
        "Frobnicate (2)\n+- Scan parquet shop.t (1)", scan(1, "t", "a#1"), "(2) Frobnicate\nInput [1]: [a#1]\n"
    )
    assert stated(plan)["a"] == ["shop.t.a opaque"]
    assert [note.code for note in plan.flow.breaks] == ["break.operator"]


def test_a_reused_exchange_below_an_aggregate() -> None:
    plan = plan_of(
        "SortMergeJoin (7)\n:- HashAggregate (4)\n:  +- Exchange (3)\n:     +- HashAggregate (2)\n"
        ":        +- Scan parquet shop.t (1)\n+- HashAggregate (6)\n   +- ReusedExchange (5)",
        scan(1, "t", "k#1", "v#2"),
        "(2) HashAggregate\nInput [2]: [k#1, v#2]\nKeys [1]: [k#1]\nFunctions [1]: [partial_max(v#2)]\n"
        "Aggregate Attributes [1]: [max#3]\nResults [2]: [k#1, max#4]\n",
        "(3) Exchange\nInput [2]: [k#1, max#4]\nArguments: hashpartitioning(k#1, 2), ENSURE_REQUIREMENTS, [plan_id=1]\n",
        "(4) HashAggregate\nInput [2]: [k#1, max#4]\nKeys [1]: [k#1]\nFunctions [1]: [max(v#2)]\n"
        "Aggregate Attributes [1]: [max(v#2)#5]\nResults [2]: [k#1, max(v#2)#5 AS m#6]\n",
        "(5) ReusedExchange [Reuses operator id: 3]\nOutput [2]: [k#11, max#14]\n",
        "(6) HashAggregate\nInput [2]: [k#11, max#14]\nKeys [1]: [k#11]\nFunctions [1]: [max(v#12)]\n"
        "Aggregate Attributes [1]: [max(v#12)#15]\nResults [2]: [k#11, max(v#12)#15 AS m2#16]\n",
        "(7) SortMergeJoin\nLeft keys [1]: [k#1]\nRight keys [1]: [k#11]\nJoin type: Inner\nJoin condition: None\n",
    )
    assert stated(plan)["m2"] == ["shop.t.v aggregation max"]
    assert not plan.flow.breaks


def test_lists_that_are_cut_are_filled_in_by_who_reads_them_or_are_opaque() -> None:
    names = [f"c{i}#{i}" for i in range(1, 31)]
    window = (
        "["
        + ", ".join(f"sum(c1#1) windowspecdefinition(c2#2) AS w{i}#{100 + i}" for i in range(25))
        + ", ... 1 more fields], [c2#2]"
    )
    plan = plan_of(
        "Project (3)\n+- Window (2)\n   +- Scan parquet shop.t (1)",
        scan(1, "t", *names),
        f"(2) Window\nInput [30]: [{', '.join(names)}]\nArguments: {window}\n",
        f"(3) Project\nOutput [2]: [w24#124, w25#125]\nInput [56]: [{', '.join([*names, *(f'w{i}#{100 + i}' for i in range(26))])}]\n",
    )
    assert stated(plan)["w24"] == ["shop.t.c1 aggregation sum", "shop.t.c2 window"]
    assert {line.split(" ")[1] for line in stated(plan)["w25"]} == {"opaque"}
    assert "break.truncated" in {note.code for note in plan.notes}


def test_paths_that_are_left_out_are_told_by_the_event_or_missed() -> None:
    text = write_plan().replace("[file:/in/s]", "[file:/in/a, ... 2 entries]")
    assert "break.truncated" in {note.code for note in read_plan(text).notes}
    reported = read_plan(
        text,
        metadata={"Scan parquet": [{"Location": "InMemoryFileIndex(3 paths)[file:/in/a, file:/in/b, file:/in/c]"}]},
    )
    assert reported.flow.reads == ("file:///in/a", "file:///in/b", "file:///in/c")
    assert not reported.notes


def test_conditions_that_a_database_answers() -> None:
    plan = plan_of(
        "Scan JDBCRelation(items) [numPartitions=1] (1)",
        "(1) Scan JDBCRelation(items) [numPartitions=1]\nOutput [1]: [name#2]\n"
        "PushedFilters: [*IsNotNull(id), *GreaterThan(id,1), EqualTo(name,x)]\nReadSchema: struct<name:string>\n",
    )
    assert stated(plan) == {"name": ["jdbc/items.name identity"], "*": ["jdbc/items.id filter"]}


CATALOGUED = "Scan JDBC v1 Relation from v2 scan pg.public.items"


def answered_by_database(fields: str, output: str = "id#1") -> PlanText:
    return plan_of(
        f"{CATALOGUED} (1)",
        f"(1) {CATALOGUED}\nOutput [{output.count('#')}]: [{output}]\n{fields}\nReadSchema: struct<>\n",
    )


def test_what_a_database_answers_of_a_table_of_its_catalog() -> None:
    plan = answered_by_database("PushedFilters: [cat IS NOT NULL, cat = 2, UPPER(name) LIKE 'a b%']")
    assert stated(plan) == {
        "id": ["pg.public.items.id identity"],
        "*": ["pg.public.items.cat filter", "pg.public.items.name filter"],
    }
    plan = answered_by_database("PushedTopN: ORDER BY [price DESC NULLS LAST, id ASC NULLS FIRST] LIMIT 5")
    assert stated(plan)["*"] == ["pg.public.items.id sort", "pg.public.items.price sort"]
    plan = answered_by_database(
        "PushedAggregates: [MAX(price), COUNT(*)]\nPushedGroupByExpressions: [cat]", "cat#1, max#2, n#3"
    )
    assert stated(plan) == {
        "cat": ["pg.public.items.cat identity"],
        "max": ["pg.public.items.price aggregation max"],
        "n": [],
        "*": ["pg.public.items.cat group_by"],
    }


@pytest.mark.parametrize(
    "fields",
    [
        "PushedJoins: [a]",
        "PushedAggregates: [MAX(a), MIN(b)]",
        "PushedFilters: [cat = = 2]",
        "PushedFilters: [name = 'a, b']",
    ],
)
def test_what_cannot_be_told_of_a_database_is_a_break(fields: str) -> None:
    plan = answered_by_database(fields)
    assert [note.code for note in plan.flow.breaks] == ["break.query"]
    assert stated(plan) == {"id": [], "*": []}


@pytest.mark.parametrize(
    ("relation", "source"),
    [
        ("items i", "jdbc/items"),
        ('"Odd Name"', 'jdbc/"Odd Name"'),
        ("items) [numPartitions=1] spark_catalog.default.t", "default.t"),
        ("(select 1) t", ""),
        ("items NATURAL JOIN others", ""),
        ("WITH t AS (SELECT 1) (SELECT * FROM t) Q", ""),
    ],
)
def test_relations_of_databases(relation: str, source: str) -> None:
    name = f"Scan JDBCRelation({relation}" + ("" if "spark_catalog" in relation else ") [numPartitions=1]")
    plan = plan_of(f"{name} (1)", f"(1) {name}\nOutput [1]: [a#1]\nReadSchema: struct<a:string>\n")
    assert stated(plan).get("a", []) == ([f"{source}.a identity"] if source else [])
    assert [note.code for note in plan.flow.breaks] == ([] if source else ["break.query"])


def test_an_empty_relation_is_no_lineage_and_said() -> None:
    plan = plan_of("LocalTableScan (1)", "(1) LocalTableScan\nOutput [1]: [a#1]\nArguments: <empty>, [a#1]\n")
    assert [note.code for note in plan.flow.breaks] == ["break.empty"]


def test_spark_2_prints_an_operator_a_line() -> None:
    plan = read_plan(
        """== Parsed Logical Plan ==
'Project [*]
+- 'UnresolvedRelation `t`

== Physical Plan ==
Execute InsertIntoHadoopFsRelationCommand file:/out/r, false, Parquet, Map(path -> /out/r), Overwrite, [total, k]
+- *(3) HashAggregate(keys=[k#1], functions=[sum(v#2L)], output=[total#9L, k#1])
   +- Exchange hashpartitioning(k#1, 200)
      +- *(2) HashAggregate(keys=[k#1], functions=[partial_sum(v#2L)], output=[k#1, sum#12L])
         +- *(2) Project [k#1, v#2L]
            +- *(2) BroadcastHashJoin [k#1], [id#3], Inner, BuildRight
               :- *(2) Project [k#1, v#2L]
               :  +- *(2) Filter (isnotnull(k#1) && (v#2L > 5))
               :     +- *(2) FileScan parquet default.sales[k#1,v#2L,day#4] Batched: true, Format: Parquet, Location: InMemoryFileIndex[file:/wh/sales], PartitionFilters: [isnotnull(day#4), (day#4 = 2020-01-01)], PushedFilters: [IsNotNull(k)], ReadSchema: struct<k:string,v:bigint>
               +- BroadcastExchange HashedRelationBroadcastMode(List(input[0, string, true]))
                  +- *(1) FileScan csv [id#3] Batched: false, Format: CSV, Location: InMemoryFileIndex[file:/in/keys.csv], PartitionFilters: [], PushedFilters: [], ReadSchema: struct<id:string>
"""
    )
    assert plan.write is not None
    assert (plan.write.place.id, plan.write.save_mode, plan.write.columns) == (
        "file:///out/r",
        "overwrite",
        ("total", "k"),
    )
    found = stated(plan)
    assert found["k"] == ["default.sales.k identity"]
    assert found["total"] == ["default.sales.v aggregation sum"]
    assert set(found["*"]) >= {
        "default.sales.day filter",
        "default.sales.v filter",
        "default.sales.k join",
        "file:///in/keys.csv.id join",
    }


# ---- what is no plan -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "== Physical Plan ==", "hello", "(1) x", "+-", "== Physical Plan ==\n\n\n(1) Scan\nOutput [1]: [a#1]"],
)
def test_what_is_no_plan_is_refused_or_empty(text: str) -> None:
    try:
        plan = read_plan(text)
    except PlanTextError:
        return
    assert not plan.flow.reads


def test_damaged_plans_never_raise_anything_else() -> None:
    rng = random.Random(2)
    text = write_plan()
    for _ in range(300):
        start, end = sorted(rng.randrange(len(text)) for _ in range(2))
        broken = text[:start] + rng.choice(["", "(", "\n", "[", "#1", ", "]) + text[end:]
        try:
            read_plan(broken)
        except PlanTextError:
            continue


def test_a_plan_that_contains_itself_is_refused() -> None:
    drawn = "Union (3)\n:- Project (2)\n:  +- ReusedExchange (1)\n+- Scan parquet shop.t (4)"
    with pytest.raises(PlanTextError, match="nested"):
        plan_of(
            drawn,
            "(1) ReusedExchange [Reuses operator id: 2]\nOutput [1]: [a#1]\n",
            "(2) Project\nOutput [1]: [a#1]\nInput [1]: [a#1]\n",
            scan(4, "t", "a#4"),
        )


def test_long_chains_need_no_frames() -> None:
    drawn = (
        "\n".join(f"{'   ' * (n - 1)}{'+- ' if n else ''}Project ({2000 - n})" for n in range(1999))
        + f"\n{'   ' * 1998}+- Scan parquet shop.t (1)"
    )
    drawn = drawn.replace("Project (2000)", "Project (2000)", 1).lstrip()
    details = [
        f"({n}) Project\nOutput [1]: [(a#{n - 1} + 1) AS a#{n}]\nInput [1]: [a#{n - 1}]\n" for n in range(2, 2001)
    ]
    plan = plan_of(drawn, scan(1, "t", "a#1"), *details)
    assert stated(plan) == {"a": ["shop.t.a transformation"], "*": []}


def test_many_literals_cost_no_more_than_they_are_long() -> None:
    values = ",".join(f"v{n} x" for n in range(20_000))
    plan = plan_of(
        "Filter (2)\n+- Scan parquet shop.t (1)",
        scan(1, "t", "a#1"),
        f"(2) Filter\nInput [1]: [a#1]\nCondition : a#1 IN ({values})\n",
    )
    assert stated(plan) == {"a": ["shop.t.a identity"], "*": ["shop.t.a filter"]}
    assert "v1" not in plan.normal
    assert len(plan.normal) < 200


def test_a_subquery_that_two_operators_hold_is_drawn_twice_and_read_once() -> None:
    drawn = "HashAggregate (5)\n+- Exchange (4)\n   +- HashAggregate (3)\n      +- Scan parquet shop.u (2)"
    details = (
        scan(2, "u", "v#2"),
        "(3) HashAggregate\nInput [1]: [v#2]\nKeys: []\nFunctions [1]: [partial_avg(v#2)]\n"
        "Aggregate Attributes [2]: [sum#3, count#4L]\nResults [2]: [sum#5, count#6L]\n",
        "(4) Exchange\nInput [2]: [sum#5, count#6L]\nArguments: SinglePartition, ENSURE_REQUIREMENTS, [plan_id=1]\n",
        "(5) HashAggregate\nInput [2]: [sum#5, count#6L]\nKeys: []\nFunctions [1]: [avg(v#2)]\n"
        "Aggregate Attributes [1]: [avg(v#2)#7]\nResults [1]: [avg(v#2)#7 AS m#8]\n",
    )
    held = (
        "Subquery:{n} Hosting operator id = 1 Hosting Expression = Subquery subquery#9, [id=#11]\n" + drawn + "\n\n\n"
    )
    text = "== Physical Plan ==\nProject (1)\n+- Scan parquet shop.t (6)\n\n\n"
    text += (
        scan(6, "t", "a#1") + "\n(1) Project\nOutput [1]: [Subquery subquery#9, [id=#11] AS x#10]\nInput [1]: [a#1]\n"
    )
    text += (
        "\n===== Subqueries =====\n\n"
        + held.format(n=1)
        + "\n".join(details)
        + "\n"
        + held.format(n=2)
        + "\n".join(details)
    )
    plan = read_plan(text)
    assert stated(plan) == {"x": ["shop.u.v aggregation avg"], "*": []}
    assert not plan.flow.breaks


def test_names_of_other_catalogs_and_cases() -> None:
    names = Names(catalogs={"org.apache.iceberg.spark.SparkCatalog": ("lake",)}, case_sensitive=True)
    text = "AtomicCreateTableAsSelect (1)\n\n\n(1) AtomicCreateTableAsSelect\nArguments: org.apache.iceberg.spark.SparkCatalog@4b61af54, db.T, Project [id#9], TableSpec(Map()), false\n"
    plan = read_plan("== Physical Plan ==\n" + text, names)
    assert plan.write is not None
    assert (plan.write.place.id, plan.write.final, plan.write.expects) == ('lake.db."T"', False, ((9, "id"),))


def test_bounds_of_time_windows_are_computed_and_decided_about_by_nobody():
    moment = "precisetimestampconversion(ts#1, TimestampType, LongType)"
    start = (
        f"precisetimestampconversion(({moment} - CASE WHEN ((({moment} - 0) % 600000000) < 0) THEN ((({moment} - 0) % "
        f"600000000) + 600000000) ELSE (({moment} - 0) % 600000000) END), LongType, TimestampType)"
    )
    value = TextExpressionReader([(1, "ts")]).expression(start)
    assert value == p.Apply("", (p.Attribute(1),))


CACHED_IN_A_CACHE = """== Physical Plan ==
AdaptiveSparkPlan (18)
+- Project (17)
   +- InMemoryTableScan (1)
         +- InMemoryRelation (2)
               +- AdaptiveSparkPlan (16)
                  +- == Final Plan ==
                     ResultQueryStage (13)
                     +- * BroadcastHashJoin Inner BuildLeft (12)
                        :- BroadcastQueryStage (10), Statistics(sizeInBytes=8.0 MiB, rowCount=2)
                        :  +- TableCacheQueryStage (9), Statistics(sizeInBytes=26.0 B, rowCount=2)
                        :     +- InMemoryTableScan (3)
                        :           +- InMemoryRelation (4)
                        :                 +- AdaptiveSparkPlan (8)
                     +- == Final Plan ==
                        ResultQueryStage (6)
                        +- * Project (5)
                           +- Scan parquet shop.u (0)
                     +- == Initial Plan ==
                        Project (7)
                        +- Scan parquet shop.u (0)
                        +- Scan parquet shop.v (11)
                  +- == Initial Plan ==
                     BroadcastHashJoin Inner BuildLeft (15)
                     :- BroadcastExchange (14)
                     :  +- InMemoryTableScan (3)
                     :        +- InMemoryRelation (4)
                     :              +- AdaptiveSparkPlan (8)
               +- == Final Plan ==
                  ResultQueryStage (6)
                  +- * Project (5)
                     +- Scan parquet shop.u (0)
               +- == Initial Plan ==
                  Project (7)
                  +- Scan parquet shop.u (0)
                     +- Scan parquet shop.v (11)


(1) InMemoryTableScan
Output [2]: [d#2, w#4]
Arguments: [d#2, w#4]

(2) InMemoryRelation
Arguments: [k#3, d#2, w#4], StorageLevel(disk, 1 replicas)

(3) InMemoryTableScan
Output [2]: [k#1, d#2]
Arguments: [k#1, d#2]

(4) InMemoryRelation
Arguments: [k#1, d#2], StorageLevel(disk, 1 replicas)

(7) Project
Output [2]: [k#1, (v#5 * 2) AS d#2]
Input [2]: [k#1, v#5]

(11) Scan parquet shop.v
Output [2]: [k#3, w#4]
ReadSchema: struct<k:string,w:string>

(15) BroadcastHashJoin
Left keys [1]: [k#1]
Right keys [1]: [k#3]
Join type: Inner
Join condition: None

(17) Project
Output [2]: [d#2 AS x#6, w#4]
Input [2]: [d#2, w#4]

(0) Scan parquet shop.u
Output [2]: [k#1, v#5]
ReadSchema: struct<k:string,v:int>
"""


def test_a_cache_that_was_made_of_a_cache_is_seen_through() -> None:
    """Spark draws the inner one's plans, which have run, with offsets of their own."""
    plan = read_plan(CACHED_IN_A_CACHE)
    assert stated(plan) == {
        "x": ["shop.u.v transformation"],
        "w": ["shop.v.w identity"],
        "*": ["shop.u.k join", "shop.v.k join"],
    }
    assert not plan.flow.breaks


def test_a_column_that_says_whether_a_row_is_met_comes_from_what_is_compared() -> None:
    text = (
        "== Physical Plan ==\n* Project (4)\n+- * BroadcastHashJoin ExistenceJoin(exists#9) BuildRight (3)\n"
        "   :- Scan parquet shop.u (1)\n   +- Scan parquet shop.v (2)\n\n\n"
        "(1) Scan parquet shop.u\nOutput [2]: [k#1, a#2]\n\n(2) Scan parquet shop.v\nOutput [1]: [k#3]\n\n"
        "(3) BroadcastHashJoin\nLeft keys [1]: [k#1]\nRight keys [1]: [k#3]\nJoin type: ExistenceJoin(exists#9)\n"
        "Join condition: None\n\n"
        "(4) Project\nOutput [1]: [CASE WHEN exists#9 THEN a#2 END AS x#5]\nInput [2]: [a#2, exists#9]\n"
    )
    assert stated(read_plan(text)) == {
        "x": ["shop.u.a transformation case", "shop.u.k conditional", "shop.v.k conditional"],
        "*": [],
    }


SCANS = (
    "(1) Scan parquet shop.u\nOutput [3]: [k#1L, a#2, b#3]\nReadSchema: struct<k:bigint,a:int,b:string>\n\n"
    "(2) Scan parquet shop.v\nOutput [2]: [k#4L, w#5]\nReadSchema: struct<k:bigint,w:int>\n\n"
)


def drawn(tree: str, *details: str) -> dict[str, list[str]]:
    return stated(read_plan(f"== Physical Plan ==\n{tree}\n\n\n{SCANS}" + "\n\n".join(details) + "\n"))


@pytest.mark.parametrize(
    ("parent", "exchange", "rows"),
    [
        ("Project", "hashpartitioning(b#3, 2), REPARTITION_BY_NUM, [plan_id=1]", ["shop.u.a sort", "shop.u.b sort"]),
        ("Project", "hashpartitioning(upper(b#3), 2), REPARTITION_BY_COL", ["shop.u.a sort", "shop.u.b sort"]),
        ("Project", "RoundRobinPartitioning(2), REPARTITION_BY_NUM, [plan_id=1]", ["shop.u.a sort"]),
        ("Project", "hashpartitioning(b#3, 2), ENSURE_REQUIREMENTS, [plan_id=1]", ["shop.u.a sort"]),
        ("SortAggregate", "hashpartitioning(b#3, 2), ENSURE_REQUIREMENTS, [plan_id=1]", ["shop.u.b group_by"]),
    ],
)
def test_rows_that_somebody_places_in_parts(parent: str, exchange: str, rows: list[str]) -> None:
    """Spark sorts parts itself, too, below operators that ask for it."""
    last = {
        "Project": "(5) Project\nOutput [1]: [b#3]\nInput [3]: [k#1L, a#2, b#3]",
        "SortAggregate": (
            "(5) SortAggregate\nInput [3]: [k#1L, a#2, b#3]\nKeys [1]: [b#3]\nFunctions [1]: [count(1)]\n"
            "Aggregate Attributes [1]: [count(1)#8L]\nResults [1]: [b#3]"
        ),
    }[parent]
    assert drawn(
        f"{parent} (5)\n+- Sort (4)\n   +- Exchange (3)\n      +- Scan parquet shop.u (1)",
        f"(3) Exchange\nInput [3]: [k#1L, a#2, b#3]\nArguments: {exchange}",
        "(4) Sort\nInput [3]: [k#1L, a#2, b#3]\nArguments: [a#2 ASC NULLS FIRST], false, 0",
        last,
    ) == {"b": ["shop.u.b identity"], "*": rows}


@pytest.mark.parametrize(
    "arguments", ["[b#3], one(b#3, a#2)#8, [n#9L]", "one(b#3, a#2)#8, [b#3], [n#9L], StructType(StructField(x)), 0"]
)
def test_groups_of_python_functions_have_their_keys(arguments: str) -> None:
    name = "FlatMapGroupsInPandas" + ("" if arguments.startswith("[") else "WithState")
    found = drawn(
        f"{name} (3)\n+- Scan parquet shop.u (1)",
        f"(3) {name}\nInput [3]: [k#1L, a#2, b#3]\nArguments: {arguments}",
    )
    assert "shop.u.b group_by" in found["*"]
    assert "shop.u.a group_by" not in found["*"]


def test_what_the_optimizer_adds_to_the_step_of_a_loop_is_no_condition() -> None:
    found = drawn(
        "UnionLoop (3)\n   :- Project (4)\n   :  +- Scan parquet shop.u (1)\n   +- Project (8)\n      +- Join (7)\n"
        "         :- Filter (6)\n         :  +- UnionLoopRef (5)\n         +- Scan parquet shop.v (2)",
        "(3) UnionLoop\nLoop id: 0\nOutput [1]: [k#20L]\nLimit: None",
        "(4) Project\nArguments: [k#1L]",
        "(5) UnionLoopRef\nLoop id: 0\nOutput [1]: [k#21L]\nAccumulated: false",
        "(6) Filter\nArguments: isnotnull(k#21L)",
        "(7) Join\nArguments: Inner, (k#4L = k#21L)",
        "(8) Project\nArguments: [k#4L]",
    )
    assert not [row for row in found["*"] if row.endswith("filter")]
    assert {"shop.u.k join", "shop.v.k join"} <= set(found["*"])


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ("cast(k#1L as int) AS k#8", "transformation cast"),
        ("cast(a#2 as bigint) AS a#8L", "identity"),
        ("cast(a#2 as smallint) AS a#8", "transformation cast"),
        ("cast(b#3 as bigint) AS b#8L", "identity"),
    ],
)
def test_casts_that_lose_something_are_not_of_a_union(item: str, kind: str) -> None:
    column = item[5]
    found = drawn(
        "Union (4)\n:- Project (3)\n:  +- Scan parquet shop.u (1)\n+- Project (5)\n   +- Scan parquet shop.v (2)",
        f"(3) Project\nOutput [1]: [{item}]\nInput [3]: [k#1L, a#2, b#3]",
        "(5) Project\nOutput [1]: [w#5]\nInput [2]: [k#4L, w#5]",
        "(4) Union",
    )
    assert found[column] == [f"shop.u.{column} {kind}", "shop.v.w identity"]


def test_a_cached_table_says_behind_its_number_whether_it_is_columnar() -> None:
    assert drawn(
        "Scan In-memory table t (3) (columnarIn=false, columnarOut=true)\n   +- InMemoryRelation (4)\n"
        "         +- Scan parquet shop.u (1)",
        "(3) Scan In-memory table t\nOutput [1]: [x#9]\nArguments: [x#9]",
        "(4) InMemoryRelation\nArguments: [w#7L, x#9, y#8], StorageLevel(disk, memory, deserialized, 1 replicas)",
    )["x"] == ["shop.u.a identity"]


def test_a_table_function_in_python_makes_its_own_columns_only() -> None:
    found = drawn(
        "BatchEvalPythonUDTF (3)\n+- Scan parquet shop.u (1)",
        "(3) BatchEvalPythonUDTF\nInput [3]: [k#1L, a#2, b#3]\nArguments: words(upper(a#2))#8, [k#1L], [word#9, size#10]",
    )
    assert {name: found[name] for name in ("k", "word", "size")} == {
        "k": ["shop.u.k identity"],
        "word": ["shop.u.a opaque"],
        "size": ["shop.u.a opaque"],
    }
