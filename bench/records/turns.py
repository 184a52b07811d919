"""What capture costs an action: in one JVM the same action in turns, plain, plain again and with exact plans recorded.

A session that is warm spends alike on the same action, so that far less work than jobs of their own shows a ratio.
CPU is that of Python and the JVM until the recorder has written down what it heard.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from bench.records.cpu import process_cpu
from bench.records.data import made
from bench.records.results import Results
from bench.records.workloads import WORKLOADS, opener

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("plain", "records", "control")
WARM = 2
"""Turns that are not counted."""


def measure(names: Iterable[str], rows: int, turns: int, folder: Path, results: Results) -> None:
    """Measure what is missing: an entry a workload."""
    for name in names:
        entry = results.entry(f"turns/{name}/{rows}")
        entry["input bytes"] = made(folder / "data", WORKLOADS[name].reads, rows)
        if len(entry.get("rounds", ())) < turns:
            print(f"turns/{name}/{rows} …", file=sys.stderr)
            command = [sys.executable, "-m", "bench.records.turns", name, str(folder / "data"), str(rows), str(turns)]
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
            with tempfile.TemporaryDirectory() as place:
                done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"turns of {name}: {done.stderr[-2000:]}")
            entry["rounds"] = json.loads(done.stdout.splitlines()[-1])
            entry["load"] = os.getloadavg()[2]
            results.save()


# ---- within the process of the sessions ------------------------------------------------------------------------------


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
            if not recorder.drain(120) or recorder.lost:
                raise SystemExit("an execution was lost")
            spent[kind] = {"cpu": process_cpu(own) + process_cpu(jvm) - before}
        found += [spent] if turn >= WARM else []
    if sum(len(each.read_text().splitlines()) for each in Path("spool/private").iterdir()) < turns:
        raise SystemExit("plans were not recorded")
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    turn_about(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
