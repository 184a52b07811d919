"""Spark: how much of the hard set is understood, and what recording a job costs it.

Accuracy: programs of ``fixtures/spark/programs`` of which every output column has exactly the edges that were written
down by hand, from the analyzed plan of a live session and from its event log. Cost: ``bench/spark_overhead.py``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench import programs, spark_overhead

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
    from govtool.spark.live.listener import Recorder
    from govtool.spark.live.spool import Spool

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "spool").mkdir()
        session = session_in(folder)
        recorder = Recorder(Spool(str(folder / "spool")))
        programs.prepare(session)
        recorder.attach(session)
        heard = programs.run_all(session, recorder, programs.load())
        recorder.finish(60)
        version = session.version
        session.stop()
        sources = {
            "analyzed plan, live": programs.live(folder / "spool"),
            "event log": programs.logged(folder / "events"),
        }
    lines = [
        f"Spark {version}, {len(heard)} programs, "
        f"{sum('spark.sql(' not in each.program.code for each in heard)} of them without SQL text.",
        "",
        "| source | programs, columns right | programs, rows right too | not right |",
        "|---|---|---|---|",
    ]
    for source, executed in sources.items():
        columns, both, wrong = 0, 0, []
        for each in heard:
            derivations = programs.stated(executed, each.numbers)
            if programs.differences(each.program, derivations, rows=False):
                wrong.append(each.program.title)
            else:
                columns += 1
                both += not programs.differences(each.program, derivations)
        lines.append(
            f"| {source} | {columns} ({columns / len(heard):.1%}) | {both} ({both / len(heard):.1%})"
            f" | {'; '.join(wrong) or 'none'} |"
        )
    return "\n".join(lines)
