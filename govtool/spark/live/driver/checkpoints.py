"""DataFrames that a job checkpointed: Spark puts an RDD in the place of their plan.

Nothing in the plan of a later query says what that RDD holds: its columns keep their ids, but so do those of a filter
of it that is checkpointed again. The number of the RDD is noted, with the execution whose rows it has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from govtool.spark.live.jvm.call_sites import standing_for
from govtool.spark.live.jvm.scala import safely

METHODS = ("checkpoint", "localCheckpoint")
Line = dict[str, Any]


def patch(frame_class: Any, note: Callable[[Line], None]) -> None:
    """Hear of the checkpoints that the methods of DataFrames make; ``note`` gets a line of the spool for each."""
    for name in METHODS:
        original = getattr(frame_class, name, None)
        if original is not None:
            setattr(frame_class, name, _noted(original, note))


def _noted(original: Any, note: Callable[[Line], None]) -> Any:
    @wraps(original)
    def checkpoint(own: Any, *args: Any, **named: Any) -> Any:
        made = original(own, *args, **named)
        safely(lambda: note(_facts(own, made)))
        return made

    return standing_for(original, checkpoint)


def _facts(frame: Any, made: Any) -> Line:
    """The RDD of a checkpoint, and the ``QueryExecution`` of the DataFrame: the listener hears of the very same."""
    return {
        "e": "checkpoint",
        "application": str(frame.sparkSession.sparkContext.applicationId),
        "rdd": int(made._jdf.queryExecution().analyzed().rdd().id()),
        "query_execution": int(frame._jdf.queryExecution().id()),
    }
