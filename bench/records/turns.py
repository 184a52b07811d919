"""What capture costs an action: the same action in turns in one JVM, plain, plain again and with exact plans recorded.

A warm session spends the same on the same action each time. So a ratio shows after far less work than with a process
for each job. CPU is that of Python and the JVM until the recorder has written everything down. What is spent after the
action has returned is kept apart as well: the recorder works then, and the action's own noise is not in it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from bench.records.cpu import process_cpu
from bench.records.workloads import WORKLOADS, opener

KINDS = ("plain", "records", "control")
WARM = 2
"""Turns that are not counted."""


def turn_about(name: str, data: str, rows: int, turns: int) -> None:
    """Write a workload's result in each session, in turns, another first each time."""
    from bench.records.actions import java_of, recorder_of
    from bench.records.job import session

    spark = session()
    sessions = {kind: spark.newSession() for kind in KINDS}
    recorder = recorder_of(sessions["records"], str(Path("spool").resolve()), str(Path("spool/private").resolve()))
    own, jvm = os.getpid(), java_of(os.getpid())
    found = []
    for turn in range(turns + WARM):
        spent, shift = {}, turn % len(KINDS)
        for kind in KINDS[shift:] + KINDS[:shift]:
            before = process_cpu(own) + process_cpu(jvm)
            build = WORKLOADS[name].build(opener(sessions[kind], data, rows))
            build.write.mode("overwrite").parquet(str(Path(f"out-{kind}").resolve()))
            returned = process_cpu(own) + process_cpu(jvm)
            if not recorder.drain(120) or recorder.lost:
                raise SystemExit("an execution was lost")
            ended = process_cpu(own) + process_cpu(jvm)
            spent[kind] = {"cpu": ended - before, "after": ended - returned}
        found += [spent] if turn >= WARM else []
    if sum(len(each.read_text().splitlines()) for each in Path("spool/private").iterdir()) < turns:
        raise SystemExit("plans were not recorded")
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    turn_about(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
