"""whatif delete over outer joins: DuckDB deletes the rows, and what is said to be lost is gone, and nothing else."""

from __future__ import annotations

from functools import cache

import duckdb
import pytest
from graph_samples import graph, view

from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.graph.index import Index
from govtool.query.changes.whatif import whatif
from govtool.query.selection.selectors import Selection

TABLES = "".join(f"create table {name}(id int, x_{name} int, k int);" for name in "abc")
ROWS = "".join(f"insert into {name} values (1, 5, 7), (2, 6, 8), (3, 7, 9);" for name in "abc")
KNOWN = {
    "select a.id, x_b from a left join b on a.k = b.k": {"b": {"x_b": "lost", "id": "rows"}, "a": "lost"},
    "select a.id, x_b from a right join b on a.k = b.k": {"a": {"id": "lost", "x_b": "rows"}, "b": "lost"},
    "select a.id, x_b from a full join b on a.k = b.k": {"a": {"id": "lost", "x_b": "rows"}, "b": {"x_b": "lost"}},
    "select a.id from a anti join b on a.id = b.x_b": {"b": {"id": "rows"}, "a": "lost"},
    "select a.id from a semi join b on a.k = b.k": {"b": "lost", "a": "lost"},
    "select a.id, x_b from a left join b on a.k = b.k join c on c.k = b.k": {"b": "lost", "c": "lost"},
    "select a.id, x_b from a left join b on a.k = b.k join c on c.k = a.k": {"b": {"x_b": "lost", "id": "rows"}, "c": "lost"},
    "select a.id, x_b from a left join b on a.k = b.k cross join lateral (select b.k + 1 as j where b.k > 0) as l": {"b": "lost"},
    "select a.id, x_b, x_c from a left join (select k, x_b from b) as q on a.k = q.k left join c on c.k = q.k": {
        "b": {"x_b": "lost", "id": "rows", "x_c": "rows"},
        "c": {"x_c": "lost", "id": "rows", "x_b": "rows"},
    },
    "select x_b, sum(x_a) as s from a left join b on a.k = b.k group by x_b": {"b": {"x_b": "lost", "s": "rows"}},
    "select a.id from a join b on a.k = b.k left join b as again on again.k = a.k": {"b": "lost"},
    "select a.id, x_c from c, a left join b on a.k = b.k": {"b": {"id": "rows"}, "c": "lost"},
    "select a.id, x_b from a left join b on a.k = b.k union all select id, k from c": {
        "b": {"x_b": "changes", "id": "rows"},
        "a": {"id": "changes"},
    },
    "select id from a where k > 0 and (exists (select 1 from b where b.k = a.k) and x_a in (select x_c from c))": {"b": "lost", "c": "lost"},
    "select k, count(*) as n from a group by k having k in (select k from b)": {"b": "lost"},
    "select id, (select max(x_b) from b) as m from a": {"b": {"m": "lost", "id": "rows"}},
    "select id, x_c as z from c union all select a.id, x_b from a left join b on a.k = b.k": {"c": {"id": "changes"}},
}  # fmt: skip
"""What is said where all of it is known; ``lost`` alone is the whole view."""
UNKNOWN = {
    "select a.id from a left join b on a.id = b.x_b where b.k is null": {"b": {"id"}},
    "select a.id, x_b from a left join b on a.k = b.k where x_b > 1": {"b": {"id"}},
    "select coalesce(x_b, x_a) as v from a full join b on a.k = b.k": {"a": {"v"}, "b": {"v"}},
    "select k from a full join b using (k)": {"a": {"k"}, "b": {"k"}},
    "select a.id from a where not exists (select 1 from b where b.x_b = a.id)": {"b": {"id"}},
    "select a.id from a where a.k > 0 and a.id not in (select x_b from b)": {"b": {"id"}},
    "select id from a except select x_b from b": {"b": {"id"}},
    "select id, (select max(x_b) from b where b.k = a.k) as m from a": {"b": {"id"}},
    "select id, x_a + coalesce((select count(*) from b where b.k = a.k), 0) as m from a": {"b": {"id", "m"}},
    "select id, id in (select x_b from b) as f from a": {"b": {"f"}},
    "select id from a where x_a > 5 or k in (select k from b)": {"b": {"id"}},
    "select id from a where x_a > (select coalesce(max(k), 0) from b where b.k < 0)": {"b": {"id"}},
    "select id from a where case when exists (select 1 from b where b.k = a.k) then false else true end or x_a > 5": {
        "b": {"id"}
    },
    "select id from a where exists (select 1 from b where b.k = a.k or not exists (select 1 from c where c.k = b.k))": {
        "c": {"id"}
    },
}
"""What is not known: these columns."""


@cache
def index(query: str) -> Index:
    text = f"{TABLES} create view v as {query};"
    return index_of(extract([Script("v.sql", text)], Options(dialect="duckdb")).derivations)


def said(query: str, table: str) -> dict[str, str]:
    found = whatif(index(query), "delete", Selection((index(query).find_dataset(table),), ()))
    return {one.column.removeprefix("v."): one.verdict for one in found.affected}


def left(query: str, table: str) -> dict[str, bool]:
    """Whether the view has rows, and each column a value, once the rows of a table are gone."""
    with duckdb.connect() as base:
        base.execute(f"{TABLES}{ROWS} create view v as {query}")
        assert base.sql("from v").fetchall(), "a view that has rows before"
        base.execute(f"delete from {table}")
        shown = base.sql("from v")
        rows, names = shown.fetchall(), shown.columns
    return {"*": bool(rows), **{name: any(row[i] is not None for row in rows) for i, name in enumerate(names)}}


CASES = [(query, table) for query in (*KNOWN, *UNKNOWN) for table in "abc" if f" {table} " in f"{query} "]


@pytest.mark.parametrize(("query", "table"), CASES)
def test_what_is_said_to_be_lost_is_gone_and_nothing_else_is(query, table):
    verdicts = said(query, table)
    for name, there in left(query, table).items():
        verdict = verdicts.get(name)
        assert verdict == "unknown" or (verdict == "lost") is not there, (name, verdict, there)


@pytest.mark.parametrize(("query", "table"), [(query, table) for query, found in KNOWN.items() for table in found])
def test_each_side_of_a_join_is_needed_or_not(query, table):
    verdicts, expected = said(query, table), KNOWN[query][table]
    if expected == "lost":
        assert set(verdicts.values()) == {"lost"}
    else:
        assert {name: verdicts[name] for name in expected} == expected
        assert verdicts["*"] == "rows"


@pytest.mark.parametrize("query", UNKNOWN)
def test_what_is_left_behind_a_filter_or_of_a_merged_column_is_not_known(query):
    for table, names in UNKNOWN[query].items():
        assert {name for name, verdict in said(query, table).items() if verdict == "unknown"} - {"*"} == names


def test_full_joins_lose_their_rows_with_the_last_side():
    full = index("select a.id, x_b from a full join b on a.k = b.k")
    both = whatif(full, "delete", Selection(tuple(full.find_dataset(name) for name in "ab"), ()))
    assert {one.verdict for one in both.affected} == {"lost"}


def test_a_store_that_does_not_tell_the_sides_answers_as_before():
    index = graph(view("v", "id", "a.id -> id identity", "a.* -> * read", "b.* -> * read"))
    found = whatif(index, "delete", Selection((index.find_dataset("b"),), ()))
    assert {one.verdict for one in found.affected} == {"lost"}
