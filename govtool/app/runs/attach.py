"""Records a Spark session from within: a notebook, a shell, a job that calls for it itself."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from govtool.app.records.writes import PRIVATE
from govtool.app.runs.job import EAGER_RECORDS, IDENTIFIED, commit_captured, read_captured, repository_state
from govtool.config import load_config

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from govtool.answers.ingest import IngestResult
    from govtool.records.recordset import RecordSet
    from govtool.records.spooled_plans import Planned

_WAIT = 60.0


class Capture:
    """A session that is recorded.

    What it executed is in the graph after `commit`, which may be called again: each time it takes in what there is.
    """

    def __init__(self, recorder: Any, spool: Path, source: str | None, store: str | None) -> None:
        self._recorder = recorder
        self._source = source
        self._store = store
        self.spool = spool
        """The folder of its records."""

    def plans(self) -> list[Planned]:
        """Return the exact plans of what the session executed until now, which ``attach(records=True)`` asks for.

        They hold literals and rows of the driver, which lie in tables of their own in the store.
        """
        from govtool.records.spooled_plans import read_spool

        self._recorder.checkpoint(_WAIT)
        replay = self._recorder.replay
        return list(read_spool(Path(replay.spool.folder))) if replay is not None else []

    def lineage(self, frame: DataFrame) -> RecordSet:
        """Every row of a DataFrame, to be narrowed with ``where`` and traced with ``go_back`` and ``go_back_all``.

        Nothing is written, and nothing runs before rows are requested: Spark evaluates the rewritten plan in a session
        beside this one. Files have to be what they were when the DataFrame was made.

        Args:
            frame: A DataFrame of this process's classic session; it need not have been written or collected.

        Raises:
            UsageError: The session is not recorded with ``records=True`` (``usage.no-records``), or the plan cannot be
                read (``usage.no-plan``) or traced.
        """
        from govtool.app.records.frame_lineage import frame_lineage

        self._recorder.drain(_WAIT)
        return frame_lineage(frame, self._recorder.replay)

    def commit(
        self, *, message: str | None = None, identify: int = IDENTIFIED, row_digests: bool | None = None
    ) -> IngestResult | None:
        """Commit what the session executed until now; None if it was nothing.

        Args:
            message: What the log says.
            identify: Bytes of an output up to which its content is read, so that it can be told again; 0: of none.
            row_digests: Record a digest of the rows of each output; by default as ``[spark] row_digests`` has it.

        Raises:
            GovtoolError: There is no store, or it could not be written.
        """
        from govtool.app.project.project import existing_branch, open_store

        self._recorder.checkpoint(_WAIT)
        captured = read_captured(self.spool, self._source, repository_state(Path.cwd()))
        if not captured.processes:
            return None
        opened = open_store(self._store)
        return commit_captured(
            opened,
            captured,
            identified=identify,
            row_digests=row_digests,
            message=message,
            branch=existing_branch(opened, None),
        )


def attach(
    spark: Any,
    *,
    source: str | None = None,
    store: str | None = None,
    spool: str | None = None,
    records: bool | Literal["eager"] | None = None,
) -> Capture:
    """Record what a session executes from now on.

    Args:
        spark: The session. A Spark Connect session is recorded by the text of its plans.
        source: The name of the source in the graph; default: ``run:`` and the name of the script.
        store: The store; default: as on the command line.
        spool: A folder for its records; default: a new one.
        records: Keep the exact plans, too, for record-level provenance. They hold literals and rows of the driver.
            ``eager``: positions, too, of the records of RDD programs, and of rows that a plan does not determine. None:
            as ``[spark] records`` has it.
    """
    from govtool.spark.live.hook import install
    from govtool.spark.live.job.digest_key import ensure_key
    from govtool.spark.live.process import recorder as recorder_of

    folder = Path(spool) if spool is not None else Path(tempfile.mkdtemp(prefix="govtool-attach-"))
    folder.mkdir(parents=True, exist_ok=True)
    ensure_key()
    recorder = recorder_of(str(folder))
    wanted = bool(load_config(Path.cwd()).records) if records is None else records
    if wanted and recorder.replay is None:
        from govtool.spark.live.records.exact import PlanRecorder
        from govtool.spark.live.spool import Spool

        recorder.replay = PlanRecorder(Spool(str(Path(recorder.spool.folder) / PRIVATE)))
    if recorder.replay is not None and records is not None:
        recorder.replay.eager = records == EAGER_RECORDS
    install(recorder.spool.folder)
    if hasattr(spark, "_jsparkSession"):
        recorder.attach(spark)
    return Capture(recorder, Path(recorder.spool.folder), source, store)
