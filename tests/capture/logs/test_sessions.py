"""Sessions of a log: what is parsed once, what stays together, what was never written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.capture.logs.dedup import LogCollector
from govtool.capture.logs.names import needs_schema
from govtool.capture.logs.query_record import QueryRecord
from govtool.capture.logs.scripts import MAX_USERS, fold
from govtool.capture.logs.sessions import MAX_EPISODE
from govtool.capture.sql.extract import Options, extract_in_turn

START = datetime(2026, 1, 1, tzinfo=UTC)


def collector(*runs, dialect="postgres"):
    """A log of (session, text) or (session, text, more) in order of time, a second apart."""
    made = LogCollector(lambda name: name)
    for second, (session, text, *more) in enumerate(runs):
        values = {"dialect": dialect, "session_id": session, "started_at": START + timedelta(seconds=second)}
        made.add(QueryRecord(text, "x.log", second + 1, **(values | (more[0] if more else {}))))
    return made


def folded(*runs, dialect="postgres"):
    return fold(collector(*runs, dialect=dialect))


def texts(scripts) -> list[list[str]]:
    return [[s.text for s in script.statements] for script in scripts]


def edges(*runs, dialect="postgres") -> list[str]:
    """``target <- source`` of all value flow that the log says."""
    found = folded(*runs, dialect=dialect)
    made = list(extract_in_turn([found.definitions, found.queries], Options(dialect=dialect)))
    return sorted(
        {
            f"{d.target.split(':')[0]}.{e.target_path} <- {e.source.text}"
            for part in made
            for d in part.derivations
            for e in d.edges
            if e.target_path != "*"
        }
    )


def test_literals_make_no_difference_but_contexts_do():
    found = folded(
        ("a", "SELECT x FROM t WHERE y = 1", {"user": "ann"}),
        ("b", "select x from t where y = 2 -- again", {"user": "bob"}),
        ("b", "SELECT x FROM t WHERE y = 3", {"user": "bob", "schema": "s"}),
    )
    first, second = found.queries
    (statement,) = first.statements
    assert (statement.count, statement.principal) == (2, "ann, bob")
    assert (statement.first_seen, statement.last_seen) == ("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:01.000Z")
    assert second.statements[0].schema == "s"


def test_a_schema_matters_only_to_unqualified_names():
    runs = [("a", "SELECT x FROM s.t"), ("b", "SET search_path = p"), ("b", "SELECT x FROM s.t")]
    assert [script.statements[0].count for script in folded(*runs).queries] == [2]
    runs = [("a", "SELECT x FROM t"), ("b", "SET search_path = p"), ("b", "SELECT x FROM t")]
    assert [script.statements[0].count for script in folded(*runs).queries] == [1, 1]


@pytest.mark.parametrize(
    ("sql", "needs"),
    [
        ("SELECT a FROM s.t, u", True),
        ("SELECT a, b FROM s.t x, s.u y WHERE a IN (SELECT b FROM s.v) GROUP BY a, b", False),
        ("SELECT a FROM s.t WHERE a IN (SELECT b FROM v)", True),
        ("SELECT a FROM (s.t CROSS JOIN u)", True),
        ("SELECT a FROM (u)", True),
        ("WITH c AS (SELECT 1 FROM s.t), d (x) AS (SELECT 1 FROM c) SELECT * FROM c", False),
        ("WITH c AS (SELECT 1 FROM t) SELECT * FROM c", True),
        ("INSERT INTO s.t SELECT a FROM s.u", False),
        ("INSERT INTO t SELECT a FROM s.u", True),
        ("SELECT a FROM s.t LEFT JOIN u ON 1 = 1", True),
        ("SELECT a FROM s.t, LATERAL (SELECT b FROM u) x", True),
        ("SELECT a FROM generate_series(1, 2) x", False),
        ('SELECT a FROM "t"', True),
        ("SELECT a FROM s.t; SELECT b FROM s.t", True),
        ("DROP TABLE s.t", True),
        ("SELECT 'cut", True),
    ],
)
def test_unqualified_names_are_seen(sql, needs):
    assert needs_schema(sql, "postgres") == needs


def test_many_users_are_counted():
    found = folded(*[("a", "SELECT 1 FROM t", {"user": f"u{n:02}"}) for n in range(MAX_USERS + 5)])
    assert found.queries[0].statements[0].principal.endswith("u19 and 5 more")


def test_order_is_that_of_time_not_of_the_file():
    late = {"started_at": START + timedelta(hours=1)}
    runs = [("a", "SELECT x FROM t", late), ("a", "SET search_path = s", {"started_at": START})]
    assert edges(*runs) == ["query.x <- s.t.x"]


def test_what_the_record_says_of_its_names_goes_before_what_the_session_set():
    runs = [("a", "USE SCHEMA d.s"), ("a", "SELECT x FROM t", {"database": "DB", "schema": "PUBLIC"})]
    assert edges(*runs, dialect="snowflake") == ["query.x <- db.public.t.x"]


def test_set_local_ends_with_its_transaction():
    runs = [
        ("a", "SET search_path = s"), ("a", "BEGIN"), ("a", "SET LOCAL search_path = l"), ("a", "SELECT x FROM t"),
        ("a", "COMMIT"), ("a", "SELECT z FROM t"),
    ]  # fmt: skip
    assert edges(*runs) == ["query.x <- l.t.x", "query.z <- s.t.z"]


PIPELINE = (
    "CREATE TEMP TABLE t AS SELECT id FROM raw WHERE day = 1",
    "INSERT INTO mart (id) SELECT id FROM t",
    "DROP TABLE t",
)


def test_equal_episodes_are_one():
    runs = [(session, text) for session in "abc" for text in PIPELINE] + [("a", text) for text in PIPELINE]
    found = folded(*runs)
    assert texts(found.definitions) == [list(PIPELINE)]
    assert [s.count for s in found.definitions[0].statements] == [4, 4, 4]
    assert edges(*runs) == ["mart.id <- temp.a.t.id", "temp.a.t.id <- raw.id"]


def test_a_temporary_table_is_its_sessions_own():
    runs = [
        ("a", "CREATE TEMP TABLE t AS SELECT x FROM one"), ("b", "CREATE TEMP TABLE t AS SELECT x FROM two"),
        ("a", "INSERT INTO m (x) SELECT x FROM t"), ("c", "SELECT x FROM t"),
    ]  # fmt: skip
    assert edges(*runs) == ["m.x <- temp.a.t.x", "query.x <- t.x", "temp.a.t.x <- one.x", "temp.b.t.x <- two.x"]


def test_a_staging_table_that_vanishes_is_passed_through():
    runs = [
        ("a", "CREATE TABLE stg.x AS SELECT v FROM raw"), ("a", "INSERT INTO mart (v) SELECT v FROM stg.x"),
        ("a", "DROP TABLE stg.x"),
    ]  # fmt: skip
    found = list(extract_in_turn([folded(*runs).definitions], Options(dialect="postgres")))
    assert [(d.target, d.target_kind) for d in found[0].derivations] == [("stg.x", "temporary"), ("mart", "table")]


def test_swapping_a_new_table_in_leaves_the_old_name():
    runs = [
        ("a", "CREATE TABLE m_new AS SELECT v FROM raw"), ("a", "DROP TABLE m"), ("a", "ALTER TABLE m_new RENAME TO m"),
    ]  # fmt: skip
    assert edges(*runs) == ["m.v <- raw.v"]


def test_a_loop_over_one_temporary_table_is_read_once():
    loop = ("CREATE OR REPLACE TEMP TABLE t AS SELECT v FROM raw", "INSERT INTO m (v) SELECT v FROM t")
    found = folded(*[("a", text) for _ in range(50) for text in loop], dialect="snowflake")
    assert texts(found.definitions) == [list(loop)]
    assert [s.count for s in found.definitions[0].statements] == [50, 50]


def test_a_session_may_have_more_statements_than_an_episode():
    texts_of = [f"INSERT INTO t SELECT a{n} FROM r" for n in range(2 * MAX_EPISODE + 50)]
    runs = [("a", "CREATE TEMP TABLE t AS SELECT 1 AS x"), *(("a", text) for text in [*texts_of, *texts_of])]
    (script,) = folded(*runs).definitions
    assert len(script.statements) == 1 + len(texts_of)
    assert sum(statement.count for statement in script.statements) == len(runs)


def test_what_is_rolled_back_was_not_written_but_was_read():
    runs = [
        ("a", "BEGIN"), ("a", "INSERT INTO m (v) SELECT v FROM raw"), ("a", "SELECT w FROM raw"), ("a", "ROLLBACK"),
        ("a", "INSERT INTO n (v) SELECT v FROM raw"),
    ]  # fmt: skip
    assert edges(*runs) == ["n.v <- raw.v", "query.w <- raw.w"]
    assert folded(*runs).rolled_back == 1


def test_back_to_a_savepoint():
    runs = [
        ("a", "BEGIN"), ("a", "INSERT INTO m (v) SELECT v FROM raw"), ("a", "SAVEPOINT p"),
        ("a", "INSERT INTO n (v) SELECT v FROM raw"), ("a", "ROLLBACK TO SAVEPOINT p"), ("a", "COMMIT"),
    ]  # fmt: skip
    assert edges(*runs) == ["m.v <- raw.v"]


def test_back_to_the_same_savepoint_many_times():
    again = [("a", "INSERT INTO n (v) SELECT v FROM raw"), ("a", "ROLLBACK TO p")] * 3
    runs = [("a", "BEGIN"), ("a", "SAVEPOINT p"), *again, ("a", "INSERT INTO m (v) SELECT v FROM raw"), ("a", "COMMIT")]
    assert edges(*runs) == ["m.v <- raw.v"]
    assert folded(*runs).rolled_back == 3


def test_a_failure_dooms_the_transaction_in_postgres_only():
    runs = [
        ("a", "BEGIN"), ("a", "INSERT INTO m (v) SELECT v FROM raw"), ("a", "SELECT nope", {"status": "failed"}),
        ("a", "COMMIT"),
    ]  # fmt: skip
    assert edges(*runs) == []
    assert edges(*runs, dialect="duckdb") == ["m.v <- raw.v"]


def test_a_definition_commits_where_it_does():
    runs = [
        ("a", "BEGIN"), ("a", "INSERT INTO m (v) SELECT v FROM raw"), ("a", "CREATE TABLE x AS SELECT v FROM raw"),
        ("a", "ROLLBACK"),
    ]  # fmt: skip
    assert edges(*runs) == []
    assert edges(*runs, dialect="mysql") == ["m.v <- raw.v", "x.v <- raw.v"]


def test_names_go_back_with_a_rollback():
    runs = [("a", "BEGIN"), ("a", "SET search_path = s"), ("a", "ROLLBACK"), ("a", "SELECT x FROM t")]
    assert edges(*runs) == ["query.x <- t.x"]


def test_a_script_gives_way_to_its_parts():
    script = {"query_id": "j0", "session_id": "j0"}
    runs = [
        ("j0", "CREATE TEMP TABLE t AS SELECT a FROM r; INSERT INTO m (a) SELECT a FROM t", script),
        ("j0", "CREATE TEMP TABLE t AS SELECT a FROM r", {"query_id": "j1", "parent_id": "j0"}),
        ("j0", "INSERT INTO m (a) SELECT a FROM t", {"query_id": "j2", "parent_id": "j0"}),
    ]
    assert texts(folded(*runs, dialect="bigquery").definitions) == [[runs[1][1], runs[2][1]]]
    assert folded(*runs, dialect="bigquery").parts == 1
    assert texts(folded(runs[0], dialect="bigquery").definitions) == [[runs[0][1]]]


def test_what_is_cut_off_or_withheld_is_never_parsed():
    log = collector(
        ("a", "SELECT x FROM t WHERE", {"truncated": True}), ("a", ""), ("b", ""), ("b", "SELECT", {"status": "unfinished"}),
    ).log  # fmt: skip
    assert {reason: item.runs for (reason, _), item in log.withheld.items()} == {"truncated": 1, "withheld": 2}
    assert log.counts.unfinished == 1
    assert not log.statements


STEPS = [
    "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT p", "ROLLBACK TO p", "SET search_path = s", "DROP TABLE t", "USE x",
    "CREATE TEMP TABLE t AS SELECT a FROM r", "INSERT INTO m (a) SELECT a FROM t", "ALTER TABLE t RENAME TO u",
    "SELECT a FROM t", "SELECT a FROM u", "CREATE TABLE u AS SELECT a FROM t", "not SQL at all (", "SELECT 'cut",
]  # fmt: skip


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(STEPS)), max_size=25))
def test_no_run_is_lost_or_counted_twice(runs):
    log = collector(*runs)
    found = fold(log)
    counted = sum(s.count for script in (*found.definitions, *found.queries) for s in script.statements)
    assert counted + found.rolled_back == len(runs)
    list(extract_in_turn([found.definitions, found.queries], Options(dialect="postgres")))


def test_a_script_that_rolls_back_loses_nothing_that_it_wrote_outside_of_the_transaction():
    write = "insert into {0} select x from s".format
    partly = "; ".join([write("a"), "begin", write("b"), "rollback", write("c")])
    assert {"a.x <- s.x", "c.x <- s.x"} <= set(edges(("m", partly)))
    assert edges(("m", f"begin; {write('b')}; rollback")) == []
    twice = "; ".join(["begin", write("a"), "commit", "begin", write("b"), "rollback"])
    assert "a.x <- s.x" in edges(("m", twice))
    across = [("m", f"{write('a')}; begin; {write('b')}"), ("m", write("d")), ("m", f"{write('b')}; rollback")]
    assert edges(*across) == ["a.x <- s.x", "b.x <- s.x"]
