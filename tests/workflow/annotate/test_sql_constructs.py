"""Constructs of Spark SQL that are read: their rows, and deletions against the query over what is left.

The rows are Spark's: ``annotated_spark.py`` compares all of its constructs with a session.
"""

from __future__ import annotations

import datetime
from collections import Counter
from decimal import Decimal
from random import Random

import pytest
from annotated_spark import CONSTRUCTS, DELETIONS, ROWS

from govtool.app.why.deletion import delete_rows
from govtool.app.why.rows import why
from govtool.errors import UsageError
from govtool.workflow.queries.statuses import key_of


@pytest.fixture(autouse=True)
def no_spark(monkeypatch):
    """No test here starts a JVM: DuckDB is exact on all of these."""
    from govtool.app.records import engines as record_engines

    both = record_engines.engines
    monkeypatch.setattr(record_engines, "engines", lambda *arguments: both(*arguments)[:1])


SOME = [gone for gone in DELETIONS if len(gone) < 7]
"""Deletions that leave rows: of a CSV file without any the types are not known."""


def written(folder, gone=()):
    folder.mkdir(exist_ok=True)
    for name, text in ROWS.items():
        lines = [line for line in text.splitlines() if line.split(",")[0] not in gone]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return str(folder)


def rows(sql, folder):
    found = why(sql, folder, ["count"]).tuples
    return [each.values for each in found for _ in range(each.multiplicity)]


def day(text):
    return datetime.date.fromisoformat(text)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select id, explode(array(x, k)) as e from r where id in (0, 3)", [(0, 1), (0, 10), (3, None), (3, 7)]),
        ("select explode(array(id)) from r where id < 2", [(0,), (1,)]),
        ("select g, sort_array(collect_list(x)) as l from r where g = 'a' group by g", [("a", [10, 20, 20])]),
        ("select sort_array(array(x, k)) as l from r where id = 3", [([None, 7],)]),
        ("select sort_array(array(x, k), false) as l from r where id = 3", [([7, None],)]),
        ("select bool_or(b) as o, every(b) as e, any(x > 19) as y, some(x > 99) as s from r", [(True, False, True, False)]),
        ("select bool_or(b) as o from r where id > 99", [(None,)]),
        ("select d + interval 1 month as n, d - interval '1' year as m from r where id in (0, 1)",
         [(day("2020-02-29"), day("2019-01-31")), (day("2020-03-29"), day("2019-02-28"))]),
        ("select date_add(d, 1) as n, date_sub(d, 31) as s, datediff(d, date'2020-01-01') as f from r where id = 0",
         [(day("2020-02-01"), day("2019-12-31"), 30)]),
        ("select add_months(d, -1) as n from r where id = 1", [(day("2020-01-29"),)]),
        ("select avg(cast(id as decimal(3, 1))) as a, avg(distinct cast(id - 5 as decimal(20, 4))) as b from r where id < 3",
         [(Decimal("1.00000"), Decimal("-4.00000000"))]),
        ("select sum(cast(id as decimal(9, 2))) / cast(7 as decimal(3, 1)) as q, cast(-2 as decimal(3, 0)) / 3 as h from r"
         " where id = 3", [(Decimal("0.428571"), Decimal("-0.666667"))]),
        ("select cast(1.25 as decimal(32, 4)) * cast(id as decimal(16, 2)) as p from r where id = 2", [(Decimal("2.500000"),)]),
        ("select id, avg(cast(k as decimal(5, 1))) over (partition by g order by id) as a from r where id < 5 and k is not null",
         [(0, Decimal("1.00000")), (1, Decimal("1.00000")), (2, Decimal("2.00000")), (4, Decimal("2.00000"))]),
        ("select round(id * 0.335e0, 2) as r, round(-2.5e0) as h, round(id, 2) as i, round(cast(id as decimal(5, 3)) + 0.125, 2) as d"
         " from r where id = 3", [(1.01, -3.0, 3, Decimal("3.13"))]),
        ("select g, grouping(g) as a, grouping_id(g, k) as i, count(*) as n from r where id < 2 group by rollup(g, k)",
         [("a", 0, 0, 2), ("a", 0, 1, 2), (None, 1, 3, 2)]),
        ("select distinct (g), k + 1 as n from r where id < 3 order by r.g, k + 1", [("a", 2), ("b", 3)]),
        ("select avg(cast(id as decimal(28, 2))) as a, abs(cast(-min(id) as decimal(3, 1))) as m from r where id in (1, 4)",
         [(Decimal("2.500000"), Decimal("1.0"))]),
    ],
)  # fmt: skip
def test_constructs_mean_what_spark_means(sql, expected, tmp_path):
    assert sorted(rows(sql, written(tmp_path)), key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("sql", [CONSTRUCTS[at] for at in (0, 3, 7, 11, 15, 18)])
def test_deletions_agree_with_the_query_over_what_is_left(sql, tmp_path):
    folder = written(tmp_path / "all")
    left = [written(tmp_path / str(at), gone) for at, gone in enumerate(SOME)]
    expected = [Counter(map(key_of, rows(sql, each))) for each in left]
    for mode in ("propagate", "auto", "replay"):
        for answer, after in zip(delete_rows(sql, folder, SOME, mode=mode), expected, strict=True):
            sure = Counter(key_of(row.after) for row in answer.result.rows if row.after is not None)
            sure += Counter(map(key_of, answer.result.gains))
            assert not sure - after
            assert sure == after or not answer.result.is_certain
            assert answer.result.is_certain or mode == "propagate"


@pytest.mark.parametrize(
    ("sql", "construct"),
    [
        ("select max_by(id, x) from r", "MAX_BY"),
        ("select element_at(array(id), 1) from r", "ELEMENT_AT"),
        ("select grouping(g) from r group by g", "grouping sets"),
        ("select grouping(x) from r group by cube(g)", "the columns of GROUP BY"),
        ("select id from r where x > all (select k from s)", "ALL"),
        ("select id, d + interval 1 hour as n from r", "an interval"),
        ("select id, explode(array(x)), explode(array(k)) from r", "explode beside another one"),
        ("select *, explode(array(x)) from r", "a star"),
        ("select count(*), explode(collect_list(x)) from r", "explode in a query that groups"),
        ("select array_sort(array(x)) from r", "array_sort"),
        ("select first(x) from r", "FIRST"),
    ],
)
def test_other_constructs_are_refused_by_name(sql, construct, tmp_path):
    with pytest.raises(UsageError, match=construct):
        rows(sql, written(tmp_path))


COMMA_JOINS = [
    ("from r, s, t where r.id = t.id and s.id = t.id and r.x > 5", "from r join t on r.id = t.id join s on s.id = t.id where r.x > 5"),
    ("from r, s, t where r.x = s.x and s.id < 3 and t.g like 'a%'", "from r join s on r.x = s.x cross join t where s.id < 3 and t.g like 'a%'"),
    ("from r left join s on r.id = s.id, t where t.id = r.id and s.x is null", "from r left join s on r.id = s.id join t on t.id = r.id where s.x is null"),
    ("from r, s, (select g, count(*) as n from t group by g) c where r.g = c.g and n > s.id", "from r join (select g, count(*) as n from t group by g) c on r.g = c.g join s on n > s.id"),
]  # fmt: skip


@pytest.mark.parametrize(("commas", "joins"), COMMA_JOINS)
def test_comma_joins_have_the_provenance_of_joins(commas, joins, tmp_path):
    random = Random(7)
    for name in "rst":
        lines = [f"{name}{at},{random.randrange(6)},{random.randrange(12)},{random.choice('ab')}" for at in range(9)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["_tok,id,x,g", *lines]) + "\n")
    found = [
        why(f"select r.*, s.x as y {each}", str(tmp_path), ["polynomial"]).to_dict()["tuples"]
        for each in (commas, joins)
    ]
    assert found[0]
    assert found[0] == found[1]


def test_a_comma_join_makes_no_product(tmp_path):
    """Of four relations of 3,000 rows, of which the first two share no column."""
    for name in "rstu":
        lines = [f"{name}{at},{at},{at % 7}" for at in range(3000)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["_tok,id,g", *lines]) + "\n")
    sql = "select r.id from r, s, t, u where r.id = u.id and t.id = s.id and u.id = s.id and s.g = 1 and r.id < 20"
    assert rows(sql, str(tmp_path)) == [(1,), (8,), (15,)]


def test_conditions_of_a_negated_like_and_of_parts_of_dates(tmp_path):
    folder = written(tmp_path)
    assert rows("select id from r where g not like 'a%' and extract(year from d) = 2020", folder) == rows(
        "select id from r where not (g like 'a%') and year(d) = 2020", folder
    )
