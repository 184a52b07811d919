"""Traces of runs with parts that cannot be evaluated again: a break is local to its cell or its operator."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from recorded import SESSION

import govtool
from govtool.cli.main import main
from govtool.errors import UsageError
from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.lineage import Lineage
from govtool.records.plan.expressions import AggregateCall, Call, Opaque, Udf, UdfReference
from govtool.records.plan.nodes import Break, Filter, Limit, Plan, Project, Sample, outputs
from govtool.records.plan.tree import Node, Term, rewrite, rewrite_nodes
from govtool.records.trace.ties import TieCheck

VISITS = "SELECT user, page, spent, upper(user) AS shown FROM views"
LOST = "the function f has changed since, or is not found here"


def lost(name: str) -> Callable[[Node], Node]:
    """Calls of a function are of one that is not there any more."""

    def term(each: Term) -> Term:
        if isinstance(each, Call) and each.name == name:
            return Opaque(LOST, each.arguments, each.type)
        return each

    return lambda node: node.replaced(terms=tuple(rewrite(each, term) for each in node.terms()))


@pytest.fixture
def traced(shop, capsys):
    """Run a query, note its plan with a break, and trace its output: exit code and answer."""

    def command(sql: str, change: Callable[[Node], Node], *words: str) -> tuple[int, Any]:
        write = shop.run(sql, "out", "views", "users", run="app-2/0")
        broken = replace(write, plan=Plan(rewrite_nodes(write.plan.root, change), write.plan.session))
        shop.commit(broken)
        capsys.readouterr()
        code = main(["trace", *words, "--format", "json"])
        shown = capsys.readouterr()
        return code, json.loads(shown.out) if shown.out else shown.err

    return command


def reached(answer: Any) -> dict[str, tuple[int, str]]:
    return {g["dataset"].rpartition("/")[2]: (g["count"], g["exactness"]) for g in answer["inputs"]}


def test_a_cell_that_only_shows_leaves_rows_exact(traced):
    code, answer = traced(VISITS, lost("upper"), "back", "out", "--where", "shown = 'ANN'")
    assert (code, reached(answer)) == (0, {"views": (2, "exact")})


def test_an_argument_of_an_aggregate_leaves_the_group_exact(traced):
    sql = "SELECT land, max(upper(user)) AS last, count(*) AS n FROM views JOIN users ON user = name GROUP BY land"
    code, answer = traced(sql, lost("upper"), "back", "out", "--where", "last = 'BOB'", "--verify")
    assert (code, reached(answer)) == (0, {"views": (2, "exact"), "users": (1, "exact")})
    assert (answer["verified"], answer["unverified"]) == (True, ["last"])


def test_rows_of_a_plan_have_no_columns_that_cannot_be_evaluated_again(shop):
    """As in a session, where nothing was written: a NULL would pass for a value."""
    sql = "SELECT page, upper(user) AS shown FROM views"
    rows = Lineage.in_part(rewrite_nodes(shop.plan(sql, "views").root, lost("upper")), DuckExecutor(SESSION)).all()
    assert rows.where("page = 3").arrow().to_pylist() == [{"page": 3}]
    sql = "SELECT upper(user) AS shown FROM views"
    rows = Lineage.in_part(rewrite_nodes(shop.plan(sql, "views").root, lost("upper")), DuckExecutor(SESSION)).all()
    assert rows.go_back_all().count() == 6
    with pytest.raises(UsageError, match="'shown' cannot be evaluated again"):
        rows.df()


def drawn(node: Node) -> Node:
    """What was in capitals in the run is drawn at random now."""

    def term(each: Term) -> Term:
        return (
            Call("uuid", (), each.type, deterministic=False)
            if isinstance(each, Call) and each.name == "upper"
            else each
        )

    return node.replaced(terms=tuple(rewrite(each, term) for each in node.terms()))


def sampled(node: Node) -> Node:
    """What a condition chose in the run, a sample chooses now."""
    return Sample(node.child, 0.0, 0.5, False, 1) if isinstance(node, Filter) else node


@pytest.mark.parametrize(
    ("sql", "where", "exactness"),
    [
        (VISITS, "shown = 'ANN' and page = 1", "exact"),
        ("SELECT user, page FROM views WHERE upper(user) = 'ANN'", "page = 1", "exact"),
        ("SELECT page, count(*) AS n FROM views WHERE upper(user) = 'ANN' GROUP BY page", "page = 1", "superset"),
    ],
)
def test_what_is_drawn_at_random_is_found_among_the_written_rows(traced, sql, where, exactness):
    for change in (drawn, sampled)[: 1 + ("WHERE" in sql)]:
        code, answer = traced(sql, change, "back", "out", "--where", where)
        _, other = traced(sql, lambda node: node, "back", "out", "--where", where)
        rows, least = ({row["_id"] for row in each["inputs"][0]["rows"]} for each in (answer, other))
        assert (code, reached(answer)["views"][1]) == (0, exactness)
        assert least <= rows if exactness == "superset" else least == rows


def limited(node: Node) -> Node:
    """What a condition chose in the run, a limit without an order chooses now."""
    return Limit(node.child, 2, 0) if isinstance(node, Filter) else node


@pytest.mark.parametrize(
    ("sql", "exactness"),
    [
        ("SELECT user, page, spent FROM views WHERE user = 'bob'", "exact"),
        ("SELECT user, count(*) AS n FROM views WHERE user = 'bob' GROUP BY user", "superset"),
    ],
)
def test_rows_that_a_limit_chose_are_found_among_the_written_rows(traced, sql, exactness):
    code, answer = traced(sql, limited, "back", "out", "--where", "user = 'bob'")
    assert (code, reached(answer)) == (0, {"views": (2, exactness)})
    assert {row["user"] for row in answer["inputs"][0]["rows"]} == {"bob"}


def test_a_trace_forward_through_a_limit_gives_written_rows(traced):
    sql = "SELECT user, page, spent FROM views WHERE user = 'bob'"
    code, answer = traced(sql, limited, "forward", "views", "--where", "user = 'bob'", "--run", "app-2/0")
    assert code == 0
    assert [row["user"] for row in answer["outputs"][0]["rows"]] == ["bob", "bob"]


def chosen(node: Node) -> Node:
    """What was the largest value in the run is that of any row now."""

    def term(each: Term) -> Term:
        if isinstance(each, AggregateCall) and each.name == "max":
            return replace(each, name="first", deterministic=False)
        return each

    return node.replaced(terms=tuple(rewrite(each, term) for each in node.terms()))


@pytest.mark.parametrize("where", ["f = 2", "f = 2 AND user = 'ann'"])
def test_a_value_of_any_row_is_that_of_the_run(traced, where):
    sql = "SELECT user, max(page) AS f, count(*) AS n FROM views GROUP BY user"
    code, answer = traced(sql, chosen, "back", "out", "--where", where)
    assert (code, reached(answer)) == (0, {"views": (2, "exact")})


def test_the_key_of_a_group_is_no_value_of_any_row(traced):
    sql = "SELECT max(user) AS f FROM views GROUP BY user"
    code, answer = traced(sql, chosen, "back", "out", "--where", "f = 'ann'", "--verify")
    assert (code, reached(answer), answer["verified"]) == (0, {"views": (2, "exact")}, True)


def test_a_cell_of_a_pivot_is_the_value_of_its_one_row(traced):
    """Spark's plan of a PIVOT groups twice, and takes the first, and only, row of each value."""

    def only(node: Node) -> Node:
        def term(each: Term) -> Term:
            return replace(each, name="first") if isinstance(each, AggregateCall) and each.name == "max" else each

        return node.replaced(terms=tuple(rewrite(each, term) for each in node.terms()))

    grouped = "SELECT user, page, sum(spent) AS s FROM views WHERE page = 1 GROUP BY user, page"
    sql = f"SELECT user, max(s) AS m FROM ({grouped}) GROUP BY user"
    code, answer = traced(sql, only, "back", "out", "--where", "m = 60", "--verify")
    assert (code, reached(answer), answer["verified"]) == (0, {"views": (2, "exact")}, True)


def test_groups_that_a_value_of_any_row_decides_are_those_of_the_run(traced):
    sql = "SELECT count(*) AS n, user FROM views GROUP BY user HAVING max(page) > 1"
    code, answer = traced(sql, chosen, "back", "out", "--where", "user = 'ann'")
    assert (code, reached(answer)) == (0, {"views": (2, "exact")})


def choosing(name: str, *by: str) -> Callable[[Node], Node]:
    """What was the largest value in the run is what a choosing function returned."""

    def change(node: Node) -> Node:
        def term(each: Term) -> Term:
            if not isinstance(each, AggregateCall) or each.name != "max":
                return each
            keys = [column for child in node.nodes() for column in outputs(child) if column.name in by]
            return replace(each, name=name, arguments=(*each.arguments, *keys), deterministic=False)

        return node.replaced(terms=tuple(rewrite(each, term) for each in node.terms()))

    return change


TIES = [choosing("max_by", "user"), choosing("min_by", "user"), choosing("mode"), choosing("last")]


@pytest.mark.parametrize("choice", TIES)
def test_a_value_of_rows_that_tie_is_that_of_the_run(traced, choice):
    sql = "SELECT user, max(page) AS f, count(*) AS n FROM views GROUP BY user"
    code, answer = traced(sql, choice, "back", "out", "--where", "f = 2", "--verify")
    assert (code, reached(answer), answer["verified"]) == (0, {"views": (2, "exact")}, True)


@pytest.fixture
def looked(monkeypatch):
    """How often rows were looked at for ties."""
    found: list[int] = []
    look = TieCheck.__call__
    monkeypatch.setattr(TieCheck, "__call__", lambda self, *given: found.append(1) or look(self, *given))
    return found


@pytest.mark.parametrize("choice", TIES)
@pytest.mark.parametrize(
    ("where", "words", "times"),
    [
        ("user = 'ann'", (), 0),
        ("n = 2", (), 0),
        ("user = 'ann'", ("--verify",), 1),
        ("user = 'ann'", ("--step",), 1),
        ("f = 2", (), 1),
        ("user = 'ann' AND f = 2", (), 1),
    ],
)
def test_ties_are_looked_for_where_what_is_asked_reads_the_cell(traced, looked, choice, where, words, times):
    sql = "SELECT user, max(page) AS f, count(*) AS n FROM views GROUP BY user"
    code, answer = traced(sql, choice, "back", "out", "--where", where, *words)
    assert (code, len(looked), answer["selected"]) == (0, times, 2 if where == "n = 2" else 1)
    if "--step" not in words:
        assert reached(answer) == {"views": (4 if where == "n = 2" else 2, "exact")}
    assert answer["run"] == "app-2/0"


def test_records_in_python_look_for_ties_where_a_question_reads_the_cell(traced, looked):
    sql = "SELECT user, max(page) AS f, count(*) AS n FROM views WHERE user = 'bob' GROUP BY user"
    traced(sql, choosing("first"), "back", "out", "--where", "user = 'bob'")
    rows = govtool.open().records("out")
    bob = rows.where("user = 'bob'")
    behind = bob.go_back_all()
    assert (rows.count(), behind.count(), len(behind.ids()), behind.answer().inputs[0].count) == (1, 2, 2, 2)
    assert [row["spent"] for row in behind.arrow("views").to_pylist()] == [30, 30]
    assert (behind.where("spent = 30").go_next_all().count(), bob.go_back().names()) == (1, ["aggregate"])
    assert "views: 2 rows, exact" in behind.explain()
    assert looked == []
    assert bob.arrow().to_pylist() == [{"user": "bob", "f": 1, "n": 2}]  # all rows of bob have the page
    assert bob.where("f = 1").go_back_all().count() == 2
    assert behind.go_next_all().arrow().to_pylist() == [{"user": "bob", "f": 1, "n": 2}]
    assert rows.replay(exclude=behind).gone == (("bob", 1, 2),)
    assert len(looked) == 1


@pytest.mark.parametrize(
    ("sql", "times"),
    [
        ("SELECT user, max(page) AS f, count(*) AS n FROM views GROUP BY user", 0),
        ("SELECT max(page) AS f, count(*) AS n FROM views GROUP BY user", 1),  # two users have the same n
    ],
)
def test_forward_ties_are_looked_for_where_other_cells_do_not_tell_rows_apart(traced, looked, sql, times):
    code, answer = traced(sql, choosing("first"), "forward", "views", "--where", "user = 'ann'", "--run", "app-2/0")
    assert (code, len(looked)) == (0, times)
    (rows,) = answer["outputs"]
    assert (rows["count"], rows["exactness"]) == ((1, "exact") if not times else (2, "superset"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT user, count(*) AS n FROM views GROUP BY user HAVING max(page) > 1",
        "SELECT user, f FROM (SELECT user, max(page) AS f FROM views GROUP BY user) WHERE f > 0",
        "SELECT user, max(page) AS f FROM views GROUP BY user ORDER BY f LIMIT 2",
    ],
)
def test_ties_are_looked_for_where_the_cell_decides_rows(traced, looked, sql):
    code, answer = traced(sql, choosing("first"), "back", "out", "--where", "user = 'ann'")
    assert (code, len(looked), answer["selected"]) == (0, 1, 1)
    assert reached(answer)["views"][0] >= 2


@pytest.mark.parametrize("choice", TIES)
def test_groups_that_rows_that_tie_decide_are_a_superset(traced, choice):
    sql = "SELECT count(*) AS n FROM views GROUP BY user HAVING max(page) > 1"
    code, answer = traced(sql, choice, "back", "out", "--where", "n = 2")
    assert (code, answer["selected"], reached(answer)) == (0, 1, {"views": (4, "superset")})
    assert "any row" in answer["inputs"][0]["why"] or "rows that tie" in answer["inputs"][0]["why"]


@pytest.mark.parametrize("name", ["first", "last"])
def test_a_value_of_any_row_is_evaluated_where_all_rows_have_it(traced, name):
    sql = "SELECT count(*) AS n, max(page) AS f FROM views WHERE user = 'bob' OR page = 9 GROUP BY user HAVING max(page) = 1"
    code, answer = traced(sql, choosing(name), "back", "out", "--where", "f = 1", "--verify")
    assert (code, reached(answer), answer["verified"]) == (0, {"views": (2, "exact")}, True)


def test_some_null_cells_are_another_value_of_any_row(traced):
    sql = "SELECT count(*) AS n FROM (SELECT 1 AS k, * FROM views WHERE page > 2) v GROUP BY k HAVING max(spent) = 5"
    code, answer = traced(sql, choosing("first"), "back", "out", "--where", "n = 2")
    assert (code, reached(answer)) == (0, {"views": (2, "exact")})  # the one group that there is
    assert traced(sql, choosing("first"), "back", "out", "--where", "n = 2", "--verify")[0] == 2


@pytest.mark.parametrize("name", ["first", "last"])
def test_a_value_of_a_frame_whose_rows_tie_is_that_of_the_run(traced, name):
    sql = "SELECT user, page, max(page) OVER (PARTITION BY user ORDER BY user) AS f FROM views WHERE user = 'ann'"
    code, answer = traced(sql, choosing(name), "back", "out", "--where", "f = 2 AND page = 1", "--verify")
    assert (code, reached(answer), answer["verified"]) == (0, {"views": (2, "exact")}, True)


def test_the_frame_of_a_value_of_rows_that_tie_is_exact(traced):
    sql = "SELECT user, page, spent, max(page) OVER (ORDER BY spent) AS f FROM views WHERE spent < 30 OR user = 'bob'"
    code, answer = traced(sql, choosing("first"), "back", "out", "--where", "page = 2")
    assert (code, reached(answer)) == (0, {"views": (3, "exact")})


def test_a_subquery_that_rows_that_tie_decide_is_a_superset(traced):
    sql = "SELECT name FROM users WHERE (SELECT max(page) FROM views WHERE user = name) = 2"
    code, answer = traced(sql, choosing("max_by", "user"), "back", "out", "--where", "name = 'ann'")
    assert code == 0
    assert reached(answer)["users"] == (1, "exact")


def test_a_total_of_values_that_are_not_known_may_be_of_every_row(traced):
    code, answer = traced("SELECT max(upper(user)) AS m FROM views", lost("upper"), "back", "out", "--where", "true")
    assert (code, reached(answer)) == (0, {"views": (6, "superset")})
    assert LOST in answer["inputs"][0]["why"]


def test_a_condition_that_is_not_known_leaves_rows_exact_that_the_output_tells_apart(traced):
    sql = "SELECT user, page, spent FROM views WHERE upper(user) < 'C'"
    code, answer = traced(sql, lost("upper"), "back", "out", "--where", "user = 'ann'")
    assert (code, reached(answer)) == (0, {"views": (2, "exact")})
    assert answer["selected"] == 2


def test_rows_that_are_alike_are_a_superset_where_a_condition_may_have_taken_one(traced):
    sql = "SELECT page FROM views WHERE upper(user) < 'B'"
    code, answer = traced(sql, lost("upper"), "back", "out", "--where", "page = 1")
    assert (code, reached(answer)) == (0, {"views": (3, "superset")})
    assert answer["selected"] == 1
    assert answer["inputs"][0]["why"] == LOST


def test_a_group_over_a_condition_that_is_not_known_is_a_superset(traced):
    sql = "SELECT page, count(*) AS n FROM views WHERE upper(user) < 'B' GROUP BY page"
    code, answer = traced(sql, lost("upper"), "back", "out", "--where", "page = 1 AND n = 1")
    assert (code, reached(answer)) == (0, {"views": (3, "superset")})


def test_a_condition_on_groups_that_is_not_known_leaves_the_groups_exact(traced):
    sql = "SELECT user, sum(spent) AS s FROM views GROUP BY user HAVING upper(user) < 'C'"
    code, answer = traced(sql, lost("upper"), "back", "out", "--where", "s = 60")
    assert (code, reached(answer)) == (0, {"views": (2, "exact")})


def test_a_join_by_values_that_are_not_known_is_a_superset_of_pairs(traced):
    sql = "SELECT user, page, spent, land FROM views JOIN users ON upper(user) = upper(name)"
    code, answer = traced(sql, lost("upper"), "back", "out", "--where", "user = 'ann' AND page = 1")
    assert code == 0
    assert reached(answer) == {"views": (1, "superset"), "users": (2, "superset")}  # zoe is of the same land


def test_an_operator_that_is_not_known_is_a_break_of_its_inputs_alone(traced):
    sql = "SELECT user, page, land FROM views JOIN (SELECT name, land FROM users) u ON user = name"

    def unread(node: Node) -> Node:
        names = [column.name for column in outputs(node)]
        lost = isinstance(node, Project) and names == ["name", "land"]
        return Break("MapInPandas: not on the list", (node,), outputs(node)) if lost else node

    code, answer = traced(sql, unread, "back", "out", "--where", "user = 'ann' AND page = 2")
    assert code == 0
    assert reached(answer) == {"views": (1, "superset"), "users": (4, "coarse")}
    assert "MapInPandas: not on the list" in answer["inputs"][0]["why"]


def test_forward_around_a_condition_that_is_not_known(traced):
    sql = "SELECT user, page, spent FROM views WHERE upper(user) < 'B'"
    code, answer = traced(sql, lost("upper"), "forward", "views", "--where", "page < 3", "--run", "app-2/0")
    (group,) = answer["outputs"]
    assert (code, group["count"], group["exactness"], group["why"]) == (0, 2, "superset", LOST)


def test_forward_is_exact_where_just_these_rows_have_the_written_values(traced):
    sql = "SELECT user, page, spent FROM views WHERE upper(user) < 'B'"
    code, answer = traced(sql, lost("upper"), "forward", "views", "--where", "page = 2", "--run", "app-2/0")
    assert [(g["count"], g["exactness"]) for g in answer["outputs"]] == [(1, "exact")]
    assert code == 0


def test_the_plan_is_not_verified_where_rows_are_not_known(traced):
    sql = "SELECT user, page FROM views WHERE upper(user) < 'B'"
    code, message = traced(sql, lost("upper"), "back", "out", "--where", "true", "--verify")
    assert code == 2
    assert LOST in message


def test_a_cell_that_reads_other_rows_has_them_in_its_trace(traced):
    sql = "SELECT name, upper(cast((SELECT max(spent) FROM views) AS string)) AS top FROM users"

    def term(each: Term) -> Term:
        return Opaque(LOST, each.arguments, each.type) if isinstance(each, Call) and each.name == "upper" else each

    def change(node: Node) -> Node:
        return node.replaced(terms=tuple(rewrite(each, term) for each in node.terms()))

    code, answer = traced(sql, change, "back", "out", "--where", "name = 'bob'")
    assert (code, reached(answer)) == (0, {"users": (1, "exact"), "views": (5, "exact")})


def test_a_replay_leaves_out_cells_that_only_show_and_refuses_other_breaks(traced, capsys):
    sql = "SELECT land, max(upper(user)) AS last, count(*) AS n FROM views JOIN users ON user = name GROUP BY land"
    traced(sql, lost("upper"), "back", "out", "--where", "true")
    replayed = ["replay", "app-2/0", "--without", "views", "--where", "page = 1"]
    assert main([*replayed, "--format", "json"]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert (answer["columns"], answer["gone"]["count"], answer["changed"]["count"]) == (["land", "n"], 1, 1)


def called(node: Node) -> Node:
    """What was upper() is a function of the user's."""

    def term(each: Term) -> Term:
        if isinstance(each, Call) and each.name == "upper":
            return Udf(UdfReference("__main__", "shout", "0" * 64, "python"), each.arguments, each.type)
        return each

    return node.replaced(terms=tuple(rewrite(each, term) for each in node.terms()))


@pytest.mark.parametrize("direction", ["back", "forward"])
def test_a_function_that_no_answer_needs_starts_no_spark(traced, monkeypatch, direction):
    monkeypatch.setattr("govtool.records.execute.functions.find", lambda *_: str.upper)
    monkeypatch.setattr("govtool.app.records.engines.local_spark", lambda **_: pytest.fail("Spark was started"))
    sql = "SELECT land, max(upper(user)) AS last, count(*) AS n FROM views JOIN users ON user = name GROUP BY land"
    words = (
        ("back", "out", "--where", "n = 2")
        if direction == "back"
        else ("forward", "users", "--where", "true", "--run", "app-2/0")
    )
    code, answer = traced(sql, called, *words)
    places = answer["inputs" if direction == "back" else "outputs"]
    assert (code, answer["engine"], {each["exactness"] for each in places}) == (0, "DuckDB", {"exact"})
