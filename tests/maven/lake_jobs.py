"""Runs a script with published jars, recorded: what its live session and its event log say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from govtool.app.runs.job import environment
from govtool.model import Derivation
from govtool.model.run import Run

SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": "false",  # compiling takes longer than running any of these
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",
}


@dataclass(frozen=True)
class Ran:
    """A job that ran."""

    folder: Path
    """With ``data``, ``events``, ``warehouse`` and the spool."""
    out: str
    err: str
    code: int

    def live(self) -> list[tuple[Run, list[Derivation]]]:
        """What the live session said, run by run, in order."""
        from govtool.capture.spark.live.executions import LiveInterpreter
        from govtool.capture.spark.live.spool import read_spool

        found = []
        for process in read_spool(self.folder / "spool"):
            found += [(each.run, _all(each)) for each in LiveInterpreter(process, "live").actions()]
        return found

    def logged(self) -> list[tuple[Run, list[Derivation]]]:
        """What the event log says, run by run, in order."""
        from bench import programs

        return [(each.run, _all(each)) for each in programs.logged(self.folder / "events")]


def _all(executed) -> list[Derivation]:
    return [*([executed.derivation] if executed.derivation is not None else []), *executed.views]


def run_job(
    folder: Path,
    script: str,
    jars: Sequence[Path],
    settings: Mapping[str, str],
    *,
    capture: bool = True,
    command: Sequence[str] = (),
    before: Sequence[str] = (),
) -> Ran:
    """Run a script in a process of its own.

    Args:
        folder: An empty folder; the script is started there.
        script: Its text; it gets its session by ``SparkSession.builder.getOrCreate()``.
        jars: For ``spark.jars``.
        settings: Of Spark, on top of `SETTINGS`.
        capture: Whether it is recorded, as ``govtool run`` does; the spool is kept.
        command: What runs ``job.py``, which then records by itself; by default Python.
        before: A command that is run first.
    """
    (folder / "events").mkdir(parents=True)
    (folder / "data").mkdir()
    (folder / "spool").mkdir()
    (folder / "job.py").write_text(script, encoding="utf-8")
    conf = {
        **SETTINGS,
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        "spark.jars": ",".join(map(str, jars)),
        **settings,
    }
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text("".join(f"{k} {v}\n" for k, v in conf.items()))
    (folder / "conf" / "log4j2.properties").write_text(
        "rootLogger.level = error\nrootLogger.appenderRef.console.ref = console\nappender.console.type = Console\n"
        "appender.console.name = console\nappender.console.target = SYSTEM_ERR\nappender.console.layout.type = PatternLayout\n"
        "appender.console.layout.pattern = %p %c{1}: %m%n%ex\n"
    )
    own = {
        **(environment(folder / "spool") if capture and not command else os.environ),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    if before:
        subprocess.run(before, cwd=folder, env=own, capture_output=True, check=True)
    words = command or [sys.executable, "job.py"]
    done = subprocess.run(words, cwd=folder, env=own, capture_output=True, text=True, check=False)
    return Ran(folder, done.stdout, done.stderr, done.returncode)


def edges(derivations: Sequence[Derivation], folder: Path) -> dict[str, set[str]]:
    """Edges by target and mode, as ``column <- dataset.column kind``; paths below the job's folder are cut."""
    stated: dict[str, set[str]] = {}
    for derivation in derivations:
        head = f"{short(derivation.target, folder)} {derivation.statement.kind} {derivation.mode}"
        stated.setdefault(head, set()).update(
            f"{edge.target_path} <- {short(edge.source.text, folder)} {edge.kind.label}" for edge in derivation.edges
        )
    return stated


def short(name: str, folder: Path) -> str:
    """A dataset or column without the job's folder."""
    return re.sub(r"\Aquery:.*", "query", name.replace(f"file://{folder}/", ""))
