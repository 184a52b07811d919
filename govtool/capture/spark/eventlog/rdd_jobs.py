"""Jobs of RDDs in an event log: those that write, or hand records to a function of the job.

They are no executions of SQL, and the log has no plan of them and no target: each is a run with a stated break.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from govtool.capture.spark.executed import PLAN_TEXT, Executed, moment
from govtool.capture.spark.redact import first_line
from govtool.model import Diagnostic
from govtool.model.run import Run

MAX_JOBS = 1_000
"""Jobs of RDDs that are kept of an application."""
_HANDED = re.compile(r"(foreach(?:Partition)?) at ")
_IN_BATCH = re.compile(rf"{_HANDED.pattern}|call at \S*clientserver\.py:")
_WRITERS = re.compile(rb"org\.apache\.spark\.internal\.io\.SparkHadoopWriter| at SparkHadoopWriter\.scala:")
"""A job that writes: by its call stack, or, in a stream's batch, which has that of the query's start, by its name."""
_MARKS = (b"foreach at ", b"foreachPartition at ")
_MARKS_IN_BATCH = (*_MARKS, b"clientserver.py:")


@dataclass(slots=True)
class RddJob:
    """A job of RDDs.

    Attributes:
        number: Spark's.
        place: The method, with the file and line of its call, as far as Spark knows it.
        writes: It writes files; else a function is handed the records.
        started: In milliseconds; None: not known.
        ended: In milliseconds; None: it did not.
        error: Why it failed; empty: it did not.
    """

    number: int
    place: str
    writes: bool
    started: int | None
    ended: int | None = None
    error: str = ""


@dataclass(slots=True)
class RddJobs:
    """The jobs of RDDs of one application."""

    found: dict[int, RddJob] = field(default_factory=dict)
    lost: int = 0
    """Jobs beyond those that are kept."""

    def started(self, data: bytes, *, in_batch: bool = False) -> None:
        """Take up the start of a job that is a part of no execution, or of none but a stream's batch.

        There, every call of Python has the same place, whatever it does.

        Raises:
            ValueError: The line is no JSON.
        """
        writes = _WRITERS.search(data) is not None
        if not writes and not any(mark in data for mark in (_MARKS_IN_BATCH if in_batch else _MARKS)):
            return
        job = _rdd_job(json.loads(data), writes, _IN_BATCH if in_batch else _HANDED)
        if job is None or job.number in self.found:
            return
        if len(self.found) < MAX_JOBS:
            self.found[job.number] = job
        else:
            self.lost += 1

    def ended(self, event: dict[str, Any]) -> None:
        """Take up the end of a job."""
        number = event.get("Job ID")
        job = self.found.get(number) if isinstance(number, int) else None
        if job is None:
            return
        time, result = event.get("Completion Time"), event.get("Job Result")
        job.ended = time if isinstance(time, int) else None
        if isinstance(result, dict) and result.get("Result") == "JobFailed":
            error = result.get("Exception")
            message = error.get("Message") if isinstance(error, dict) else ""
            job.error = first_line(str(message or "a job failed"))

    def executed(self, run: Run, is_over: bool) -> Iterator[Executed]:
        """The jobs as runs with a break.

        Args:
            run: A run of the application, from which all but what is a job's own is taken.
            is_over: The application has ended.
        """
        for job in self.found.values():
            yield Executed(_run(job, run, is_over), "", None, "opaque")


def _rdd_job(event: Any, writes: bool, handed_on: re.Pattern[str]) -> RddJob | None:
    if not isinstance(event, dict) or not isinstance(event.get("Job ID"), int):
        return None
    stages = event.get("Stage Infos")
    named = [stage for stage in stages if isinstance(stage, dict)] if isinstance(stages, list) else []
    places = [str(stage.get("Stage Name") or "") for stage in named]
    handed = next((place for place in places if handed_on.match(place)), "")
    if not writes and not handed:
        return None
    started = event.get("Submission Time")
    place = handed or next((place for place in reversed(places) if place), "a job of RDDs")
    return RddJob(event["Job ID"], place, writes, started if isinstance(started, int) else None)


def _run(job: RddJob, run: Run, is_over: bool) -> Run:
    done = (
        "it writes files, and where to" if job.writes else "a function of the job got the rows, and where it put them"
    )
    return replace(
        run,
        id=f"{run.id}/job-{job.number}",
        status="failed" if job.error else "complete" if job.ended is not None else "aborted" if is_over else "running",
        how=PLAN_TEXT,
        started=_moment(job.started),
        ended=_moment(job.ended),
        error=job.error,
        breaks=(Diagnostic("break.rdd", "warning", f"{job.place}: {done} is not in the log of an RDD"),),
    )


def _moment(milliseconds: int | None) -> str | None:
    return moment(milliseconds / 1000) if milliseconds is not None else None
