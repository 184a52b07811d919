"""What definitions say to queries of other processes: the same as if all were read together."""

from __future__ import annotations

import pytest

from govtool.capture.sql.extract import Options, extract_definitions, extract_in_turn, extract_queries
from govtool.capture.sql.resolve.knowledge import Knowledge, merge_usage
from govtool.capture.sql.resolve.logged import LoggedScript, LoggedStatement
from govtool.capture.sql.schemas.supplied import Schema


def scripts(*texts: str, dialect: str = "postgres", **more) -> list[LoggedScript]:
    return [
        LoggedScript(f"s{line}", (LoggedStatement(text, "x.log", line, **more),), dialect)
        for line, text in enumerate(texts, 1)
    ]


DEFINITIONS = [
    "CREATE VIEW v AS SELECT * FROM t",
    "CREATE TABLE t (a int, b text)",
    "CREATE TABLE u AS SELECT a, c FROM w",
    "ALTER TABLE u ADD COLUMN d int",
    "INSERT INTO filled (x, y) SELECT a, b FROM t",
    "INSERT INTO copied SELECT a, b FROM t",
    "CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql AS 'SELECT n + n'",
    "CREATE VIEW loop1 AS SELECT * FROM loop2",
    "CREATE VIEW loop2 AS SELECT * FROM loop1",
    "CREATE TABLE s.only_there AS SELECT k.e FROM k",
    "CREATE VIEW open_view AS SELECT * FROM nobody_knows",
]
QUERIES = [
    "SELECT * FROM v",
    "SELECT * FROM u",
    "SELECT d, b FROM u, v",
    "SELECT * FROM filled",
    "SELECT * FROM copied",
    "SELECT twice(a) AS n FROM t",
    "SELECT * FROM loop1",
    "SELECT e FROM k, nowhere",
    "SELECT open_view.z, q FROM open_view",
    "SELECT * FROM open_view",
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("schema", [None, Schema({"k": {"e": "text"}, "t": {"a": "int", "b": "text"}})])
def test_queries_alone_say_what_they_say_beside_the_definitions(query, schema):
    options = Options(dialect="postgres", schema=schema)
    made = list(extract_in_turn([scripts(*DEFINITIONS), scripts(query)], options))
    extraction, knowledge = extract_definitions(scripts(*DEFINITIONS), options)
    assert extraction == made[0]
    knowledge = Knowledge.from_json(knowledge.to_json())
    assert extract_queries(scripts(query), options, knowledge).extraction == made[1]


def test_a_search_path_finds_what_was_defined_elsewhere():
    options = Options(dialect="postgres")
    _, knowledge = extract_definitions(scripts(*DEFINITIONS), options)
    found = extract_queries(scripts("SELECT e FROM only_there", search_path=("r", "s")), options, knowledge)
    assert found.extraction.derivations[0].edges[0].source.dataset == "s.only_there"


def test_what_more_usage_could_change_is_left_for_later():
    options = Options(dialect="postgres")
    queries = scripts("SELECT a FROM r", "SELECT x FROM p, q", "SELECT * FROM p")
    first = extract_queries(queries, options, Knowledge(), final=False)
    assert first.unsettled == (1, 2)
    assert [d.statement.line for d in first.extraction.derivations] == [1]
    assert first.usage == {"r": frozenset("a")}
    known = Knowledge().with_usage(merge_usage([first.usage, {"p": frozenset("x")}]))
    second = extract_queries(queries[1:], options, known)
    assert [d.status for d in second.extraction.derivations] == ["understood", "partial"]
    assert [d.edges[0].source.text for d in second.extraction.derivations] == ["p.x", "p.x"]


def test_knowledge_is_the_same_text_whatever_the_order():
    options = Options(dialect="postgres")
    texts = DEFINITIONS[:7]
    there, back = (extract_definitions(scripts(*t), options)[1] for t in (texts, texts[::-1]))
    assert there.to_json() == back.to_json()
