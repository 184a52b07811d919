"""govtool inside a Spark session.

>>> import govtool.spark                                                            # doctest: +SKIP
>>> capture = govtool.spark.attach(spark)                                           # doctest: +SKIP
>>> govtool.spark.register(spark)                                                   # doctest: +SKIP
>>> spark.read.format("govtool").option("table", "edges").load("s3://bucket/store") # doctest: +SKIP
>>> lc = govtool.spark.lineage_context(spark.sparkContext)                          # doctest: +SKIP

Names are imported from where they are made when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from govtool.app.runs.attach import attach as attach
    from govtool.app.spark_source import register as register
    from govtool.spark.rdd.context import lineage_context as lineage_context
    from govtool.spark.rdd.operators import per_record as per_record

_HOMES = {
    "attach": "govtool.app.runs.attach",
    "lineage_context": "govtool.spark.rdd.context",
    "per_record": "govtool.spark.rdd.operators",
    "register": "govtool.app.spark_source",
}
"""Public names and the modules that hold them."""
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
