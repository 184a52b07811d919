"""Questions of a graph about the rows of recorded writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import fspath
from typing import TYPE_CHECKING

from govtool.api.arguments import Texts, checked, texts
from govtool.api.opened import OpenedVersion

if TYPE_CHECKING:
    from govtool.answers.replay import ReplayReport
    from govtool.answers.trace import TraceReport
    from govtool.app.project.requests import PathArgument
    from govtool.records.sidecar.build import BuiltKeys
    from govtool.records.trace.traced import TracedRecords


class RecordQuestions(OpenedVersion):
    """The part of ``Graph`` that traces rows."""

    @checked
    def records(self, output: PathArgument | None = None, *, run: str | None = None) -> TracedRecords:
        """Every row of an output, to be narrowed with ``where`` and traced with ``go_back`` and ``go_back_all``.

        Rows of an RDD program are lines of text, with the one column ``value``.

        Args:
            output: A dataset or its path; None together with a run.
            run: The write: the id of a run or of an application, or ``JOB~n``. By default the write that left the
                files which are there now.

        Raises:
            UsageError: The store has no records (``usage.no-records``), no recorded write left these files
                (``usage.no-run``), or the plan cannot be traced.
            UnknownNameError: There is no such output or run.
            AmbiguousNameError: Several writes fit (``usage.ambiguous-run``).
        """
        from govtool.app.trace.questions import record_set

        return record_set(self._reader, self._commit, None if output is None else fspath(output), run)

    @checked
    def trace_back(
        self,
        dataset: PathArgument,
        where: str,
        *,
        run: str | None = None,
        step: bool = False,
        all_runs: bool = False,
        limit: int | None = 1000,
        verify: bool = False,
        sidecars: bool = True,
        start: str | None = None,
    ) -> TraceReport:
        """The input rows behind rows of an output.

        Args:
            dataset: A dataset or its path.
            where: A Spark SQL boolean expression over the columns of the output.
            run: As for ``records``.
            step: Go one boundary only.
            all_runs: Go on into the runs that wrote the inputs, as far as the store knows.
            limit: The most rows to list of each input; None: all. Counts are whole.
            verify: Evaluate the plan again and compare all its rows with the written ones.
            sidecars: Look keys up in sidecars, where ``index_records`` made some.
            start: A boundary: ``where`` chooses among its rows, and these are traced.

        Raises:
            UsageError: As for ``records``; the condition is mistaken, or no row meets it (``usage.no-rows``).
            EngineError: No engine evaluates the plan exactly, or Spark is needed and missing.
        """
        from govtool.app.trace.questions import trace_back
        from govtool.app.trace.report import TraceRequest, row_limit

        request = TraceRequest(fspath(dataset), where, run, step, all_runs, row_limit(limit), verify, sidecars, start)
        return trace_back(self._reader, self._commit, request)

    @checked
    def trace_forward(
        self,
        dataset: PathArgument,
        where: str,
        *,
        run: str | None = None,
        step: bool = False,
        all_runs: bool = False,
        limit: int | None = 1000,
        verify: bool = False,
        sidecars: bool = True,
        start: str | None = None,
    ) -> TraceReport:
        """The output rows that rows of an input reached.

        Args:
            dataset: A dataset or its path.
            where: A Spark SQL boolean expression over the columns of the input.
            run: The write; by default the one that read the files which are there now.
            step: Go one boundary only.
            all_runs: Go on into the runs that read the output, as far as the store knows; several runs that read the
                input are all followed.
            limit: The most rows to list; None: all. Counts are whole.
            verify: As for ``trace_back``.
            sidecars: As for ``trace_back``.
            start: As for ``trace_back``; the input only chooses the run.

        Raises:
            UsageError: As for ``trace_back``.
            EngineError: As for ``trace_back``.
        """
        from govtool.app.trace.questions import trace_forward
        from govtool.app.trace.report import TraceRequest, row_limit

        request = TraceRequest(fspath(dataset), where, run, step, all_runs, row_limit(limit), verify, sidecars, start)
        return trace_forward(self._reader, self._commit, request)

    @checked
    def replay(
        self,
        run: str,
        *,
        without: Texts | None = None,
        where: Texts | None = None,
        replaced: Mapping[str, str] | Iterable[str] | None = None,
        of: str | None = None,
        script: str | None = None,
        all_runs: bool = False,
        limit: int | None = 1000,
        to: str | None = None,
    ) -> ReplayReport:
        """Evaluate a recorded run over changed inputs, and compare the rows with those it wrote. Nothing is written.

        Args:
            run: The id of a run or of an application, or ``JOB~n``.
            without: Inputs, or boundaries between them and the output, of which rows are left out.
            where: Which rows, a Spark SQL boolean expression for each of ``without``.
            replaced: By input or boundary, the Parquet file or folder that is read instead: a mapping, or
                ``DATASET=FILE``.
            of: The dataset that is meant, where a run wrote several.
            script: A PySpark script on this machine, a text as a shell takes it or its words. It is run over the traced
                inputs of the output rows for which ``where`` is true, or of all, and nothing that it writes is kept.
            all_runs: Go back through the runs that wrote its inputs, down to those that read what is changed.
            limit: The most rows to list of each kind; None: all. Counts are whole.
            to: A boundary: its rows are compared with those that it had, not those of the output.

        Raises:
            UsageError: Nothing is changed, a condition is mistaken, or files cannot be read.
            UnknownNameError: There is no such run, input or boundary.
            AmbiguousNameError: The run made several writes (``usage.ambiguous-run``).
            EvidenceError: Inputs are gone or have changed (``evidence.changed``).
            EngineError: No engine evaluates the plan exactly, or Spark is needed and missing.
        """
        from govtool.app.replay.recorded_run import replay_run
        from govtool.app.replay.request import ReplayRequest, conditions, replaced_inputs, script_words
        from govtool.app.trace.report import row_limit
        from govtool.errors import UsageError

        words = script_words(script)
        if words:
            if all_runs:
                raise UsageError("a script reads the inputs of one run", code="usage.arguments", location="all_runs")
            some, chosen = conditions(texts(without), ()), " AND ".join(f"({each})" for each in texts(where)) or None
            request = ReplayRequest(run, some, replaced_inputs(replaced), of, row_limit(limit), words, chosen, to=to)
            return replay_run(self._reader, self._commit, request)
        changes = conditions(texts(without), texts(where)), replaced_inputs(replaced)
        return replay_run(
            self._reader, self._commit, ReplayRequest(run, *changes, of, row_limit(limit), all_runs=all_runs, to=to)
        )

    @checked
    def index_records(self, run: str, *, remove: bool = False) -> list[BuiltKeys]:
        """Build the key sidecars of what a run read, so that traces look keys up and scan no input.

        Args:
            run: The id of a run or of an application, or ``JOB~n``.
            remove: Remove them instead.

        Raises:
            UsageError: The store has no records (``usage.no-records``), or the plan cannot be traced.
            UnknownNameError: There is no such run.
            EngineError: DuckDB is missing.
            StoreError: The cache cannot be written.
        """
        from govtool.app.records.runs import concerning, of_run, recorded
        from govtool.app.records.sidecars import index_records

        known = recorded(self._reader, self._commit, concerning(run))
        runs = of_run(self._reader, self._commit, known, run)
        return index_records(self._reader, self._commit, runs, remove=remove)
