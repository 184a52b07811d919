"""A context that stops forgets the numbers of its executions: what is still waiting is written down before."""

from __future__ import annotations

import os
from functools import wraps
from typing import Any

from govtool.spark.live.scala import safely

WAIT = "GOVTOOL_SPARK_WAIT"
"""Seconds that the end of a job, or of its context, may wait for its last records."""
DEFAULT_WAIT = 15.0


def wait() -> float:
    """Seconds that a job may wait for its last records."""
    return float(os.environ.get(WAIT) or DEFAULT_WAIT)


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
