"""Classes that are compiled in a session's JVM."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from govtool.spark.live.jvm import janino


def test_threads_that_want_a_class_at_once_get_one_instance(monkeypatch):
    """With two, py4j would call the methods of the one on the other, and no later plan could be read."""
    made, all_there = [], threading.Barrier(8)

    def compiled(gateway, name):
        made.append(name)
        time.sleep(0.01)
        return object()

    monkeypatch.setattr(janino, "_compiled", compiled)
    gateway = SimpleNamespace()

    def wanted(_):
        all_there.wait()
        return janino.instance_in(gateway, "PlanWalker")

    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(wanted, range(8)))
    assert (len(found), made) == (1, ["PlanWalker"])
