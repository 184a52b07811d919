"""Questions of a graph about the rows of recorded writes."""

from __future__ import annotations

from os import fspath
from typing import TYPE_CHECKING

from govtool.api.arguments import checked
from govtool.api.opened import OpenedVersion

if TYPE_CHECKING:
    from govtool.answers.trace import TraceReport
    from govtool.app.requests import PathArgument
    from govtool.records.trace.recordset import RecordSet


class RecordQuestions(OpenedVersion):
    """The part of ``Graph`` that traces rows."""

    @checked
    def records(self, output: PathArgument | None = None, *, run: str | None = None) -> RecordSet:
        """Every row of an output, to be narrowed with ``where`` and traced with ``go_back`` and ``go_back_all``.

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
        from govtool.app.trace import record_set

        return record_set(self._reader, self._commit, None if output is None else fspath(output), run)

    @checked
    def trace_back(
        self,
        dataset: PathArgument,
        where: str,
        *,
        run: str | None = None,
        step: bool = False,
        limit: int | None = 1000,
        verify: bool = False,
    ) -> TraceReport:
        """The input rows behind rows of an output.

        Args:
            dataset: A dataset or its path.
            where: A Spark SQL boolean expression over the columns of the output.
            run: As for ``records``.
            step: Go one boundary only.
            limit: The most rows to list of each input; None: all. Counts are whole.
            verify: Evaluate the plan again and compare all its rows with the written ones.

        Raises:
            UsageError: As for ``records``; the condition is mistaken, or no row meets it (``usage.no-rows``).
            EngineError: No engine evaluates the plan exactly, or Spark is needed and missing.
        """
        from govtool.app.trace import ALL_ROWS, trace_back

        most = ALL_ROWS if limit is None else limit
        return trace_back(
            self._reader, self._commit, fspath(dataset), where, run=run, step=step, limit=most, verify=verify
        )

    @checked
    def trace_forward(
        self,
        dataset: PathArgument,
        where: str,
        *,
        run: str | None = None,
        step: bool = False,
        limit: int | None = 1000,
        verify: bool = False,
    ) -> TraceReport:
        """The output rows that rows of an input reached.

        Args:
            dataset: A dataset or its path.
            where: A Spark SQL boolean expression over the columns of the input.
            run: The write; by default the one that read the files which are there now.
            step: Go one boundary only.
            limit: The most rows to list; None: all. Counts are whole.
            verify: As for ``trace_back``.

        Raises:
            UsageError: As for ``trace_back``.
            EngineError: As for ``trace_back``.
        """
        from govtool.app.trace import ALL_ROWS, trace_forward

        most = ALL_ROWS if limit is None else limit
        return trace_forward(
            self._reader, self._commit, fspath(dataset), where, run=run, step=step, limit=most, verify=verify
        )
