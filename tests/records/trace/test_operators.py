"""Traces by hand, an operator at a time; what random plans do not reach, and what the papers show."""

from __future__ import annotations

from dataclasses import replace

import pytest
from duck import Duck

from govtool.errors import UsageError
from govtool.records.lineage import Lineage
from govtool.records.plan import types as t
from govtool.records.plan.expressions import AggregateCall, Attribute, Call, Literal, Named, Opaque, SortKey, passed
from govtool.records.plan.from_sql import from_sql, table
from govtool.records.plan.nodes import (
    Distinct,
    Filter,
    Join,
    Limit,
    LocalRows,
    Project,
    Range,
    Relation,
    Repartition,
    Session,
    Sort,
    Write,
    outputs,
)
from govtool.records.plan.tree import rewrite, rewrite_nodes, walk_nodes
from govtool.records.trace.opaque import blanked
from govtool.records.trace.undetermined import settled

# Titian, section 2: a log of error codes and their descriptions; two codes share one, and one has none.
LOG = [("400", "h1"), ("404", "h1"), ("404", "h2"), ("410", "h2"), ("500", "h3"), ("404", "h1"), (None, "h9")]
CODES = [("400", "bad request"), ("404", "gone"), ("410", "gone"), ("200", "fine"), (None, "unknown")]
LISTS = [(1, [10, 20]), (2, [20]), (3, []), (4, None)]


def struct(*fields):
    return t.Struct(tuple(t.Field(name, kind) for name, kind in fields))


RELATIONS = {
    "log": table("log", struct(("code", t.STRING), ("host", t.STRING))),
    "codes": table("codes", struct(("code", t.STRING), ("text", t.STRING))),
    "lists": table("lists", struct(("id", t.INTEGER), ("l", t.Array(t.INTEGER)))),
}


@pytest.fixture(scope="module")
def duck():
    duck = Duck()
    duck.load("log", [("code", "VARCHAR"), ("host", "VARCHAR")], LOG)
    duck.load("codes", [("code", "VARCHAR"), ("text", "VARCHAR")], CODES)
    duck.load("lists", [("id", "INTEGER"), ("l", "INTEGER[]")], LISTS)
    return duck


def traced(duck, plan, where):
    found = Lineage.of(plan, duck).where(where).go_back_all()
    answer = found.answer()
    rows = {each.dataset: [row["_row"] for row in each.rows] for each in answer.inputs if each.count}
    against = {each.dataset: [row["_row"] for row in each.rows] for each in answer.against if each.count}
    assert {each.exactness for each in answer.inputs + answer.against} <= {"exact"}
    return (rows, against) if against else rows


COUNTS = "SELECT text, count(*) AS n FROM log JOIN codes ON log.code = codes.code GROUP BY text"


@pytest.mark.parametrize(
    ("sql", "where", "expected"),
    [
        # Titian's running example: a description of two codes, one of one code, one of none.
        (COUNTS, "text = 'gone'", {"log": [1, 2, 3, 5], "codes": [1, 2]}),
        (COUNTS, "text = 'bad request'", {"log": [0], "codes": [0]}),
        (COUNTS, "text = 'fine'", {}),
        ("SELECT code, count(*) AS n FROM log GROUP BY code", "code IS NULL", {"log": [6]}),
        # A common table expression of a subquery, which is read twice there.
        (
            "SELECT code FROM codes AS c WHERE EXISTS (WITH h AS (SELECT code, host FROM log) SELECT 1 FROM h AS a "
            "JOIN h AS b ON a.host = b.host WHERE a.code = c.code AND b.code = '404')",
            "code = '410'",
            {"codes": [2], "log": [2, 3]},
        ),
        # Keys that the output drops or maps.
        (COUNTS.replace("text, ", ""), "n = 4", {"log": [1, 2, 3, 5], "codes": [1, 2]}),
        ("SELECT upper(host) AS h, max(code) AS m FROM log GROUP BY upper(host)", "h = 'H1'", {"log": [0, 1, 5]}),
        # Joins.
        ("SELECT log.host, codes.text FROM log LEFT JOIN codes ON log.code = codes.code", "host = 'h3'", {"log": [4]}),
        ("SELECT host, text FROM log RIGHT JOIN codes USING (code)", "text = 'fine'", {"codes": [3]}),
        ("SELECT host, text FROM log FULL JOIN codes USING (code)", "host = 'h9'", {"log": [6]}),
        ("SELECT host, text FROM log JOIN codes ON log.code <=> codes.code", "host = 'h9'", {"log": [6], "codes": [4]}),
        ("SELECT a.host, b.host AS o FROM log a JOIN log b ON a.code = b.code", "host = 'h1' AND o = 'h2'", {"log": [1, 2, 5]}),
        ("SELECT host FROM log NATURAL JOIN codes", "host = 'h2'", {"log": [2, 3], "codes": [1, 2]}),
        ("SELECT a.host FROM log a CROSS JOIN codes b WHERE b.text = 'fine'", "host = 'h3'", {"log": [4], "codes": [3]}),
        ("SELECT host FROM log LEFT SEMI JOIN codes ON log.code = codes.code", "host = 'h2'", {"log": [2, 3], "codes": [1, 2]}),
        ("SELECT host FROM log LEFT ANTI JOIN codes ON log.code = codes.code", "true", {"log": [4, 6]}),
        # Subqueries.
        ("SELECT host FROM log WHERE EXISTS (SELECT 1 FROM codes WHERE codes.code = log.code AND text = 'gone')", "host = 'h2'", {"log": [2, 3], "codes": [1, 2]}),
        ("SELECT host FROM log WHERE NOT EXISTS (SELECT 1 FROM codes WHERE codes.code = log.code)", "true", {"log": [4, 6]}),
        ("SELECT host FROM log WHERE code IN (SELECT code FROM codes)", "host = 'h1'", {"log": [0, 1, 5], "codes": [0, 1]}),
        ("SELECT host FROM log WHERE code NOT IN (SELECT code FROM codes)", "true", {}),
        ("SELECT host FROM log WHERE code NOT IN (SELECT code FROM codes WHERE code IS NOT NULL)", "true", {"log": [4]}),
        ("SELECT host FROM log WHERE (code, host) IN (SELECT code, 'h1' FROM codes)", "true", {"log": [0, 1, 5], "codes": [0, 1]}),
        ("SELECT host FROM log WHERE host = 'h3' OR EXISTS (SELECT 1 FROM codes WHERE codes.code = log.code)", "host = 'h3' OR host = 'h2'", {"log": [2, 3, 4], "codes": [1, 2]}),
        ("SELECT host, (SELECT max(text) FROM codes WHERE codes.code = log.code) AS m FROM log", "host = 'h2'", {"log": [2, 3], "codes": [1, 2]}),
        ("SELECT host, (SELECT max(text) FROM codes) AS m FROM log", "host = 'h3'", {"log": [4], "codes": [0, 1, 2, 3, 4]}),
        ("SELECT host FROM log WHERE code = (SELECT min(code) FROM codes)", "host = 'h1'", {}),
        ("SELECT host FROM log WHERE code = (SELECT max(code) FROM codes)", "true", {"log": [3], "codes": [0, 1, 2, 3]}),
        ("SELECT host FROM log WHERE 2 = (SELECT count(*) FROM codes WHERE text = (SELECT max(text) FROM codes c WHERE c.code = log.code))", "host = 'h2'", {"log": [2, 3], "codes": [1, 2]}),
        ("SELECT * FROM codes, LATERAL (SELECT count(*) AS n FROM log WHERE log.code = codes.code) z", "text = 'gone' AND n = 3", {"codes": [1], "log": [1, 2, 5]}),
        ("SELECT * FROM codes, LATERAL (SELECT host FROM log WHERE log.code = codes.code) z", "host = 'h2'", {"codes": [1, 2], "log": [2, 3]}),
        # Set operations.
        ("SELECT code FROM log UNION SELECT code FROM codes", "code = '404'", {"log": [1, 2, 5], "codes": [1]}),
        ("SELECT code FROM log UNION ALL SELECT code FROM codes", "code IS NULL", {"log": [6], "codes": [4]}),
        ("SELECT code FROM log INTERSECT SELECT code FROM codes", "code IS NULL", {"log": [6], "codes": [4]}),
        ("SELECT code FROM log EXCEPT SELECT code FROM codes", "true", {"log": [4]}),
        ("SELECT code FROM log EXCEPT ALL SELECT code FROM codes", "code = '404'", ({"log": [1, 2, 5]}, {"codes": [1]})),
        ("SELECT code FROM codes EXCEPT (SELECT code FROM codes EXCEPT SELECT code FROM log)", "code = '410'", ({"codes": [2]}, {"log": [3]})),
        ("SELECT DISTINCT host FROM log", "host = 'h1'", {"log": [0, 1, 5]}),
        # Aggregates: NULL cells and rows that FILTER leaves out are no terms where there is no key.
        ("SELECT count(code) AS n FROM log", "true", {"log": [0, 1, 2, 3, 4, 5]}),
        ("SELECT count(*) FILTER (WHERE host = 'h2') AS n FROM log", "true", {"log": [2, 3]}),
        ("SELECT max(code) AS m FROM log WHERE false", "true", {}),
        ("SELECT code, host, count(*) AS n FROM log GROUP BY CUBE (code, host)", "code IS NULL AND host = 'h2'", {"log": [2, 3]}),
        ("SELECT host, code, count(*) AS n FROM log GROUP BY ROLLUP (host, code)", "host = 'h1' AND n = 3", {"log": [0, 1, 5]}),
        ("SELECT host, count(*) AS n FROM log GROUP BY GROUPING SETS ((host), ())", "n = 7", {"log": [0, 1, 2, 3, 4, 5, 6]}),
        ("SELECT * FROM log PIVOT (count(*) FOR code IN ('404', '410'))", "host = 'h2'", {"log": [2, 3]}),
        # Windows.
        ("SELECT host, count(*) OVER (PARTITION BY host) AS n FROM log", "host = 'h2'", {"log": [2, 3]}),
        ("SELECT code, host, row_number() OVER (PARTITION BY host ORDER BY code) AS r FROM log QUALIFY r = 1", "host = 'h2'", {"log": [2, 3]}),
        ("SELECT code, max(host) OVER (ORDER BY code ROWS BETWEEN 1 FOLLOWING AND 1 FOLLOWING) AS m FROM codes JOIN log USING (code) WHERE text <> 'gone'", "true", {"log": [0], "codes": [0]}),
        ("SELECT text, first_value(code) OVER (PARTITION BY text ORDER BY code) AS f FROM codes", "text = 'gone'", {"codes": [1, 2]}),
        # A row whose NULL is chosen is a term: the value would be another without it.
        ("SELECT text, first_value(code) OVER (ORDER BY code ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS f FROM codes", "text = 'bad request'", {"codes": [0, 3, 4]}),
        ("SELECT text, first_value(code) IGNORE NULLS OVER (ORDER BY code ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS f FROM codes", "text = 'bad request'", {"codes": [0, 3]}),
        # Lists, definitions, and what is dropped on the way.
        ("SELECT id, e FROM lists LATERAL VIEW explode(l) v AS e", "e = 20", {"lists": [0, 1]}),
        ("SELECT id, e FROM lists LATERAL VIEW OUTER explode(l) v AS e", "e IS NULL", {"lists": [2, 3]}),
        ("SELECT e, count(*) AS n FROM lists LATERAL VIEW explode(l) v AS e GROUP BY e", "n = 2", {"lists": [0, 1]}),
        ("WITH c AS (SELECT code, count(*) AS n FROM log GROUP BY code), d AS (SELECT max(n) AS m FROM c) SELECT code FROM c, d WHERE n = m", "true", {"log": [0, 1, 2, 3, 4, 5, 6]}),
        ("SELECT host FROM (SELECT host, (SELECT max(text) FROM codes) AS m FROM log)", "host = 'h3'", {"log": [4]}),
        ("SELECT 1 AS one", "true", {}),
        ("SELECT host FROM log WHERE host IN (SELECT col1 FROM VALUES ('h3'))", "true", {"log": [4], "rows-1": [0]}),
    ],
)  # fmt: skip
def test_traces_by_hand(duck, sql, where, expected):
    if "QUALIFY r" in sql:
        sql = f"SELECT * FROM ({sql.split(' QUALIFY')[0]}) WHERE r = 1"
    assert traced(duck, from_sql(sql, RELATIONS), where) == expected


@pytest.mark.parametrize(("chosen", "order", "terms"), [("code", "host", 7), ("host", "code", 6)])
def test_a_row_whose_null_max_by_may_return_is_a_term(duck, chosen, order, terms):
    plan = from_sql(f"SELECT max({chosen}) AS m FROM log", RELATIONS)
    (columns,) = (node.columns for node in walk_nodes(plan) if isinstance(node, Relation))
    (by,) = (column for column in columns if column.name == order)

    def max_by(term):
        return (
            replace(term, name="max_by", arguments=(*term.arguments, by)) if isinstance(term, AggregateCall) else term
        )

    plan = rewrite_nodes(plan, lambda node: node.replaced(terms=tuple(rewrite(term, max_by) for term in node.terms())))
    assert traced(duck, plan, "true") == {"log": list(range(terms))}


def test_rows_of_the_driver_and_ranges_are_inputs(duck):
    number = Attribute(1, "n", t.LONG)
    name = Attribute(2, "m", t.LONG)
    local = LocalRows(1, (name,), ((5,), (7,), (9,), (7,)))
    plan = Join(Range(0, 3, 13, 2, number), local, "inner", Call("=", (number, name), t.BOOLEAN))
    duck._range = lambda node: f"SELECT range AS c{node.column.id} FROM range({node.start}, {node.end}, {node.step})"
    assert traced(duck, plan, "n = 7") == {"range-0": [2], "rows-1": [1, 3]}


def test_an_existence_join_counts_where_its_column_is_read(duck):
    log = from_sql("SELECT code, host FROM log", RELATIONS)
    code, host = outputs(log)
    values = Attribute(90, "v", t.STRING)
    other = LocalRows(7, (values,), (("410",), ("500",), ("410",)))
    hit = Attribute(91, "hit", t.BOOLEAN)
    joined = Join(log, other, "existence", Call("=", (code, values), t.BOOLEAN), hit)
    assert traced(duck, Project(joined, (passed(host), passed(hit))), "hit") == {"log": [3, 4], "rows-7": [0, 1, 2]}
    assert traced(duck, Project(joined, (passed(host),)), "host = 'h3'") == {"log": [4]}
    kept = Project(Filter(joined, hit), (passed(host),))
    assert traced(duck, kept, "host = 'h3'") == {"log": [4], "rows-7": [1]}


def test_writes_and_shuffles_are_no_operators_of_a_trace(duck):
    plan = Write(Repartition(from_sql(COUNTS, RELATIONS)), "out", "parquet", "overwrite", ("text", "n"))
    assert traced(duck, plan, "n = 1") == {"log": [0], "codes": [0]}


def test_rows_that_a_run_wrote_are_chosen_by_their_place(duck):
    lineage = Lineage.of(from_sql("SELECT host, text FROM log JOIN codes USING (code)", RELATIONS), duck)
    duck.load("out", [("host", "VARCHAR"), ("text", "VARCHAR")], [("h2", "gone"), ("h1", "gone"), ("h1", "gone")])
    out = table("out", struct(("host", t.STRING), ("text", t.STRING)))
    one = lineage.rows(out, [(0, 1)]).go_back_all()
    assert one.answer().inputs[0].exactness == "superset"
    assert [token.row for token in one.ids("log")] == [1, 5]
    both = lineage.rows(out, [(0, 1), (0, 2)]).go_back_all()
    assert both.answer().inputs[0].exactness == "exact"
    two = lineage.rows(out, [(0, 0)]).go_back_all()
    assert [token.row for token in two.ids("log")] == [2, 3]


def test_long_chains_and_many_definitions_are_traced(duck):
    steps = ["WITH d0 AS (SELECT code, host FROM log)"]
    steps += [f"d{n} AS (SELECT code, host FROM d{n - 1} WHERE host <> 'h{n + 100}')" for n in range(1, 60)]
    plan = from_sql(", ".join(steps) + " SELECT host FROM d59", RELATIONS)
    assert traced(duck, plan, "host = 'h3'") == {"log": [4]}


@pytest.mark.parametrize("forward", [False, True])
def test_boundaries_of_a_long_chain_do_not_each_evaluate_all_below(duck, monkeypatch, forward):
    steps = ["WITH d0 AS (SELECT code AS a FROM log)"]
    steps += [f"d{n} AS (SELECT DISTINCT concat(a, '.') AS a FROM d{n - 1})" for n in range(1, 61)]
    lineage = Lineage.of(from_sql(", ".join(steps) + " SELECT a FROM d60", RELATIONS), duck)
    evaluated, keep = [], duck.keep
    monkeypatch.setattr(duck, "keep", lambda node: evaluated.extend(walk_nodes(node)) or keep(node))
    found = lineage.where("a LIKE '410%'").go_back_all()
    (step,) = found.answer().inputs
    assert [row["_row"] for row in step.rows] == [3]
    if forward:
        evaluated.clear()
        assert found.go_next_all().count() == 1
    assert len(evaluated) < 60 * 60


def test_definitions_that_double_without_end_are_refused(duck):
    steps = ["WITH d0 AS (SELECT code FROM log)"]
    steps += [f"d{n} AS (SELECT a.code FROM d{n - 1} a JOIN d{n - 1} b ON a.code = b.code)" for n in range(1, 40)]
    with pytest.raises(UsageError, match="cannot be traced"):
        Lineage.of(from_sql(", ".join(steps) + " SELECT code FROM d39", RELATIONS), duck)


def test_a_literal_condition_may_be_built_by_hand(duck):
    lineage = Lineage.of(from_sql("SELECT host FROM log", RELATIONS), duck)
    assert lineage.where(Literal(True, t.BOOLEAN)).count() == len(LOG)


def test_a_cell_that_cannot_be_evaluated_leaves_the_rows_exact(duck):
    plan = from_sql("SELECT host, code FROM log WHERE code = '410'", RELATIONS)
    host, code = outputs(plan)
    opaque = Opaque("a Java function", (code,), t.STRING)
    shown = Project(plan, (passed(host), Named(opaque, 80, "secret")))
    lineage = Lineage.of(shown, duck)
    assert [token.row for token in lineage.where("host = 'h2'").go_back_all().ids()] == [3]
    with pytest.raises(UsageError, match="column 'secret' cannot be evaluated again"):
        lineage.where("secret = 'x'")
    written = LocalRows(0, (Attribute(90, "h", t.STRING), Attribute(91, "s", t.STRING)), (("h2", "as it was"),))
    assert [token.row for token in lineage.recorded(written).go_back_all().ids()] == [3]


def test_a_cell_that_cannot_be_evaluated_and_steers_rows_is_never_blank():
    plan = from_sql("SELECT host, code FROM log", RELATIONS)
    host, code = outputs(plan)
    secret = Named(Opaque("a Java function", (code,), t.STRING), 80, "secret")
    made = Project(plan, (passed(host), secret))
    copied = Project(made, (Named(secret.attribute, 81, "copy"), passed(host)))
    condition = Call("=", (Attribute(81, "copy", t.STRING), Literal("x", t.STRING)), t.BOOLEAN)
    for steered in (Filter(copied, condition), Distinct(copied)):
        kept, blank = blanked(steered)
        assert (kept, blank) == (steered, frozenset())
    assert blanked(copied)[1] == {80, 81}


def test_elements_of_a_collected_list_bring_the_rows_of_all(duck):
    sql = "SELECT e FROM (SELECT collect_list(host) AS l FROM log WHERE code = '404') LATERAL VIEW explode(l) v AS e"
    found = Lineage.of(from_sql(sql, RELATIONS), duck).where("e = 'h2'").go_back_all()
    assert [token.row for token in found.ids()] == [1, 2, 5]
    assert found.answer().inputs[0].exactness == "superset"


def test_conditions_that_are_not_deterministic_give_whole_inputs(duck):
    plan = from_sql("SELECT host FROM log", RELATIONS)
    chance = Call("<=", (Call("random", (), t.DOUBLE, deterministic=False), Literal(2.0, t.DOUBLE)), t.BOOLEAN)
    found = Lineage.of(Filter(plan, chance), duck).where("host = 'h3'").go_back_all()
    assert (found.count(), found.answer().inputs[0].exactness) == (len(LOG), "coarse")


@pytest.mark.parametrize("filtered", [False, True])
def test_a_limit_reads_the_order_below_a_projection_that_drops_it(duck, filtered):
    """The plan of ``SELECT text FROM codes ORDER BY code DESC LIMIT 2``, with a filter between, too."""
    leaf = RELATIONS["codes"]
    code, text = outputs(leaf)
    rows = Sort(leaf, (SortKey(code, True, False),))
    if filtered:
        rows = Filter(rows, Call("<", (code, Literal("410", t.STRING)), t.BOOLEAN))
    plan = Limit(Project(rows, (passed(text),)), 2)
    assert traced(duck, plan, "true") == {"codes": [0, 1] if filtered else [1, 2]}


def test_an_order_within_partitions_decides_no_limit(duck):
    leaf = RELATIONS["codes"]
    plan = Limit(Sort(leaf, (SortKey(outputs(leaf)[0]),), total=False), 2)
    (step,) = Lineage.of(plan, duck).where("true").go_back_all().answer().inputs
    assert (step.count, step.exactness) == (5, "superset")


@pytest.mark.parametrize("options", [(), (("columnNameOfCorruptRecord", "LINE"),)])
def test_a_condition_on_lines_that_cannot_be_parsed_is_not_known(options):
    names = ("n", "LINE" if options else "_corrupt_record")
    columns = tuple(Attribute(i, name, t.STRING) for i, name in enumerate(names))
    leaf = Relation(0, "x", "csv", (), columns, struct(*((name, t.STRING) for name in names)), options=options)
    plan = Project(Filter(leaf, Call("is null", (columns[1],), t.BOOLEAN)), (passed(columns[0]),))
    found = settled(plan, Session("4.0.1", True, "UTC"))
    assert isinstance(found.child.condition.arguments[0], Opaque)
    assert settled(replace(plan, child=leaf), Session("4.0.1", True, "UTC")) == replace(plan, child=leaf)
