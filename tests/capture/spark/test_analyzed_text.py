"""Texts of ``spark.sql.ui.explainMode=extended``: the analyzed plan says how, the physical one where from."""

from __future__ import annotations

import pytest

from govtool.capture.spark.plantext.read import read_plan

USERS = "[id#1L,name#2,age#3]"
ORDERS = "[user_id#11L,amount#12,status#13]"
OF_USERS = f"SubqueryAlias spark_catalog.db.users\n{{}}   +- Relation spark_catalog.db.users{USERS} parquet"
OF_ORDERS = f"SubqueryAlias spark_catalog.db.orders\n{{}}   +- Relation spark_catalog.db.orders{ORDERS} parquet"
SCAN_U = f"FileScan parquet spark_catalog.db.users{USERS} Batched: false, Location: InMemoryFileIndex(1 paths)[file:/w/users], PartitionFilters: [], PushedFilters: [], ReadSchema: struct<id:bigint>"
SCAN_O = f"FileScan parquet spark_catalog.db.orders{ORDERS} Batched: false, Location: InMemoryFileIndex(1 paths)[file:/w/orders], PartitionFilters: [], PushedFilters: [], ReadSchema: struct<user_id:bigint>"
SEMI = f"BroadcastHashJoin [id#1L], [user_id#11L], LeftSemi, BuildRight, false, false\n:- {SCAN_U}\n+- {SCAN_O}"
INNER = f"BroadcastHashJoin [id#1L], [user_id#11L], Inner, BuildRight, false, false\n:- {SCAN_U}\n+- {SCAN_O}"


def read(analyzed, physical):
    return read_plan(
        f"== Parsed Logical Plan ==\n'Project [*]\n\n== Analyzed Logical Plan ==\nx: bigint\n{analyzed}\n\n"
        f"== Optimized Logical Plan ==\nProject\n\n== Physical Plan ==\n{physical}\n"
    )


def edges(plan):
    columns = [{f"{d.source.text} {d.kind.label}" for d in column.dependencies} for column in plan.flow.columns]
    return columns, {f"{d.source.text} {d.kind.label}" for d in plan.flow.rows}


BY = {"db.users.id {}", "db.orders.user_id {}"}
CASES = {
    "exists": (
        "Project [name#2]\n+- Filter exists#20 [id#1L]\n   :  +- Project [1 AS 1#21]\n"
        "   :     +- Filter (user_id#11L = outer(id#1L))\n   :        +- " + OF_ORDERS.format("   :        ") + "\n   +- " + OF_USERS.format("   "),
        f"Project [name#2]\n+- {SEMI.replace(chr(10), chr(10) + '   ')}",
        [{"db.users.name identity"}],
        {each.format("filter") for each in BY},
    ),
    "a semi join": (
        "Project [name#2]\n+- Join LeftSemi, (id#1L = user_id#11L)\n   :- " + OF_USERS.format("   :  ") + "\n   +- " + OF_ORDERS.format("      "),
        f"Project [name#2]\n+- {SEMI.replace(chr(10), chr(10) + '   ')}",
        [{"db.users.name identity"}],
        {each.format("join") for each in BY},
    ),
    "a comma": (
        "Project [name#2, amount#12]\n+- Filter (id#1L = user_id#11L)\n   +- Join Inner\n      :- "
        + OF_USERS.format("      :  ") + "\n      +- " + OF_ORDERS.format("         "),
        f"Project [name#2, amount#12]\n+- {INNER.replace(chr(10), chr(10) + '   ')}",
        [{"db.users.name identity"}, {"db.orders.amount identity"}],
        {each.format("filter") for each in BY},
    ),
    "union that widens": (
        "Union false, false\n:- Project [cast(n#30 as bigint) AS n#31L]\n:  +- Project [age#3 AS n#30]\n:     +- "
        + OF_USERS.format(":     ") + "\n+- Project [user_id#11L]\n   +- " + OF_ORDERS.format("   "),
        f"Union\n:- Project [cast(age#3 as bigint) AS n#31L]\n:  +- {SCAN_U}\n+- {SCAN_O}",
        [{"db.users.age identity", "db.orders.user_id identity"}],
        {"db.users.* union_all", "db.orders.* union_all"},
    ),
    "first rows of groups": (
        "Project [name#2]\n+- Deduplicate [age#3]\n   +- " + OF_USERS.format("   "),
        f"SortAggregate(key=[age#3], functions=[first(name#2, false)], output=[name#2])\n+- {SCAN_U}",
        [{"db.users.name identity"}],
        {"db.users.age distinct"},
    ),
    "a pivot": (
        "Project [user_id#11L, __pivot_sum(db.orders.amount) AS `sum(db.orders.amount)`#44[0] AS paid#45]\n"
        "+- Aggregate [user_id#11L], [user_id#11L, pivotfirst(status#13, sum(db.orders.amount)#43, paid, 0, 0) AS"
        " __pivot_sum(db.orders.amount) AS `sum(db.orders.amount)`#44]\n   +- Aggregate [user_id#11L, status#13],"
        " [user_id#11L, status#13, sum(amount#12) AS sum(db.orders.amount)#43]\n      +- " + OF_ORDERS.format("      "),
        f"SortAggregate(key=[user_id#11L], functions=[sum(amount#12)], output=[user_id#11L, paid#45])\n+- {SCAN_O}",
        [{"db.orders.user_id identity"}, {"db.orders.amount aggregation", "db.orders.status conditional"}],
        {"db.orders.user_id group_by"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_analyzed_plan_says_what_was_written(case):
    analyzed, physical, columns, rows = CASES[case]
    plan = read(analyzed, physical)
    found = edges(plan)
    assert found[0] == columns
    assert {each for each in found[1] if not each.endswith("union_all")} == {r for r in rows if "union_all" not in r}
    assert (plan.notes, plan.flow.breaks) == ((), ())
    assert {place.place.aliases[0].id for place in plan.sources.values()} <= {"file:///w/users", "file:///w/orders"}


def test_an_analyzed_plan_that_is_cut_is_left():
    plan = read("Project [name#2, ... 7 more fields]\n+- " + OF_USERS.format(""), f"Project [name#2]\n+- {SCAN_U}")
    assert edges(plan)[0] == [{"db.users.name identity"}]


def test_columns_of_a_wide_table_that_are_left_out_are_those_that_the_scan_reads():
    wide = OF_USERS.replace(USERS, "[x#900,... 30 more fields]").format("   ")
    plan = read(f"Project [name#2]\n+- Filter (age#3 > 1)\n   +- {wide}", f"Project [name#2]\n+- {SCAN_U}")
    assert edges(plan) == ([{"db.users.name identity"}], {"db.users.age filter"})
    unread = read(f"Project [name#2]\n+- Filter (gone#77 > 1)\n   +- {wide}", f"Filter (age#3 > 2)\n+- {SCAN_U}")
    assert edges(unread)[1] == {"db.users.age filter"}


def test_python_functions_are_opaque_with_their_arguments():
    called = "Project [g(f(name#2)#76, age#3)#77 AS n#78]\n+- Filter (f(id#1L)#70L > 1)\n   +- "
    plan = read(called + OF_USERS.format("   "), f"Project [name#2 AS n#78]\n+- {SCAN_U}")
    assert edges(plan)[0] == [{"db.users.name opaque", "db.users.age opaque"}]
    assert edges(plan)[1] == {"db.users.id filter"}


@pytest.mark.parametrize(
    ("items", "kind"),
    [("cast(id#1L as bigint) AS id#50L, cast(age#3 as int) AS age#51", "identity"),
     ("id#1L, cast(age#3 as string) AS age#51", "transformation")],
)  # fmt: skip
def test_casts_of_a_view_of_sql_are_nobodys_and_those_of_a_frame_are(items, kind):
    view = f"View (`v`, [id#50L, age#51])\n   +- Project [{items}]\n      +- Project [id#1L, age#3]\n         +- "
    analyzed = f"Project [age#51]\n+- {view}" + OF_USERS.format("         ")
    plan = read(analyzed, f"Project [cast(age#3 as int) AS age#51]\n+- {SCAN_U}")
    assert edges(plan)[0] == [{f"db.users.age {kind}"}]


def test_very_many_calls_end_early():
    calls = ", ".join(f"f(name#2)#{number} AS n#{number + 1}" for number in range(1000, 3000, 2))
    plan = read(f"Project [{calls}]\n+- " + OF_USERS.format(""), f"Project [name#2]\n+- {SCAN_U}")
    assert edges(plan)[0] == [{"db.users.name identity"}]


def test_the_query_of_an_insert_is_as_it_was_before_it_was_fitted():
    analyzed = (
        "InsertIntoHadoopFsRelationCommand file:/w/t, false, Parquet, [path=file:/w/t], Append, `spark_catalog`.`db`.`t`,"
        " org.apache.spark.sql.execution.datasources.InMemoryFileIndex(file:/w/t), [a]\n"
        "+- Project [cast(age#3 as bigint) AS a#90L]\n   +- Project [age#3]\n      +- " + OF_USERS.format("      ")
    )
    head, _, _ = analyzed.partition("\n")
    plan = read_plan(
        f"== Analyzed Logical Plan ==\n{analyzed}\n\n== Optimized Logical Plan ==\nx\n\n== Physical Plan ==\nExecute {head}"
        f"\n+- WriteFiles\n   +- Project [cast(age#3 as bigint) AS a#90L]\n      +- {SCAN_U}\n"
    )
    assert edges(plan)[0] == [{"db.users.age identity"}]
    assert plan.write is not None


def test_a_subquery_without_its_plan_leaves_the_optimized_plan_and_its_note():
    plan = read(
        "Project [name#2]\n+- Filter exists#20 [id#1L]\n   +- " + OF_USERS.format("   "),
        f"Project [name#2]\n+- {SEMI.replace(chr(10), chr(10) + '   ')}",
    )
    assert edges(plan)[1] == {each.format("join") for each in BY}
    assert [note.code for note in plan.notes] == ["plan.optimized"]
