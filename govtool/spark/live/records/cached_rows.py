"""Rows that are cached while they are written, and whether each was evaluated once: only then ids of them stay theirs.

Spark evaluates a part of cached rows again where its block is lost or cannot be fetched, and that may order, number or
choose rows anew. Then its block lies at another executor or at two, or the task that could not read it has failed.
"""

from __future__ import annotations

from typing import Any

from govtool.spark.live.jvm.scala import safely, strings

_MAX_WAIT = 10_000
"""Milliseconds that news of tasks and blocks is waited for: Spark notes it on a thread of its own."""


class CachedRows:
    """Rows of a Java ``Dataset`` on the disks of executors, until they are closed.

    Args:
        session: The session of pyspark.
        frame: The ``Dataset``.
        again: Another ``Dataset`` of the same plan, not yet planned.

    Raises:
        LookupError: Spark does not show the blocks of its cache.
    """

    def __init__(self, session: Any, frame: Any, again: Any) -> None:
        from pyspark import StorageLevel

        self._session = session
        self._frame = frame.persist(session.sparkContext._getJavaStorageLevel(StorageLevel.DISK_ONLY))
        self._blocks: dict[str, str] = {}
        self._rdd: int | None = None
        try:
            self._builder = again.queryExecution().withCachedData().cacheBuilder()
        except Exception as error:
            self.close()
            raise LookupError("the blocks of Spark's cache cannot be observed") from error

    def are_kept(self) -> bool:
        """Return whether the blocks that were there at the last call still are, and each is at one place alone.

        Raises:
            Py4JError: None is there.
        """
        found: dict[str, str] = {}
        if self._rdd is None:
            self._rdd = int(self._builder.cachedColumnBuffers().id())  # a builder that was cleared makes another one
        blocks = stages_and_blocks(self._session).rdd(self._rdd).partitions().get()
        for place in range(blocks.size()):
            block = blocks.apply(place)
            executors = strings(block.executors())
            if len(executors) != 1:
                return False
            found[block.blockName()] = f"{executors[0]} {block.diskUsed()}"
        kept = all(found.get(block) == state for block, state in self._blocks.items())
        self._blocks = found
        return kept

    def close(self) -> None:
        """Let go of the rows."""
        safely(lambda: self._frame.unpersist(False))


def failed_tasks(session: Any) -> int:
    """How many tasks of the application have failed so far, on executors that are there and on lost ones."""
    executors = stages_and_blocks(session).executorList(False)
    return sum(int(executors.apply(place).failedTasks()) for place in range(executors.size()))


def stages_and_blocks(session: Any) -> Any:
    """Spark's store of what is known of its executors, their blocks, and the stages that ran, by now."""
    context = session.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty(_MAX_WAIT)
    return context.statusStore()
