"""Apache Iceberg as published: what a live session and its event log say of a job, against lineage written by hand."""

from __future__ import annotations

import pytest
from lake_cases import DELETE, MERGE, UPDATE, Case
from lake_formats import cases_of, compared, expected, job, stated
from lake_jobs import edges, run_job

pytestmark = pytest.mark.maven("iceberg")

SETTINGS = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
}
CASES = cases_of(subqueries=True)
PLACE = "lake.db."
PROPERTIES = "TBLPROPERTIES ('write.merge.mode' = 'copy-on-write')"
READ = (
    "'format-version' = '2', 'write.merge.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read',"
    " 'write.delete.mode' = 'merge-on-read'"
)


def _of(case: Case, old: str, new: str) -> Case:
    """A case on another table."""
    return Case(
        case.text.replace(old, new), case.stated.replace(old, new), tuple(e.replace(old, new) for e in case.edges)
    )


ON_READ = [_of(case, "users", "readers") for case in (MERGE, UPDATE, DELETE)]
"""The same, where rows are marked as deleted and others appended."""
FRAMED = _of(MERGE, "users", "framed")
"""The same, by ``DataFrame.mergeInto``."""
BY_FRAME = """
from pyspark.sql import functions as F
spark.sql("CREATE TABLE lake.db.framed (id BIGINT, email STRING, country STRING) USING iceberg")
spark.sql("INSERT INTO lake.db.framed SELECT id, email, country FROM lake.db.updates")
merge = spark.table("lake.db.updates").alias("s").mergeInto("lake.db.framed", F.expr("framed.id = s.id"))
merge = merge.whenMatched(F.expr("s.op = 'd'")).delete()
set_ = {"email": F.expr("lower(s.email)"), "country": F.expr("coalesce(s.country, framed.country)")}
merge = merge.whenMatched(F.expr("s.op = 'u'")).update(set_)
merge = merge.whenNotMatched(F.expr("s.op <> 'd'")).insert({"id": F.expr("s.id"), "email": F.expr("s.email")})
gone = {"country": F.expr("concat('gone', framed.email)")}
merge.whenNotMatchedBySource(F.expr("framed.country = 'xx'")).update(gone).merge()
"""
MORE = "\n".join(
    [
        f"spark.sql('''CREATE TABLE lake.db.readers (id BIGINT, email STRING, country STRING) USING iceberg TBLPROPERTIES ({READ})''')",
        "spark.sql('INSERT INTO lake.db.readers SELECT id, email, country FROM lake.db.updates')",
        *(f"spark.sql({case.text.format(t=PLACE)!r})" for case in ON_READ),
        BY_FRAME,
        """
first = spark.sql("SELECT snapshot_id FROM lake.db.users.snapshots ORDER BY committed_at").collect()[0][0]
print(first)
spark.sql(f"CREATE TABLE lake.db.past USING iceberg AS SELECT id FROM lake.db.users VERSION AS OF {first}")
spark.sql(f"CALL lake.system.rollback_to_snapshot('db.users', {first})")
spark.sql("ALTER TABLE lake.db.users CREATE BRANCH b1")
spark.sql("INSERT INTO lake.db.users.branch_b1 (id, email) SELECT id, email FROM lake.db.updates")
spark.sql("MERGE INTO lake.db.users t USING lake.db.updates s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)")
spark.table("lake.db.updates").selectExpr("op AS day", "id", "email").writeTo("lake.db.parts").overwritePartitions()
spark.sql("TRUNCATE TABLE lake.db.parts")
stream = spark.readStream.table("lake.db.updates").selectExpr("id", "lower(email) AS email")
stream = stream.writeStream.option("checkpointLocation", "data/check").trigger(availableNow=True)
stream.toTable("lake.db.streamed").awaitTermination()
""",
    ]
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory, jars):
    folder = tmp_path_factory.mktemp("iceberg") / "job"
    script = job(CASES, PLACE, "iceberg", PROPERTIES, MORE)
    done = run_job(folder, script, jars("iceberg"), {**SETTINGS, "spark.sql.catalog.lake.warehouse": f"{folder}/lake"})
    assert done.code == 0, done.err
    return done


def test_each_statement_says_what_is_true(ran):
    found = stated(ran, PLACE, targets="users|parts|again")
    assert found[0] == ("users create_table declare", frozenset())
    assert found[2 : 2 + len(expected(CASES))] == expected(CASES)


def test_merge_on_read_says_the_same(ran):
    assert stated(ran, PLACE, targets="readers")[2:] == expected(ON_READ)


def test_a_merge_of_a_frame_says_the_same(ran):
    assert stated(ran, PLACE, targets="framed")[2:] == expected([FRAMED])


def test_time_travel_branches_and_streams(ran):
    reported = edges([each for _, all_ in ran.live() for each in all_], ran.folder)
    assert reported["lake.db.past create_table_as replace"] == {
        "* <- lake.db.users.* read",
        "id <- lake.db.users.id identity",
    }
    past = next(run for run, _ in ran.live() if any(output.dataset == "lake.db.past" for output in run.outputs))
    assert [(i.identity.kind, i.identity.version) for i in past.inputs] == [("iceberg", int(ran.out.split()[-1]))]
    assert (
        "users insert append",
        frozenset({"* <- updates.* read", "id <- updates.id identity", "email <- updates.email identity"}),
    ) in stated(ran, PLACE, targets="users")
    (described,) = (run for run, _ in ran.live() if [i.dataset for i in run.inputs] == ["lake.db.users.snapshots"])
    assert described.inputs[0].identity is None
    assert reported["lake.db.streamed insert append"] == {
        "* <- lake.db.updates.* read",
        "id <- lake.db.updates.id identity",
        "email <- lake.db.updates.email transformation",
    }


def test_a_merge_that_only_inserts_arrives_as_an_insert(ran):
    assert stated(ran, PLACE, targets="users")[-1] == (
        "users insert append",
        frozenset(
            {
                "* <- updates.* read",
                "* <- users.* read",
                "* <- updates.id join",
                "* <- users.id join",
                "id <- updates.id identity",
            }
        ),
    )


def test_a_rollback_is_a_break(ran):
    (run,) = (run for run, _ in ran.live() if any(output.mode == "restore" for output in run.outputs))
    assert [(note.code, run.outputs[0].dataset) for note in run.breaks] == [("break.restored", "lake.db.users")]


def test_nothing_else_is_lost(ran):
    assert {note.code for run, _ in ran.live() for note in run.breaks} == {"break.restored"}
    assert not [run.id for run, _ in ran.live() if "-" in run.id.rpartition("/")[2] and run.outputs and run.outputs[0].mode != "restore"
                and run.outputs[0].dataset != "lake.db.streamed"]  # fmt: skip


def test_what_the_event_log_says(ran):
    """All values that flow from other tables; of a column that is renamed Spark 4.1 prints no name."""
    same, broken, other = compared(ran)
    assert other == []
    assert broken == ["alter lake.db.parts: break.definition"]
    assert same == 27
