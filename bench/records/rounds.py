"""Rounds of a workload, measured in a process of their own: the part that ``turns`` and ``eager`` share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.records.data import made
from bench.records.results import Results
from bench.records.workloads import WORKLOADS

ROOT = Path(__file__).resolve().parents[2]


def measure_rounds(kind: str, names: Iterable[str], rows: int, count: int, folder: Path, results: Results) -> None:
    """Measure the workloads that lack rounds: an entry a workload.

    ``bench.records.KIND NAME DATA ROWS COUNT`` runs in a temporary folder. Its last line is the rounds as JSON.
    """
    for name in names:
        entry = results.entry(f"{kind}/{name}/{rows}")
        entry["input bytes"] = made(folder / "data", WORKLOADS[name].reads, rows)
        if len(entry.get("rounds", ())) >= count:
            continue
        print(f"{kind}/{name}/{rows} …", file=sys.stderr)
        command = [sys.executable, "-m", f"bench.records.{kind}", name, str(folder / "data"), str(rows), str(count)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
        with TemporaryDirectory(dir=folder) as place:
            done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{kind} of {name}: {done.stderr[-2000:]}")
        entry["rounds"] = json.loads(done.stdout.splitlines()[-1])
        entry["load"] = os.getloadavg()[2]
        results.save()
