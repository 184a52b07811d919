"""What Spark's own commands do to the catalog, as a live session says it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

STATEMENTS = """
CREATE DATABASE defined
CREATE TABLE defined.t (id BIGINT, name STRING) USING parquet
ALTER TABLE defined.t ADD COLUMNS (city STRING)
CREATE TABLE defined.s USING parquet AS SELECT id, name FROM defined.t
INSERT INTO defined.t (name, id) SELECT upper(name), id FROM defined.s
TRUNCATE TABLE defined.s
ALTER TABLE defined.s RENAME TO defined.u
CREATE VIEW defined.v AS SELECT id FROM defined.u
DROP VIEW defined.v
DROP TABLE defined.u
DROP TABLE IF EXISTS defined.nothing
"""


@pytest.fixture(scope="module")
def actions(spark, tmp_path_factory):
    """What the statements did, action by action."""
    from govtool.capture.spark.live.executions import LiveInterpreter
    from govtool.capture.spark.live.spool import read_spool
    from govtool.spark.live.listener import Recorder
    from govtool.spark.live.spool import Spool

    folder = tmp_path_factory.mktemp("definitions")
    session = spark.newSession()
    recorder = Recorder(Spool(str(folder)))
    recorder.attach(session)
    for statement in STATEMENTS.strip().splitlines():
        session.sql(statement)
    recorder.finish(60)
    (process,) = read_spool(folder)
    return list(LiveInterpreter(process, "live").actions())


def test_each_statement_says_what_sql_text_says(actions):
    made = [each.derivation for each in actions if each.derivation is not None]
    stated = [
        (d.target, d.target_kind, d.mode, {f"{e.target_path} <- {e.source.text} {e.kind.label}" for e in d.edges})
        for d in made
    ]
    of_t = {"id <- defined.t.id identity", "name <- defined.t.name identity", "* <- defined.t.* read"}
    of_s = {"id <- defined.s.id identity", "name <- defined.s.name transformation", "* <- defined.s.* read"}
    assert stated == [
        ("defined.t", "table", "declare", set()),
        ("defined.t", "table", "declare", set()),
        ("defined.s", "table", "replace", of_t),
        ("defined.t", "table", "append", of_s),
        ("defined.u", "table", "rename", {"* <- defined.s.* read", "? <- defined.s.? opaque"}),
        ("defined.v", "view", "replace", {"id <- defined.u.id identity", "* <- defined.u.* read"}),
        ("defined.v", "view", "drop", set()),
        ("defined.u", "table", "drop", set()),
        ("defined.nothing", "table", "drop", set()),
    ]
    assert [[(c.path, c.type) for c in d.columns] for d in made[:2]] == [
        [("id", "bigint"), ("name", "string")],
        [("city", "string")],
    ]


def test_a_truncate_is_a_run_of_its_table(actions):
    (run,) = (each.run for each in actions if any(output.mode == "truncate" for output in each.run.outputs))
    assert (run.outputs[0].dataset, run.status) == ("defined.s", "complete")
