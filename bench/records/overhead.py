"""What capture costs: the same job plain, plain again, and under ``govtool run --records``, in turns."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.records.cpu import Cost, become_subreaper, cost_of
from bench.records.data import made
from bench.records.job import WARM
from bench.records.results import Results
from bench.records.workloads import WORKLOADS, Workload

ROOT = Path(__file__).resolve().parents[2]
GOVTOOL = [sys.executable, "-m", "govtool"]
HOWS = ("plain", "recorded", "control")


@dataclass(frozen=True, slots=True)
class Setting:
    """A workload at a size.

    Attributes:
        workload: The program.
        rows: Of its main table.
        pairs: How often each kind of job is run.
        seconds: Of CPU that the counted actions of a plain job take at least.
        folder: Where data and outputs are.
    """

    workload: Workload
    rows: int
    pairs: int
    seconds: float
    folder: Path

    @property
    def key(self) -> str:
        """The name of its entry."""
        return f"capture/{self.workload.name}/{self.rows}"

    @property
    def data(self) -> Path:
        """The folder of generated tables."""
        return self.folder / "data"


def measure(settings: Iterable[Setting], results: Results) -> None:
    """Measure what is missing of each setting, pair by pair."""
    become_subreaper()
    for setting in settings:
        entry = results.entry(setting.key)
        entry["input bytes"] = made(setting.data, setting.workload.reads, setting.rows)
        made(setting.data, setting.workload.reads, WARM)
        if "actions" not in entry:
            entry["actions"] = _calibrated(setting)
            results.save()
        rounds = entry.setdefault("rounds", [])
        while len(rounds) < setting.pairs:
            print(f"{setting.key}: {len(rounds) + 1} of {setting.pairs} …", file=sys.stderr)
            rounds.append(_round(setting, entry["actions"], len(rounds)))
            results.save()
        if "verified" not in entry:
            entry.update(_proved(setting, entry["actions"]))
            results.save()


def _calibrated(setting: Setting) -> int:
    """How many actions take so much CPU; a job that is not counted."""
    spent = _job(setting, "plain", 1)
    return max(1, math.ceil(setting.seconds / spent["cpu"]))


def _round(setting: Setting, actions: int, number: int) -> dict[str, Any]:
    """One job of each kind, another kind first each time."""
    shift = number % len(HOWS)
    found = {how: _job(setting, how, actions) for how in HOWS[shift:] + HOWS[:shift]}
    return {how: found[how] for how in HOWS}


def _job(setting: Setting, how: str, actions: int) -> dict[str, float]:
    """Seconds of the actions and of the whole process."""
    place = setting.folder / "out" / how
    if how == "recorded":
        whole = recorded_job(setting.workload.name, setting.data, setting.rows, place, actions)
    else:
        words = _words(setting.workload.name, setting.data, setting.rows, place, actions)
        whole = cost_of([sys.executable, *words], environment(), _emptied(place))
    (place / "setting").write_text(setting.key)
    inside = Cost(**json.loads((place / "result.json").read_text()))
    return {"wall": inside.wall, "cpu": inside.cpu, "process wall": whole.wall, "process cpu": whole.cpu}


def _words(name: str, data: Path, rows: int, place: Path, actions: int) -> list[str]:
    job = str(ROOT / "bench/records/job.py")
    return [job, name, str(data), str(rows), str(place), str(actions), str(place / "result.json")]


def _emptied(place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


def recorded_job(name: str, data: Path, rows: int, place: Path, actions: int) -> Cost:
    """Run a workload under ``govtool run --records`` with a new store, both in a folder that is emptied before."""
    subprocess.run([*GOVTOOL, "init"], cwd=_emptied(place), env=environment(), check=True, capture_output=True)
    command = [*GOVTOOL, "run", "--records", "--", *_words(name, data, rows, place, actions)]
    return cost_of(command, environment(), place)


def _proved(setting: Setting, actions: int) -> dict[str, Any]:
    """The trace of the last recorded job, verified in a new process, and the bytes that the job left."""
    place = setting.folder / "out" / "recorded"
    mark = place / "setting"
    if not mark.exists() or mark.read_text() != setting.key:  # another setting ran in between
        _job(setting, "recorded", actions)
    output = place / f"out{actions - 1}"
    condition = f"{setting.workload.key} = '{_first(output, setting.workload.key)}'"
    command = [*GOVTOOL, "trace", "back", str(output), "--where", condition, "--verify", "--format", "json"]
    done = subprocess.run([*command, "--limit", "1"], cwd=place, env=environment(), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{setting.key} is not verified: {done.stderr[-2000:]}{done.stdout[-500:]}")
    answer = json.loads(done.stdout)
    found = {"verified": answer["verified"], "engine": answer["engine"], "traced": _exactness(answer)}
    return {**found, **_left(place)}


def _exactness(answer: dict[str, Any]) -> str:
    grades = {each["exactness"] for each in answer["inputs"]}
    return " ".join(sorted(grades))


def _first(output: Path, key: str) -> str:
    """A value of a column: the first that is not null."""
    for file in sorted(output.glob("*.parquet")):
        values = pq.ParquetFile(file)
        for batch in values.iter_batches(1000, columns=[key]):
            found = [value for value in batch.column(0).to_pylist() if value is not None]
            if found:
                return str(found[0])
    raise RuntimeError(f"{output} has no rows")


def _left(place: Path) -> dict[str, int]:
    """Bytes of the record-level tables of a commit, and of the whole store."""
    from govtool.model.records import RECORD_TABLES
    from govtool.store import Store

    store = Store.open(str(place / ".govtool"))
    head = store.head("main")
    assert head is not None
    records = sum(ref.size for ref in store.fragments(head) if ref.table in RECORD_TABLES)
    whole = sum(file.stat().st_size for file in (place / ".govtool").rglob("*") if file.is_file())
    return {"record bytes": records, "store bytes": whole}


def environment() -> dict[str, str]:
    """The environment of jobs and commands: this tree's modules, and no store from outside."""
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    kept = {key: value for key, value in os.environ.items() if key != "GOVTOOL_STORE"}
    return {**kept, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "SPARK_LOCAL_IP": "127.0.0.1"}


def settings(names: Iterable[str], rows: Iterable[int], pairs: int, seconds: float, folder: Path) -> list[Setting]:
    """All workloads at all sizes."""
    return [Setting(WORKLOADS[name], size, pairs, seconds, folder) for name in names for size in rows]
