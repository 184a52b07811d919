from __future__ import annotations

import pytest
import rdd_programs


@pytest.fixture(scope="session")
def lineage(spark):
    """A lineage context of the one session."""
    from pyspark import cloudpickle

    import govtool.spark

    cloudpickle.register_pickle_by_value(rdd_programs)  # tasks do not import modules of tests
    return govtool.spark.lineage_context(spark)
