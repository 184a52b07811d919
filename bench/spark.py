"""Spark: how much of the hard set is understood, and what recording a job costs it.

Accuracy: programs of ``fixtures/spark/programs`` of which every output column has exactly the edges that were written
down by hand, from the analyzed plan of a live session and from its event log. Cost: ``bench/spark_overhead.py``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import programs, spark_overhead

if TYPE_CHECKING:
    from govtool.capture.spark.executed import Executed

TITLE = "## Spark jobs: what is understood, and what recording them costs"


def section() -> str:
    """Measure, and return the section of the page."""
    return "\n".join([TITLE, "", _accuracy(), "", spark_overhead.section()])


def session_in(folder: Path, more: Mapping[str, str] | None = None) -> Any:
    """A session with its warehouse and its event log in a folder, with more settings."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    (folder / "events").mkdir()
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.sql.codegen.wholeStage": "false",
        **(more or {}),
    }
    builder = SparkSession.builder.master("local[2]").appName("govtool-bench")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def _accuracy() -> str:
    # A process each: what a recorder patches in pyspark stays.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        version, heard, found = pool.submit(_ran, {}).result()
        _, again, extended = pool.submit(_ran, {"spark.sql.ui.explainMode": "extended"}).result()
    lines = [
        f"Spark {version}, {len(heard)} programs, "
        f"{sum('spark.sql(' not in each.program.code for each in heard)} of them without SQL text.",
        "",
        "| source | programs, columns right | programs, rows right too | not right |",
        "|---|---|---|---|",
        _row("analyzed plan, live", heard, found["live"]),
        _row("event log", heard, found["log"]),
        _row("event log, `spark.sql.ui.explainMode=extended`", again, extended["log"]),
    ]
    return "\n".join(lines)


def _ran(settings: Mapping[str, str]) -> tuple[str, list[programs.Heard], dict[str, list[Executed]]]:
    """Run all programs in a session: Spark's version, what ran, and what the live session and its event log say."""
    from govtool.spark.live.listener import Recorder
    from govtool.spark.live.spool import Spool

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "spool").mkdir()
        session = session_in(folder, settings)
        recorder = Recorder(Spool(str(folder / "spool")))
        programs.prepare(session)
        recorder.attach(session)
        heard = programs.run_all(session, recorder, programs.load())
        recorder.finish(60)
        version = session.version
        session.stop()
        return version, heard, {"live": programs.live(folder / "spool"), "log": programs.logged(folder / "events")}


def _row(source: str, heard: Sequence[programs.Heard], executed: Sequence[Executed]) -> str:
    """What a source says right of how many programs, and of which it does not."""
    columns, both, wrong = 0, 0, []
    for each in heard:
        derivations = programs.stated(executed, each.numbers)
        if programs.differences(each.program, derivations, rows=False):
            wrong.append(each.program.title)
        else:
            columns += 1
            both += not programs.differences(each.program, derivations)
    shares = [f"{count} ({count / len(heard):.1%})" for count in (columns, both)]
    return f"| {source} | {shares[0]} | {shares[1]} | {'; '.join(wrong) or 'none'} |"
