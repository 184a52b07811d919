"""Lists that an aggregate collects: the run's order of their elements is another one than that of a new evaluation."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded import Warehouse

from govtool.cli.main import main
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call, Literal
from govtool.records.plan.nodes import Plan
from govtool.records.plan.tree import rewrite, rewrite_nodes
from govtool.records.trace.list_order import depends_on_order
from govtool.records.trace.selection import bound_condition
from govtool.store import Store

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

VIEWS = [("ann", 1, 10), ("bob", 1, 30), ("ann", 2, 20), ("bob", 2, 40), ("eve", 1, 7), ("eve", 2, 7), ("zoe", 3, None)]


@pytest.fixture
def house(tmp_path, monkeypatch):
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    warehouse = Warehouse(tmp_path, Store.init(str(tmp_path / ".govtool")))
    warehouse.table("views", {"user": pa.string(), "page": pa.int64(), "spent": pa.int64()}, VIEWS[:3], VIEWS[3:])
    return warehouse


def first_of_lists(node):
    """A plan that takes the first element of a list, where the query has its size."""

    def change(term):
        if isinstance(term, Call) and term.name == "size":
            return Call("get item", (*term.arguments, Literal(0, t.INTEGER)), t.LONG, "ansi")
        return term

    return node.replaced(terms=tuple(rewrite(term, change) for term in node.terms()))


def run(house, sql, change, plan=lambda node: node):
    """Record a query whose run had the rows in another order: the rows that it wrote are changed by hand."""
    made = house.run(sql, "lists", "views")
    made = replace(made, plan=Plan(rewrite_nodes(made.plan.root, plan), made.plan.session))
    file = house.folder / "lists" / "out.parquet"
    table = pq.read_table(file)
    pq.write_table(pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema), file)
    house.commit(replace(made, output_files=replace(house.relation(file), dataset=made.output_files.dataset)))
    return pq.read_table(file).to_pylist()


def reversed_lists(rows):
    return [{**row, "l": sorted(row["l"], reverse=True)} for row in rows]


def traced(capsys, *words):
    code = main([*words, "--format", "json"])
    output = capsys.readouterr()
    assert code == 0, output.err
    return json.loads(output.out)


def spent(answer):
    return sorted(str(row["spent"]) for part in answer["inputs"] for row in part["rows"])


def grades(answer):
    return {part["exactness"] for part in answer["inputs"]}


@pytest.mark.slow
@pytest.mark.long
def test_a_condition_on_the_order_of_a_list_selects_among_the_written_rows(spark, house, capsys):
    rows = run(house, "SELECT user, collect_list(spent) AS l FROM views GROUP BY user", reversed_lists)
    assert {"user": "ann", "l": [20, 10]} in rows
    for condition in ("l = array(20L, 10L)", "cast(l as string) = '[20, 10]'"):
        answer = traced(capsys, "trace", "back", "lists", "--where", condition)
        assert (spent(answer), grades(answer)) == (["10", "20"], {"exact"})
    assert main(["trace", "back", "lists", "--where", "l = array(10L, 20L)"]) == 2  # no row was written so


@pytest.mark.parametrize(
    ("condition", "depends"),
    [
        ("l = array(20L, 10L)", True),
        ("cast(l as string) = '[20, 10]'", True),
        ("m = array(20L)", False),
        ("size(l) = 2", False),
        ("l is null", False),
        ("sort_array(l) = array(20L)", False),
        ("coalesce(l, m) = m", True),
        ("size(coalesce(l, m)) = 1", False),
        ("case when size(l) = 1 then l else m end = m", True),
    ],
)
def test_conditions_that_depend_on_an_order(condition, depends):
    columns = [Attribute(1, "l", t.Array(t.LONG)), Attribute(2, "m", t.Array(t.LONG))]
    assert depends_on_order(bound_condition(condition, columns), {1}) is depends


@pytest.mark.parametrize("condition", ["size(l) = 2 and user = 'bob'", "l is not null and user = 'bob'"])
def test_other_conditions_on_a_list_do_not_need_the_written_rows(house, capsys, condition):
    run(house, "SELECT user, collect_list(spent) AS l FROM views GROUP BY user", reversed_lists)
    (house.folder / "lists" / "out.parquet").unlink()
    answer = traced(capsys, "trace", "back", "lists", "--where", condition, "--run", "app-1/0")
    assert (spent(answer), grades(answer)) == (["30", "40"], {"exact"})


def test_without_the_written_rows_a_condition_on_the_order_is_refused(house, capsys):
    run(house, "SELECT user, collect_list(spent) AS l FROM views GROUP BY user", reversed_lists)
    (house.folder / "lists" / "out.parquet").unlink()
    assert main(["trace", "back", "lists", "--where", "l = array(20L, 10L)", "--run", "app-1/0"]) == 2
    assert "depends on the order of a collected list" in capsys.readouterr().err


FIRST = "SELECT user, CAST(size(collect_list(spent)) AS BIGINT) AS f, count(*) AS n FROM views {} GROUP BY user"


def last_for_ann(rows):
    return [{**row, "f": 20 if row["user"] == "ann" else 3} for row in rows]


def test_a_cell_that_depends_on_the_order_is_not_evaluated_again(house, capsys):
    run(house, FIRST.format(""), last_for_ann, first_of_lists)
    answer = traced(capsys, "trace", "back", "lists", "--where", "f = 20", "--verify")
    assert (spent(answer), grades(answer), answer["verified"]) == (["10", "20"], {"exact"}, True)
    answer = traced(capsys, "trace", "forward", "views", "--where", "spent = 20")
    assert [(row["user"], row["f"]) for part in answer["outputs"] for row in part["rows"]] == [("ann", 20)]


def test_a_list_of_one_value_has_one_order(house, capsys):
    run(house, FIRST.format("WHERE user = 'eve'"), lambda rows: rows, first_of_lists)
    (house.folder / "lists" / "out.parquet").unlink()
    answer = traced(capsys, "trace", "back", "lists", "--where", "f = 7", "--run", "app-1/0")
    assert (spent(answer), grades(answer)) == (["7", "7"], {"exact"})


LISTS = "(SELECT user, collect_list(spent) AS l FROM views GROUP BY user)"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT count(*) AS user FROM {LISTS} WHERE size(l) > 2",
        f"SELECT max(user) AS user FROM {LISTS} GROUP BY l",
        f"SELECT l FROM {LISTS} GROUP BY l",
        f"SELECT DISTINCT l FROM {LISTS}",
        f"SELECT l FROM {LISTS} INTERSECT SELECT l FROM {LISTS}",
        f"WITH c AS {LISTS} SELECT one.user FROM c AS one JOIN c AS two ON size(one.l) = size(two.l)",
    ],
)
def test_an_order_that_steers_rows_makes_a_superset(house, capsys, sql):
    written = {"user": 1 if "count" in sql else "ann", "l": [20, 10]}
    names = ("l",) if "SELECT l" in sql or "DISTINCT" in sql else ("user",)
    run(house, sql, lambda rows: [{name: written[name] for name in names}], first_of_lists)
    answer = traced(capsys, "trace", "back", "lists", "--where", "true")
    assert {"10", "20"} <= set(spent(answer))
    assert grades(answer) == {"superset"}
    assert "order of a collected list" in answer["inputs"][0]["why"]


def test_a_replay_compares_lists_without_their_order(house, capsys):
    run(house, "SELECT user, collect_list(spent) AS l FROM views GROUP BY user", reversed_lists)
    answer = traced(capsys, "replay", "app-1/0", "--without", "views", "--where", "spent = 30")
    changed = [(row["before"]["l"], row["after"]["l"]) for row in answer["changed"]["rows"]]
    assert changed == [([40, 30], [40])]  # not those of ann and eve, whose lists have the other order, too
    assert [row["user"] for row in answer["gone"]["rows"]] == []
    assert answer["doubts"] == []
