"""The Python functions of analyzed plans: which they are, where several have one name, and what they took along."""

from __future__ import annotations

import pytest
from recorders import own_recorder

from govtool.spark.live.job.digest_key import Digests
from govtool.spark.live.listener import Recorder
from govtool.spark.live.plans import catalyst
from govtool.spark.live.plans.python_functions import described
from govtool.spark.live.spool import Spool

KEYED = Digests(b"secret")


@pytest.fixture(scope="module")
def session(spark, tmp_path_factory):
    """A session whose functions are noted, with digests under a key."""
    with own_recorder():
        recorder = Recorder(Spool(str(tmp_path_factory.mktemp("spool"))))
        recorder.digests = KEYED
        recorder.attach(spark.newSession())
        yield spark
        assert recorder.lost == 0


def functions_in(frame):
    return catalyst.captured(frame._jdf.queryExecution().analyzed(), KEYED).get("python")


def names_of(facts):
    return [(each["name"], sorted(each["captured"]), each["unknown"]) for each in facts]


def test_a_plan_without_functions_has_none(session):
    assert functions_in(session.range(2).filter("id > 0")) is None


def test_a_function_is_known_by_its_code_and_what_it_took_along(session):
    from pyspark.sql import functions as f

    limit, words = 3, session.sparkContext.broadcast({"a", "b"})

    def clean(value):
        return value + limit + len(words.value)

    (found,) = functions_in(session.range(2).select(f.udf(clean, "long")("id")))
    assert found == {"name": "clean", **described(clean, KEYED)}
    assert names_of([found]) == [("clean", ["limit", "words"], {})]


def test_functions_of_one_name_are_told_apart(session):
    from pyspark.sql import functions as f

    def times(factor):
        return f.udf(lambda value: value * factor, "long")

    two, three = times(2), times(3)
    ids = session.range(2)
    (first,), (second,) = (functions_in(ids.select(each("id"))) for each in (two, three))
    assert first["code"] == second["code"]
    assert first["captured"] != second["captured"]
    assert len(functions_in(ids.select(two("id"), three("id")))) == 2
    nested = ids.filter(f.col("id").isin([1])).select(f.when(three("id") > 1, f.lit(2)).alias("x"))
    assert functions_in(nested) == [second]


def test_a_function_within_a_subquery_and_a_command_is_found(session):
    from pyspark.sql import functions as f

    session.udf.register("plus", f.udf(lambda value: value + 1, "long"))
    session.udf.register("plus", f.udf(lambda value: value + 2, "long"))
    ids = session.range(3)
    ids.createOrReplaceTempView("ids_of_functions")
    query = session.sql("SELECT id FROM ids_of_functions WHERE id IN (SELECT plus(id) FROM ids_of_functions)")
    (found,) = functions_in(query)
    assert found["unknown"] == {}


def test_functions_over_whole_frames_and_tables_of_functions_are_known(session):
    pytest.importorskip("pandas")
    from pyspark.sql import functions as f

    more = {"k": 1}

    def mapped(frames):
        for frame in frames:
            yield frame.assign(id=frame.id + more["k"])

    ids = session.range(2)
    assert names_of(functions_in(ids.mapInPandas(mapped, "id long"))) == [("mapped", ["more"], {})]
    grouped = ids.groupBy("id").applyInPandas(lambda frame: mapped(iter([frame])), "id long")
    assert names_of(functions_in(grouped)) == [("<lambda>", ["mapped.more"], {})]

    class Repeat:
        def eval(self, n: int):
            yield (n * more["k"],)

    table = f.udtf(Repeat, returnType="x long")
    assert names_of(functions_in(table(f.lit(2)))) == [("Repeat", ["eval.more"], {})]


def test_a_function_that_was_made_before_the_recording_is_unknown(session):
    (found,) = catalyst.functions_of(None, ["elsewhere"])
    assert found["unknown"] == {"code": "not seen when it was made"}
