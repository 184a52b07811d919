"""A Python UDF of a live plan, rebuilt from the user's own file."""

from __future__ import annotations

import json

import pytest
from test_record_functions import SCRIPT, module_of

from govtool.records.execute import spark as executor
from govtool.records.execute.functions import registry
from govtool.records.plan import catalyst, codec
from govtool.records.plan.expressions import UdfReference
from govtool.records.spooled_plans import session_of
from govtool.records.sql.dialect import NotExact


def test_a_python_udf_is_rebuilt_from_the_file_that_has_it(spark, tmp_path):
    from pyspark.sql import functions as F

    from govtool.spark.live.records.exact import Functions, Walker

    path = tmp_path / "job.py"
    path.write_text(SCRIPT, encoding="utf-8")
    heard = Functions()
    import pyspark.core.rdd as rdd

    original = rdd._prepare_for_python_RDD
    heard.patch()
    try:
        priced = F.udf(module_of(path).priced, "double")
        frame = spark.range(4).select(priced("id").alias("p"), (F.col("id") + 1).alias("q")).filter("p > 1.5")
        walker = Walker(spark.sparkContext._gateway, spark.version)
        read = walker.read(frame._jdf.queryExecution())
        assert isinstance(read, str), read
        captured = json.loads(read)
    finally:
        rdd._prepare_for_python_RDD = original
    udfs = {
        key: UdfReference(each["module"], each["qualname"], each["digest"], "python")
        for key, each in heard.fresh().items()
    }
    plan = codec.loads(
        codec.dumps(catalyst.read(captured["exact"], session_of(walker.version, captured["settings"]), udfs))
    )
    assert sorted(map(tuple, executor.run(plan, spark, registry([path])).collect())) == [(2.5, 2), (4.0, 3), (5.5, 4)]
    path.write_text(SCRIPT.replace("RATE = 1.5", "RATE = 2.5"), encoding="utf-8")
    __import__("linecache").clearcache()
    with pytest.raises(NotExact, match="priced, which was not found again"):
        executor.run(plan, spark, registry([path]))
    assert "lambda" not in json.dumps(captured)
