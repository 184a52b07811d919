"""Runs a job as it is, and commits what its Spark sessions did.

The job gets our streams, our environment and our signals; what it wrote down is read when it is over. Whatever goes
wrong on our side is a warning: the job runs, and its exit code is the answer.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from govtool.answers.coverage import Coverage
from govtool.answers.ingest import IngestResult
from govtool.app.datasets.identify import identify_outputs
from govtool.app.ingest.payload import IngestKey, IngestPayload, ingest_once
from govtool.app.ingest.sql_options import SourceText
from govtool.app.records.tables import RecordChange, RecordTables
from govtool.app.runs.earlier_runs import EarlierRuns, earlier_derivations
from govtool.config import load_config
from govtool.errors import UsageError
from govtool.redaction import failure_of
from govtool.store import Fragment
from govtool.store.names import DEFAULT_BRANCH

if TYPE_CHECKING:
    from govtool.app.rdd.programs import ProgramNotes
    from govtool.app.records.writes import ProcessActions
    from govtool.capture.spark.eventlog.gathered import EventLogFindings
    from govtool.capture.spark.live.spool import Process
    from govtool.model import Derivation
    from govtool.model.shortfall import Shortfall
    from govtool.store import FragmentRef, Store

IDENTIFIED = 1 << 30
"""Bytes of one dataset up to which its content is read to identify it, by default."""
EAGER_RECORDS = "eager"
"""The value of ``records`` that asks for positions of records, too."""
NO_SPARK = "if the job found no PySpark or Java: pip install pyspark for the Python that runs it, and JAVA_HOME"
"""The hint where a job failed without a session and nothing is missing here: another Python than ours may run it."""
_SPARKS_OWN = ("spark-submit", "spark-sql", "pyspark")
"""Commands that come with Spark."""
_TRIES = 8
_FORWARDED = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT")
_TERMINAL = ("SIGINT", "SIGQUIT", "SIGWINCH", "SIGCONT")
"""Signals that a terminal sends to the job by itself."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A job that is over."""

    code: int
    """As `subprocess` has it: negative if a signal ended it."""
    spool: Path
    commit: str
    """The state of its repository: a commit, ``+`` behind it if there were changes; empty if there is none."""


@dataclass(slots=True)
class Captured:
    """The contents of a spool."""

    gathered: EventLogFindings
    processes: int
    warnings: list[str] = field(default_factory=list)
    records: RecordTables = field(default_factory=RecordTables)
    """Exact plans of its writes, where records were asked for."""
    costs: list[str] = field(default_factory=list)
    """What it cost the job to keep positions of records."""


def command_of(words: Sequence[str]) -> list[str]:
    """The command line of a job: a script is run by this Python, anything else is run as it stands.

    Raises:
        UsageError: There is none.
    """
    if not words:
        raise UsageError("no job to run", code="usage.arguments", hint="govtool run -- script.py")
    if words[0].endswith((".py", ".pyw")) or words[0] in ("-m", "-c"):
        return [sys.executable, *words]
    return list(words)


def environment(spool: Path, records: bool | str = False) -> dict[str, str]:
    """The environment of a job whose sessions are to be recorded; with their exact plans where records are wanted."""
    from govtool.app.records.writes import PRIVATE
    from govtool.spark.live.job.digest_key import KEY_FILE, ensure_key, key_file
    from govtool.spark.live.spool import EAGER, RECORDS, SPOOL

    site = Path(__file__).parents[2] / "spark" / "live" / "site"
    paths = [str(site), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    ensure_key()
    ours = {SPOOL: str(spool), KEY_FILE: key_file()}
    if records:
        ours[RECORDS] = str(spool / PRIVATE)
    if records == EAGER_RECORDS:
        ours[EAGER] = "1"
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), **ours}


def run_job(words: Sequence[str], spool: Path | None = None, *, records: bool | str | None = None) -> Finished:
    """Run a job to its end.

    Args:
        words: The command line.
        spool: Where it writes down what it does; by default a new folder.
        records: Whether it writes down exact plans, too, which hold literals and rows of the driver; ``eager``: and
            positions of records. None: as ``[spark] records`` has it.

    Raises:
        UsageError: There is no such command (``usage.command``), or the configuration is mistaken.
    """
    command = command_of(words)
    if records is None:
        records = bool(load_config(Path.cwd()).records)
    folder = spool if spool is not None else Path(tempfile.mkdtemp(prefix="govtool-run-"))
    with contextlib.suppress(OSError):  # then nothing is recorded, which is said at the end
        folder.mkdir(parents=True, exist_ok=True)
    state = repository_state(_folder_of(command))
    try:
        job = subprocess.Popen(command, env=environment(folder, records))
    except OSError as error:
        if spool is None:
            remove_spool(folder)
        hint = missing_for_spark() if Path(command[0]).name in _SPARKS_OWN else ""
        raise UsageError(
            f"cannot run {command[0]}: {error.strerror or error}",
            code="usage.command",
            hint=hint or "govtool run -- script.py",
        ) from error
    with _forwarding(job):
        code = job.wait()
    return Finished(code, folder, state)


def missing_for_spark() -> str:
    """What this machine lacks to run a job of Spark, as a hint; empty where nothing is known to be missing."""
    if find_spec("pyspark") is None:
        return "PySpark is not installed: pip install 'govtool[spark]', and Java 17 or newer; see govtool doctor"
    home = os.environ.get("JAVA_HOME", "")
    if home and shutil.which("java", path=f"{home}/bin") is None:
        return f"JAVA_HOME is {home}, which has no bin/java: Spark needs Java 17 or newer; see govtool doctor"
    if not home and shutil.which("java") is None:
        return "there is no Java: install Java 17 or newer, or set JAVA_HOME; see govtool doctor"
    return ""


@contextmanager
def _forwarding(job: subprocess.Popen[bytes]) -> Iterator[None]:
    """Hand signals on to a job, but for those that the terminal sends to both of us."""

    def forward(number: int, frame: FrameType | None) -> None:
        if signal.Signals(number).name in _TERMINAL and _in_foreground():
            return
        if job.poll() is None:
            job.send_signal(number)

    previous: dict[int, Any] = {}
    for name in _FORWARDED:
        number = getattr(signal, name, None)
        if number is not None:
            try:
                previous[number] = signal.signal(number, forward)
            except (OSError, ValueError):  # not the main thread
                continue
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.__stdin__.fileno() if sys.__stdin__ is not None else 0) == os.getpgrp()
    except (OSError, ValueError, AttributeError):
        return False


def exit_as(code: int) -> int:
    """The exit code for our own end; if a signal ended the job, the same signal ends us."""
    if code >= 0:
        return code
    with contextlib.suppress(OSError, ValueError):  # SIGKILL has no other way anyhow
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    return 128 - code


def repository_state(folder: Path) -> str:
    """The commit that is checked out in a folder, with ``+`` behind it unless git says that no file was changed since;
    empty where there is none.
    """

    def git(*words: str) -> str | None:
        try:
            process = subprocess.run(
                ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=20, check=False
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return process.stdout.strip() if process.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    if not commit:
        return ""
    return commit if git("status", "--porcelain", "--untracked-files=no") == "" else f"{commit}+"


def _folder_of(command: Sequence[str]) -> Path:
    """Return the folder of the script in a command line."""
    for word in command:
        if word.endswith((".py", ".pyw")) and Path(word).is_file():
            return Path(word).resolve().parent
    return Path.cwd()


# ---- what it did --------------------------------------------------------------------------------------------------


def read_captured(spool: Path, source: str | None = None, commit: str = "") -> Captured:
    """Read what a job's processes wrote down.

    Args:
        spool: Its folder.
        source: The name of the source; default: ``run:`` and the script's name.
        commit: The state of the script's repository.
    """
    from govtool.app.records.writes import PRIVATE, process_actions
    from govtool.capture.spark.eventlog.gathered import EventLogFindings
    from govtool.capture.spark.executed import PLAN
    from govtool.capture.spark.live.executions import LiveInterpreter
    from govtool.capture.spark.live.runs import script_name
    from govtool.capture.spark.live.spool import read_spool

    processes = [process for process in read_spool(spool) if process.sessions or process.executions]
    name = source or f"run:{script_name(processes[0]) if processes else 'spark'}"
    gathered = EventLogFindings(name, how=PLAN)
    warnings, actions = [], []
    records = (spool / PRIVATE).is_dir()
    for process in processes:
        gathered.applications += len({s.get("application") for s in process.sessions})
        interpreter = LiveInterpreter(process, name, commit=commit)
        executed = list(interpreter.actions()) if records else interpreter.actions()
        for action in executed:
            gathered.take(action)
        if records:
            actions.append(process_actions(interpreter, list(executed)))
        warnings += _warnings(process)
    tables, notes = _record_tables(spool, actions)
    return Captured(gathered, len(processes), [*warnings, *notes.problems], tables, notes.costs)


def _record_tables(spool: Path, actions: Sequence[ProcessActions]) -> tuple[RecordTables, ProgramNotes]:
    """The traceable part of a job's writes, and remarks on the rest. Nothing here costs the job's lineage."""
    from govtool.app.rdd.programs import ProgramNotes, add_programs
    from govtool.app.records.frame_positions import add_frame_positions
    from govtool.app.records.writes import PRIVATE, reason_of, recorded_writes, untraceable, untraceable_writes

    tables, notes = RecordTables(), ProgramNotes()
    try:
        writes, notes.problems = recorded_writes(spool, actions)
    except Exception as error:  # a bug of ours
        return tables, ProgramNotes([f"no rows can be traced: {failure_of(error)}"])
    for write in writes:
        try:
            tables.add(write)
        except Exception as error:
            notes.problems.append(f"rows of {write.run_id} cannot be traced: {failure_of(error)}")
    try:
        add_programs(tables, spool / PRIVATE, actions, notes)
    except Exception as error:
        notes.problems.append(f"no rows of RDDs can be traced: {failure_of(error)}")
    for action in untraceable_writes(actions, tables.runs):
        reason = reason_of(action, notes.problems)
        tables.add_untraceable(action.run.id, action.target, reason)
        notes.problems.append(untraceable(action.run.id, reason))
    notes.problems = list(dict.fromkeys(notes.problems))
    try:
        add_frame_positions(tables, spool / PRIVATE, actions, notes)
    except Exception as error:
        notes.problems.append(f"no positions of DataFrames are kept: {failure_of(error)}")
    return tables, notes


def _warnings(process: Process) -> list[str]:
    found = [f"while it ran: {trouble}" for trouble in dict.fromkeys(process.troubles)]
    if process.torn:
        found.append(f"{process.torn} records were cut off")
    if process.end is None:
        found.append("the job's process was killed, or could not write to the spool: its last records may be missing")
    elif process.end.get("lost"):
        found.append(f"{process.end['lost']} records were lost while it ran")
    elif process.end.get("undrained"):
        found.append("the job ended before all of its records were written down")
    return found


def commit_captured(
    store: Store,
    captured: Captured,
    *,
    identified: int = IDENTIFIED,
    row_digests: bool | None = None,
    message: str | None = None,
    author: str | None = None,
    branch: str = DEFAULT_BRANCH,
) -> IngestResult:
    """Commit what a job did, beside what earlier runs of it did.

    Args:
        store: The store.
        captured: What its spool says.
        identified: Bytes of an output up to which its content is read, so that it can be told again; 0: of none.
        row_digests: Make a digest of the rows of each output, too; None: as ``[spark] row_digests`` has it.
        message: What the log says.
        author: By default the user.
        branch: Where to commit.

    Raises:
        StoreError: the commit could not be written; the store is as it was.
    """
    gathered = captured.gathered
    source = gathered.source
    if identified:
        rows = load_config(Path.cwd()).row_digests if row_digests is None else row_digests
        gathered.runs = identify_outputs(gathered.runs, gathered.places, identified, rows=rows)
    base = store.head(branch)
    for _ in range(_TRIES):
        earlier = EarlierRuns.of(store, base, source)
        again = earlier.written_again({run.id for run in gathered.runs})
        kept = tuple(each.ref for each in earlier.fragments if each not in again)
        if base is not None:
            gathered.resume(earlier_derivations(store, base, source), [run for each in again for run in each.runs()])
        records = captured.records.beside(store, base, source, earlier.applications)
        known = sorted(earlier.ids.union(run.id for run in gathered.runs))
        ids = json.dumps([source, *known, *records.identity])
        batch = f"run:{hashlib.sha256(ids.encode()).hexdigest()}"
        key = IngestKey("run", source, batch, captured.processes, SourceText(Path.cwd()))
        payload = partial(_payload, captured, records, kept)
        result = ingest_once(store, key, payload, message=message, author=author, branch=branch)
        if not result.created or result.commit.parent == (base.id if base is not None else None):
            break
        # Others committed meanwhile; if it was another run of this job, what it said must not be lost.
        base = store.resolve(str(result.commit.seq - 1), branch)
    return result


def _payload(captured: Captured, records: RecordChange, kept: tuple[FragmentRef, ...]) -> IngestPayload:
    """Turn the actions of a job into the payload of its source; ``kept`` are fragments of its earlier runs."""
    from govtool.model.run import RUNS, encode_runs

    gathered = captured.gathered
    derivations = gathered.derivations()
    of_statements = [d for d in derivations if d.statement.kind not in ("alias", "dataset")]
    understood = sum(d.status == "understood" for d in of_statements)
    partial, opaque = len(of_statements) - understood, gathered.outcomes["opaque"]
    coverage = Coverage(
        statements=understood + partial + opaque,
        understood=understood,
        partial=partial,
        opaque=opaque,
        runs_understood=understood,
        runs_partial=partial,
        runs_opaque=opaque,
    )
    runs = [Fragment(gathered.source, RUNS, encode_runs(gathered.runs), len(gathered.runs))] if gathered.runs else []
    return IngestPayload(
        gathered.source,
        "spark",
        captured.processes,
        coverage,
        derivations,
        tuple(dict.fromkeys((*gathered.notes, *(note for d in of_statements for note in d.diagnostics)))),
        _shortfalls(gathered, of_statements),
        counts={
            "applications": gathered.applications,
            "executions": sum(gathered.outcomes.values()),
            "runs": dict(sorted(gathered.statuses.items())),
            "breaks": dict(sorted(gathered.breaks.items())),
        },
        more=(*runs, *records.added),
        kept=(*kept, *records.kept),
    )


def _shortfalls(gathered: EventLogFindings, derivations: Sequence[Derivation]) -> tuple[Shortfall, ...]:
    """What was not fully understood of a job; of earlier runs of it, only what left a derivation."""
    from govtool.capture.spark.eventlog.gathered import why_incomplete
    from govtool.model.shortfall import Shortfall

    partial = (d for d in derivations if d.status != "understood")
    found = [("partial", why_incomplete(d, d.diagnostics, d.statement.file)) for d in partial]
    found += [each for each in gathered.unclear if each[0] == "opaque"]
    return tuple(Shortfall(outcome, note, 1, "", "") for outcome, note in found)


def remove_spool(spool: Path) -> None:
    """Remove what was committed, and the folder if nothing else is in it."""
    from govtool.app.records.writes import PRIVATE
    from govtool.spark.live.spool import POSITIONS

    for folder in (spool / PRIVATE / POSITIONS, spool / PRIVATE, spool):
        with contextlib.suppress(OSError):
            for file in (*folder.glob("*.jsonl"), *folder.glob("*.positions")):
                file.unlink()
            folder.rmdir()
