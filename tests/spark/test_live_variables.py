"""Variables of SQL: what depends on one depends on the query that gave it its value, live as in SQL text."""

from __future__ import annotations

import pytest

from bench import programs
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script

TABLES = """
CREATE TABLE people (id INT, age INT) USING parquet;
CREATE TABLE sales (id INT, amount INT) USING parquet;
INSERT INTO people VALUES (1, 30);
INSERT INTO sales VALUES (1, 10);
"""
JOB = """
DECLARE OR REPLACE VARIABLE oldest INT DEFAULT 1;
SET VAR oldest = (SELECT max(age) FROM people WHERE id > 0);
CREATE TABLE by_query USING parquet AS SELECT id, amount + oldest AS plus FROM sales WHERE amount < oldest;
SET VAR oldest = oldest + 1;
CREATE TABLE by_itself USING parquet AS SELECT id, oldest AS o FROM sales;
SET VAR (oldest) = (SELECT min(amount) FROM sales);
CREATE TABLE by_list USING parquet AS SELECT id, oldest AS o FROM people;
SET VAR oldest = 7;
CREATE TABLE by_value USING parquet AS SELECT id, oldest AS o FROM people;
"""
VALUES = {
    "by_query": {"sales.amount transformation", "people.age aggregation"},
    "by_itself": {"people.age aggregation"},
    "by_list": {"sales.amount aggregation"},
    "by_value": set(),
}
ROWS = {
    "by_query": {"sales read", "people read", "sales.amount filter", "people.age filter", "people.id filter"},
    "by_itself": {"sales read", "people read", "people.id filter"},
    "by_list": {"people read", "sales read"},
    "by_value": {"people read"},
}


def texts(derivation, path):
    found = set()
    for edge in derivation.edges:
        if edge.target_path == path:
            dataset = edge.source.dataset.removeprefix("variables.")
            kind = edge.kind.label
            found.add(f"{dataset} read" if kind == "read" else f"{dataset}.{edge.source.path} {kind}")
    return found


@pytest.fixture(scope="module")
def job(spark, spark_home, tmp_path_factory):
    """The derivations of the job's tables, by source."""
    from govtool.spark.live.listener import Recorder
    from govtool.spark.live.spool import Spool

    spool = tmp_path_factory.mktemp("spool")
    session = spark.newSession()
    session.sql("CREATE DATABASE variables")
    session.sql("USE variables")
    recorder = Recorder(Spool(str(spool)))
    recorder.attach(session)
    for statement in f"{TABLES}{JOB}".split(";\n"):
        if statement.strip():
            session.sql(statement)
    recorder.finish(60)
    found = {"live": programs.live(spool), "log": programs.logged(spark_home / "events")}
    read = extract([Script("job.sql", f"{TABLES}{JOB}")], Options(dialect="spark", evidence=False)).derivations
    return {
        "text": {made.target: made for made in read},
        **{
            source: {each.target.removeprefix("variables."): each.derivation for each in actions if each.derivation}
            for source, actions in found.items()
        },
    }


@pytest.mark.parametrize("source", ["live", "text"])
@pytest.mark.parametrize("target", VALUES)
def test_what_depends_on_a_variable_depends_on_its_query(job, source, target):
    made = job[source][target]
    assert texts(made, made.columns[1].path) == VALUES[target]
    assert texts(made, "*") == ROWS[target]
    assert made.status == "understood"


def test_a_log_has_the_value_and_says_so(job):
    made = job["log"]["by_query"]
    assert texts(made, made.columns[1].path) == {"sales.amount transformation"}
    for target in VALUES:
        assert "plan.variable" in {note.code for note in job["log"][target].diagnostics}, target
