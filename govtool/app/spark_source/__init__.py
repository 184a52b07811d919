"""The store as a data source of Spark: ``spark.read.format("govtool")`` and ``df.write.format("govtool")``.

`tables` says which tables there are and cuts a version of one into partitions; `filters` is predicate push-down;
`source` are the classes that Spark calls, in the driver and in its Python workers; `write` turns rows into fragments.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
"""Without this setting Spark refuses every read of a source that can push filters down."""
_PASSED = ("GOVTOOL_", "AWS_", "GOOGLE_", "AZURE_", "XDG_CACHE_HOME")


def register(spark: SparkSession) -> SparkSession:
    """Make the format ``govtool`` known to a session.

    Also switches predicate push-down for Python sources on, and, for a local session, has the workers run the Python
    that runs this, with the cloud settings of its environment: Spark would take the first ``python3`` on the path,
    which may not have govtool. On a cluster the executors need govtool, and the store's credentials, in their own
    environment (``PYSPARK_PYTHON``).

    Args:
        spark: A session of Spark 4.

    Returns:
        The session.
    """
    from govtool.app.spark_source.source import GovtoolSource

    spark.conf.set(PUSHDOWN, "true")
    context = getattr(spark, "_sc", None)  # There is none in Spark Connect, whose server chooses its own workers.
    if context is not None and context.master.startswith("local"):
        if "PYSPARK_PYTHON" not in os.environ:
            context.pythonExec = sys.executable
        # Workers have the environment of the moment when Spark was started.
        context.environment.update({k: v for k, v in os.environ.items() if k.startswith(_PASSED)})
    spark.dataSource.register(GovtoolSource)
    return spark
