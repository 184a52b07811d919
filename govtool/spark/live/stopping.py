"""A context that stops forgets the numbers of its executions: what is still waiting is written down before."""

from __future__ import annotations

from functools import wraps
from typing import Any

from govtool.spark.live.jvm.scala import safely
from govtool.spark.live.spool import wait


def patch(recorder: Any) -> None:
    """Have ``SparkContext.stop`` wait for the recorder, as the end of the process does."""
    from pyspark import SparkContext

    original = SparkContext.stop

    @wraps(original)
    def stop(self: Any) -> None:
        if self._jsc is not None:
            safely(lambda: recorder.settle(wait()))
        original(self)

    SparkContext.stop = stop  # type: ignore[method-assign]
