from __future__ import annotations

import pytest
import rdd_programs


@pytest.fixture(scope="session")
def lineage(spark):
    """A lineage context of the one session."""
    import govtool.spark

    return govtool.spark.lineage_context(spark)


@pytest.fixture(autouse=True, scope="module")
def _shipped(request):
    """Tasks do not import modules of tests: their functions go to them by value."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install govtool[test]")
    from pyspark import cloudpickle

    for module in (request.module, rdd_programs):
        cloudpickle.register_pickle_by_value(module)
